// SPDX-License-Identifier: Apache-2.0
#include "userprobe/userprobe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "test.h"

static int parse(const char *text, struct user_probes *ret_probes)
{
	struct strbuf errors;
	int r;

	strbuf_init(&errors, 0);
	r = user_probes_parse(text, ret_probes, &errors);
	/* Says what is wrong, in one line, if and only if something is. */
	assert_int_equal(errors.len > 0, r < 0);
	assert_ptr_equal(strchr(errors.data, '\n'), errors.len ? errors.data + errors.len - 1 : NULL);
	strbuf_done(&errors);
	return r;
}

static void reads_probes(void **state)
{
	struct user_probes probes;

	(void)state;
	assert_int_equal(parse("", &probes), 0);
	assert_int_equal(probes.n, 0);
	assert_int_equal(
		parse(" ; libfoo.so:a_*,b\targ0  arg12:string returns:pointer ;/lib/x.so:c;", &probes), 0);
	assert_int_equal(probes.n, 2);
	assert_string_equal(probes.at[0].library, "libfoo.so");
	assert_string_equal(probes.at[0].patterns, "a_*,b");
	assert_int_equal(probes.at[0].args_n, 2);
	assert_int_equal(probes.at[0].args[0].type, USER_ARG_U64);
	assert_int_equal(probes.at[0].args[1].position, 12);
	assert_int_equal(probes.at[0].args[1].type, USER_ARG_STRING);
	assert_true(probes.at[0].returns);
	assert_int_equal(probes.at[0].result, USER_RESULT_POINTER);
	assert_string_equal(probes.at[1].library, "/lib/x.so");
	assert_int_equal(probes.at[1].args_n, 0);
	assert_false(probes.at[1].returns);
}

static void refuses_with_a_reason(void **state)
{
	static const char *const wrong[] = {
		"libfoo.so",
		"libfoo.so:",
		":foo",
		"a/b:foo",
		"/lib/:foo",
		"l:foo,",
		"l:,foo",
		"l:a,,b",
		"l:a::b",
		"l:foo arg",
		"l:foo arg16",
		"l:foo arg100",
		"l:foo arg0:",
		"l:foo arg0:u6",
		"l:foo arg0:u644",
		"l:foo arg0 arg0:x64",
		"l:foo arg0 arg1 arg2 arg3 arg4",
		"l:foo arg0:string arg1:string",
		"l:foo arg0:string arg1 arg2 arg3",
		"l:foo return",
		"l:foo returns:",
		"l:foo; bar",
	};
	char text[USER_PROBES_MAX * 8 + 64] = "";
	char *at = text;
	struct user_probes probes;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(wrong[i], &probes) == 0)
			fail_msg("accepted: %s", wrong[i]);
	}
	for (unsigned i = 0; i < USER_PROBES_MAX; i++)
		at = stpcpy(at, "l:foo;");
	assert_int_equal(parse(text, &probes), 0);
	assert_int_equal(probes.n, USER_PROBES_MAX);
	stpcpy(at, "l:foo");
	assert_int_equal(parse(text, &probes), -EINVAL);
}

static bool is_of(const char *library, const char *path)
{
	struct user_probe probe = { 0 };

	snprintf(probe.library, sizeof(probe.library), "%s", library);
	return user_probe_has_library(&probe, path, strlen(path));
}

static void knows_a_library_by_its_path(void **state)
{
	(void)state;
	assert_true(is_of("libfoo.so", "/usr/lib/libfoo.so"));
	assert_true(is_of("libfoo.so", "/usr/lib/libfoo.so.1.2"));
	assert_true(is_of("libfoo.so.1", "/usr/lib/libfoo.so.1.2 (deleted)"));
	assert_true(is_of("python3.11", "/usr/bin/python3.11"));
	assert_true(is_of("libfoo.so", "libfoo.so"));
	assert_true(is_of("/usr/lib/libfoo.so.1", "/usr/lib/libfoo.so.1"));
	assert_false(is_of("libfoo.so", "/usr/lib/libfoo.sox"));
	assert_false(is_of("libfoo.so.1", "/usr/lib/libfoo.so.11"));
	assert_false(is_of("libfoo.so", "/usr/lib/mylibfoo.so"));
	assert_false(is_of("libfoo.so", "/usr/libfoo.so/other.so"));
	assert_false(is_of("/usr/lib/libfoo.so", "/usr/lib/libfoo.so.1"));
	assert_false(is_of("/lib/libfoo.so", "/usr/lib/libfoo.so"));
	assert_false(is_of("libfoo.so", ""));
	assert_false(is_of("libfoo.so", "/"));
}

static bool matches(const char *patterns, const char *symbol)
{
	struct user_probe probe = { 0 };

	snprintf(probe.patterns, sizeof(probe.patterns), "%s", patterns);
	return user_probe_matches(&probe, symbol);
}

static void matches_patterns(void **state)
{
	char many[1 << 16];

	(void)state;
	assert_true(matches("foo", "foo"));
	assert_true(matches("bar,foo", "foo"));
	assert_true(matches("foo*", "foo"));
	assert_true(matches("*o?b*r", "foo_bazbar"));
	assert_true(matches("*", ""));
	assert_true(matches("a*b*c", "aXbXbXc"));
	assert_false(matches("foo", "fo"));
	assert_false(matches("foo", "fooo"));
	assert_false(matches("fo?", "fo"));
	assert_false(matches("a*b*c", "aXbXbX"));
	assert_false(matches("foo,bar", "foo,bar"));
	/* A name that is chosen to be slow is not. */
	memset(many, 'a', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", many));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_probes),
		cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(knows_a_library_by_its_path),
		cmocka_unit_test(matches_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
