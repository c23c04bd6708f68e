// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"
#include "model/trace.h"

#define SECOND NSEC_PER_SEC

/* A view of processes that started at so many ticks, each on one device. */
static struct trace_view *view_new(void)
{
	struct trace_view *view;

	assert_int_equal(trace_view_new(LAB_PIDS, LAB_PIDS, 0, 0, 0, 0, 0, &view), 0);
	view->enabled = true;
	view->boot_ns = clock_boot_ns();
	return view;
}

static struct traced_process *add(struct trace_view *view, uint32_t pid, uint64_t ticks, const char *uuid)
{
	struct traced_process *process = &view->processes[view->processes_n];
	struct traced_device *device = &view->devices[view->devices_n];

	*process = (struct traced_process){ .id = { .pid = pid, .start_ticks = ticks },
					    .devices_first = view->devices_n++,
					    .devices_n = 1 };
	device->process = view->processes_n++;
	snprintf(device->uuid, sizeof(device->uuid), "%s", uuid);
	return process;
}

/* Shows it, and nothing else from then on. */
static void show(struct lab *lab, struct trace_view *view)
{
	model_set_trace(lab->model, view);
	trace_view_unref(view);
	lab_wait(lab, 0);
}

static void shows_one(struct lab *lab, uint32_t pid, uint64_t ticks)
{
	struct trace_view *view = view_new();

	add(view, pid, ticks, "");
	show(lab, view);
}

/* Of the traced process @i; NULL: none. */
static const char *workload_of(const struct lab *lab, uint32_t i)
{
	uint16_t workload = lab->s->traced_workloads[i];

	if (workload == READING_NONE)
		return NULL;
	assert_true(workload < lab->s->workload_names_n);
	assert_int_not_equal(lab->s->workload_names[workload].kind, WORKLOAD_NONE);
	return lab->s->workload_names[workload].id;
}

/* PID 5 runs on GPU 0, as NVML sees it. */
static void step_with_one(struct lab *lab)
{
	lab_process(lab, lab_gpu(lab, 0), 5);
	assert_int_equal(lab_step(lab, SECOND), 0);
}

static void one_that_nvml_does_not_list_has_its_workload(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 5, 100, WORKLOAD_CONTAINER, "c1");
	shows_one(lab, 5, 100);
	assert_string_equal(workload_of(lab, 0), "c1");
	assert_int_equal(lab->looks, 1);
	shows_one(lab, 5, 100); /* another view: nobody is looked at twice */
	lab_wait(lab, SECOND);
	assert_string_equal(workload_of(lab, 0), "c1");
	assert_int_equal(lab->looks, 1);
	assert_int_equal(lab->s->workloads_n, 0); /* it is on no device */
}

static void a_pid_that_came_again_has_not_the_workload_of_the_former(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 5, 101, WORKLOAD_CONTAINER, "of another");
	shows_one(lab, 5, 100);
	assert_null(workload_of(lab, 0));
	shows_one(lab, 5, 101);
	assert_string_equal(workload_of(lab, 0), "of another");
	shows_one(lab, 5, 0); /* of one whose start is not known nothing can be said */
	assert_null(workload_of(lab, 0));
	shows_one(lab, 6, 100);
	assert_null(workload_of(lab, 0));
}

static void one_that_has_ended_keeps_what_was_known(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	lab_exists(lab, 5, 100, WORKLOAD_POD, "p1");
	shows_one(lab, 5, 100);
	lab->proc[5].exists = false;
	add(view, 5, 100, "")->exited = true;
	add(view, 7, 100, "")->exited = true; /* never seen alive */
	lab_exists(lab, 7, 100, WORKLOAD_POD, "p2");
	show(lab, view);
	assert_string_equal(workload_of(lab, 0), "p1");
	assert_null(workload_of(lab, 1));
	assert_int_equal(lab->looks, 1);
}

static void nvmls_answer_is_used_and_not_asked_again(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 5, 100, WORKLOAD_JOB, "17");
	step_with_one(lab);
	assert_int_equal(lab->looks, 1);
	shows_one(lab, 5, 100);
	assert_string_equal(workload_of(lab, 0), "17");
	assert_int_equal(lab->looks, 1);
}

/* With the sums of what their processes did, for which there is room as for workloads. */
static void names_are_shared_and_given_back(void **state)
{
	const struct model_limits limits = { .processes = 64, .series = 8, .exited = 8, .workloads = 2 };
	struct lab *lab = lab_new(&limits);
	struct trace_view *view = view_new();

	(void)state;
	for (uint32_t pid = 1; pid <= 40; pid++) {
		lab_exists(lab, pid, 100, WORKLOAD_CONTAINER, pid % 2 ? "odd" : "even");
		add(view, pid, 100, "");
	}
	show(lab, view);
	assert_int_equal(lab->s->workload_names_n, 2);
	assert_string_equal(workload_of(lab, 0), "odd");
	assert_string_equal(workload_of(lab, 39), "even");
	for (unsigned i = 0; i < 100; i++) { /* places are used again, else there would be a hundred */
		char id[16];

		snprintf(id, sizeof(id), "c%u", i);
		lab_exists(lab, 50, 200 + i, WORKLOAD_CONTAINER, id);
		shows_one(lab, 50, 200 + i);
		assert_string_equal(workload_of(lab, 0), id);
	}
	assert_true(lab->s->workload_names_n <= 2);
	lab_free(lab);
}

static void beyond_the_limit_there_is_no_workload_and_that_is_counted(void **state)
{
	const struct model_limits limits = { .processes = 8, .series = 8, .exited = 8, .workloads = 1 };
	struct lab *lab = lab_new(&limits);
	struct trace_view *view = view_new();

	(void)state;
	lab_exists(lab, 5, 100, WORKLOAD_CONTAINER, "c1");
	lab_exists(lab, 6, 100, WORKLOAD_CONTAINER, "c2");
	add(view, 5, 100, "");
	add(view, 6, 100, "");
	show(lab, view);
	assert_string_equal(workload_of(lab, 0), "c1");
	assert_null(workload_of(lab, 1));
	assert_near(lab->s->agent[AGENT_DROPPED_WORKLOADS], 1, 0);
	lab_free(lab);
}

/* Looks into /proc are bounded: with many new processes some come with the next view. */
static void many_at_once_are_looked_at_in_turn(void **state)
{
	struct lab *lab = *state;

	for (uint32_t pid = 1; pid < 300; pid++)
		lab_exists(lab, pid, 100, WORKLOAD_UNIT, "u");
	for (unsigned i = 0; i < 2; i++) {
		struct trace_view *view = view_new();

		for (uint32_t pid = 1; pid < 300; pid++)
			add(view, pid, 100, "");
		show(lab, view);
		assert_int_equal(lab->looks, i == 0 ? 256 : 299);
	}
	for (uint32_t i = 0; i < 299; i++)
		assert_string_equal(workload_of(lab, i), "u");
}

static void the_driver_and_tracing_mean_the_same_process(void **state)
{
	const uint64_t tick = (uint64_t)(SECOND / sysconf(_SC_CLK_TCK));
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	lab_exists(lab, 5, 100, WORKLOAD_NONE, "");
	step_with_one(lab);
	assert_int_equal(lab_find(lab, 5)->traced, TRACED_NONE);
	add(view, 5, process_ticks(100 * tick), "GPU-0001"); /* on a device that is not shown */
	add(view, 5, process_ticks(101 * tick - 1), "GPU-0000"); /* the last nanosecond of that tick */
	add(view, 9, 100, "GPU-0000");
	show(lab, view);
	assert_int_equal(lab_find(lab, 5)->traced, 1);
	assert_true(lab->s->traced_places[1].listed);
	assert_int_equal(lab->s->traced_places[0].entity, READING_NONE);
	assert_false(lab->s->traced_places[0].listed);
	assert_int_equal(lab->s->traced_places[2].entity, 0);
	assert_false(lab->s->traced_places[2].listed);
}

static void a_pid_that_came_again_is_not_joined(void **state)
{
	const uint64_t tick = (uint64_t)(SECOND / sysconf(_SC_CLK_TCK));
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	lab_exists(lab, 5, 100, WORKLOAD_NONE, "");
	step_with_one(lab);
	add(view, 5, process_ticks(100 * tick - 1), "GPU-0000");
	add(view, 5, process_ticks(101 * tick), "GPU-0000");
	add(view, 5, 100, "GPU-0000")->exited = true;
	show(lab, view);
	assert_int_equal(lab_find(lab, 5)->traced, TRACED_NONE);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(lab->s->traced_places[i].listed);
}

/* In another PID namespace the driver's process has no start time that we can know. */
static void an_unknown_start_goes_by_the_pid_unless_somebody_is_sure(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	step_with_one(lab); /* /proc does not have it */
	add(view, 5, 100, "GPU-0000");
	show(lab, view);
	assert_int_equal(lab_find(lab, 5)->traced, 0);
	lab_exists(lab, 6, 200, WORKLOAD_NONE, "");
	lab_process(lab, lab_gpu(lab, 0), 6);
	assert_int_equal(lab_step(lab, SECOND), 0);
	view = view_new();
	add(view, 6, 0, "GPU-0000");
	add(view, 6, 200, "GPU-0000");
	show(lab, view);
	assert_int_equal(lab_find(lab, 6)->traced, 1);
	assert_false(lab->s->traced_places[0].listed);
	assert_true(lab->s->traced_places[1].listed);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(one_that_nvml_does_not_list_has_its_workload),
		CASE(a_pid_that_came_again_has_not_the_workload_of_the_former),
		CASE(one_that_has_ended_keeps_what_was_known),
		CASE(nvmls_answer_is_used_and_not_asked_again),
		cmocka_unit_test(names_are_shared_and_given_back),
		cmocka_unit_test(beyond_the_limit_there_is_no_workload_and_that_is_counted),
		CASE(many_at_once_are_looked_at_in_turn),
		CASE(the_driver_and_tracing_mean_the_same_process),
		CASE(a_pid_that_came_again_is_not_joined),
		CASE(an_unknown_start_goes_by_the_pid_unless_somebody_is_sure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
