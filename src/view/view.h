// SPDX-License-Identifier: Apache-2.0
/*
 * Views: one file per format, each a pure function from a snapshot to text. They call no source and have no
 * state, so every page shows the same data, and a hanging driver makes values old but no page slow. Any
 * thread may render.
 *
 * All append to `out` and return 0, or -ENOMEM/-E2BIG when the buffer's limit was hit (then the text is
 * incomplete and must not be shown). A value is printed only if presence_is(); absent values are omitted.
 */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "model/snapshot.h"
#include "view/dcgm/fields.h"
#include "view/groups.h"

enum exposition { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS, EXPOSITIONS };
/* Best format for an Accept header (NULL: Prometheus text); its Content-Type. */
enum exposition exposition_negotiate(const char *accept);
const char *exposition_content_type(enum exposition format);

/* What /metrics has besides: Prometheus' protobuf, delimited messages MetricFamily. */
enum { METRICS_PROTOBUF = EXPOSITIONS, METRICS_FORMATS };
#define METRICS_PROTOBUF_TYPE \
	"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
/* An exposition, or METRICS_PROTOBUF. */
unsigned metrics_negotiate(const char *accept);

/* @families: those of this list (base/glob.h) only; NULL: all. */
int view_prometheus(const struct snapshot *snapshot, enum exposition format, const char *families,
		    struct strbuf *out);

/* The same in protobuf. @native: histograms are also native ones. */
int view_metrics_protobuf(const struct snapshot *snapshot, const char *families, bool native,
			  struct strbuf *out);

/*
 * The same as a page of samples (samples/page.h) in a file in memory: a descriptor, the caller's, and its
 * size; or -errno.
 */
int view_samples(const struct snapshot *snapshot, const char *families, uint32_t *ret_bytes);

/* The DCGM exporter's page. */
int view_dcgm(const struct snapshot *snapshot, const struct dcgm_style *style, enum exposition format,
	      struct strbuf *out);

enum json_sections {
	JSON_GPUS = 1,
	JSON_PROCESSES = 2,
	JSON_NODE = 4,
	JSON_TRACE = 8,
	JSON_KERNELS = 16,
	JSON_EVENTS = 32,
	/* GPUs, processes and node without members that are null, and those that screens do not show */
	JSON_BRIEF = 64,
};
/* Whether JSON_BRIEF leaves members of this name out, whatever their value. */
bool json_brief_omits(const char *name, size_t length);
/*
 * An object with schema, time, simulated and the requested keys; NULL: out of memory. The caller owns the
 * reference. JSON_TRACE and JSON_KERNELS are only supported by view_json_text(), which never has all of them
 * in memory at once.
 */
json_t *view_json(const struct snapshot *snapshot, unsigned sections);
int view_json_text(const struct snapshot *snapshot, unsigned sections, struct strbuf *out);
/* Operators of PyTorch, as a JSON array; null: they are not traced. */
int view_operators(const struct trace_view *view, struct strbuf *out);
/*
 * The kernels of JSON_KERNELS, alone. No further kernel is written after @bytes of text; those left out are
 * counted. 0: no limit.
 */
int view_kernels(const struct snapshot *snapshot, size_t bytes, struct strbuf *out);

/*
 * Answers of atop's protocol (version 1, else the newest, 2), without the 4-byte header; at most
 * ATOP_ANSWER_MAX bytes and ATOP_GPUS_MAX GPUs, which are atop's own limits.
 */
enum { ATOP_ANSWER_MAX = 8192, ATOP_GPUS_MAX = 32 };
int view_atop_types(const struct snapshot *snapshot, unsigned version, struct strbuf *out);
/*
 * Hash of the list of GPUs. atop matches statistics to types by position, and 2.8 crashes when an unannounced
 * GPU appears: a client that requested the types for another layout must be disconnected, and will request
 * them again.
 */
uint64_t view_atop_layout(const struct snapshot *snapshot);
/*
 * Statistics. `exit_seq` is the last exit record this client has received; *ret_exit_seq the last one in this
 * answer: records that did not fit come with the next answer. *ret_truncated: number of live processes left
 * out.
 */
int view_atop_stats(const struct snapshot *snapshot, unsigned version, uint64_t exit_seq, struct strbuf *out,
		    uint64_t *ret_exit_seq, unsigned *ret_truncated);

/* Tables, from this program's own snapshot or an agent's (snapshot/read.h). */
struct table_options {
	bool colour;
	bool html; /* elements instead of lines; then neither colour nor width counts */
	unsigned width; /* 0: unlimited */
	unsigned last; /* of processes: utilisation over recent_seconds[last - 1]; 0: the newest interval */
	bool selected; /* of processes: only some are in the snapshot (view/fields/select.h) */
};
/* Temperature from which a GPU is highlighted; not an alarm. */
enum { GPU_WARM_CELSIUS = 85 };
enum { GPU_WARNING_MAX = 160 };
/* What decides the state comes first. */
enum gpu_warning_kind {
	GPU_WARNING_RECOVERY, /* the driver asks for a reset or reboot */
	GPU_WARNING_ROWS_FAILED,
	GPU_WARNING_HEAT,
	GPU_WARNING_ROWS_PENDING,
	GPU_WARNING_PAGES_PENDING,
	GPU_WARNING_LINKS,
	GPU_WARNINGS
};
struct gpu_warning {
	const char *state; /* one word, for a column */
	bool severe; /* the GPU should not be used as it is */
	char text[GPU_WARNING_MAX]; /* what is wrong and what should be done */
};
/*
 * The i-th of GPU_WARNINGS checks of a GPU (enum gpu_warning_kind). Returns false if there is nothing to
 * warn of or the state is unknown. The first that returns true has the GPU's state.
 */
bool gpu_warning(const struct entity *gpu, unsigned i, struct gpu_warning *ret_warning);

/* The state of a GPU or instance as a word: "ok", "HOT", "LOST", "stale 12 s", "RELEASED". */
enum gpu_severity { GPU_WORKS, GPU_DOUBTFUL, GPU_UNUSABLE };
struct gpu_state {
	char word[24];
	enum gpu_severity severity;
};
void gpu_state(const struct snapshot *s, const struct entity *e, struct gpu_state *ret_state);
/*
 * Appends what slows its clocks, by its names: "none" if nothing does; nothing if that is not known. False:
 * nothing, but that it is idle.
 */
bool gpu_throttled_by(const struct entity *e, struct strbuf *out);

int table_gpus(const struct snapshot *snapshot, const struct table_options *options, struct strbuf *out);
int table_processes(const struct snapshot *snapshot, const struct table_options *options, struct strbuf *out);
/* The processes added up by @by; by GROUP_NONE is not supported. */
int table_groups(const struct snapshot *snapshot, enum group_by by, const struct table_options *options,
		 struct strbuf *out);
/*
 * The same as JSON: of @document, from which the snapshot was decoded, what is neither a GPU's nor a
 * process's; `by` and `groups`. The document is changed.
 */
int json_groups(const struct snapshot *snapshot, enum group_by by, json_t *document, struct strbuf *out);
int table_node(const struct snapshot *snapshot, const struct table_options *options, struct strbuf *out);
/*
 * These tables of GPUs, processes and the node as one HTML document. @banner: a line above it, or NULL.
 * @reload: a browser loads it again every five seconds.
 */
int view_html(const struct snapshot *snapshot, const char *banner, bool reload, struct strbuf *out);

/*
 * Kernels of the snapshot's traced processes, sorted by time; then kernels without a name, and the number of
 * rows left out. @full: names of any length, unshortened. @rows: maximum number; 0: unlimited.
 */
int table_kernels(const struct snapshot *snapshot, const struct table_options *options, bool full,
		  size_t rows, struct strbuf *out);
/* Operators of PyTorch, those with the most time first. @rows: maximum number; 0: unlimited. */
int table_operators(const struct trace_view *view, const struct table_options *options, size_t rows,
		    struct strbuf *out);
/* After an empty line, the traced processes that never freed allocations; nothing if there are none. */
int table_leaked(const struct snapshot *snapshot, const struct table_options *options, struct strbuf *out);
