// SPDX-License-Identifier: Apache-2.0
/*
 * What CODE, NATIVE and STACK events tell: paths of functions with their files and lines. Equal paths of any
 * processes are one. Where there are native frames, too, those of Python stand in place of the evaluation
 * loop that runs them. Events of several CPUs mix: a NATIVE event waits for its STACK by process and id.
 *
 * Memory is bounded: what does not fit is counted, and its path says so. Of the maps by process the oldest
 * entry goes, of functions the oldest one that no stack has used lately; the kernel side knows fewer entries
 * and sends each again after a while (bpf/stack.h). With shares it is one of the same user's: who has new
 * functions and stacks all the time takes nothing from others.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/user_shares.h"
#include "bpf/stack.h"

enum {
	PYTHON_CODES = 1 << 16, /* functions of running processes */
	PYTHON_IDS = 1 << 16, /* ids of their stacks */
	PYTHON_PLACES = 1 << 18, /* lines in functions */
	PYTHON_PATHS = 1 << 16,
	PYTHON_TEXT_BYTES = 32 << 20,
	PYTHON_LINES_BYTES = 64 << 20, /* tables of lines of running processes */
	PYTHON_PATH_FRAMES_MAX = 4 << 20, /* of all paths */
	/* Paths that stand for no stack: enum trace_stack_none, then these. */
	PYTHON_PATH_UNKNOWN = TRACE_STACK_NONES, /* the stack with this id was lost, or is no longer kept */
	PYTHON_PATH_MORE, /* there are more paths than PYTHON_PATHS */
	PYTHON_PATH_OTHERS, /* stacks that are only added up */
	PYTHON_PATHS_MADE_UP,
};

/* A place in a function. */
struct python_place {
	uint32_t name, file; /* python_stacks_text(); file 0: a remark, in brackets, and no function */
	uint32_t line; /* 0: not known */
	uint32_t first_line; /* of the function */
	uint32_t native; /* what python_native_fn says; 0: a function of Python, or a remark */
};

/*
 * A native frame, @i of those in @event, as a number from 1 on that names it; 0: not known, and its address
 * is all that is said.
 */
typedef uint32_t python_native_fn(const struct trace_native *event, uint32_t i, void *userdata);

struct python_stacks;

int python_stacks_new(struct python_stacks **ret_stacks);
void python_stacks_free(struct python_stacks *stacks);
DEFINE_CLEANUP(struct python_stacks *, python_stacks_free, python_stacks_freep)

/* Says also that each STACK has a NATIVE event. Without it the frames of NATIVE events are all unknown. */
void python_stacks_name_natives(struct python_stacks *stacks, python_native_fn *fn, void *userdata);

/*
 * What processes' users are charged for functions and ids, as long as they are there: tables of @of, with
 * room for PYTHON_LINES_BYTES, PYTHON_CODES and PYTHON_IDS at most.
 */
struct python_shares {
	struct user_shares *of; /* NULL: all are one user's, without a limit */
	unsigned lines, codes, ids;
};
void python_stacks_share(struct python_stacks *stacks, const struct python_shares *shares);

/*
 * A CODE, NATIVE, STACK, EXEC or EXIT event; others are ignored. -ENOBUFS: something of it does not fit.
 * @user: of the process, with shares.
 */
int python_stacks_event(struct python_stacks *stacks, const struct trace_header *event, uint32_t size,
			uint32_t user);

/* The path of an event's stack: an index below python_stacks_paths(). */
uint32_t python_stacks_path(const struct python_stacks *stacks, const struct trace_header *event);
uint32_t python_stacks_paths(const struct python_stacks *stacks);
/* What of the tables that processes share is used. */
struct python_stacks_used {
	uint32_t paths, places;
	uint32_t frames; /* of all paths */
	uint32_t text_bytes;
};
struct python_stacks_used python_stacks_used(const struct python_stacks *stacks);
/* The places of a path, the innermost first; valid until the next event. */
const uint32_t *python_stacks_places(const struct python_stacks *stacks, uint32_t path, uint32_t *ret_n);
const struct python_place *python_stacks_place(const struct python_stacks *stacks, uint32_t place);
/* UTF-8, without control characters; valid until the next event. */
const char *python_stacks_text(const struct python_stacks *stacks, uint32_t text);
/* Functions, places, paths and texts that did not fit, and native frames that are missing. */
uint64_t python_stacks_lost(const struct python_stacks *stacks);
/* Entries that were looked at because their processes had ended: each once, whatever others there are. */
uint64_t python_stacks_dropped(const struct python_stacks *stacks);
