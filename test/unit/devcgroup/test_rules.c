// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "devcgroup/rules.h"

static void a_rule_must_have_all_that_is_asked_for(void **state)
{
	static const char list[] = "c 1:3 rwm\nc 195:* r\nc 195:255 rw\nb 195:* rwm\nc 511:* w\nc 511:0 r\n";

	(void)state;
	assert_true(rules_allow(list, 1, 3, ACCESS_OPEN));
	assert_true(rules_allow(list, 1, 3, ACCESS_OPEN | ACCESS_MKNOD));
	assert_false(rules_allow(list, 1, 4, ACCESS_READ));
	assert_true(rules_allow(list, 195, 0, ACCESS_READ));
	assert_false(rules_allow(list, 195, 0, ACCESS_OPEN));
	assert_true(rules_allow(list, 195, 255, ACCESS_OPEN));
	assert_false(rules_allow(list, 511, 0, ACCESS_OPEN)); /* of two rules none has both */
	assert_int_equal(rules_of_device(list, 195, UINT32_MAX), ACCESS_READ);
	assert_int_equal(rules_of_device(list, 195, 255), ACCESS_OPEN);
	assert_int_equal(rules_of_device(list, 195, 0), 0);
	assert_int_equal(rules_of_device(list, 511, UINT32_MAX), ACCESS_WRITE);
	assert_int_equal(rules_of_device(list, 1, UINT32_MAX), 0);
	/* All minors are allowed by a rule for all alone. */
	assert_true(rules_allow(list, 195, UINT32_MAX, ACCESS_READ));
	assert_false(rules_allow(list, 195, UINT32_MAX, ACCESS_OPEN));
	assert_false(rules_allow_all(list));
}

static void a_list_that_allows_all(void **state)
{
	(void)state;
	assert_true(rules_allow("a *:* rwm\n", 195, 0, ACCESS_OPEN | ACCESS_MKNOD));
	assert_true(rules_allow_all("a *:* rwm\n"));
	assert_true(rules_allow("c *:* rw", 195, 7, ACCESS_OPEN));
	assert_false(rules_allow("", 195, 0, ACCESS_READ));
}

static void damaged_lines_allow_nothing(void **state)
{
	static const char *const lists[] = { "c",
					     "c \n",
					     "c 195\n",
					     "c 195: rw\n",
					     "c :0 rw\n",
					     "c 195:x rw\n",
					     "c 18446744073709551616:* rw\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		assert_false(rules_allow(lists[i], 195, 0, ACCESS_READ));
	assert_true(rules_allow("rubbish\nc 195:* rw\n", 195, 0, ACCESS_OPEN));
}

static void rules_are_written_as_the_kernel_reads_them(void **state)
{
	char rule[RULE_BYTES];

	(void)state;
	rule_write(195, UINT32_MAX, ACCESS_OPEN, rule, sizeof(rule));
	assert_string_equal(rule, "c 195:* rw");
	rule_write(195, 7, ACCESS_READ, rule, sizeof(rule));
	assert_string_equal(rule, "c 195:7 r");
	rule_write(UINT32_MAX, UINT32_MAX, ACCESS_OPEN | ACCESS_MKNOD, rule, sizeof(rule));
	assert_string_equal(rule, "c 4294967295:* rwm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_must_have_all_that_is_asked_for),
		cmocka_unit_test(a_list_that_allows_all),
		cmocka_unit_test(damaged_lines_allow_nothing),
		cmocka_unit_test(rules_are_written_as_the_kernel_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
