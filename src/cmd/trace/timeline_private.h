// SPDX-License-Identifier: Apache-2.0
/* Shared by timeline.c (calls and spans) and timeline_gpus.c (the GPUs' figures). */
#pragma once

#include "base/hashmap.h"
#include "base/row_list.h"
#include "cmd/trace/timeline.h"

enum {
	WAITING_MAX = 1 << 14, /* launches whose kernels have no name yet */
	PROCESS_TRACKS_MAX = 4096, /* of one process: it does not take all */
	FLOWS_MAX = 1 << 16, /* begun and not ended; beyond, those begun before get no arrow */
	GPUS_MAX = 256,
};

struct waiting {
	struct timeline_event event;
	uint64_t function;
	uint32_t tgid;
};

struct timeline_process {
	uint64_t incarnation; /* 0: not known yet */
	uint32_t track, tracks; /* tracks: below it */
};

/* Its spans are apart, also where a thread launches while another one waits. */
struct timeline_stream {
	uint32_t track;
	uint64_t ended_ns;
};

struct timeline_gpu;
extern const size_t trace_timeline_gpu_size; /* bytes */

struct trace_timeline {
	struct event_sink sink;
	struct span_sink spans;
	struct timeline *timeline;
	struct trace_kernels *kernels;
	const struct blas *blas; /* NULL: not traced */
	int fd;
	struct row_list processes; /* struct timeline_process */
	struct hashmap process_by; /* by PID: of those that run */
	/* By a process's track and what is of it. */
	struct hashmap thread_by, stream_by, flow_by, counter_by;
	struct hashmap key_by; /* texts, by the address of a literal */
	uint32_t names[TRACE_CALLS_MAX]; /* texts by call, plus one */
	uint64_t flows;
	struct row_list streams; /* struct timeline_stream; stream_by has their indexes */
	struct waiting *waiting;
	uint32_t waiting_n, waiting_old; /* old: those before the last second */
	uint32_t marks; /* track of what is missing; TIMELINE_NONE: not made yet */
	struct timeline_gpu *gpus;
	uint32_t gpus_n;
	struct hashmap xid_by; /* counts that are known, by GPU and code */
	bool xids_begun;
	uint64_t dropped, cut, lost; /* cut: arguments and names that were left out */
	bool emptied; /* the file, of what was in it */
	struct strbuf said;
};

/* Counts what the timeline refuses. */
void trace_timeline_add(struct trace_timeline *timeline, const struct timeline_event *event);
/* A text or track that cannot be made: what needs it is dropped. */
bool trace_timeline_text(struct trace_timeline *timeline, const char *text, uint32_t *ret_text);
/* The same for a literal, faster. */
bool trace_timeline_key(struct trace_timeline *timeline, const char *literal, uint32_t *ret_text);
bool trace_timeline_track(struct trace_timeline *timeline, const struct timeline_track *track,
			  uint32_t *ret_track);

/* A track of a process (its index), made at its first use; @id: what it is of its kind there. */
bool timeline_child(struct trace_timeline *timeline, uint32_t process, struct timeline_track *track,
		    const char *name, struct hashmap *by, uint64_t id, uint32_t *ret_track);

/* timeline_layers.c */
/* Sets the name and category of an event that is not the call of its function; false: it is. */
bool timeline_layer_name(struct trace_timeline *timeline, const struct trace_header *header,
			 struct timeline_event *event, bool *ret_made);
void timeline_torch_memory(struct trace_timeline *timeline, const struct trace_call *call, uint32_t process);

/* timeline_gpus.c */
void trace_timeline_gpus(struct trace_timeline *timeline, const struct snapshot *snapshot);
/* What goes on until the end. */
void trace_timeline_gpus_end(struct trace_timeline *timeline);
/* "GPU 0"; "" if unknown. */
void trace_timeline_gpu_name(const struct trace_timeline *timeline, const char *uuid, char *name,
			     size_t size);
