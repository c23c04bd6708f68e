// SPDX-License-Identifier: Apache-2.0
/*
 * A process on a device: its figures since its begin and in the window. A device: the sums over its
 * processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/estimate.h"
#include "activity/span_union.h"
#include "base/saturated.h"
#include "cuda/kernels.h"
#include "model/trace.h"

struct cuda;
struct process;
struct stream;

enum { USAGES_MAX = 128 }; /* devices that one process used; index 0: not known which */

struct leak {
	bool started;
	uint32_t rises; /* windows in a row in which both rose */
	int64_t last_ns;
	uint64_t ledger;
	double nvml;
};

/* What the device did for the process, as CUPTI measured it, beside what was estimated: measured.c */
enum { MEASURED_WINDOWS = 64, MEASURED_PARTS = 16 };
struct measured_busy {
	uint32_t windows_n; /* in all: of these the newest are kept */
	struct measured_estimate {
		uint64_t begin_ns, end_ns;
		double busy, launches;
	} windows[MEASURED_WINDOWS];
	uint32_t parts_n; /* that wait for the window that they are in */
	struct measured_part {
		uint64_t begin_ns, end_ns, busy_ns;
	} parts[MEASURED_PARTS];
	/* Of the time that is to be compared next: */
	double seconds, busy, estimated, launches;
	double compared_seconds; /* in all */
	uint64_t compared_ns; /* when the newest time that was compared ended */
};

/* NVML's figures, as last received. */
struct nvml_figures {
	double busy, observed, memory;
	uint64_t window; /* in which they were received; 0: never */
	int64_t received_ns; /* when that window began */
};

/* Memory that a launch takes, by class: rows TRACED_LAUNCH_SHARED... of metrics.def. */
enum { LAUNCH_CLASSES = 3 };

/*
 * A process on a device. Rows are those of metrics.def: counts, bytes, nanoseconds where the unit is seconds.
 */
struct usage {
	uint32_t device; /* index of struct cuda's uuids */
	bool touched; /* has figures to show */
	bool shown_once; /* existed at the last window */
	bool pending; /* work was pending at the last window */
	uint64_t now[TRACED_METRICS];
	uint64_t shown[TRACED_METRICS]; /* as of the last window */
	double active, cores, error; /* gauges of the last window */
	bool leaks;
	uint64_t peaks[TRACE_MEMORIES]; /* since the window began, by enum trace_memory */
	double window_peaks[TRACE_MEMORIES]; /* of the newest window */
	bool scaled; /* these are scaled: together the processes had more than the device has */
	uint64_t work; /* kernels started, including those of graphs: the work that the estimate counts */
	uint64_t work_shown;
	uint64_t device_live; /* bytes of device memory */
	uint32_t unsized; /* arrays, whose bytes no call shows */
	bool late_arrays;
	struct span_union *spans; /* since the last window; made at first use */
	/* While a window is closed: */
	uint64_t pending_first_ns;
	double pending_core_ns;
	struct estimate estimate;
	struct measured_busy *measured; /* NULL: nothing was yet */
	struct leak leak;
	struct nvml_figures nvml;
	struct share rest; /* launches without a row, and time of graphs */
	uint64_t busy_ns; /* the estimate of the last window */
	double weight, weight_done; /* while it is split */
	uint64_t ns_done;
	double classes[LAUNCH_CLASSES]; /* mean bytes of a launch in the last window; NAN: not known */
};

/* Times between launches: how many were up to each of traced_le, and beyond the one before it. */
struct launch_gaps {
	uint64_t count[TRACED_LE], ns;
};

struct total {
	bool touched;
	struct launch_gaps gaps;
	uint32_t device_cores; /* 0: not known */
	uint64_t device_memory; /* bytes; 0: not known */
	bool doubtful; /* includes counters of processes with missed calls */
	bool results_seen, results_missed; /* of some processes, of others not */
	double all[TRACED_METRICS], other[TRACED_METRICS];
	/* Of the last window: */
	double active, cores;
	uint64_t live[TRACED_METRICS];
	bool live_known, live_doubtful;
	double window_peaks[TRACE_MEMORIES];
	bool scaled;
	/* Of all processes, in the order of their calls: */
	uint64_t device_live, peak;
	bool peak_doubtful;
	struct span_union *spans;
	struct launch_sums kernels, kernels_other;
};

static inline void usage_count(struct usage *usage, enum traced_metric row, uint64_t n)
{
	usage->now[row] = add_saturated(usage->now[row], n);
	usage->touched = true;
}

/* stream.c */
void usage_span(struct cuda *cuda, struct usage *usage, uint64_t start, uint64_t end, uint64_t likely_end,
		double cores);
double usage_cores(const struct cuda *cuda, const struct usage *usage, const struct stream *s);

/* measured.c: a window of the process is closed, in which so much was estimated */
void measured_window(struct usage *usage, uint64_t begin_ns, uint64_t end_ns, double busy, double launches);

/* fill.c: whether what a process has allocated is known, and how well */
uint8_t live_presence(const struct process *p, const struct usage *u, enum traced_metric row);
uint8_t counter_presence(const struct process *p, enum traced_metric row);

/* leak.c */
void leak_window(struct leak *leak, int64_t now_ns, uint64_t ledger_bytes, double nvml_bytes);
bool leak_verdict(const struct leak *leak);
