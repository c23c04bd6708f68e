// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/glob.h"
#include "base/macro.h"

static void patterns(_unused_ void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "?", "", false },
		{ "a?c", "abc", true },
		{ "a*", "abc", true },
		{ "*c", "abcbc", true },
		{ "a*b*c", "aXbYc", true },
		{ "a*b*c", "acb", false },
		{ "*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		  false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (glob_matches(cases[i].pattern, strlen(cases[i].pattern), cases[i].name) !=
		    cases[i].matches)
			fail_msg("%s of %s", cases[i].name, cases[i].pattern);
}

static void lists(_unused_ void **state)
{
	static const struct {
		const char *list, *name;
		bool has;
	} cases[] = {
		{ NULL, "a", true },      { "", "a", true },         { " , ", "a", true },
		{ "a", "a", true },       { "a", "b", false },       { "x,a", "a", true },
		{ "x a", "a", true },     { "!a", "a", false },      { "!a", "b", true },
		{ "a*,!ab", "aa", true }, { "a*,!ab", "ab", false }, { "!ab,a*", "ab", false },
		{ "!ab,a*", "c", false }, { "!", "", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (glob_list_has(cases[i].list, cases[i].name) != cases[i].has)
			fail_msg("%s in %s", cases[i].name, cases[i].list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
