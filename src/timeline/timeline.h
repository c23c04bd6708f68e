// SPDX-License-Identifier: Apache-2.0
/*
 * src/timeline (L1) writes timelines: slices, marks and counters on tracks, as files that viewers open.
 *
 *   events ── timeline_add() ──> events that wait ── encoder ──> block ── ops.write ──> writer.h: files
 *                                                   │ perfetto.c   protobuf, deflated └> recent.h: memory
 *                                                   └ chrome.c     Chrome's JSON
 *   bytes ── read.c ──> read_packet.c ──> events, as they were added (timeline_read_next())
 *
 * Invariants
 *  1. A block has all that its events refer to: names, tracks, clocks. So a file may lack its first blocks or
 *     its end, and what is there opens. Each of several files that follow each other does.
 *  2. Memory is bounded: events wait in one block, texts and tracks have limits. What does not fit is
 *     refused with -ENOBUFS, and the caller counts it.
 *  3. Times are CLOCK_MONOTONIC; each block has the offsets of the other clocks at the time it was written.
 *  4. Slices are complete when they are added, in the order in which they end. Those of one track are nested
 *     in each other or apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "timeline/block.h"

enum timeline_category {
#define CATEGORY(id_, name_) TIMELINE_##id_,
#include "timeline/categories.def"
#undef CATEGORY
	TIMELINE_CATEGORIES
};

enum timeline_format {
	TIMELINE_PERFETTO,
	TIMELINE_CHROME,
};

enum {
	TIMELINE_BLOCK = 4096, /* events */
	TIMELINE_ARGS = 14,
	TIMELINE_TRACKS_MAX = 1 << 16,
	TIMELINE_TEXTS_MAX = 1 << 20,
	TIMELINE_TEXT_BYTES = 64 << 20, /* of all texts */
	TIMELINE_TEXT_MAX = 4096, /* of one: a longer one is cut */
	TIMELINE_STACK_FRAMES = 128, /* of one stack: the innermost ones */
	TIMELINE_FRAME_TEXT = 256, /* of the names in them, the same */
};

#define TIMELINE_NONE UINT32_MAX

enum timeline_track_kind {
	TIMELINE_PROCESS, /* pid */
	TIMELINE_THREAD, /* pid, tid */
	TIMELINE_GROUP, /* that others have as parent: a GPU */
	TIMELINE_CHILD, /* of its parent: a stream */
	TIMELINE_COUNTER, /* of its parent; has values and no slices */
};

enum timeline_unit { TIMELINE_NUMBER, TIMELINE_BYTES };

struct timeline_track {
	uint8_t kind; /* enum timeline_track_kind */
	uint8_t unit; /* enum timeline_unit, of a counter */
	uint32_t parent; /* TIMELINE_NONE: none */
	uint32_t pid, tid;
	uint32_t name; /* text */
};

enum timeline_arg_type {
	TIMELINE_UNSIGNED,
	TIMELINE_SIGNED,
	TIMELINE_POINTER,
	TIMELINE_TEXT, /* the value is a text's number */
	TIMELINE_DIMENSIONS, /* of a grid or block: timeline_dimensions() */
};

struct timeline_arg {
	uint32_t key; /* text */
	uint8_t type; /* enum timeline_arg_type */
	uint64_t value;
};

enum timeline_event_type {
	TIMELINE_SLICE,
	TIMELINE_INSTANT,
	TIMELINE_VALUE, /* of a counter */
};

/* A place in a function, whose file may be "" and line 0: not known. */
struct timeline_frame {
	uint32_t function, file; /* texts */
	uint32_t line;
	uint32_t interpreted; /* by Python; else it is the machine's code */
};

struct timeline_event {
	uint8_t type; /* enum timeline_event_type */
	uint8_t category; /* enum timeline_category */
	uint8_t args_n;
	uint32_t track, name; /* name: text; not of a value */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end: of slices */
	uint32_t stack; /* of the call: timeline_stack(); 0: none. In Perfetto's format alone */
	uint64_t flow, other_flow; /* events with the same number are joined by arrows; 0: none */
	double value;
	struct timeline_arg args[TIMELINE_ARGS];
};

struct timeline_ops {
	/* Who keeps the block takes a reference. -errno: the timeline writes nothing more. */
	int (*write)(struct timeline_block *block, void *userdata);
};

struct timeline;

/* -ENOMEM. */
int timeline_new(enum timeline_format format, const struct timeline_ops *ops, void *userdata,
		 struct timeline **ret_timeline);
void timeline_free(struct timeline *timeline);
DEFINE_CLEANUP(struct timeline *, timeline_free, timeline_freep)

/*
 * The number of a text, the same for equal ones. Control characters and what is not UTF-8 are replaced.
 * -ENOBUFS, -ENOMEM.
 */
int timeline_text(struct timeline *timeline, const char *text, uint32_t *ret_text);
/* The numbers of a frame and of a stack, the same for equal ones. -ENOBUFS, -ENOMEM. */
int timeline_frame(struct timeline *timeline, const char *function, const char *file, uint32_t line,
		   bool interpreted, uint32_t *ret_frame);
/* @frames: the innermost first. *ret_stack: not 0. */
int timeline_stack(struct timeline *timeline, const uint32_t *frames, uint32_t n, uint32_t *ret_stack);
/* Each call makes another track. -ENOBUFS, -ENOMEM. */
int timeline_track(struct timeline *timeline, const struct timeline_track *track, uint32_t *ret_track);
/* 21 bits each; a greater one saturates. */
uint64_t timeline_dimensions(const uint32_t at[static 3]);
/* Writes the block if it is full; the result is that of the first write that failed. */
int timeline_add(struct timeline *timeline, const struct timeline_event *event);
/* Writes what was added. */
int timeline_flush(struct timeline *timeline);
/*
 * Forgets all texts, tracks and stacks, after writing what was added: their numbers are invalid, and new ones
 * begin. For who goes on for longer than the limits reach.
 */
int timeline_forget(struct timeline *timeline);
/* Of texts, tracks or stacks, whichever is nearer to its limit: the share that is there. */
double timeline_fill(const struct timeline *timeline);
