// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of this folder share. Things are named by index (into a process's arrays, which move when
 * they grow), never kept as pointers across a call that may add one.
 *
 *   cuda.c      events to handlers, limits, statistics          stream.c   streams: handles, generations, pending work
 *   pool.c      rows with a free list                           sync.c     what a wait or query proves to be over
 *   process.c   incarnations                                    mark.c     CUDA events, captures, graphs
 *   context.c   contexts, current ones of threads               span.c     union of intervals in bounded memory
 *   device.c    the node's devices, whose a context is          estimate.c busy time, learned from NVML
 *   visible.c   CUDA_VISIBLE_DEVICES                            ledger.c   allocations; leak.c: the verdict
 *   holder.c    which threads hold it
 *   window.c    aggregates of a window                          fill.c     into a view
 *   kernels.h   kernels: handle.c function.c row.c kernel.c share.c fill_kernel.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "activity/estimate.h"
#include "activity/pool.h"
#include "activity/span_union.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "base/saturated.h"
#include "cuda/cuda.h"
#include "cuda/kernels.h"

enum {
	NONE = POOL_NONE,
	DEVICES_MAX = 1024, /* UUIDs ever seen; index 0 is "", not known which */
	VISIBLE_MAX = 64, /* devices that one process sees */
	USAGES_MAX = 128, /* devices that one process used; index 0: not known which */
	VALUE_MAX = 4096, /* CUDA_VISIBLE_DEVICES; 64 MIG UUIDs are 2,624 bytes */
	ENVIRONMENT_MAX = 1 << 18,
	STACK_MAX = 8, /* contexts that a thread has pushed */
	DEPENDENCIES_MAX = 8, /* waits of a stream for others whose work is still pending */
	CAPTURES_MAX = 64, /* under way in a process */
	LINGER_WINDOWS =
		5, /* that a process is shown for beyond its end, while names of what it launched are to come */
	CONTEXT_UNKNOWN = 0, /* index of the context of threads whose current one is not known */
	ORDINAL_UNKNOWN = -1,
};
#define CAPTURE_LOST UINT32_MAX

/* ---- leaks ---- */

struct leak {
	bool started;
	uint32_t rises; /* windows in a row in which both rose */
	int64_t last_ns;
	uint64_t ledger;
	double nvml;
};

/* NVML's figures, as last heard. */
struct nvml_figures {
	double busy, observed, memory;
	uint64_t window; /* in which it was heard; 0: never */
	int64_t heard_ns; /* when that window began */
};

/* Memory that a launch takes, by class: rows TRACED_LAUNCH_SHARED... of metrics.def. */
enum { LAUNCH_CLASSES = 3 };

/*
 * A process on a device. Rows are those of metrics.def: counts, bytes, nanoseconds where the unit is seconds.
 */
struct usage {
	uint32_t device; /* index of struct cuda's uuids */
	bool touched; /* there is something to show */
	bool shown_once; /* it was there at the last window */
	bool pending; /* work was pending at the last window */
	uint64_t now[TRACED_METRICS];
	uint64_t shown[TRACED_METRICS]; /* as of the last window */
	double active, cores, error; /* gauges of the last window */
	bool leaks;
	uint64_t work; /* kernels started, those of graphs too: what the estimate counts */
	uint64_t work_shown;
	uint64_t device_live; /* bytes of the device's own */
	uint32_t unsized; /* arrays, whose bytes no call tells */
	bool late_arrays;
	struct span_union *spans; /* since the last window; made at first use */
	/* While a window is closed: */
	uint64_t pending_first_ns;
	double pending_core_ns;
	struct estimate estimate;
	struct leak leak;
	struct nvml_figures nvml;
	struct share rest; /* kernels: of what has no row, and time of graphs */
	uint64_t busy_ns; /* the estimate of the last window */
	double weight, weight_done; /* while it is split */
	uint64_t ns_done;
	double classes[LAUNCH_CLASSES]; /* mean bytes of a launch in the last window; NAN: not known */
};

/* ---- streams ---- */

struct dependency {
	uint32_t stream, generation;
	uint64_t upto; /* its work up to here */
	uint64_t at; /* is over before what was started after here */
};

struct stream {
	uint32_t next_free; /* the pool's */
	uint32_t generation; /* 0: free */
	uint64_t handle;
	uint32_t tid; /* of a per-thread default stream */
	uint16_t context;
	bool legacy, own; /* default streams: the legacy one, a thread's own */
	bool non_blocking; /* no order with the legacy stream; also when its flags are not known */
	bool dead; /* destroyed, with work pending */
	uint32_t capture; /* plus one; 0: none; CAPTURE_LOST: one that found no room */
	uint32_t previous, next; /* of those with pending work, plus one */
	bool pending;
	uint64_t first_ns, last_return_ns; /* of the pending work */
	uint64_t last_seq, last_item; /* newest work; newest work, record or wait */
	uint64_t launches, threads; /* pending */
	uint64_t copies, bytes; /* pending; copies and sets */
	uint64_t epoch; /* number of the first of it: tells one busy time from the next */
	uint64_t launched; /* window of the newest launch */
	uint32_t dependencies_n;
	struct dependency dependencies[DEPENDENCIES_MAX];
	/* While a wait is looked at: */
	uint64_t visit, visit_upto;
	uint32_t visit_next;
};

struct mark { /* a CUDA event, as last recorded */
	uint32_t next_free;
	uint32_t stream, generation;
	uint32_t capture; /* plus one */
	uint64_t seq;
};

struct graph { /* or a capture under way */
	uint32_t next_free;
	uint32_t generation; /* of a capture */
	uint64_t launches, threads;
};

/* ---- contexts and threads ---- */

struct context {
	uint64_t handle; /* 0: not known */
	int32_t ordinal;
	bool primary, gone;
	uint32_t retains;
	uint32_t usage;
	uint32_t legacy; /* its legacy default stream, or NONE */
	uint32_t allocations; /* first one made in it, plus one; mappings are of CONTEXT_UNKNOWN */
};

struct thread {
	uint32_t next_free;
	uint32_t tid;
	bool used; /* since the clock hand passed */
	uint8_t depth;
	uint16_t stack[STACK_MAX];
	/* A wait without a return probe: it was over before this thread's next call. */
	bool waiting;
	struct trace_call wait;
};

/* ---- memory ---- */

enum space { SPACE_ADDRESS, SPACE_PHYSICAL, SPACE_ARRAY, SPACE_MAPPING, SPACES };

struct allocation {
	uint32_t next_free;
	uint32_t previous, next; /* of its context, plus one */
	uint32_t holder; /* plus one; 0: not on a device, or beyond the limit */
	uint64_t addr, size;
	uint64_t handle; /* SPACE_MAPPING: the physical memory behind it */
	uint32_t mappings; /* SPACE_PHYSICAL */
	uint16_t usage, context;
	uint8_t kind, space;
	bool released; /* SPACE_PHYSICAL: stays while it is mapped */
};

struct holder { /* a thread that has allocated what is not freed yet */
	uint32_t next_free;
	uint32_t tid;
	uint64_t bytes;
	uint32_t allocations; /* 0: a free row */
};

/* ---- processes ---- */

struct process {
	uint32_t tgid;
	uint64_t incarnation; /* 0: not told yet */
	uint64_t start_boot_ns, first_ns;
	char comm[TRACED_COMM];
	unsigned incomplete;
	struct series_claim claim; /* for as long as it lives */
	bool over;
	bool unheard; /* its first event has not come, and is taken for lost */
	bool unread; /* numbers of some calls are too low: they could not be read, or only in part */
	bool shown_once, shown_over; /* at the last window */
	uint8_t lingered; /* windows for which answers about it were waited for, since it was over */
	uint64_t over_ns;
	uint64_t seq; /* of its work, in ring order */
	uint32_t generation; /* of its streams */

	/* visible devices */
	bool initialised, runtime; /* CUDA has read the environment; the runtime was seen */
	bool looked; /* visible[] is resolved */
	bool visible_known, visible_estimated;
	char *visible_value; /* as set by setenv(), NULL: not seen */
	bool visible_lost; /* setenv() was seen, what it set was not */
	uint8_t visible_n;
	uint16_t visible[VISIBLE_MAX];

	struct context *contexts;
	uint32_t contexts_n, contexts_room;
	struct hashmap context_map; /* handle */
	struct pool threads;
	struct hashmap thread_map;
	uint32_t thread_hand;
	struct pool streams;
	struct hashmap stream_map, own_stream_map;
	uint32_t full; /* attempts since there was found to be no room for a stream */
	uint32_t misc; /* stream for what found no place, plus one */
	uint32_t pending; /* first stream with pending work, plus one */
	struct pool marks, graphs, captures;
	struct hashmap mark_map, graph_map;
	struct hashmap memory[SPACES];
	struct pool holders;
	struct hashmap holder_map;
	struct usage *usages;
	uint32_t usages_n, usages_room;
	struct pool handles, modules, functions, rows;
	uint64_t names_bytes; /* of handles and modules */
	uint64_t texts_bytes; /* of kernels in rows */
	bool wants; /* questions are to be asked */
	struct hashmap handle_map, module_map, function_map, row_map;
	struct recent_function *recent; /* 1 << RECENT_BITS; NULL: nothing was launched, or no memory */
};

struct total {
	bool touched;
	uint32_t device_cores; /* 0: not known */
	bool doubtful; /* counters of processes of which something was missed are in it */
	bool results_seen, results_missed; /* of some processes, of others not */
	double all[TRACED_METRICS], other[TRACED_METRICS];
	/* Of the last window: */
	double active, cores;
	uint64_t live[TRACED_METRICS];
	bool live_known, live_doubtful;
	struct span_union *spans;
	struct launch_sums kernels, kernels_other;
};

enum { ALLOCATIONS_CHUNK = 4096 };

struct cuda {
	struct cuda_limits limits;
	struct cuda_ops ops;
	void *userdata;
	uint64_t salt; /* so that no program can choose keys that collide */
	struct cuda_stats stats;
	struct span_sinks span_sinks;

	struct cuda_device *devices;
	uint16_t *device_uuids; /* of devices[] */
	uint32_t devices_n;
	char (*uuids)[TRACED_UUID]; /* ever seen; 0 is "" */
	struct total *totals; /* by UUID */
	uint32_t uuids_n, uuids_room;

	struct process **processes;
	uint32_t processes_n, processes_room;
	struct hashmap process_map; /* tgid */
	uint32_t last; /* process of the last event */
	struct series_set series; /* processes with series of their own */

	struct allocation **chunks;
	uint32_t chunks_n, allocations_n, allocations_made, allocation_free;

	struct process **shown; /* at the last window, by PID */
	uint32_t shown_n, shown_room, shown_devices, shown_totals, shown_kernels;

	uint32_t rows_n; /* kernels of all processes */
	uint64_t names_bytes; /* of symbols and paths */
	uint64_t texts_bytes; /* of kernels in rows */
	uint64_t questions_n; /* ever asked */
	struct hashmap questions; /* that wait for an answer: id to tgid */
	struct series_claim **best; /* scratch, of limits.kernel_series */

	uint64_t visit; /* waits looked at */
	uint64_t window; /* windows closed, plus one */
	int64_t window_start_ns;
	char *environment; /* scratch, ENVIRONMENT_MAX */
};

static inline uint64_t salted(const struct cuda *cuda, uint64_t key)
{
	return key ^ cuda->salt;
}

/* When a call returned. */
static inline uint64_t returned_ns(const struct trace_call *call)
{
	return add_saturated(call->header.time_ns, call->duration_ns);
}

static inline struct stream *stream_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->streams, index);
}

/* A function, so that @context is known before any array is looked at that finding it may have moved. */
static inline struct usage *usage_of(const struct process *p, uint32_t context)
{
	return &p->usages[p->contexts[context].usage];
}

/* process.c */
struct process *process_get(struct cuda *cuda, const struct trace_header *header);
struct process *process_find(struct cuda *cuda, uint32_t tgid);
void process_first(struct cuda *cuda, const struct trace_process *event);
void process_over(struct cuda *cuda, struct process *p, uint64_t time_ns);
void processes_forget(struct cuda *cuda); /* those that were shown once more */
void process_free(struct cuda *cuda, struct process *p);
/* The usage of a process on a UUID; 0 (unknown) when there is no room. */
uint32_t process_usage(struct process *p, uint32_t uuid);

static inline void count(struct usage *usage, enum traced_metric row, uint64_t n)
{
	usage->now[row] = add_saturated(usage->now[row], n);
	usage->touched = true;
}

/* context.c */
int context_setup(struct process *p);
uint32_t context_current(struct cuda *cuda, struct process *p, const struct trace_header *header);
struct thread *thread_find(struct cuda *cuda, struct process *p, uint32_t tid);
struct thread *thread_get(struct cuda *cuda, struct process *p, uint32_t tid);
void context_event(struct cuda *cuda, struct process *p, const struct trace_call *call);

/* device.c */
uint32_t device_uuid(struct cuda *cuda, const char *uuid); /* index; 0: no room, or "" */
const struct cuda_device *device_find(const struct cuda *cuda, uint32_t uuid);
/* Whose memory and work a process's contexts are, anew: what they depend on has changed. */
void device_resolve(struct cuda *cuda, struct process *p);
/* setenv() of CUDA_VISIBLE_DEVICES; @flags of its event. */
void device_text(struct cuda *cuda, struct process *p, unsigned flags, const char *text, size_t size);

/* visible.c */
struct visible {
	uint16_t device[VISIBLE_MAX]; /* indexes into the devices given */
	uint32_t n;
	bool estimated;
};
/*
 * The devices that CUDA lets a process see, in its order. @value of CUDA_VISIBLE_DEVICES, NULL: not set;
 * @order of CUDA_DEVICE_ORDER or NULL.
 */
void visible_resolve(const struct cuda_device *devices, uint32_t n, const char *value, const char *order,
		     struct visible *ret_visible);

/* stream.c */
uint32_t stream_of(struct cuda *cuda, struct process *p, const struct trace_header *header, uint64_t handle,
		   uint32_t context);
void stream_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* Work was started in a stream that is not captured. */
void stream_work(struct process *p, uint32_t stream, uint64_t time_ns, uint64_t return_ns, uint64_t launches,
		 uint64_t threads);
/* Some of it were copies or sets. */
void stream_copies(struct process *p, uint32_t stream, uint64_t copies, uint64_t bytes);
/* All that is pending in a stream is over. */
void stream_finish(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t sync_ns, uint64_t end_ns);
/* A context is gone, or all are (NONE). */
void streams_drop(struct cuda *cuda, struct process *p, uint32_t context, uint64_t end_ns);
void usage_span(struct cuda *cuda, struct usage *usage, uint64_t start, uint64_t end, uint64_t likely_end,
		double cores);
double usage_cores(const struct cuda *cuda, const struct usage *usage, const struct stream *s);

/* span.c; only where spans_wanted() */
static inline bool spans_wanted(const struct cuda *cuda)
{
	return cuda->span_sinks.n > 0;
}

/* What is pending in the stream is over; @how: SPAN_NO_WAIT or 0. */
void span_of_stream(struct cuda *cuda, const struct process *p, uint32_t stream, uint64_t end_ns,
		    uint64_t likely_ns, enum span_flag how);
/* A copy or wait of a thread, from the call to its return; @stream: NONE where it is of several. */
void span_of_call(struct cuda *cuda, const struct process *p, enum span_kind kind, uint32_t context,
		  uint32_t stream, const struct trace_call *call);

/* sync.c */
void sync_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
void sync_copy(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_call *call);
/* The thread makes another call: what it waited for is over. */
void sync_deferred(struct cuda *cuda, struct process *p, struct thread *thread, uint64_t time_ns);

/* mark.c */
void mark_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
void graph_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
void capture_launch(struct process *p, const struct stream *s, uint64_t threads);
bool dependency_is_stale(const struct process *p, const struct dependency *d);
void capture_leave(struct process *p, struct stream *s);

/* ledger.c */
void ledger_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* What a context held is freed implicitly; @reset: the device's, its pools too. NONE: all of the process. */
void ledger_drop(struct cuda *cuda, struct process *p, uint32_t context, bool reset);
void ledger_done(struct cuda *cuda);

/* holder.c; NONE: no room for the thread */
uint32_t holder_add(struct cuda *cuda, struct process *p, uint32_t tid, uint64_t bytes);
void holder_remove(struct process *p, uint32_t index, uint64_t bytes);
void holders_top(const struct process *p, struct traced_process *ret);

/* fill.c: whether what a process has allocated is known, and how well */
uint8_t live_presence(const struct process *p, const struct usage *u, enum traced_metric row);
uint8_t counter_presence(const struct process *p, enum traced_metric row);

/* handle.c */
void handle_name(struct cuda *cuda, struct process *p, const struct trace_name *event, uint32_t size);
void handle_event(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* Who is behind a function as passed to a launch. */
struct origin {
	uint64_t function; /* what aliases end at */
	const char *symbol; /* or NULL */
	const char *path;
	uint64_t image;
};
void handle_origin(struct cuda *cuda, const struct process *p, uint64_t function, struct origin *ret_origin);
void handles_done(struct cuda *cuda, struct process *p); /* all are forgotten */

/* function.c */
/* The row that a launch belongs to; NONE: there is no room for one. */
uint32_t function_row(struct cuda *cuda, struct process *p, uint32_t usage,
		      const struct trace_launch *launch);
/* The handle is gone, or stands for another kernel from now on. Was it launched? */
bool function_drop(struct cuda *cuda, struct process *p, uint64_t function);
/* Rows of functions have changed, or what is to be asked. */
static inline void recent_forget(struct process *p)
{
	if (p->recent)
		memset(p->recent, 0, sizeof(*p->recent) << RECENT_BITS);
}

/* More is known of it: is asked for again. */
void function_renew(struct cuda *cuda, struct process *p, uint64_t function);
void functions_done(struct cuda *cuda, struct process *p);
/* What could not be asked, once more. */
void functions_ask(struct cuda *cuda, struct process *p);
/* Answers are still to come. */
bool functions_asked(const struct process *p);

static inline struct kernel_row *row_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->rows, index);
}

static inline struct function *function_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->functions, index);
}

/* row.c */
/* A row that is not settled, or NONE; has a reference of its own. */
uint32_t row_new(struct cuda *cuda, struct process *p, uint32_t usage, struct kernel *kernel);
/* Its kernel is known: the row that has its sums from now on. */
uint32_t row_settle(struct cuda *cuda, struct process *p, uint32_t index, struct kernel *kernel);
/* A settled row of that kernel's symbol and file; NONE. */
uint32_t row_find(struct cuda *cuda, struct process *p, uint32_t usage, const struct kernel *kernel);
/* Another kernel of the same symbol and file is in its sums: figures that differ are not known. */
void row_blend(struct kernel_row *row, const struct kernel *kernel);
/* What was not known of it has become known: it is another series. */
void row_unsettle(struct cuda *cuda, struct process *p, struct kernel_row *row);
void row_link(struct process *p, uint32_t row, uint32_t function);
void row_unlink(struct process *p, uint32_t function);
void rows_done(struct cuda *cuda, struct process *p);

/* kernel.c */
void kernel_launched(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_launch *launch,
		     uint64_t threads);
/* So many kernels of a graph: time only. */
void kernel_graph(struct cuda *cuda, struct process *p, uint32_t stream, uint64_t launches, uint64_t threads);
void share_add(struct share *into, const struct share *from);

/* share.c */
void share_process(struct cuda *cuda, struct process *p); /* the estimates of its usages are split */
void share_close(struct cuda *cuda, double elapsed); /* all are: who has a series, and totals */

/* fill_kernel.c */
struct traced_launches launches_of(const struct launch_sums *sums);
uint32_t kernels_shown(const struct cuda *cuda);
void kernels_fill(const struct cuda *cuda, const struct process *p, struct traced_process *process,
		  uint32_t index, struct trace_view *view);

/* leak.c */
void leak_window(struct leak *leak, int64_t now_ns, uint64_t ledger_bytes, double nvml_bytes);
bool leak_verdict(const struct leak *leak);
