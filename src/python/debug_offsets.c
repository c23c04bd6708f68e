// SPDX-License-Identifier: Apache-2.0
/*
 * _Py_DebugOffsets of 3.13 and later (Include/internal/pycore_debug_offsets.h): a cookie, then numbers of 64
 * bits in groups. Later versions added members within groups, so the index of a number goes by version.
 */
#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "python/private.h"

enum {
	/* Larger structures than any version has: 3.13's PyInterpreterState has some 110 KiB. */
	RUNTIME_MAX = 16 << 20,
	OBJECT_MAX = 4096,
	/* Lower bits of the version: before it structures change, as that of strings did in 3.14's alphas. */
	BETA_1 = 0xb1,
	WORD = 8,
};

/* Of each number that is needed, its index from the cookie on, by minor version - 13; 0: it has none. */
enum number {
	VERSION,
	FREE_THREADED,
	INTERPRETERS_HEAD,
	INTERPRETER_NEXT,
	THREADS_HEAD,
	THREAD_PREV,
	THREAD_NEXT,
	THREAD_INTERP,
	CURRENT_FRAME,
	THREAD_ID,
	STATUS,
	PREVIOUS,
	EXECUTABLE,
	INSTR_PTR,
	OWNER,
	STACK_POINTER,
	TLBC_INDEX, /* free-threaded 3.14 and later, as CODE_TLBC: else 0 */
	FILENAME,
	QUALNAME,
	LINETABLE,
	FIRSTLINENO,
	CODE_ADAPTIVE,
	CODE_TLBC,
	BYTES_SIZE,
	BYTES_DATA,
	TEXT_STATE,
	TEXT_LENGTH,
	ASCII_SIZE,
	OBJECT_TYPE,
	SET_USED,
	GENERATOR_FRAME,
	GENERATOR_STATE,
	NUMBERS,
};

static const uint8_t indexes[][NUMBERS] = {
	{
		[VERSION] = 1,          [FREE_THREADED] = 2,  [INTERPRETERS_HEAD] = 5,
		[INTERPRETER_NEXT] = 8, [THREADS_HEAD] = 9,   [THREAD_PREV] = 20,
		[THREAD_NEXT] = 21,     [THREAD_INTERP] = 22, [CURRENT_FRAME] = 23,
		[THREAD_ID] = 24,       [STATUS] = 27,        [PREVIOUS] = 29,
		[EXECUTABLE] = 30,      [INSTR_PTR] = 31,     [OWNER] = 33,
		[FILENAME] = 35,        [QUALNAME] = 37,      [LINETABLE] = 38,
		[FIRSTLINENO] = 39,     [CODE_ADAPTIVE] = 43, [BYTES_SIZE] = 65,
		[BYTES_DATA] = 66,      [TEXT_STATE] = 68,    [TEXT_LENGTH] = 69,
		[ASCII_SIZE] = 70,
	},
	{
		[VERSION] = 1,          [FREE_THREADED] = 2,    [INTERPRETERS_HEAD] = 5,
		[INTERPRETER_NEXT] = 8, [THREADS_HEAD] = 9,     [THREAD_PREV] = 23,
		[THREAD_NEXT] = 24,     [THREAD_INTERP] = 25,   [CURRENT_FRAME] = 26,
		[THREAD_ID] = 27,       [STATUS] = 30,          [PREVIOUS] = 32,
		[EXECUTABLE] = 33,      [INSTR_PTR] = 34,       [OWNER] = 36,
		[STACK_POINTER] = 37,   [OBJECT_TYPE] = 51,     [SET_USED] = 63,
		[GENERATOR_FRAME] = 85, [GENERATOR_STATE] = 86, [TLBC_INDEX] = 38,
		[FILENAME] = 40,        [QUALNAME] = 42,        [LINETABLE] = 43,
		[FIRSTLINENO] = 44,     [CODE_ADAPTIVE] = 48,   [CODE_TLBC] = 49,
		[BYTES_SIZE] = 75,      [BYTES_DATA] = 76,      [TEXT_STATE] = 78,
		[TEXT_LENGTH] = 79,     [ASCII_SIZE] = 80,
	},
	{
		[VERSION] = 1,           [FREE_THREADED] = 2,     [INTERPRETERS_HEAD] = 5,
		[INTERPRETER_NEXT] = 8,  [THREADS_HEAD] = 9,      [THREAD_PREV] = 23,
		[THREAD_NEXT] = 24,      [THREAD_INTERP] = 25,    [CURRENT_FRAME] = 26,
		[THREAD_ID] = 30,        [STATUS] = 33,           [PREVIOUS] = 40,
		[EXECUTABLE] = 41,       [INSTR_PTR] = 42,        [OWNER] = 44,
		[STACK_POINTER] = 45,    [OBJECT_TYPE] = 59,      [SET_USED] = 75,
		[GENERATOR_FRAME] = 101, [GENERATOR_STATE] = 102, [TLBC_INDEX] = 46,
		[FILENAME] = 48,         [QUALNAME] = 50,         [LINETABLE] = 51,
		[FIRSTLINENO] = 52,      [CODE_ADAPTIVE] = 56,    [CODE_TLBC] = 57,
		[BYTES_SIZE] = 87,       [BYTES_DATA] = 88,       [TEXT_STATE] = 90,
		[TEXT_LENGTH] = 91,      [ASCII_SIZE] = 92,
	},
};
_Static_assert(ARRAY_SIZE(indexes) == PYTHON_NEWEST_MINOR - 13 + 1, "a table for each version");

/*
 * Tasks of asyncio (struct trace_python), by minor version - 13; none before 3.14, nor in free-threaded
 * builds. As in .AsyncioDebug of 3.14.10's _asyncio and of 3.15.2, since _Py_DebugOffsets has none of it;
 * what a coroutine awaits is as in _PyGen_yf() (Objects/genobject.c).
 */
static const struct tasks {
	uint16_t thread, awaited_by, several, is_task, coroutine;
	uint8_t awaited_below, state_awaits;
} tasks[] = {
	[1] = { 872, 96, 109, 108, 128, WORD, (uint8_t)-1 },
	[2] = { 1032, 96, 109, 108, 128, 2 * WORD, 2 },
};
_Static_assert(ARRAY_SIZE(tasks) == ARRAY_SIZE(indexes), "a row for each version");

static uint64_t number_at(const char *data, size_t n, unsigned index)
{
	uint64_t value = UINT64_MAX;

	if ((index + 1) * sizeof(value) <= n)
		memcpy(&value, data + index * sizeof(value), sizeof(value));
	return value;
}

static bool is_within(const uint64_t *numbers)
{
	for (unsigned i = INTERPRETERS_HEAD; i < NUMBERS; i++) {
		bool of_runtime = i <= THREADS_HEAD;

		if (numbers[i] >= (of_runtime ? RUNTIME_MAX : OBJECT_MAX))
			return false;
	}
	return true;
}

/* Of 3.14 and later, in which references and, without a lock, strings and bytecode are kept otherwise. */
static void offsets_fill(const uint64_t *numbers, bool newer, struct trace_python *python)
{
	bool free_threaded = newer && numbers[FREE_THREADED];

	*python = (struct trace_python){
		.interpreters = (uint32_t)numbers[INTERPRETERS_HEAD],
		.interpreter_next = (uint32_t)numbers[INTERPRETER_NEXT],
		.interpreter_threads = (uint32_t)numbers[THREADS_HEAD],
		.thread_prev = (uint16_t)numbers[THREAD_PREV],
		.thread_next = (uint16_t)numbers[THREAD_NEXT],
		.thread_interpreter = (uint16_t)numbers[THREAD_INTERP],
		.thread_id = (uint16_t)numbers[THREAD_ID],
		.thread_frame = (uint16_t)numbers[CURRENT_FRAME],
		.thread_status = (uint16_t)numbers[STATUS],
		/* Code objects and bytes objects both begin as PyVarObject. */
		.code_size = (uint16_t)numbers[BYTES_SIZE],
		.code_instructions = (uint16_t)numbers[CODE_ADAPTIVE],
		.text_state = (uint16_t)numbers[TEXT_STATE],
		.text_length = (uint16_t)numbers[TEXT_LENGTH],
		.text_ascii = (uint16_t)numbers[ASCII_SIZE],
		/* PyCompactUnicodeObject has a length and a pointer more. */
		.text_compact = (uint16_t)(numbers[ASCII_SIZE] + 2 * WORD),
		.bytes_size = (uint16_t)numbers[BYTES_SIZE],
		.bytes_data = (uint16_t)numbers[BYTES_DATA],
		/* Before `kind` lies `interned`: two bits, or a byte that is written atomically. */
		.text_kind_shift = free_threaded ? 8 : 2,
		.code_tlbc = (uint16_t)(free_threaded ? numbers[CODE_TLBC] : 0),
		.status_active = PYTHON_STATUS_ACTIVE,
		.flags = TRACE_PYTHON_OWNER | (newer ? TRACE_PYTHON_TAGGED : 0),
		.lines = TRACE_LINES_LOCATIONS,
	};
}

static void tasks_fill(const uint64_t *numbers, const struct tasks *of, struct trace_python *python)
{
	if (!of->thread || numbers[FREE_THREADED])
		return;
	python->thread_task = of->thread;
	python->task_awaited_by = of->awaited_by;
	python->task_several = of->several;
	python->task_is_task = of->is_task;
	python->task_coroutine = of->coroutine;
	python->set_used = (uint16_t)numbers[SET_USED];
	python->object_type = (uint16_t)numbers[OBJECT_TYPE];
	python->generator_frame = (uint16_t)numbers[GENERATOR_FRAME];
	python->generator_state = (uint16_t)numbers[GENERATOR_STATE];
	python->frame_stack = (uint16_t)numbers[STACK_POINTER];
	python->awaited_below = of->awaited_below;
	python->state_awaits = of->state_awaits;
}

int python_debug_offsets(const void *data, size_t n, uint32_t *ret_version, struct trace_python *ret_python)
{
	static const char cookie[] = "xdebugpy";
	uint64_t version = number_at(data, n, indexes[0][VERSION]), numbers[NUMBERS];
	uint32_t minor = version >> 16 & 0xff;
	struct python_layout layout;
	struct trace_python python;

	if (n < sizeof(cookie) || memcmp(data, cookie, sizeof(cookie) - 1) != 0)
		return -ENODATA;
	if (version >> 24 != 3 || minor < 13 || minor > PYTHON_NEWEST_MINOR || (version & 0xffff) < BETA_1)
		return -ENOTSUP;
	for (unsigned i = 0; i < NUMBERS; i++)
		numbers[i] = indexes[minor - 13][i] ? number_at(data, n, indexes[minor - 13][i]) : 0;
	if (!is_within(numbers))
		return -EBADMSG;
	offsets_fill(numbers, minor >= 14, &python);
	tasks_fill(numbers, &tasks[minor - 13], &python);
	layout = (struct python_layout){
		.back = (uint16_t)numbers[PREVIOUS],
		.code = (uint16_t)numbers[EXECUTABLE],
		.at = (uint16_t)numbers[INSTR_PTR],
		.owner = (uint16_t)numbers[OWNER],
		.tlbc = (uint16_t)(python.code_tlbc ? numbers[TLBC_INDEX] : 0),
		.first_line = (uint16_t)numbers[FIRSTLINENO],
		.file = (uint16_t)numbers[FILENAME],
		.name = (uint16_t)numbers[QUALNAME],
		.lines = (uint16_t)numbers[LINETABLE],
		.flags = TRACE_PYTHON_OWNER,
	};
	if (python_set_windows(&layout, &python) < 0 || python_set_thread(&python) < 0)
		return -EBADMSG;
	*ret_version = (uint32_t)version;
	*ret_python = python;
	return 0;
}
