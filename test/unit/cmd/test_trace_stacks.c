// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "cmd/trace/stacks.h"

static void a_format_is_chosen_by_the_name(void **state)
{
	enum trace_stacks_format format;

	(void)state;
	assert_true(trace_stacks_format("a.folded", &format));
	assert_int_equal(format, TRACE_STACKS_FOLDED);
	assert_true(trace_stacks_format("/x.y/a.pb.gz", &format));
	assert_int_equal(format, TRACE_STACKS_PPROF);
	assert_true(trace_stacks_format("a.folded.html", &format));
	assert_int_equal(format, TRACE_STACKS_HTML);
	assert_false(trace_stacks_format(".html", &format));
	assert_false(trace_stacks_format("a.gz", &format));
	assert_false(trace_stacks_format("", &format));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_is_chosen_by_the_name),
	};

	return cmocka_run_group_tests_name("trace_stacks", tests, NULL, NULL);
}
