// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"
#include "model/trace.h"

#define SECOND NSEC_PER_SEC

static struct trace_view *view_new(void)
{
	struct trace_view *view;

	assert_int_equal(trace_view_new(1, 1, 1, 1, 1, 1, 1, &view), 0);
	view->enabled = true;
	view->boot_ns = clock_boot_ns();
	return view;
}

static unsigned refs(struct trace_view *view)
{
	return atomic_load(&view->refs);
}

/* Under ASan whatever overlaps or lies outside the allocation shows. */
static void arrays_have_room_and_do_not_overlap(_unused_ void **state)
{
	struct trace_view *view;

	assert_int_equal(trace_view_new(3, 5, 7, 2, 9, 4, 6, &view), 0);
	assert_int_equal(refs(view), 1);
	assert_int_equal(view->processes_n + view->devices_n + view->calls_n + view->all_calls_n +
				 view->errors_n + view->totals_n + view->kernels_n,
			 0);
	memset(view->processes, 1, 3 * sizeof(*view->processes));
	memset(view->devices, 2, 5 * sizeof(*view->devices));
	memset(view->calls, 3, 7 * sizeof(*view->calls));
	memset(view->all_calls, 4, 2 * sizeof(*view->all_calls));
	memset(view->errors, 5, 9 * sizeof(*view->errors));
	memset(view->totals, 6, 4 * sizeof(*view->totals));
	memset(view->kernels, 7, 6 * sizeof(*view->kernels));
	assert_int_equal(view->processes[2].devices_n, 0x01010101);
	assert_int_equal(view->devices[4].process, 0x02020202);
	assert_int_equal(view->calls[6].process, 0x03030303);
	assert_int_equal(view->all_calls[1].process, 0x04040404);
	assert_int_equal(view->errors[8].code, 0x05050505);
	assert_int_equal(view->totals[3].uuid[0], 6);
	assert_int_equal(view->kernels[5].process, 0x07070707);
	trace_view_unref(view);
	assert_int_equal(trace_view_new(0, 0, 0, 0, 0, 0, 0, &view), 0);
	trace_view_unref(view);
	trace_view_unref(NULL);
	assert_null(trace_view_ref(NULL));
}

static void kernels_are_held_as_long_as_the_view(_unused_ void **state)
{
	const struct kernel from = { .symbol = "s", .name = "n", .brief = "b", .file = "f" };
	struct trace_view *view;
	struct kernel *kernel;

	assert_int_equal(kernel_new(&from, &kernel), 0);
	assert_int_equal(trace_view_new(0, 0, 0, 0, 0, 0, 3, &view), 0);
	view->kernels[0].kernel = kernel_ref(kernel);
	view->kernels[2].kernel = kernel_ref(kernel); /* between them one of all without room */
	view->kernels_n = 3;
	trace_view_unref(trace_view_ref(view));
	assert_int_equal(atomic_load(&kernel->refs), 3);
	trace_view_unref(view);
	assert_int_equal(atomic_load(&kernel->refs), 1);
	kernel_unref(kernel);
}

static void bounds_are_powers_of_four(_unused_ void **state)
{
	double bound = 1;

	for (int k = 0; k > TRACED_LE_FIRST; k--)
		bound /= 4;
	for (unsigned i = 0; i < TRACED_LE; i++, bound *= 4)
		assert_true(traced_le[i] == bound);
	assert_true(traced_le[TRACED_LE_SHOWN - 1] == 16);
	assert_true(traced_le[TRACED_LE - 1] * 1e9 > (double)UINT64_MAX);
}

static void bits_have_names(_unused_ void **state)
{
	unsigned n = 0;

	while (traced_incomplete_name(n))
		n++;
	assert_int_equal(n, TRACED_INCOMPLETE_BITS);
	assert_string_equal(traced_incomplete_name(0), "lost_events");
	assert_null(traced_incomplete_name(100));
}

static void processes_are_found_by_pid(_unused_ void **state)
{
	static const uint32_t pids[] = { 3, 7, 7, 9 };
	struct trace_view *view;

	assert_int_equal(trace_view_new(ARRAY_SIZE(pids), 0, 0, 0, 0, 0, 0, &view), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(pids); i++)
		view->processes[i].id.pid = pids[i];
	assert_int_equal(trace_view_find(view, 4, 2), 0);
	assert_int_equal(trace_view_find(view, 4, 3), 0);
	assert_int_equal(trace_view_find(view, 4, 7), 1);
	assert_int_equal(trace_view_find(view, 4, 8), 3);
	assert_int_equal(trace_view_find(view, 4, 10), 4);
	assert_int_equal(trace_view_find(view, 2, 9), 2);
	assert_int_equal(trace_view_find(view, 0, 9), 0);
	trace_view_unref(view);
}

static void snapshots_hold_the_view_and_let_go_of_it(void **state)
{
	struct lab *lab = *state;
	struct trace_view *first = view_new(), *second;
	struct snapshot *held;

	lab_wait(lab, SECOND);
	assert_null(lab->s->trace);
	model_set_trace(lab->model, first);
	assert_int_equal(refs(first), 2);
	lab_wait(lab, 0);
	assert_ptr_equal(lab->s->trace, first);
	assert_false(lab->s->trace_stale);
	held = snapshot_ref(lab->s);
	second = view_new();
	model_set_trace(lab->model, second);
	for (unsigned i = 0; i < 5; i++)
		lab_wait(lab, SECOND / 10);
	assert_ptr_equal(lab->s->trace, second);
	assert_int_equal(refs(first), 2); /* ours and the held snapshot's */
	snapshot_unref(held);
	assert_int_equal(refs(first), 1);
	model_set_trace(lab->model, NULL);
	for (unsigned i = 0; i < 5; i++)
		lab_wait(lab, SECOND / 10);
	assert_null(lab->s->trace);
	assert_int_equal(refs(second), 1);
	trace_view_unref(first);
	trace_view_unref(second);
}

static void the_same_view_again_keeps_one_reference(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	for (unsigned i = 0; i < 3; i++)
		model_set_trace(lab->model, view);
	assert_int_equal(refs(view), 2);
	trace_view_unref(view);
}

static void only_rows_of_tracing_are_taken_over(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	lab_wait(lab, SECOND);
	assert_false(presence_is(lab->s->agent_p[AGENT_TRACE_HITS]));
	assert_false(presence_is(lab->s->agent_p[AGENT_SOURCE_UP_TRACE]));
	for (unsigned row = 0; row < AGENT_METRICS; row++) {
		view->agent[row] = 7;
		view->agent_p[row] = PRESENCE_PRESENT;
	}
	view->agent_p[AGENT_TRACE_FILES] = PRESENCE_ABSENT;
	model_agent_set(lab->model, AGENT_HTTP_CONNECTIONS, 3);
	model_set_trace(lab->model, view);
	lab_wait(lab, 0);
	assert_near(lab->s->agent[AGENT_TRACE_HITS], 7, 0);
	assert_near(lab->s->agent[AGENT_TRACE_QUIET], 7, 0);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_TRACE], 1, 0);
	assert_false(presence_is(lab->s->agent_p[AGENT_TRACE_FILES]));
	assert_near(lab->s->agent[AGENT_HTTP_CONNECTIONS], 3, 0);
	assert_near(lab->s->agent[AGENT_TICKS], 0, 0);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_NVML], 0, 0);
	model_set_trace(lab->model, NULL);
	lab_wait(lab, 0);
	assert_false(presence_is(lab->s->agent_p[AGENT_TRACE_HITS]));
	assert_false(presence_is(lab->s->agent_p[AGENT_SOURCE_UP_TRACE]));
	assert_near(lab->s->agent[AGENT_HTTP_CONNECTIONS], 3, 0);
	trace_view_unref(view);
}

static void an_old_view_is_stale(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	view->agent[AGENT_TRACE_PROCESSES] = 2;
	view->agent_p[AGENT_TRACE_PROCESSES] = PRESENCE_PRESENT;
	view->agent[AGENT_TRACE_HITS] = 1000;
	view->agent_p[AGENT_TRACE_HITS] = PRESENCE_PRESENT;
	model_set_trace(lab->model, view);
	trace_view_unref(view);
	lab_wait(lab, 3 * SECOND);
	assert_false(lab->s->trace_stale);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_TRACE], 1, 0);
	lab_wait(lab, SECOND);
	assert_true(lab->s->trace_stale);
	assert_near(lab->s->agent[AGENT_SOURCE_UP_TRACE], 0, 0);
	assert_true(presence_is(lab->s->agent_p[AGENT_SOURCE_UP_TRACE]));
	assert_false(presence_is(lab->s->agent_p[AGENT_TRACE_PROCESSES]));
	assert_near(lab->s->agent[AGENT_TRACE_HITS], 1000, 0);
	assert_true(presence_is(lab->s->agent_p[AGENT_TRACE_HITS]));
}

static void a_source_that_is_off_says_nothing_of_itself(void **state)
{
	struct lab *lab = *state;
	struct trace_view *view = view_new();

	view->enabled = false;
	model_set_trace(lab->model, view);
	trace_view_unref(view);
	lab_wait(lab, SECOND);
	assert_non_null(lab->s->trace);
	assert_false(presence_is(lab->s->agent_p[AGENT_SOURCE_UP_TRACE]));
	lab_wait(lab, 60 * SECOND);
	assert_false(lab->s->trace_stale); /* why it is off is as true as it was */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_have_room_and_do_not_overlap),
		cmocka_unit_test(kernels_are_held_as_long_as_the_view),
		cmocka_unit_test(bounds_are_powers_of_four),
		cmocka_unit_test(bits_have_names),
		cmocka_unit_test(processes_are_found_by_pid),
		cmocka_unit_test_setup_teardown(snapshots_hold_the_view_and_let_go_of_it, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(the_same_view_again_keeps_one_reference, lab_setup,
						lab_teardown),
		cmocka_unit_test_setup_teardown(only_rows_of_tracing_are_taken_over, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(an_old_view_is_stale, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(a_source_that_is_off_says_nothing_of_itself, lab_setup,
						lab_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
