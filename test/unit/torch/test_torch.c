// SPDX-License-Identifier: Apache-2.0
/* What PyTorch's events mean: allocators, what operators hold, nodes, ranges, steps; and the bounds. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "torch/torch.h"
#include "users.h"

enum { PID = 100, ADD = 7, LINEAR = 8, GPU = TRACE_TORCH_DEVICE(1, 3), TYPE = 0x7000 };

static int setup(void **state)
{
	*state = torch_new(1, false);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	torch_free(*state);
	return 0;
}

static void call(struct torch *torch, uint8_t op, const struct trace_call *event)
{
	struct trace_call copy = *event;

	copy.header.type = TRACE_EVENT_CALL;
	copy.header.op = op;
	if (!copy.header.tgid)
		copy.header.tgid = PID;
	torch_event(torch, &copy.header, sizeof(copy));
}

/* An allocator's report: bytes below 0 are freed. */
static void memory(struct torch *torch, uint16_t operator, uint64_t address, int64_t bytes,
		   uint64_t allocated, uint64_t reserved)
{
	call(torch, TRACE_OP_TORCH_MEMORY,
	     &(struct trace_call){ .header = { .operator= operator},
				   .addr = address,
				   .size = (uint64_t)bytes,
				   .stream = allocated,
				   .handle = reserved,
				   .kind = GPU });
}

static void name(struct torch *torch, uint8_t op, uint64_t handle, uint64_t time_ns, const char *text)
{
	char room[sizeof(struct trace_name) + TRACE_NAME_SMALL] __attribute__((aligned(8))) = { 0 };
	struct trace_name *event = (struct trace_name *)room;

	event->header =
		(struct trace_header){ .type = TRACE_EVENT_NAME, .op = op, .tgid = PID, .time_ns = time_ns };
	event->handle = handle;
	snprintf(event->name, TRACE_NAME_SMALL, "%s", text);
	torch_event(torch, &event->header, sizeof(room));
}

static void life(struct torch *torch, uint8_t type, uint64_t incarnation)
{
	const struct trace_process event = { .header = { .tgid = PID, .type = type },
					     .incarnation = incarnation };

	torch_event(torch, &event.header, sizeof(event));
}

static struct torch_view *window(struct torch *torch, uint32_t processes)
{
	struct torch_view *view = torch_window(torch);

	assert_non_null(view);
	assert_int_equal(view->processes_n, processes);
	return view;
}

static uint64_t held(const struct torch *torch, uint16_t operator)
{
	return torch_operators(torch)[operator].held_bytes;
}

static void allocators_say_what_they_hold(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;
	const struct torch_memory *m;

	memory(torch, ADD, 0x1000, 100, 100, 1000);
	memory(torch, ADD, 0x2000, 200, 300, 2000);
	memory(torch, 0, 0x1000, -100, 200, 1500);
	call(torch, TRACE_OP_TORCH_OOM,
	     &(struct trace_call){ .header = { .operator= LINEAR },
				   .size = 5000,
				   .stream = 200,
				   .handle = 1500,
				   .kind = GPU });
	call(torch, TRACE_OP_TORCH_MEMORY,
	     &(struct trace_call){ .addr = 1, .size = 7, .stream = 7, .kind = TRACE_TORCH_DEVICE(0, -1) });
	view = window(torch, 1);
	assert_int_equal(view->processes[0].memories_n, 2);
	m = view->memories;
	assert_int_equal(m->device.type, 1);
	assert_int_equal(m->device.index, 3);
	assert_int_equal(m->allocated, 200);
	assert_int_equal(m->allocated_peak, 300);
	assert_int_equal(m->reserved, 1500);
	assert_int_equal(m->reserved_peak, 2000);
	assert_int_equal(m->allocations, 2);
	assert_int_equal(m->frees, 1);
	assert_int_equal(m->allocated_bytes, 300);
	assert_int_equal(m->ooms, 1);
	assert_int_equal(m->oom_asked, 5000);
	assert_int_equal(m->oom_allocated, 200);
	assert_int_equal(m->oom_call, LINEAR);
	assert_int_equal(view->memories[1].device.index, -1);
}

static void operators_hold_what_was_not_freed(void **state)
{
	struct torch *torch = *state;

	memory(torch, ADD, 0x1000, 100, 0, 0);
	memory(torch, LINEAR, 0x2000, 200, 0, 0);
	memory(torch, ADD, 0x3000, 400, 0, 0);
	assert_int_equal(held(torch, ADD), 500);
	memory(torch, LINEAR, 0x1000, -100, 0, 0); /* whichever thread frees it */
	assert_int_equal(held(torch, ADD), 400);
	assert_int_equal(held(torch, LINEAR), 200);
	memory(torch, 0, 0x9000, -100, 0, 0); /* allocated before it was traced */
	/* A free that was not seen: the address is used again. */
	memory(torch, LINEAR, 0x3000, 50, 0, 0);
	assert_int_equal(held(torch, ADD), 0);
	assert_int_equal(held(torch, LINEAR), 250);
	assert_int_equal(torch_operators(torch)[ADD].allocated_bytes, 500);
	assert_false(torch_is_doubtful(torch));
	life(torch, TRACE_EVENT_EXIT, 0);
	assert_int_equal(held(torch, LINEAR), 0);
	assert_int_equal(torch_operators(torch)[LINEAR].allocated_bytes, 250);
}

static void addresses_are_of_one_process(void **state)
{
	struct torch *torch = *state;
	const struct trace_call other = {
		.header = { .operator= LINEAR, .tgid = PID + 1 }, .addr = 0x1000, .size = 1, .kind = GPU
	};

	memory(torch, ADD, 0x1000, 100, 0, 0);
	call(torch, TRACE_OP_TORCH_MEMORY, &other);
	assert_int_equal(held(torch, ADD), 100);
	life(torch, TRACE_EVENT_EXEC, 0);
	assert_int_equal(held(torch, ADD), 0);
	assert_int_equal(held(torch, LINEAR), 1);
}

static void nodes_have_names_and_operators(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;
	const struct trace_call node = { .header = { .forward = ADD, .time_ns = 1000000000 },
					 .handle = TYPE };
	const struct trace_call later = { .header = { .time_ns = 3000000000 }, .handle = TYPE };
	const struct trace_call unknown = { .handle = TYPE + 8 };

	name(torch, TRACE_OP_TORCH_NODE, TYPE, 0, "N5torch8autograd9generated12MulBackward0E");
	name(torch, TRACE_OP_TORCH_NODE, TYPE + 8, 0, "nothing");
	call(torch, TRACE_OP_TORCH_NODE, &node);
	call(torch, TRACE_OP_TORCH_NODE, &later);
	call(torch, TRACE_OP_TORCH_NODE, &unknown);
	view = window(torch, 1);
	assert_int_equal(view->processes[0].nodes_n, 1);
	assert_string_equal(view->counts[0].name, "MulBackward0");
	assert_int_equal(view->counts[0].count, 2);
	assert_true(view->counts[0].seconds == 2);
	assert_int_equal(view->processes[0].other_nodes, 1);
	assert_int_equal(view->processes[0].joined, 1);
}

static void steps_are_ranges(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;

	for (uint64_t i = 0; i < 5; i++)
		name(torch, TRACE_OP_TORCH_RANGE, 0, i * 500000000, "Optimizer.step#SGD.step");
	name(torch, TRACE_OP_TORCH_RANGE, 0, 0, "Optimizer.zero_grad#SGD.zero_grad");
	name(torch, TRACE_OP_TORCH_RANGE, 0, 0, "mine \xff");
	view = window(torch, 1);
	assert_int_equal(view->processes[0].steps, 5);
	assert_true(view->processes[0].step_seconds == 0.5);
	assert_int_equal(view->processes[0].ranges_n, 3);
	assert_int_equal(view->counts[0].count, 5);
	assert_string_equal(view->counts[2].name, "mine ?");
}

static void names_are_bounded(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;
	char text[64];

	for (unsigned i = 0; i < TORCH_RANGES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "range %u", i);
		name(torch, TRACE_OP_TORCH_RANGE, 0, 0, text);
	}
	for (unsigned i = 0; i < TORCH_NODES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "N5torch4N%03uE", i);
		name(torch, TRACE_OP_TORCH_NODE, i, 0, text);
		call(torch, TRACE_OP_TORCH_NODE, &(struct trace_call){ .handle = i });
	}
	for (int i = 0; i < TORCH_DEVICES_MAX + 5; i++)
		call(torch, TRACE_OP_TORCH_MEMORY,
		     &(struct trace_call){ .addr = 1, .size = 1, .kind = TRACE_TORCH_DEVICE(1, i) });
	view = window(torch, 1);
	assert_int_equal(view->processes[0].ranges_n, TORCH_RANGES_MAX);
	assert_int_equal(view->processes[0].other_ranges, 10);
	assert_int_equal(view->processes[0].nodes_n, TORCH_NODES_MAX);
	assert_int_equal(view->processes[0].other_nodes, 10);
	assert_int_equal(view->processes[0].memories_n, TORCH_DEVICES_MAX);
}

static void processes_are_bounded(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;

	for (uint32_t tgid = 1; tgid <= TORCH_PROCESSES_MAX + 5; tgid++)
		call(torch, TRACE_OP_TORCH_MEMORY,
		     &(struct trace_call){ .header = { .tgid = tgid }, .addr = 1, .size = 1, .kind = GPU });
	view = window(torch, TORCH_PROCESSES_MAX);
	assert_int_equal(view->beyond, 5);
}

/* The views take the last one of a PID for the one that runs. */
static void of_one_pid_the_youngest_is_last(_unused_ void **state)
{
	_cleanup_(torch_freep) struct torch *torch = torch_new(1, true);
	_cleanup_free_ struct torch_view *view = NULL, *again = NULL;

	for (uint64_t i = 1; i <= 20; i++) {
		call(torch, TRACE_OP_TORCH_MEMORY,
		     &(struct trace_call){
			     .header = { .time_ns = i }, .addr = 1, .size = 1, .stream = i, .kind = GPU });
		if (i < 20)
			life(torch, TRACE_EVENT_EXIT, 0);
	}
	view = window(torch, 20);
	again = window(torch, 20);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(view->memories[view->processes[i].memories_first].allocated, i + 1);
		assert_int_equal(again->memories[again->processes[i].memories_first].allocated, i + 1);
		assert_int_equal(view->processes[i].exited, i < 19);
	}
}

static void events_may_arrive_swapped(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;

	name(torch, TRACE_OP_TORCH_RANGE, 0, 2000000000, "Optimizer.step#SGD.step");
	name(torch, TRACE_OP_TORCH_RANGE, 0, 1000000000, "Optimizer.step#SGD.step");
	view = window(torch, 1);
	assert_true(view->counts[0].seconds == 1);
	assert_true(view->processes[0].step_seconds == 1);
}

static void allocations_are_bounded(void **state)
{
	struct torch *torch = *state;

	for (uint64_t i = 0; i < TORCH_PROCESS_BLOCKS_MAX; i++)
		memory(torch, ADD, i << 12, 1, 0, 0);
	assert_false(torch_is_doubtful(torch));
	memory(torch, ADD, 1, 1, 0, 0);
	assert_true(torch_is_doubtful(torch));
	assert_int_equal(held(torch, ADD), TORCH_PROCESS_BLOCKS_MAX);
}

static void lost_events_are_said(void **state)
{
	_cleanup_free_ struct torch_view *view = NULL;
	struct torch *torch = *state;

	memory(torch, ADD, 0x1000, 100, 100, 1000);
	torch_lost(torch, PID + 1);
	torch_call_process(torch, PID, "train");
	view = window(torch, 1);
	assert_false(view->processes[0].lost);
	assert_string_equal(view->processes[0].comm, "train");
	torch_lost(torch, 0);
	free(view);
	view = window(torch, 1);
	assert_true(view->processes[0].lost);
}

static void what_has_ended_is_shown_once(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	memory(torch, ADD, 0x1000, 100, 100, 1000);
	life(torch, TRACE_EVENT_EXIT, 0);
	view = window(torch, 1);
	assert_true(view->processes[0].exited);
	assert_true(view->processes[0].has_series);
	free(view);
	free(window(torch, 0));
	memory(torch, ADD, 0x1000, 100, 100, 1000); /* its series are free again */
	view = window(torch, 1);
	assert_true(view->processes[0].has_series);
	free(view);
}

/* What is said of an earlier process with its PID, late or twice, does not end it. */
static void only_its_own_end_ends_it(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	life(torch, TRACE_EVENT_PROCESS, 7);
	memory(torch, ADD, 0x1000, 100, 100, 1000);
	life(torch, TRACE_EVENT_PROCESS, 7);
	life(torch, TRACE_EVENT_EXIT, 5);
	torch_process_over(torch, PID, 5);
	assert_int_equal(held(torch, ADD), 100);
	view = window(torch, 1);
	assert_false(view->processes[0].exited);
	free(view);
	torch_process_over(torch, PID, 7);
	assert_int_equal(held(torch, ADD), 0);
}

static void of_others_nothing_is_taken(void **state)
{
	struct torch *torch = *state;
	const struct trace_call copy = {
		.header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_COPY }, .addr = 1, .size = 1
	};
	const struct trace_call cut = {
		.header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_TORCH_MEMORY }
	};

	torch_event(torch, &copy.header, sizeof(copy));
	torch_event(torch, &cut.header, sizeof(cut.header));
	free(window(torch, 0));
}

/* ---- operators ---- */

static void called_by(struct torch *torch, uint32_t tgid, uint64_t incarnation, unsigned over, uint32_t n)
{
	struct traced_operator operators[100] = { { .name = "add.Tensor" } };

	assert_true(n <= ARRAY_SIZE(operators));
	for (uint32_t i = 0; i < n; i++)
		operators[i].v[OPERATOR_METRIC_CALLS] = 3;
	torch_operators_of(torch, tgid, incarnation, over, false, operators, n);
}

/* A process is known by its operators alone; what is said later takes the place of what was said before. */
static void operators_of_a_process(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	called_by(torch, PID, 5, 0, 1);
	called_by(torch, PID, 5, 0, 70);
	view = window(torch, 1);
	assert_int_equal(view->processes[0].pid, PID);
	assert_int_equal(view->processes[0].operators_n, TORCH_PROCESS_OPERATORS_MAX);
	assert_int_equal(view->operators_n, TORCH_PROCESS_OPERATORS_MAX);
	assert_int_equal(view->processes[0].other_operators, 70 - TORCH_PROCESS_OPERATORS_MAX);
	assert_true(view->processes[0].other_operator_calls == 3 * (70 - TORCH_PROCESS_OPERATORS_MAX));
	assert_string_equal(view->operators[0].name, "add.Tensor");
	free(view);
}

/* Its final figures are shown once, and it is not made again by what is left of it. */
static void operators_of_a_process_that_ends(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	memory(torch, ADD, 0x1000, 512, 512, 2048);
	life(torch, TRACE_EVENT_EXIT, 0);
	called_by(torch, PID, 0, 1, 2);
	view = window(torch, 1);
	assert_true(view->processes[0].exited);
	assert_int_equal(view->processes[0].operators_n, 2);
	free(view);
	called_by(torch, PID, 0, 2, 2);
	free(window(torch, 0));
}

/* What CUDA did is forgotten after the end: figures without it do not replace those with it. */
static void operators_of_a_process_that_is_forgotten(void **state)
{
	const struct traced_operator first = { .name = "linear" }, later = { .name = "mm" },
				     without = { .name = "add" };
	struct torch *torch = *state;
	struct torch_view *view;

	torch_operators_of(torch, PID, 5, 0, false, &without, 1);
	torch_operators_of(torch, PID, 5, 0, true, &first, 1);
	torch_operators_of(torch, PID, 5, 0, true, &later, 1);
	torch_operators_of(torch, PID, 5, 1, false, &without, 1);
	view = window(torch, 1);
	assert_int_equal(view->operators_n, 1);
	assert_string_equal(view->operators[0].name, "mm");
	free(view);
}

/* It ended before it was first seen. */
static void operators_of_a_short_process(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	called_by(torch, PID, 5, 1, 2);
	view = window(torch, 1);
	assert_true(view->processes[0].exited);
	assert_int_equal(view->processes[0].operators_n, 2);
	free(view);
	free(window(torch, 0));
}

/* A successor with the same PID gets nothing of it. */
static void operators_of_another_incarnation(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	called_by(torch, PID, 7, 0, 1);
	called_by(torch, PID, 5, 1, 2);
	view = window(torch, 1);
	assert_int_equal(view->processes[0].operators_n, 1);
	assert_false(view->processes[0].exited);
	free(view);
}

/* Those that have no room are counted. */
static void room_for_operators(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	for (uint32_t i = 0; i < 500; i++)
		called_by(torch, 1000 + i, 5, 0, 64);
	view = window(torch, 500);
	assert_true(view->operators_n < TORCH_OPERATORS_MAX);
	assert_int_equal(view->processes[0].operators_n, 64);
	assert_in_range(view->processes[260].operators_n, 1, 63);
	assert_int_equal(view->processes[499].operators_n + view->processes[499].other_operators, 64);
	free(view);
}

/* Processes, operators and allocations of one user leave room for those of another one. */
static void users_share_the_room(void **state)
{
	struct traced_users *users = two_users();
	struct torch *torch = torch_new(1, false);
	struct torch_view *view;
	uint32_t last;

	(void)state;
	assert_non_null(torch);
	torch_share(torch, users);
	for (uint32_t i = 1; i <= 2 * TORCH_PROCESSES_MAX; i++)
		called_by(torch, i, 5, 0, 64);
	called_by(torch, OTHER_USERS_PID, 5, 0, 64);
	for (uint32_t pid = 1; pid <= 8; pid++)
		for (uint32_t i = 1; i <= TORCH_PROCESS_BLOCKS_MAX; i++)
			call(torch, TRACE_OP_TORCH_MEMORY,
			     &(struct trace_call){ .header = { .tgid = pid, .operator= ADD},
						   .addr = i,
						   .size = 1,
						   .kind = GPU });
	assert_true(torch_is_doubtful(torch)); /* not all had room */
	assert_true(users->shares.used[TRACED_TABLE_BLOCKS] <= TORCH_BLOCKS_MAX / 8 * 7);
	view = window(torch, TORCH_PROCESSES_MAX / 8 * 7 + 1);
	last = view->processes_n - 1;
	assert_int_equal(view->processes[last].pid, OTHER_USERS_PID);
	assert_int_equal(view->processes[last].operators_n, 64);
	assert_true(view->beyond > 0 || view->processes[last - 1].pid < TORCH_PROCESSES_MAX);
	free(view);
	/* The room of who has ended is there again. */
	for (uint32_t i = 1; i <= TORCH_PROCESSES_MAX; i++)
		torch_process_over(torch, i, 5);
	free(window(torch, TORCH_PROCESSES_MAX / 8 * 7 + 1));
	assert_int_equal(users->shares.used[TRACED_TABLE_TORCH], 1);
	assert_int_equal(users->shares.used[TRACED_TABLE_OPERATORS], 64);
	assert_int_equal(users->shares.used[TRACED_TABLE_BLOCKS], 0);
	torch_free(torch);
	free(users);
}

/* ---- NVML's memory ---- */

static void assert_beside(struct torch_view *view, uint64_t nvml, uint32_t gpus, bool known, uint64_t wanted)
{
	uint64_t reserved = 0, beside = 0;

	view->processes[0].nvml_bytes = nvml;
	view->processes[0].nvml_gpus = gpus;
	assert_int_equal(torch_beside(view, &view->processes[0], &reserved, &beside), known);
	assert_int_equal(beside, wanted);
	assert_int_equal(reserved, known ? 2048 : 0);
}

/* The CPU's allocator holds nothing on GPUs. */
static void what_is_held_beside_pytorch(void **state)
{
	struct torch *torch = *state;
	struct torch_view *view;

	memory(torch, ADD, 0x1000, 512, 512, 2048);
	call(torch, TRACE_OP_TORCH_MEMORY,
	     &(struct trace_call){ .addr = 0x2000, .size = 64, .stream = 64, .kind = 0xff00 });
	view = window(torch, 1);
	assert_int_equal(view->processes[0].memories_n, 2);
	assert_beside(view, 5000, 1, true, 5000 - 2048);
	assert_beside(view, 2048, 1, true, 0);
	assert_beside(view, 0, 0, false, 0); /* not known */
	assert_beside(view, 5000, 2, false, 0); /* an allocator of another GPU has not said anything */
	assert_beside(view, 2047, 1, false, 0); /* it has reserved more since */
	free(view);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(allocators_say_what_they_hold),
		TEST(operators_hold_what_was_not_freed),
		TEST(addresses_are_of_one_process),
		TEST(nodes_have_names_and_operators),
		TEST(steps_are_ranges),
		TEST(names_are_bounded),
		TEST(allocations_are_bounded),
		TEST(processes_are_bounded),
		TEST(of_one_pid_the_youngest_is_last),
		TEST(events_may_arrive_swapped),
		TEST(lost_events_are_said),
		TEST(what_has_ended_is_shown_once),
		TEST(only_its_own_end_ends_it),
		TEST(of_others_nothing_is_taken),
		TEST(operators_of_a_process),
		TEST(operators_of_a_process_that_ends),
		TEST(operators_of_a_process_that_is_forgotten),
		TEST(operators_of_a_short_process),
		TEST(operators_of_another_incarnation),
		TEST(room_for_operators),
		TEST(users_share_the_room),
		TEST(what_is_held_beside_pytorch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
