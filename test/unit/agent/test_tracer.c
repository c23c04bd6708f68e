// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

/* Its hand-over is its own. */
#include "agent/tracer.c"

static void a_source_that_is_not_wanted_is_not_down(_unused_ void **state)
{
	static const char text[] = "trace:\n  enabled: no\n";
	_cleanup_(tracer_freep) struct tracer *tracer = NULL;
	struct options options;
	struct trace_view *view;
	struct strbuf errors;

	strbuf_init(&errors, 0);
	assert_int_equal(options_init(&options), 0);
	assert_int_equal(options_from_yaml(&options, "test.yaml", text, strlen(text), &errors), 0);
	assert_int_equal(tracer_new(&options, &tracer), 0);
	view = tracer_take(tracer);
	assert_false(view->enabled);
	assert_non_null(strstr(view->why, "trace.enabled"));
	assert_false(presence_is(view->agent_p[AGENT_SOURCE_UP_TRACE]));
	trace_view_unref(view);
	assert_null(tracer_take(tracer));
	assert_int_equal(pipeline_view_off("no BTF", true, &view), 0);
	assert_true(presence_is(view->agent_p[AGENT_SOURCE_UP_TRACE]));
	assert_true(view->agent[AGENT_SOURCE_UP_TRACE] == 0);
	trace_view_unref(view);
	options_done(&options);
	strbuf_done(&errors);
}

/* A view of one process, which has ended. */
static struct trace_view *view_new(uint32_t pid)
{
	struct trace_view *view;

	assert_int_equal(trace_view_new(1, 0, 0, 0, 0, 0, 0, &view), 0);
	view->processes[view->processes_n++] =
		(struct traced_process){ .id.pid = pid, .exited = true, .has_series = true };
	return view;
}

static void what_ended_is_handed_over_once(_unused_ void **state)
{
	struct tracer tracer = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct trace_view *view;

	put_view(&tracer, view_new(20));
	put_view(&tracer, view_new(5));
	view = tracer_take(&tracer);
	assert_int_equal(view->processes_n, 2);
	assert_int_equal(view->processes[0].id.pid, 5);
	assert_int_equal(view->processes[1].id.pid, 20);
	trace_view_unref(view);
	assert_null(tracer_take(&tracer));
	put_view(&tracer, view_new(7));
	view = tracer_take(&tracer); /* the others were taken */
	assert_int_equal(view->processes_n, 1);
	trace_view_unref(view);
	assert_int_equal(tracer.not_carried, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_that_is_not_wanted_is_not_down),
		cmocka_unit_test(what_ended_is_handed_over_once),
	};

	return cmocka_run_group_tests_name("tracer", tests, NULL, NULL);
}
