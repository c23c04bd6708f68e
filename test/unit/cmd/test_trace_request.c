// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/trace/request.h"

/* False: it is refused. */
static bool parse(char **argv, struct trace_request *ret_request)
{
	struct invocation inv = { .command = command_find("trace"), .argv = argv };
	struct options options;
	struct strbuf errors;
	bool ok;

	for (inv.argc = 0; argv[inv.argc]; inv.argc++)
		;
	strbuf_init(&errors, 0);
	assert_int_equal(options_init(&options), 0);
	assert_int_equal(cmdline_parse(&inv, &options, &errors), 0);
	assert_string_equal(errors.data, "");
	ok = trace_request_parse(&inv, ret_request);
	options_done(&options);
	strbuf_done(&errors);
	return ok;
}

#define PARSE(request_, ...) parse((char *[]){ __VA_ARGS__, NULL }, request_)

static void what_is_shown_and_when(_unused_ void **state)
{
	struct trace_request r;

	assert_true(PARSE(&r, NULL));
	assert_int_equal(r.pid, 0);
	assert_int_equal(r.duration_ns, 0);
	assert_int_equal(r.interval_ns, NSEC_PER_SEC);
	assert_true(r.table && !r.live && !r.series);
	assert_true(PARSE(&r, "--top", "--duration", "2m", "-p", "7"));
	assert_int_equal(r.pid, 7);
	assert_int_equal(r.duration_ns, 120 * NSEC_PER_SEC);
	assert_true(r.table && r.live && !r.series);
	assert_true(PARSE(&r, "--interval", "0.5"));
	assert_int_equal(r.interval_ns, 500 * NSEC_PER_MSEC);
	assert_true(r.live);
	assert_true(PARSE(&r, "--json", "--interval", "500ms"));
	assert_true(!r.table && !r.live && r.series);
	assert_true(PARSE(&r, "--json", "--duration", "10"));
	assert_int_equal(r.duration_ns, 10 * NSEC_PER_SEC);
	assert_true(!r.series);
	assert_true(PARSE(&r, "--raw", "--duration", "10s"));
	assert_true(!r.table && !r.live);
	assert_true(PARSE(&r, "--interval", "1s", "-o", "file", "--", "true"));
}

static void what_cannot_be(_unused_ void **state)
{
	struct trace_request r;

	assert_false(PARSE(&r, "--duration", "0"));
	assert_false(PARSE(&r, "--duration", "-1s"));
	assert_false(PARSE(&r, "--duration", "8d"));
	assert_false(PARSE(&r, "--duration", "soon"));
	assert_false(PARSE(&r, "--interval", "99ms"));
	assert_false(PARSE(&r, "--duration", "1s", "--", "true"));
	assert_false(PARSE(&r, "--interval", "1s", "--", "true"));
	assert_false(PARSE(&r, "--interval", "1s", "--raw"));
	assert_false(PARSE(&r, "-p", "0"));
	assert_false(PARSE(&r, "-p", "1", "--", "true"));
	assert_false(PARSE(&r, "--top", "--json"));
	assert_false(PARSE(&r, "--"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_shown_and_when),
		cmocka_unit_test(what_cannot_be),
	};

	return cmocka_run_group_tests_name("trace_request", tests, NULL, NULL);
}
