// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of gpusonde's own exposition page; view_prometheus() puts them together. Each writes whole
 * families.
 *
 *   prometheus.c           the page: identity and state of GPUs, every GPU row of the table, node, agent
 *   prometheus_process.c   processes with series of their own, what the others add up to, workloads
 *   prometheus_trace.c     traced processes, likewise, and devices with all of theirs
 *   prometheus_kernels.c   kernels that these launch
 *   prometheus_calls.c     traced calls, errors and latencies by name of the call
 */
#pragma once

#include "view/labels.h"
#include "view/page.h"

struct exposition_page {
	const struct snapshot *s;
	struct page page;
	struct labels entities; /* gpu="0",uuid="GPU-..." and gi, ci of an instance */
};

/*
 * The label that tells a family's rows apart, e.g. engine="gpu"; "" for a row without one. Valid until the
 * next call with @out.
 */
const char *row_labels(const struct metric *metric, struct strbuf *out);

void family_of(const struct metric *metric, const char *prefix, const char *name, struct family *ret_family);

/* First row after @i that is of another family. */
unsigned family_end(const struct metric *rows, unsigned n, unsigned i);

int prometheus_processes(struct exposition_page *p);
int prometheus_workloads(struct exposition_page *p);
int prometheus_trace(struct exposition_page *p);
int prometheus_kernels(struct exposition_page *p);
int prometheus_calls(struct exposition_page *p);

/* prometheus_trace.c, for other parts that show traced processes. */
/*
 * As its other series name the device; by UUID alone where the driver has not shown it, not at all where it
 * is not known which.
 */
void traced_device_labels(const struct exposition_page *p, const char *uuid, struct strbuf *entry);
/*
 * Processes are sorted by PID. Of those that share the one of @first, which is the first of them, that which
 * may have series; *ret_end is behind the last of them.
 */
uint32_t traced_youngest(const struct trace_view *view, uint32_t first, uint32_t *ret_end);
