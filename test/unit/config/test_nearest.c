// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "config/nearest.h"

static const char *nearest_of(const char *word)
{
	static const char *const names[] = {
		"agent", "gpus", "ps", "snapshot", "doctor", "release", "resume"
	};
	struct nearest nearest;

	nearest_init(&nearest, word);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		nearest_offer(&nearest, names[i]);
	return nearest.best;
}

static void finds_what_was_meant(_unused_ void **state)
{
	assert_string_equal(nearest_of("agnet"), "agent"); /* swapped */
	assert_string_equal(nearest_of("gpu"), "gpus");
	assert_string_equal(nearest_of("snapshots"), "snapshot");
	assert_string_equal(nearest_of("docter"), "doctor");
	assert_string_equal(nearest_of("pa"), "ps");
	assert_string_equal(nearest_of("resune"), "resume");
}

static void says_nothing_where_nothing_is_near(_unused_ void **state)
{
	assert_null(nearest_of("prometheus"));
	assert_null(nearest_of("x"));
	assert_null(nearest_of(""));
	assert_null(nearest_of("agentagentagentagentagentagentagentagentagentagentagentagent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_meant),
		cmocka_unit_test(says_nothing_where_nothing_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
