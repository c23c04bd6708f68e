// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "python/stacks.h"

enum { PID = 42, CODE = 0x1000, CHECK = 7, ID = 1 << 10 };

/* PID is of one user, all others of another one. */
static uint32_t user_of(uint32_t pid)
{
	return pid != PID;
}

/* A function of @name at line @first of @file, whose table has two lines of 4 bytes each. */
static void send_code_of(struct python_stacks *stacks, uint32_t pid, uint64_t address, uint32_t check,
			 const char *name, const char *file, int32_t first)
{
	static const uint8_t table[] = { 4, 1, 4, 1 };
	struct trace_code *event = calloc(1, sizeof(*event) + TRACE_LINES_SMALL);

	assert_non_null(event);
	event->header.type = TRACE_EVENT_CODE;
	event->header.tgid = pid;
	event->code = address;
	event->check = check;
	event->first_line = first;
	event->lines = TRACE_LINES_LNOTAB;
	event->lines_n = event->lines_total = sizeof(table);
	memcpy(event->line_table, table, sizeof(table));
	event->name = (struct trace_text){ 1, (uint16_t)strlen(name), (uint32_t)strlen(name) };
	memcpy(event->name_text, name, strlen(name));
	event->file = (struct trace_text){ 1, (uint16_t)strlen(file), (uint32_t)strlen(file) };
	memcpy(event->file_text, file, strlen(file));
	assert_int_equal(python_stacks_event(stacks, &event->header, sizeof(*event) + TRACE_LINES_SMALL,
					     user_of(pid)),
			 0);
	free(event);
}

static void send_code(struct python_stacks *stacks, uint32_t pid, uint64_t address, uint32_t check,
		      const char *name)
{
	send_code_of(stacks, pid, address, check, name, "x.py", 10);
}

static void send_stack(struct python_stacks *stacks, uint32_t pid, uint32_t id,
		       const struct trace_frame *frames, uint32_t n, uint32_t flags)
{
	const size_t size = sizeof(struct trace_stack) + TRACE_STACK_SMALL * sizeof(*frames);
	struct trace_stack *event = calloc(1, size);

	assert_non_null(event);
	event->header.type = TRACE_EVENT_STACK;
	event->header.tgid = pid;
	event->header.stack = id;
	event->n = n;
	event->flags = flags;
	memcpy(event->frames, frames, n * sizeof(*frames));
	assert_int_equal(python_stacks_event(stacks, &event->header, (uint32_t)size, user_of(pid)), 0);
	free(event);
}

/* @n addresses from 0x500000 on, of which @loops are evaluation loops. */
static void send_native(struct python_stacks *stacks, uint32_t pid, uint32_t id, uint32_t n, uint64_t loops,
			uint64_t entries, uint8_t stop)
{
	const size_t size = sizeof(struct trace_native) + TRACE_STACK_SMALL * sizeof(__u64);
	struct trace_native *event = calloc(1, size);

	assert_non_null(event);
	event->header.type = TRACE_EVENT_NATIVE;
	event->header.tgid = pid;
	event->header.stack = id;
	event->n = (uint16_t)n;
	event->loops[0] = loops;
	event->entries[0] = entries;
	event->stop = stop;
	for (uint32_t i = 0; i < n; i++)
		event->pcs[i] = 0x500000 + i;
	assert_int_equal(python_stacks_event(stacks, &event->header, (uint32_t)size, user_of(pid)), 0);
	free(event);
}

static uint32_t path_of(const struct python_stacks *stacks, uint32_t pid, uint32_t id)
{
	const struct trace_header event = { .tgid = pid, .stack = id };

	return python_stacks_path(stacks, &event);
}

static const struct python_place *place_of(const struct python_stacks *stacks, uint32_t path, uint32_t i)
{
	uint32_t n;
	const uint32_t *places = python_stacks_places(stacks, path, &n);

	assert_true(i < n);
	return python_stacks_place(stacks, places[i]);
}

static const char *name_of(const struct python_stacks *stacks, uint32_t path, uint32_t i)
{
	return python_stacks_text(stacks, place_of(stacks, path, i)->name);
}

/* The places as one text: Python functions by name, native ones by number. */
static void assert_path(const struct python_stacks *stacks, uint32_t id, const char *expected)
{
	uint32_t path = path_of(stacks, PID, id), n;
	char text[512] = "";

	python_stacks_places(stacks, path, &n);
	for (uint32_t i = 0; i < n; i++) {
		const struct python_place *place = place_of(stacks, path, i);
		size_t at = strlen(text);

		if (place->native)
			snprintf(text + at, sizeof(text) - at, " %u", place->native);
		else
			snprintf(text + at, sizeof(text) - at, " %s", name_of(stacks, path, i));
	}
	assert_string_equal(text, expected);
}

/* A text of characters that are of no width is none: nothing is told of its function. */
static void test_text_of_no_width(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame frame = { CODE, 0, CHECK };
	struct trace_code *event = calloc(1, sizeof(*event) + TRACE_LINES_SMALL);

	assert_non_null(event);
	event->header.type = TRACE_EVENT_CODE;
	event->header.tgid = PID;
	event->code = CODE;
	event->check = CHECK;
	event->name = event->file = (struct trace_text){ 3, 6, 6 };
	assert_int_equal(python_stacks_event(stacks, &event->header, sizeof(*event) + TRACE_LINES_SMALL,
					     user_of(PID)),
			 0);
	free(event);
	send_stack(stacks, PID, ID, &frame, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 0), "[unknown function]");
}

/* Between frames of tasks stands that one awaits the other, and that is no function that is missing. */
static void test_marks(void **state)
{
	static const char *const expected[TRACE_FRAME_MARKS] = {
		[TRACE_FRAME_AWAITED_BY] = "[awaited by]",
		[TRACE_FRAME_AWAITED_BY_ONE] = "[awaited by another task]",
		[TRACE_FRAME_AWAITED_BY_SEVERAL] = "[awaited by several tasks]",
		[TRACE_FRAME_AWAITED_FURTHER] = "[awaited further]",
	};
	struct trace_frame frames[TRACE_FRAME_MARKS] = { 0 };

	for (uint32_t i = 1; i < TRACE_FRAME_MARKS; i++)
		frames[i - 1].code = i;
	frames[TRACE_FRAME_MARKS - 1].code = TRACE_FRAME_MARKS;
	send_stack(*state, PID, ID, frames, TRACE_FRAME_MARKS, 0);
	for (uint32_t i = 1; i < TRACE_FRAME_MARKS; i++)
		assert_string_equal(name_of(*state, path_of(*state, PID, ID), i - 1), expected[i]);
	assert_string_equal(name_of(*state, path_of(*state, PID, ID), TRACE_FRAME_MARKS - 1),
			    "[unknown function]");
	assert_int_equal(python_stacks_lost(*state), 1);
}

static uint32_t native_name(const struct trace_native *event, uint32_t i, void *userdata)
{
	assert_int_equal(event->pcs[i], 0x500000 + i);
	assert_null(userdata);
	return i + 1;
}

/* What the interpreter puts below a class's __init__ is no function of the program. */
static void test_shim(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame frames[] = { { CODE, 0, CHECK },
					      { CODE + 8, 0, CHECK },
					      { CODE + 16, 0, CHECK } };

	send_code(stacks, PID, CODE, CHECK, "__init__");
	send_code_of(stacks, PID, CODE + 8, CHECK, "__init__", "__init__", 0);
	send_code_of(stacks, PID, CODE + 16, CHECK, "__init__", "__init__", 1);
	send_stack(stacks, PID, ID, frames, 3, 0);
	assert_path(stacks, ID, " __init__ __init__");
	send_stack(stacks, PID, ID + 1, frames + 1, 1, 0);
	assert_path(stacks, ID + 1, "");
}

/* Native frames 1, 2, ..., the innermost first; functions f, g, h of Python. */
static void test_merged(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame frames[] = { { CODE, 0, CHECK },
					      { CODE + 8, 0, CHECK },
					      { CODE + 16, 0, CHECK } };

	python_stacks_name_natives(stacks, native_name, NULL);
	send_code(stacks, PID, CODE, CHECK, "f");
	send_code(stacks, PID, CODE + 8, CHECK, "g");
	send_code(stacks, PID, CODE + 16, CHECK, "h");
	/* A loop runs f and g, another one h. */
	send_native(stacks, PID, ID, 6, 1 << 1 | 1 << 4, 1 << 1 | 1 << 2, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID, frames, 3, 0);
	assert_path(stacks, ID, " 1 f g 3 4 h 6");
	/* Before 3.11 each runs one. */
	send_native(stacks, PID, ID + 1, 6, 1 << 0 | 1 << 2 | 1 << 4, 7, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID + 1, frames, 3, 0);
	assert_path(stacks, ID + 1, " f 2 g 4 h 6");
	/* What native frames do not tell stands behind where they stop. */
	send_native(stacks, PID, ID + 2, 3, 1 << 1, 1 << 0, TRACE_NATIVE_NO_RULE);
	send_stack(stacks, PID, ID + 2, frames, 3, 0);
	assert_path(stacks, ID + 2, " 1 f 3 [stopped: no unwind rule] g h");
	send_native(stacks, PID, ID + 3, 2, 0, 7, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID + 3, frames, 1, 0);
	assert_path(stacks, ID + 3, " 1 2 [Python, of an unknown native frame] f");
	/* A loop of no function is a native frame as others. */
	send_native(stacks, PID, ID + 4, 2, 1 << 0, 0, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID + 4, frames, 0, 0);
	assert_path(stacks, ID + 4, " 1 2");
	/* Where its native frames were lost it says so, and they count. */
	assert_int_equal(python_stacks_lost(stacks), 0);
	send_stack(stacks, PID, ID + 5, frames, 1, 0);
	assert_path(stacks, ID + 5, " [native frames lost] f");
	assert_int_equal(python_stacks_lost(stacks), 1);
}

/* Threads on two CPUs send at the same time, and so do two processes by equal numbers. */
static void test_interleaved(void **state)
{
	struct python_stacks *stacks = *state;
	struct trace_header over = { .type = TRACE_EVENT_EXIT, .tgid = PID };
	const struct trace_frame frame = { CODE, 0, CHECK };

	python_stacks_name_natives(stacks, native_name, NULL);
	send_code(stacks, PID, CODE, CHECK, "f");
	send_native(stacks, PID, ID, 2, 0, 0, TRACE_NATIVE_END);
	send_native(stacks, PID, ID + 1, 3, 1 << 1, 1, TRACE_NATIVE_END);
	send_native(stacks, PID + 1, ID, 1, 0, 0, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID, &frame, 0, 0);
	send_stack(stacks, PID, ID + 1, &frame, 1, 0);
	assert_path(stacks, ID, " 1 2");
	assert_path(stacks, ID + 1, " 1 f 3");
	/* One that was used is not used again; nor is one of a process that has ended. */
	send_stack(stacks, PID, ID, &frame, 0, 0);
	assert_path(stacks, ID, " [native frames lost]");
	send_native(stacks, PID, ID + 2, 1, 0, 0, TRACE_NATIVE_END);
	assert_int_equal(python_stacks_event(stacks, &over, sizeof(over), 0), 0);
	send_stack(stacks, PID, ID + 2, &frame, 0, 0);
	assert_path(stacks, ID + 2, " [native frames lost]");
	/* Of more than are kept the newest is. */
	for (uint32_t i = 0; i < 1000; i++)
		send_native(stacks, PID, ID + 10 + i, 1, 0, 0, TRACE_NATIVE_END);
	send_stack(stacks, PID, ID + 1009, &frame, 0, 0);
	assert_path(stacks, ID + 1009, " 1");
	send_stack(stacks, PID, ID + 10, &frame, 0, 0);
	assert_path(stacks, ID + 10, " [native frames lost]");
	send_stack(stacks, PID, ID + 11, (const struct trace_frame[]){ { 0, 0, 0 } }, 0,
		   TRACE_STACK_NO_NATIVE);
	assert_path(stacks, ID + 11, " [native frames given up: trace.max_overhead]");
}

/* Callers that are a guess stand behind a frame that says so. */
static void test_guessed(void **state)
{
	const size_t size = sizeof(struct trace_native) + TRACE_STACK_SMALL * sizeof(__u64);
	struct trace_native *event = calloc(1, size);
	struct python_stacks *stacks = *state;
	const struct trace_frame none = { 0 };

	assert_non_null(event);
	python_stacks_name_natives(stacks, native_name, NULL);
	event->header = (struct trace_header){ .type = TRACE_EVENT_NATIVE, .tgid = PID, .stack = ID };
	event->n = 3;
	event->guessed = 2;
	for (uint32_t i = 0; i < 3; i++)
		event->pcs[i] = 0x500000 + i;
	assert_int_equal(python_stacks_event(stacks, &event->header, (uint32_t)size, user_of(PID)), 0);
	free(event);
	send_stack(stacks, PID, ID, &none, 0, 0);
	assert_path(stacks, ID, " 1 2 [guessed by frame pointers] 3");
}

static int setup(void **state)
{
	return python_stacks_new((struct python_stacks **)state);
}

static int teardown(void **state)
{
	python_stacks_free(*state);
	return 0;
}

static void test_path(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame frames[] = { { CODE, 5, CHECK }, { CODE, 0, CHECK } };
	uint32_t path;

	send_code(stacks, PID, CODE, CHECK, "f");
	send_stack(stacks, PID, ID, frames, 2, 0);
	path = path_of(stacks, PID, ID);
	assert_true(path >= PYTHON_PATHS_MADE_UP);
	assert_string_equal(name_of(stacks, path, 0), "f");
	assert_string_equal(python_stacks_text(stacks, place_of(stacks, path, 0)->file), "x.py");
	assert_int_equal(place_of(stacks, path, 0)->line, 11);
	assert_int_equal(place_of(stacks, path, 1)->line, 10);
	/* Equal ones are one, whatever their id and process. */
	send_code(stacks, PID + 1, CODE + 64, CHECK, "f");
	send_stack(stacks, PID + 1, ID + 1,
		   (const struct trace_frame[]){ { CODE + 64, 6, CHECK }, { CODE + 64, 1, CHECK } }, 2, 0);
	assert_int_equal(path_of(stacks, PID + 1, ID + 1), path);
	/* f_lasti is -1 before the first instruction. */
	send_stack(stacks, PID, ID + 2, (const struct trace_frame[]){ { CODE, UINT32_MAX, CHECK } }, 1, 0);
	assert_int_equal(place_of(stacks, path_of(stacks, PID, ID + 2), 0)->line, 10);
}

/* An address that was used again is another function: its contents differ. */
static void test_reused_address(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame other = { CODE, 5, CHECK + 1 };

	send_code(stacks, PID, CODE, CHECK, "f");
	send_stack(stacks, PID, ID, &other, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 0), "[unknown function]");
	assert_int_equal(place_of(stacks, path_of(stacks, PID, ID), 0)->line, 0);
	send_code(stacks, PID, CODE, CHECK + 1, "g");
	send_stack(stacks, PID, ID, &other, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 0), "g");
	/* Nor is it another process's. */
	send_stack(stacks, PID + 1, ID, &other, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID + 1, ID), 0), "[unknown function]");
}

static void test_no_stack(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame frame = { CODE, 0, CHECK };
	struct trace_header over = { .type = TRACE_EVENT_EXIT, .tgid = PID };

	assert_int_equal(path_of(stacks, PID, TRACE_STACK_EMPTY), TRACE_STACK_EMPTY);
	assert_string_equal(name_of(stacks, TRACE_STACK_EMPTY, 0), "[no Python code running]");
	assert_int_equal(path_of(stacks, PID, ID), PYTHON_PATH_UNKNOWN);
	send_code(stacks, PID, CODE, CHECK, "f");
	send_stack(stacks, PID, ID, &frame, 1, TRACE_STACK_CUT);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 1), "[deeper stack]");
	/* After its end nothing of a process is known. */
	assert_int_equal(python_stacks_event(stacks, &over, sizeof(over), 0), 0);
	assert_int_equal(path_of(stacks, PID, ID), PYTHON_PATH_UNKNOWN);
	send_stack(stacks, PID, ID, &frame, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 0), "[unknown function]");
}

/* More ids than are kept: the newest are known, the oldest are said to be lost. */
static void test_many(void **state)
{
	struct python_stacks *stacks = *state;
	struct trace_frame frame = { CODE, 0, CHECK };

	send_code(stacks, PID, CODE, CHECK, "f");
	for (uint32_t i = 0; i < PYTHON_IDS + 10; i++)
		send_stack(stacks, PID, ID + i, &frame, 1, 0);
	assert_int_equal(path_of(stacks, PID, ID), PYTHON_PATH_UNKNOWN);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID + PYTHON_IDS + 9), 0), "f");
	/* Defined again: what goes from the ring is the older one. */
	send_stack(stacks, PID, ID + PYTHON_IDS + 9, &frame, 1, TRACE_STACK_CUT);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID + PYTHON_IDS + 9), 1), "[deeper stack]");
}

/* Of more functions than are kept one that stacks use stays, though the kernel side sends it once. */
static void test_used_function_stays(void **state)
{
	struct python_stacks *stacks = *state;
	const struct trace_frame used = { CODE, 0, CHECK };
	uint32_t id = ID;

	send_code(stacks, PID, CODE, CHECK, "used");
	for (uint32_t i = 1; i <= 3 * PYTHON_CODES; i++) {
		send_code(stacks, PID, CODE + 64 * i, CHECK, "once");
		if (i % 10000 != 0)
			continue;
		send_stack(stacks, PID, ++id, &used, 1, 0);
		assert_string_equal(name_of(stacks, path_of(stacks, PID, id), 0), "used");
	}
	send_stack(stacks, PID, ++id, (const struct trace_frame[]){ { CODE + 64, 0, CHECK } }, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, id), 0), "[unknown function]");
	assert_int_equal(python_stacks_lost(stacks), 1);
}

static void test_large_tables(void **state)
{
	enum { TABLES = PYTHON_LINES_BYTES / TRACE_LINES_LARGE };
	struct trace_code *event = calloc(1, sizeof(*event) + TRACE_LINES_LARGE);

	assert_non_null(event);
	event->header.type = TRACE_EVENT_CODE;
	event->header.tgid = PID;
	event->lines_n = event->lines_total = TRACE_LINES_LARGE;
	event->name = event->file = (struct trace_text){ 1, 1, 1 };
	event->name_text[0] = event->file_text[0] = 'x';
	for (uint32_t i = 0; i < 2 * TABLES; i++) {
		event->code = CODE + i;
		assert_int_equal(python_stacks_event(*state, &event->header,
						     sizeof(*event) + TRACE_LINES_LARGE, 0),
				 0);
	}
	free(event);
	/* The newest are there, the oldest gave way. */
	send_stack(*state, PID, ID, (const struct trace_frame[]){ { CODE + 2 * TABLES - 1, 0, 0 } }, 1, 0);
	assert_string_equal(name_of(*state, path_of(*state, PID, ID), 0), "x");
	send_stack(*state, PID, ID + 1, (const struct trace_frame[]){ { CODE, 0, 0 } }, 1, 0);
	assert_string_equal(name_of(*state, path_of(*state, PID, ID + 1), 0), "[unknown function]");
}

/* Tables are charged to their users while they are there; who has his share gives up his own for new ones. */
static void test_shared_tables(void **state)
{
	enum { CODES = 0, IDS = 1, TABLE = 2, ROOM = 16 * TRACE_LINES_SMALL, SHARE = 14 };
	struct user_shares shares = {
		.users_n = 2, .room = { [CODES] = PYTHON_CODES, [IDS] = PYTHON_IDS, [TABLE] = ROOM }
	};
	const struct python_shares all = { &shares, TABLE, CODES, IDS };
	const uint32_t size = sizeof(struct trace_code) + TRACE_LINES_SMALL;
	struct trace_code *event = calloc(1, size);
	const struct trace_header over = { .type = TRACE_EVENT_EXIT, .tgid = PID };

	assert_non_null(event);
	python_stacks_share(*state, &all);
	event->header.type = TRACE_EVENT_CODE;
	event->header.tgid = PID;
	event->lines_n = event->lines_total = TRACE_LINES_SMALL;
	event->name = event->file = (struct trace_text){ 1, 1, 1 };
	event->name_text[0] = event->file_text[0] = 'x';
	for (uint32_t i = 0; i < 2 * SHARE; i++) {
		event->code = CODE + i;
		assert_int_equal(python_stacks_event(*state, &event->header, size, 0), 0);
		assert_int_equal(shares.users[0].used[TABLE],
				 MIN(i + 1, (uint32_t)SHARE) * TRACE_LINES_SMALL);
	}
	/* The same function again is no other one. */
	assert_int_equal(python_stacks_event(*state, &event->header, size, 0), 0);
	assert_int_equal(shares.users[0].used[TABLE], SHARE * TRACE_LINES_SMALL);
	event->header.tgid = PID + 1;
	assert_int_equal(python_stacks_event(*state, &event->header, size, 1), 0);
	assert_int_equal(shares.users[1].used[TABLE], TRACE_LINES_SMALL);
	assert_int_equal(python_stacks_event(*state, &over, sizeof(over), 0), 0);
	assert_int_equal(shares.users[0].used[TABLE], 0);
	assert_int_equal(shares.used[TABLE], TRACE_LINES_SMALL);
	free(event);
}

/* Who has new functions and new stacks all the time takes those of others neither, nor all room. */
static void test_flood(void **state)
{
	enum { CODES, IDS, LINES, OTHER = PID + 1 };
	struct user_shares shares = {
		.users_n = 2,
		.room = { [CODES] = PYTHON_CODES, [IDS] = PYTHON_IDS, [LINES] = PYTHON_LINES_BYTES },
	};
	const struct python_shares all = { &shares, LINES, CODES, IDS };
	const struct trace_frame frame = { CODE, 0, CHECK };
	struct python_stacks *stacks = *state;

	python_stacks_share(stacks, &all);
	send_code(stacks, PID, CODE, CHECK, "quiet");
	send_stack(stacks, PID, ID, &frame, 1, 0);
	send_code(stacks, OTHER, CODE, CHECK, "f");
	for (uint32_t i = 1; i <= 3 * PYTHON_CODES; i++) {
		send_code(stacks, OTHER, CODE + 64 * i, CHECK, "f");
		send_stack(stacks, OTHER, ID + i, &frame, 1, 0);
	}
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID), 0), "quiet");
	send_stack(stacks, PID, ID + 1, &frame, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, PID, ID + 1), 0), "quiet");
	assert_int_equal(python_stacks_lost(stacks), 0);
	/* The newest of the other one's are there, too. */
	send_stack(stacks, OTHER, ID,
		   (const struct trace_frame[]){ { CODE + 64 * 3 * PYTHON_CODES, 0, CHECK } }, 1, 0);
	assert_string_equal(name_of(stacks, path_of(stacks, OTHER, ID), 0), "f");
	assert_int_not_equal(path_of(stacks, OTHER, ID + 3 * PYTHON_CODES), PYTHON_PATH_UNKNOWN);
	assert_int_equal(path_of(stacks, OTHER, ID + 1), PYTHON_PATH_UNKNOWN);
	assert_in_range(shares.users[1].used[CODES], 1, PYTHON_CODES / 8 * 7);
	assert_in_range(shares.users[1].used[IDS], 1, PYTHON_IDS / 8 * 7);
}

/* What ends is dropped at the cost of its own entries, also after others have made room. */
static void test_ends(void **state)
{
	enum { PROCESSES = 2 * PYTHON_IDS / 16, EACH = 16, LEFT = PYTHON_IDS / EACH };
	struct python_stacks *stacks = *state;
	const struct trace_frame frame = { CODE, 0, CHECK };

	for (uint32_t pid = 1; pid <= PROCESSES; pid++) {
		send_code(stacks, pid, CODE, CHECK, "f");
		for (uint32_t i = 0; i < EACH; i++)
			send_stack(stacks, pid, ID + i, &frame, 1, 0);
	}
	for (uint32_t pid = 1; pid <= PROCESSES; pid++) {
		const struct trace_header over = { .type = TRACE_EVENT_EXIT, .tgid = pid };
		uint64_t before = python_stacks_dropped(stacks);
		/* The ids of the first ones have gone from the ring; their codes have not. */
		bool left = pid > PROCESSES - LEFT;

		assert_int_equal(path_of(stacks, pid, ID) == PYTHON_PATH_UNKNOWN, !left);
		assert_int_equal(python_stacks_event(stacks, &over, sizeof(over), 0), 0);
		assert_int_equal(python_stacks_dropped(stacks) - before, 1 + (left ? EACH : 0));
		assert_int_equal(path_of(stacks, pid, ID), PYTHON_PATH_UNKNOWN);
		assert_int_equal(path_of(stacks, PROCESSES, ID) == PYTHON_PATH_UNKNOWN, pid == PROCESSES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_text_of_no_width, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interleaved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guessed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reused_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_used_function_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
