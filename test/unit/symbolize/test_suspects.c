// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>

#include "base/clock.h"
#include "proc/account.h"
#include "symbolize/suspects.h"

#define SECOND NSEC_PER_SEC

static int set_up(void **state)
{
	struct suspects *suspects = calloc(1, sizeof(*suspects));

	if (!suspects)
		return -1;
	suspects->penalty_ns = SECOND;
	*state = suspects;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void a_process_is_remembered_with_its_start(void **state)
{
	struct suspects *suspects = *state;

	suspects_add_process(suspects, (struct process_id){ 7, 100 });
	assert_true(suspects_has_process(suspects, (struct process_id){ 7, 100 }));
	assert_false(suspects_has_process(suspects, (struct process_id){ 7, 101 }));
	assert_false(suspects_has_process(suspects, (struct process_id){ 8, 100 }));
	for (unsigned i = 0; i < SUSPECT_PROCESSES; i++)
		suspects_add_process(suspects, (struct process_id){ 1000 + i, 1 });
	assert_false(suspects_has_process(suspects, (struct process_id){ 7, 100 }));
}

static void each_penalty_is_twice_the_one_before(void **state)
{
	struct suspects *suspects = *state;
	int64_t now = SECOND, wanted = SECOND;

	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(suspects_add_account(suspects, 5, now), wanted);
		assert_true(suspects_has_account(suspects, 5, now + wanted - 1));
		assert_false(suspects_has_account(suspects, 5, now + wanted));
		assert_false(suspects_has_account(suspects, 6, now));
		assert_int_equal(suspects_count_accounts(suspects, now), 1);
		now += wanted;
		if (i < SUSPECT_STRIKES_MAX)
			wanted *= 2;
	}
	/* Forgiven after an hour in which nothing happened. */
	assert_int_equal(suspects_add_account(suspects, 5, now + 4000 * SECOND), SECOND);
}

static void root_and_the_unknown_are_not_punished(void **state)
{
	struct suspects *suspects = *state;

	assert_int_equal(suspects_add_account(suspects, PROC_ACCOUNT_ROOT, 1), 0);
	assert_int_equal(suspects_add_account(suspects, PROC_ACCOUNT_UNKNOWN, 1), 0);
	assert_int_equal(suspects_count_accounts(suspects, 1), 0);
}

/* A flood of users takes the place of those whose time is over, or of the next to be. */
static void the_table_is_bounded(void **state)
{
	struct suspects *suspects = *state;

	for (uint64_t user = 1; user <= 2 * SUSPECT_ACCOUNTS; user++)
		suspects_add_account(suspects, user, (int64_t)user);
	assert_int_equal(suspects_count_accounts(suspects, 1), SUSPECT_ACCOUNTS);
	assert_true(suspects_has_account(suspects, 2 * SUSPECT_ACCOUNTS, 1));
	assert_false(suspects_has_account(suspects, 1, 1));
}

static void files_are_avoided(void **state)
{
	static struct file_mark marks[WIRE_AVOIDED];
	struct suspects *suspects = *state;
	const struct file_mark crashed = { 1, 2, 3 }, hung = { 1, 4, 3 }, unknown = { 1, 5, 0 };

	suspects_add_file(suspects, (struct file_mark){ 0 }, false, SECOND); /* none */
	suspects_add_file(suspects, crashed, false, SECOND);
	suspects_add_file(suspects, hung, true, SECOND);
	suspects_add_file(suspects, unknown, false, SECOND);
	assert_int_equal(suspects_list_files(suspects, 2 * SECOND, marks), 3);
	/* One that made it hang may be readable later; what made it crash does so until it is changed. */
	assert_int_equal(suspects_list_files(suspects, 1000 * SECOND, marks), 1);
	assert_int_equal(marks[0].ino, crashed.ino);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_is_remembered_with_its_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_penalty_is_twice_the_one_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(root_and_the_unknown_are_not_punished, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_table_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_are_avoided, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
