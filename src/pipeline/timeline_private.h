// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of timelines: timeline.c and timeline_*.c. */
#pragma once

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "pipeline/measured.h"
#include "pipeline/raw_event.h"
#include "pipeline/timeline.h"

enum {
	WAITING_MAX = 1 << 14, /* launches whose kernels have no name yet */
	PROCESS_TRACKS_MAX = 4096, /* of one process: it does not take all */
	HELD_MAX = 1 << 14, /* estimates that wait for what was measured */
	FLOWS_MAX = 1 << 16, /* begun and not ended; beyond, those begun before get no arrow */
	GPUS_MAX = 256,
};

/* Of texts or tracks: what is fuller is forgotten, since an agent runs for months. */
#define FORGET_AT 0.25

/* An estimate of a process in which CUPTI measures, until it is known of which time. */
struct held_span {
	struct timeline_event event;
	uint32_t tgid, lane; /* lane: index */
	uint64_t until_ns;
};

struct waiting {
	struct timeline_event event;
	uint64_t function;
	uint32_t tgid;
};

struct timeline_process {
	uint64_t incarnation; /* 0: not known yet */
	uint32_t track, tracks; /* tracks: below it */
	unsigned incomplete; /* bits that are marked */
	double cpu_seconds;
	uint64_t cpu_ns; /* when these were read; 0: not yet */
};

/* A track of a process whose slices are apart, though what they are of overlaps: threads share streams. */
struct timeline_lane {
	uint32_t track;
	uint64_t ended_ns;
};

struct timeline_gpu;
struct timeline_works;
extern const size_t trace_timeline_gpu_size; /* bytes */

struct trace_timeline {
	struct event_sink sink;
	struct span_sink spans;
	struct timeline *timeline;
	struct pipeline *pipeline;
	const struct blas *blas; /* NULL: not traced */
	const struct stack_sums *stacks; /* NULL: not recorded */
	struct hashmap stack_by; /* by path: stacks that were told */
	int64_t stacks_since_ns; /* of which stack_by is */
	bool stacks_unnamed; /* some had frames without a name yet */
	uint32_t pid; /* 0: of all processes */
	bool sees_all; /* PIDs are those of /proc */
	void (*xid)(uint32_t code, void *userdata); /* NULL: nobody wants to know */
	void *xid_userdata;
	struct row_list processes; /* struct timeline_process */
	struct hashmap process_by; /* by PID: of those that run */
	struct hashmap ended_by; /* by PID: the newest that has ended */
	int64_t begun_ns;
	struct clock_offsets offsets; /* as of the last second; real_ns 0: not measured yet */
	/* By a process's track and what is of it. */
	struct hashmap thread_by, stream_by, communicator_by, flow_by, counter_by;
	struct hashmap key_by; /* texts, by the address of a literal */
	uint32_t names[TRACE_CALLS_MAX]; /* texts by call, plus one */
	uint64_t flows;
	struct row_list lanes; /* struct timeline_lane; stream_by and communicator_by have their indexes */
	struct waiting *waiting;
	uint32_t waiting_n, waiting_old; /* old: those before the last second */
	uint32_t marks; /* track of what is missing; TIMELINE_NONE: not made yet */
	struct timeline_gpu *gpus;
	uint32_t gpus_n;
	struct hashmap xid_by; /* counts that are known, by GPU and code */
	bool xids_begun;
	struct timeline_works *works; /* NULL: no true times are told */
	struct measured *measured; /* who tells them; NULL: nobody */
	struct work_sink work_sink;
	struct held_span *held; /* a ring; NULL: there was none yet */
	uint32_t held_at, held_n;
	struct trace_timeline_missing missing;
	uint64_t dropped_said; /* of missing.dropped */
};

static inline struct timeline_process *timeline_process_at(const struct trace_timeline *t, uint32_t index)
{
	return &((struct timeline_process *)t->processes.list)[index];
}

/* ---- timeline_tracks.c ---- */

/* Counts what the timeline refuses. */
void trace_timeline_add(struct trace_timeline *timeline, const struct timeline_event *event);
/* A text or track that cannot be made: what needs it is dropped. */
bool trace_timeline_text(struct trace_timeline *timeline, const char *text, uint32_t *ret_text);
/* The same for a literal, faster. */
bool trace_timeline_key(struct trace_timeline *timeline, const char *literal, uint32_t *ret_text);
bool trace_timeline_track(struct trace_timeline *timeline, const struct timeline_track *track,
			  uint32_t *ret_track);

/* For maps of what is of a process. */
uint64_t timeline_key_in(uint32_t process, uint64_t id);
/* Index of the process; its first event, which has the name, may have been lost. */
bool timeline_process_of(struct trace_timeline *timeline, uint32_t tgid, uint32_t *ret_process);
/* The first event of a process, or of what it has become by exec. */
bool timeline_process_begins(struct trace_timeline *timeline, const struct trace_process *event);
/* With a mark; what comes under its PID from now on is of another one. */
void timeline_process_ends(struct trace_timeline *timeline, uint32_t tgid, const char *how, uint64_t time_ns);
void timeline_over(uint32_t tgid, uint64_t incarnation, void *userdata);
bool timeline_has_room(const struct trace_timeline *timeline, uint32_t process);
/* A track of a process (its index), made at its first use; @id: what it is of its kind there. */
bool timeline_child(struct trace_timeline *timeline, uint32_t process, struct timeline_track *track,
		    const char *name, struct hashmap *by, uint64_t id, uint32_t *ret_track);
bool timeline_thread(struct trace_timeline *timeline, const struct trace_header *event, uint32_t *ret_process,
		     uint32_t *ret_track);

/* One of @by, made at its first use as the others are. NULL: no room. Valid until the next one is made. */
struct timeline_lane *timeline_lane(struct trace_timeline *timeline, uint32_t process, struct hashmap *by,
				    uint64_t id, const char *name);
/* What is before the end of the slice before it is cut off. */
void timeline_add_to_lane(struct trace_timeline *timeline, struct timeline_lane *lane,
			  struct timeline_event *event);

void timeline_mark(struct trace_timeline *timeline, uint32_t track, const char *text, uint64_t time_ns);

/* On a track of gpusonde's own. */
void timeline_mark_own(struct trace_timeline *timeline, struct timeline_event *event, const char *text);

/* ---- timeline_clocks.c ---- */

/* Measures them; marks the first time, and when the wall clock was set. */
void timeline_clocks(struct trace_timeline *timeline);

/* ---- timeline_args.c ---- */

void timeline_put_arg(struct trace_timeline *timeline, struct timeline_event *event, const char *literal,
		      enum timeline_arg_type type, uint64_t value);
void timeline_put_text_arg(struct trace_timeline *timeline, struct timeline_event *event, const char *literal,
			   const char *text);
/* What the call was given. */
void timeline_put_operands(struct trace_timeline *timeline, struct timeline_event *event,
			   const struct raw_event *raw);

/* ---- timeline_calls.c ---- */

int timeline_event(const struct trace_header *event, uint32_t size, void *userdata);
/* Launches whose kernel has a name by now, and those that have waited for a second or more. */
void timeline_add_waiting(struct trace_timeline *timeline, bool all);

/* ---- timeline_layers.c ---- */

/* Sets the name and category of an event that is not the call of its function; false: it is. */
bool timeline_layer_name(struct trace_timeline *timeline, const struct trace_header *header,
			 struct timeline_event *event, bool *ret_made);
void timeline_torch_memory(struct trace_timeline *timeline, const struct trace_call *call, uint32_t process);

/* ---- timeline_nccl.c ---- */

/* Adds what is known of an operation's communicator to its event, and the operation to the communicator's. */
void timeline_nccl(struct trace_timeline *timeline, const struct trace_header *header,
		   struct timeline_event *event, uint32_t process);

/* ---- timeline_stacks.c ---- */

/* Of an event; 0: it has none, or there was no room. */
uint32_t timeline_stack_of(struct trace_timeline *timeline, const struct trace_header *event);
/* Those with functions that had no name yet are told again. */
void timeline_stacks_again(struct trace_timeline *timeline);

/* ---- timeline_spans.c ---- */

/* Launches into a stream that its next span covers: they and it have one number. 0: not known. */
uint64_t timeline_flow(struct trace_timeline *timeline, uint32_t process, uint32_t stream_id, bool ends);
int timeline_span(const struct span *span, void *userdata);
/* Those of which it is known by now what was measured of their time. */
void timeline_add_held(struct trace_timeline *timeline, bool all);

/* ---- timeline_work.c ---- */

/* Whether the true times of a process's launches may be told, and whether they will. */
bool timeline_work_expected(const struct trace_timeline *timeline, uint32_t tgid);
bool timeline_work_certain(const struct trace_timeline *timeline, uint32_t tgid);
/* For sinks of true work. */
int timeline_work(const struct measured_work *told, void *userdata);
void timeline_measured(uint32_t pid, struct time_part part, void *userdata);
/* A launch, whose work may be told: the number of their arrow. 0: none. */
uint64_t timeline_work_launch(struct trace_timeline *timeline, uint32_t process,
			      const struct trace_header *header, const struct timeline_event *event);
int timeline_works_new(struct trace_timeline *timeline); /* -ENOMEM */
void timeline_works_forget(struct trace_timeline *timeline);
void timeline_works_free(struct trace_timeline *timeline);

/* ---- timeline_processes.c ---- */

/* Of those that are in the timeline. @at_ns: when each entity's newest reading was; 0: no new one. */
void timeline_processes_take(struct trace_timeline *timeline, const struct snapshot *snapshot,
			     const uint64_t at_ns[static READING_ENTITIES_MAX]);

/* ---- timeline_gpus.c ---- */

/* Another recording begins, which has the clocks, too. */
void timeline_gpus_say_again(struct trace_timeline *timeline);
/* Their tracks are forgotten. */
void timeline_gpus_forget(struct trace_timeline *timeline);
/* What goes on until the end. */
void trace_timeline_gpus_end(struct trace_timeline *timeline);
bool trace_timeline_gpu_index(const struct trace_timeline *timeline, const char *uuid, uint32_t *ret_index);
/* "GPU 0"; "" if unknown. */
void trace_timeline_gpu_name(const struct trace_timeline *timeline, const char *uuid, char *name,
			     size_t size);
