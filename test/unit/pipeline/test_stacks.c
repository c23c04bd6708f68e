// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "pipeline/stacks.h"
#include "trace/probe.h"

enum { CODE = 0x1000, CHECK = 7, ROWS = 64, PATHS = 64, HELD = 32, PROCESSES = 64 };

static const struct stack_limits limits = { ROWS, PATHS, HELD, PROCESSES, 1 };

static int setup(void **state)
{
	return stack_sums_new(&limits, (struct stack_sums **)state);
}

static int teardown(void **state)
{
	stack_sums_free(*state);
	return 0;
}

static void send(struct stack_sums *sums, const struct trace_header *event, uint32_t size)
{
	struct event_sink *sink = stack_sums_sink(sums);

	sink->event(event, size, sink->sink.userdata);
}

/* A stack of one function of this process: "f1" of the first id. */
static void send_stack(struct stack_sums *sums, uint32_t tgid, uint32_t id)
{
	const uint32_t code_size = sizeof(struct trace_code) + TRACE_LINES_SMALL;
	const uint32_t frames_size = TRACE_STACK_SMALL * sizeof(struct trace_frame);
	const uint32_t stack_size = sizeof(struct trace_stack) + frames_size;
	_cleanup_free_ struct trace_code *code = calloc(1, code_size);
	_cleanup_free_ struct trace_stack *stack = calloc(1, stack_size);
	int n;

	assert_non_null(code);
	assert_non_null(stack);
	code->header = (struct trace_header){ .type = TRACE_EVENT_CODE, .tgid = tgid };
	code->code = CODE + id;
	code->check = CHECK;
	code->first_line = 1;
	n = snprintf((char *)code->name_text, sizeof(code->name_text), "f%u", id - TRACE_STACK_NONES);
	code->name = (struct trace_text){ 1, (uint16_t)n, (uint32_t)n };
	send(sums, &code->header, code_size);
	stack->header = (struct trace_header){ .type = TRACE_EVENT_STACK, .tgid = tgid, .stack = id };
	stack->n = 1;
	stack->frames[0] = (struct trace_frame){ CODE + id, 0, CHECK };
	send(sums, &stack->header, stack_size);
}

static uint16_t call_of(enum trace_op op)
{
	for (uint16_t i = 0; i < probe_calls(); i++)
		if (probe_at(i)->spec.op == op)
			return i;
	fail();
	return 0;
}

static void send_launch(struct stack_sums *sums, uint32_t tgid, uint32_t id, unsigned shift)
{
	const struct trace_launch event = {
		.header = { .type = TRACE_EVENT_LAUNCH,
			    .op = TRACE_OP_LAUNCH,
			    .tgid = tgid,
			    .stack = id,
			    .call = call_of(TRACE_OP_LAUNCH),
			    .flags = (uint16_t)(shift << TRACE_FLAG_SAMPLED_SHIFT) },
	};

	send(sums, &event.header, sizeof(event));
}

static void send_memory(struct stack_sums *sums, enum trace_op op, uint32_t tgid, uint32_t id, uint64_t addr,
			uint64_t size)
{
	const struct trace_call event = {
		.header = { .type = TRACE_EVENT_CALL,
			    .op = (uint8_t)op,
			    .tgid = tgid,
			    .stack = op == TRACE_OP_FREE ? TRACE_STACK_OFF : id,
			    .call = call_of(op) },
		.addr = addr,
		.size = size,
	};

	send(sums, &event.header, sizeof(event));
}

static void send_exit(struct stack_sums *sums, uint32_t tgid)
{
	const struct trace_header event = { .type = TRACE_EVENT_EXIT, .tgid = tgid };

	send(sums, &event, sizeof(event));
}

static const struct stack_row *row_of(const struct stack_view *view, uint32_t pid, const char *name)
{
	for (size_t i = 0; i < view->page.rows_n; i++)
		if (view->page.rows[i].pid == pid &&
		    strcmp(view->page.places[view->page.rows[i].places[0]].name, name) == 0)
			return &view->page.rows[i];
	return NULL;
}

static double sum_of(const struct stack_view *view, enum stack_weight weight)
{
	double sum = 0;

	for (size_t i = 0; i < view->page.rows_n; i++)
		sum += view->page.rows[i].weights[weight];
	return sum;
}

/* Each event counts for as many as it says, whatever the sample was before. */
static void samples_count_as_when_they_were_taken(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const uint32_t id = TRACE_STACK_NONES + 1;

	send_stack(*state, 1, id);
	send_launch(*state, 1, id, 0);
	send_launch(*state, 1, id, 5);
	send_launch(*state, 1, id, 1);
	send_launch(*state, 1, TRACE_STACK_SKIPPED, 5);
	send_launch(*state, 1, TRACE_STACK_GIVEN_UP, 0);
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_LAUNCHES] == 1 + 32 + 2);
	assert_true(row_of(view, 1, "[given up: trace.max_overhead]")->weights[STACK_LAUNCHES] == 1);
	assert_true(view->page.estimated);
	assert_string_equal(view->page.incomplete,
			    "the stacks of 1 calls were not taken, for trace.max_overhead");
}

static void bytes_are_held_until_they_are_freed(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const uint32_t id = TRACE_STACK_NONES + 1;

	send_stack(*state, 1, id);
	for (uint64_t addr = 1; addr <= HELD + 1; addr++)
		send_memory(*state, TRACE_OP_ALLOC, 1, id, addr, 10);
	send_memory(*state, TRACE_OP_FREE, 1, id, 7, 0);
	send_memory(*state, TRACE_OP_FREE, 1, id, 1, 0);
	send_memory(*state, TRACE_OP_FREE, 1, id, HELD, 0);
	send_memory(*state, TRACE_OP_ALLOC, 1, id, 7, 5);
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_BYTES_HELD] == 10 * (HELD - 3) + 5);
	assert_non_null(strstr(view->page.incomplete, "1 allocations are left out"));
}

/* A process's end, and its share of a window's time, cost what the process has. */
static void others_cost_a_process_nothing(void **state)
{
	const uint32_t id = TRACE_STACK_NONES + 1;

	for (uint32_t tgid = 1; tgid <= 10; tgid++) {
		send_stack(*state, tgid, id);
		send_memory(*state, TRACE_OP_ALLOC, tgid, id, 1, 10);
		send_memory(*state, TRACE_OP_ALLOC, tgid, id, 2, 10);
	}
	for (uint32_t tgid = 10; tgid > 0; tgid--) {
		uint64_t before = stack_sums_steps(*state);
		_cleanup_(stack_view_freep) struct stack_view *view = NULL;

		send_exit(*state, tgid);
		assert_int_equal(stack_sums_steps(*state) - before, 2);
		assert_int_equal(stack_sums_view(*state, 0, &view), 0);
		assert_true(sum_of(view, STACK_BYTES_HELD) == 200); /* kept: never freed */
	}
}

/* What does not fit is in one row of its process, so sums stay whole; a user leaves room for others. */
static void rows_are_bounded(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;

	for (uint32_t i = 1; i <= 2 * (ROWS + PATHS); i++) {
		send_stack(*state, 1, TRACE_STACK_NONES + i);
		send_launch(*state, 1, TRACE_STACK_NONES + i, 0);
	}
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_non_null(strstr(view->page.incomplete, "functions and stacks of users who have their share"));
	/* A stack takes one of each. */
	assert_int_equal(view->page.rows_n, (ROWS + PATHS) / 2 * 7 / 8 + 1);
	assert_true(sum_of(view, STACK_LAUNCHES) == 2 * (ROWS + PATHS));
	stack_view_freep(&view);
	/* Nobody knows whose this process is, but not process 1's user's. */
	send_stack(*state, UINT32_MAX, TRACE_STACK_NONES + 1);
	send_launch(*state, UINT32_MAX, TRACE_STACK_NONES + 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_non_null(row_of(view, UINT32_MAX, "f1"));
}

/* What is full begins anew, with nothing of what was. */
static void what_is_full_begins_anew(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const struct trace_view none = { .processes_n = 0 };

	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	send_memory(*state, TRACE_OP_ALLOC, 1, TRACE_STACK_NONES + 1, 1, 10);
	stack_sums_window(*state, &none); /* not full */
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_true(sum_of(view, STACK_LAUNCHES) == 1);
	stack_view_freep(&view);
	for (uint32_t i = 1; i <= ROWS + PATHS; i++) {
		send_stack(*state, 1, TRACE_STACK_NONES + i);
		send_launch(*state, 1, TRACE_STACK_NONES + i, 0);
	}
	stack_sums_window(*state, &none);
	send_memory(*state, TRACE_OP_FREE, 1, TRACE_STACK_NONES + 1, 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_int_equal(view->page.rows_n, 0);
	assert_null(view->page.incomplete);
	stack_view_freep(&view);
	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_LAUNCHES] == 1);
}

static void the_least_are_added_up(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;

	for (uint32_t i = 1; i <= 10; i++) {
		send_stack(*state, 1 + i % 2, TRACE_STACK_NONES + i);
		for (uint32_t n = 0; n < i; n++)
			send_launch(*state, 1 + i % 2, TRACE_STACK_NONES + i, 0);
	}
	assert_int_equal(stack_sums_view(*state, 3, &view), 0);
	assert_int_equal(view->page.rows_n, 5);
	assert_true(view->page.rows[0].weights[STACK_LAUNCHES] == 10);
	assert_true(view->page.rows[2].weights[STACK_LAUNCHES] == 8);
	assert_true(row_of(view, 1, "[other stacks]")->weights[STACK_LAUNCHES] == 2 + 4 + 6);
	assert_true(row_of(view, 2, "[other stacks]")->weights[STACK_LAUNCHES] == 1 + 3 + 5 + 7);
	assert_true(sum_of(view, STACK_LAUNCHES) == 55);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_count_as_when_they_were_taken),
		TEST(bytes_are_held_until_they_are_freed),
		TEST(others_cost_a_process_nothing),
		TEST(rows_are_bounded),
		TEST(what_is_full_begins_anew),
		TEST(the_least_are_added_up),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
