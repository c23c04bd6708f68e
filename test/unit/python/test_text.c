// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "python/text.h"

static void check(const void *data, size_t n, unsigned width, const char *wanted)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	python_text(data, n, width, &out);
	assert_string_equal(out.data, wanted);
	strbuf_done(&out);
}

static void test_widths(void **state)
{
	static const uint16_t two[] = { 'x', 0x3b1, 0xd800, 0x2028 };
	static const uint32_t four[] = { 'y', 0x1f600, 0x110000 };

	(void)state;
	check("f\xe9\x07\x85", 4, 1, "f\303\251??");
	check(two, sizeof(two), 2, "x\316\261??");
	check(four, sizeof(four), 4, "y\360\237\230\200?");
	check(four, 7, 4, "y"); /* the last character is cut */
	check("abc", 3, 3, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_widths) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
