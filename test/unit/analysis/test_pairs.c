// SPDX-License-Identifier: Apache-2.0
/* Each rule has a stream that shows it and one that nearly does, among the tests (pairs.def). */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/fd.h"
#include "base/macro.h"

enum { SOURCE_MAX = 1 << 17 };

static const struct {
	const char *rule, *file, *shows, *nearly;
} pairs[FINDING_RULES] = {
#define PAIR(rule_, file_, shows_, nearly_) \
	[FINDING_##rule_] = { "FINDING_" #rule_, #file_, #shows_, #nearly_ },
#include "analysis/pairs.def"
#undef PAIR
};

static void is_run(const char *source, const char *test)
{
	char text[128];

	snprintf(text, sizeof(text), "cmocka_unit_test(%s)", test);
	if (!strstr(source, text))
		fail_msg("%s() is not among the tests", test);
}

static void each_rule_has_a_pair(_unused_ void **state)
{
	_cleanup_free_ char *source = malloc(SOURCE_MAX);
	const char *root = getenv("GPUSONDE_TEST_SOURCE");
	char path[512];

	assert_non_null(source);
	if (!root)
		skip();
	for (unsigned rule = 0; rule < FINDING_RULES; rule++) {
		size_t n;

		if (!pairs[rule].rule)
			fail_msg("%s has no pair of tests", analysis_rules[rule].name);
		snprintf(path, sizeof(path), "%s/test/unit/analysis/test_%s.c", root, pairs[rule].file);
		assert_int_equal(read_file(path, source, SOURCE_MAX, &n), 0);
		source[MIN(n, (size_t)SOURCE_MAX - 1)] = '\0';
		is_run(source, pairs[rule].shows);
		is_run(source, pairs[rule].nearly);
		assert_non_null(strstr(source, pairs[rule].rule));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_rule_has_a_pair) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
