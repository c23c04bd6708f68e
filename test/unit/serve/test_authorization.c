// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "serve/authorization.h"

static struct authorization a;

static void basic(_unused_ void **state)
{
	assert_int_equal(authorization_parse("Basic YWxpY2U6YTpi", &a), 0);
	assert_int_equal(a.scheme, AUTHORIZATION_BASIC);
	assert_string_equal(a.user, "alice");
	assert_string_equal(a.secret, "a:b");
	assert_int_equal(authorization_parse("bAsIc  Og==", &a), 0);
	assert_string_equal(a.user, "");
	assert_string_equal(a.secret, "");
}

static void bearer(_unused_ void **state)
{
	assert_int_equal(authorization_parse("bearer t.o-k", &a), 0);
	assert_int_equal(a.scheme, AUTHORIZATION_BEARER);
	assert_string_equal(a.secret, "t.o-k");
}

static void everything_else_is_refused(_unused_ void **state)
{
	/* Without a colon; a zero byte in the name; too long. */
	static const char *const bad[] = {
		"",       "Basic",   "Basic ",    "Basic !",  "Basic YWxpY2U=",       "Basic AGE6Yg==",
		"Bearer", "Bearer ", "BasicYTpi", "Digest x", "Basic YWxpY2U6YTpi YQ"
	};
	char text[1024] = "Bearer ";

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(authorization_parse(bad[i], &a), -EINVAL);
	memset(text + 7, 'x', AUTHORIZATION_TEXT_MAX);
	assert_int_equal(authorization_parse(text, &a), -EINVAL);
	text[7 + AUTHORIZATION_TEXT_MAX - 1] = '\0';
	assert_int_equal(authorization_parse(text, &a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(basic),
		cmocka_unit_test(bearer),
		cmocka_unit_test(everything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
