// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "cmd/tracer_private.h"

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
	assert_int_equal(tracer_view_off("no BTF", true, &view), 0);
	assert_true(presence_is(view->agent_p[AGENT_SOURCE_UP_TRACE]));
	assert_true(view->agent[AGENT_SOURCE_UP_TRACE] == 0);
	trace_view_unref(view);
	options_done(&options);
	strbuf_done(&errors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_source_that_is_not_wanted_is_not_down),
	};

	return cmocka_run_group_tests_name("tracer", tests, NULL, NULL);
}
