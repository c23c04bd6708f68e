// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "pipeline/stacks.h"
#include "trace/probe.h"

enum { CODE = 0x1000, CHECK = 7, ROWS = 64, PATHS = 64, HELD = 32, PROCESSES = 64, PLACES = 1024 };
enum { HELD_SHARE = HELD / 8 * 7 }; /* of one user */

static const struct stack_limits limits = {
	.rows = ROWS,
	.paths = PATHS,
	.held = HELD,
	.processes = PROCESSES,
	.places = PLACES,
	.frames = 1 << 16,
	.text_bytes = 1 << 16,
	.keep_held = true,
	.renew_ns = 1,
};

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

/* A stack of one function, in this line, of this process. */
static void send_named(struct stack_sums *sums, uint32_t tgid, uint32_t id, const char *name, int line)
{
	const uint32_t code_size = sizeof(struct trace_code) + TRACE_LINES_SMALL;
	const uint32_t frames_size = TRACE_STACK_SMALL * sizeof(struct trace_frame);
	const uint32_t stack_size = sizeof(struct trace_stack) + frames_size;
	_cleanup_free_ struct trace_code *code = calloc(1, code_size);
	_cleanup_free_ struct trace_stack *stack = calloc(1, stack_size);
	size_t n = strlen(name);

	assert_non_null(code);
	assert_non_null(stack);
	code->header = (struct trace_header){ .type = TRACE_EVENT_CODE, .tgid = tgid };
	code->code = CODE + id;
	code->check = CHECK;
	code->first_line = line;
	memcpy(code->name_text, name, n);
	code->name = (struct trace_text){ 1, (uint16_t)n, (uint32_t)n };
	code->file.width = 1;
	send(sums, &code->header, code_size);
	stack->header = (struct trace_header){ .type = TRACE_EVENT_STACK, .tgid = tgid, .stack = id };
	stack->n = 1;
	stack->frames[0] = (struct trace_frame){ CODE + id, 0, CHECK };
	send(sums, &stack->header, stack_size);
}

/* "f1" is the function of the first id. */
static void send_stack(struct stack_sums *sums, uint32_t tgid, uint32_t id)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", id - TRACE_STACK_NONES);
	send_named(sums, tgid, id, name, 1);
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

static void send_process(struct stack_sums *sums, uint32_t tgid, uint64_t incarnation)
{
	const struct trace_process event = {
		.header = { .type = TRACE_EVENT_PROCESS, .tgid = tgid, .time_ns = incarnation },
		.incarnation = incarnation,
		.start_boot_ns = incarnation,
		.comm = "python3",
	};

	send(sums, &event.header, sizeof(event));
}

/* A window in which a process has used its device for so long since it began. */
static void send_window(struct stack_sums *sums, uint32_t tgid, uint64_t incarnation, bool exited,
			double busy_s)
{
	struct traced_device device = {
		.v[TRACED_BUSY_ESTIMATED] = busy_s,
		.p[TRACED_BUSY_ESTIMATED] = PRESENCE_PRESENT,
	};
	struct traced_process process = {
		.id = { .pid = tgid, .start_ticks = process_ticks(incarnation) },
		.exited = exited,
		.devices_n = 1,
	};
	const struct trace_view view = {
		.processes = &process, .processes_n = 1, .devices = &device, .devices_n = 1
	};

	stack_sums_window(sums, &view);
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
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
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
	for (uint64_t addr = 1; addr <= HELD_SHARE + 1; addr++)
		send_memory(*state, TRACE_OP_ALLOC, 1, id, addr, 10);
	send_memory(*state, TRACE_OP_FREE, 1, id, 7, 0);
	send_memory(*state, TRACE_OP_FREE, 1, id, 1, 0);
	send_memory(*state, TRACE_OP_FREE, 1, id, HELD_SHARE, 0);
	send_memory(*state, TRACE_OP_ALLOC, 1, id, 7, 5);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_BYTES_HELD] == 10 * (HELD_SHARE - 3) + 5);
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
		assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
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
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_non_null(strstr(view->page.incomplete, "functions and stacks of users who have their share"));
	/* A stack takes one of each. */
	assert_int_equal(view->page.rows_n, (ROWS + PATHS) / 2 * 7 / 8 + 1);
	assert_true(sum_of(view, STACK_LAUNCHES) == 2 * (ROWS + PATHS));
	stack_view_freep(&view);
	/* Nobody knows whose this process is, but not process 1's user's. */
	send_stack(*state, UINT32_MAX, TRACE_STACK_NONES + 1);
	send_launch(*state, UINT32_MAX, TRACE_STACK_NONES + 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
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
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_true(sum_of(view, STACK_LAUNCHES) == 1);
	stack_view_freep(&view);
	for (uint32_t i = 1; i <= ROWS + PATHS; i++) {
		send_stack(*state, 1, TRACE_STACK_NONES + i);
		send_launch(*state, 1, TRACE_STACK_NONES + i, 0);
	}
	stack_sums_window(*state, &none);
	send_memory(*state, TRACE_OP_FREE, 1, TRACE_STACK_NONES + 1, 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_int_equal(view->page.rows_n, 0);
	assert_null(view->page.incomplete);
	stack_view_freep(&view);
	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_LAUNCHES] == 1);
}

/* What the process had done by then is not the time of what it launches next. */
static void time_goes_on_when_all_begins_anew(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const uint64_t began = 5000000000;

	send_process(*state, 1, began);
	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	send_window(*state, 1, began, false, 3600);
	for (uint32_t i = 1; i <= ROWS + PATHS; i++) {
		send_stack(*state, 1, TRACE_STACK_NONES + i);
		send_launch(*state, 1, TRACE_STACK_NONES + i, 0);
	}
	send_window(*state, 1, began, false, 3600);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_int_equal(view->page.rows_n, 0);
	stack_view_freep(&view);
	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	send_window(*state, 1, began, false, 3601);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_GPU_TIME] == 1e9);
	assert_string_equal(row_of(view, 1, "f1")->process, "python3 1");
}

/* The end of the first process with this PID was lost. */
static void a_pid_is_given_again(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const struct event_sink *sink = stack_sums_sink(*state);
	const uint64_t first = 5000000000, second = 6000000000;

	send_process(*state, 1, first);
	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	send_memory(*state, TRACE_OP_ALLOC, 1, TRACE_STACK_NONES + 1, 1, 10);
	send_process(*state, 1, second);
	sink->process_over(1, first, sink->sink.userdata); /* is told late */
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	send_memory(*state, TRACE_OP_FREE, 1, TRACE_STACK_NONES + 1, 1, 0);
	send_window(*state, 1, first, true, 100);
	send_window(*state, 1, second, false, 1);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	/* The second one's stack with that id was never told. */
	assert_int_equal(view->page.rows_n, 3);
	assert_true(row_of(view, 1, "f1")->weights[STACK_LAUNCHES] == 1);
	assert_true(row_of(view, 1, "f1")->weights[STACK_GPU_TIME] == 100e9);
	assert_true(row_of(view, 1, "[stack lost]")->weights[STACK_LAUNCHES] == 1);
	assert_true(row_of(view, 1, "[stack lost]")->weights[STACK_GPU_TIME] == 1e9);
	assert_true(sum_of(view, STACK_BYTES_HELD) == 10);
	stack_view_freep(&view);
	view = NULL;
	/* Only the end's last consequence comes. */
	sink->process_over(1, second, sink->sink.userdata);
	send_launch(*state, 1, TRACE_STACK_NONES + 1, 0);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_int_equal(view->page.rows_n, 4);
}

static void the_ended_hold_nothing(void **state)
{
	_cleanup_(stack_sums_freep) struct stack_sums *sums = NULL;
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	struct stack_limits drop = limits;

	(void)state;
	drop.keep_held = false;
	assert_int_equal(stack_sums_new(&drop, &sums), 0);
	send_stack(sums, 1, TRACE_STACK_NONES + 1);
	send_memory(sums, TRACE_OP_ALLOC, 1, TRACE_STACK_NONES + 1, 1, 10);
	send_exit(sums, 1);
	assert_int_equal(stack_sums_view(sums, 0, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_BYTES_HELD] == 0);
}

/* Who holds too much, or has too many lines, leaves room, and what was refused makes all begin anew. */
static void all_tables_are_shared(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	const struct trace_view none = { .processes_n = 0 };

	send_stack(*state, 1, TRACE_STACK_NONES + 1);
	for (uint64_t addr = 1; addr <= HELD; addr++)
		send_memory(*state, TRACE_OP_ALLOC, 1, TRACE_STACK_NONES + 1, addr, 10);
	/* Nobody knows whose this process is, but not process 1's user's. */
	send_stack(*state, UINT32_MAX, TRACE_STACK_NONES + 1);
	send_memory(*state, TRACE_OP_ALLOC, UINT32_MAX, TRACE_STACK_NONES + 1, 1, 10);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_true(row_of(view, 1, "f1")->weights[STACK_BYTES_HELD] == 10 * HELD_SHARE);
	assert_true(row_of(view, UINT32_MAX, "f1")->weights[STACK_BYTES_HELD] == 10);
	stack_view_freep(&view);
	view = NULL;
	/* There is room again, and what was refused is missing nevertheless. */
	for (uint64_t addr = 1; addr <= HELD / 2; addr++)
		send_memory(*state, TRACE_OP_FREE, 1, 0, addr, 0);
	stack_sums_window(*state, &none);
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_int_equal(view->page.rows_n, 0);
}

static void places_are_shared(void **state)
{
	_cleanup_(stack_sums_freep) struct stack_sums *sums = NULL;
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;
	struct stack_limits few = limits;

	(void)state;
	few.places = 8;
	assert_int_equal(stack_sums_new(&few, &sums), 0);
	for (uint32_t i = 1; i <= 10; i++)
		send_stack(sums, 1, TRACE_STACK_NONES + i);
	send_stack(sums, UINT32_MAX, TRACE_STACK_NONES + 11);
	send_launch(sums, 1, TRACE_STACK_NONES + 7, 0);
	send_launch(sums, 1, TRACE_STACK_NONES + 8, 0);
	send_launch(sums, UINT32_MAX, TRACE_STACK_NONES + 11, 0);
	assert_int_equal(stack_sums_view(sums, 0, 0, &view), 0);
	assert_non_null(row_of(view, 1, "f7"));
	assert_null(row_of(view, 1, "f8"));
	assert_non_null(row_of(view, UINT32_MAX, "f11"));
}

/* Of a function that calls itself in many lines the names are there once. */
static void texts_are_there_once(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;

	for (int line = 1; line <= 20; line++) {
		const uint32_t id = TRACE_STACK_NONES + (uint32_t)line;

		send_named(*state, 1, id, "same", line);
		send_launch(*state, 1, id, 0);
	}
	assert_int_equal(stack_sums_view(*state, 0, 0, &view), 0);
	assert_int_equal(view->page.places_n, 20);
	for (size_t i = 1; i < 20; i++) {
		assert_ptr_equal(view->page.places[i].name, view->page.places[0].name);
		assert_ptr_equal(view->page.places[i].file, view->page.places[0].file);
		assert_ptr_equal(view->page.rows[i].process, view->page.rows[0].process);
	}
	assert_string_equal(view->page.places[0].name, "same");
}

/* What has no room is added up, and said. */
static void a_view_is_bounded(void **state)
{
	enum { BYTES = 10 * sizeof(struct stack_row) };
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;

	for (uint32_t i = 1; i <= 20; i++) {
		send_stack(*state, 1, TRACE_STACK_NONES + i);
		for (uint32_t n = 0; n < i; n++)
			send_launch(*state, 1, TRACE_STACK_NONES + i, 0);
	}
	assert_int_equal(stack_sums_view(*state, 19, BYTES, &view), 0);
	assert_in_range(view->page.rows_n, 6, 10);
	assert_true(row_of(view, 1, "f20")->weights[STACK_LAUNCHES] == 20);
	assert_non_null(row_of(view, 1, "[other stacks]"));
	assert_true(sum_of(view, STACK_LAUNCHES) == 210);
	assert_non_null(
		strstr(view->page.incomplete, "stacks are only added up: all are too many for a page"));
}

static void the_least_are_added_up(void **state)
{
	_cleanup_(stack_view_freep) struct stack_view *view = NULL;

	for (uint32_t i = 1; i <= 10; i++) {
		send_stack(*state, 1 + i % 2, TRACE_STACK_NONES + i);
		for (uint32_t n = 0; n < i; n++)
			send_launch(*state, 1 + i % 2, TRACE_STACK_NONES + i, 0);
	}
	assert_int_equal(stack_sums_view(*state, 3, 0, &view), 0);
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
		TEST(time_goes_on_when_all_begins_anew),
		TEST(a_pid_is_given_again),
		cmocka_unit_test(the_ended_hold_nothing),
		TEST(all_tables_are_shared),
		cmocka_unit_test(places_are_shared),
		TEST(texts_are_there_once),
		TEST(a_view_is_bounded),
		TEST(the_least_are_added_up),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
