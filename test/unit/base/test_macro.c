// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"

static unsigned freed;

static void count_free(char *p)
{
	freed++;
	free(p);
}
DEFINE_CLEANUP(char *, count_free, count_freep)

static void cleanup_frees_once_and_skips_null(_unused_ void **state)
{
	freed = 0;
	{
		_cleanup_(count_freep) char *held = malloc(1);
		_cleanup_(count_freep) char *nothing = NULL;

		assert_non_null(held);
		assert_null(nothing);
	}
	assert_int_equal(freed, 1);
}

static void take_ptr_moves_ownership(_unused_ void **state)
{
	char *taken = NULL;

	freed = 0;
	{
		_cleanup_(count_freep) char *held = malloc(1);

		taken = TAKE_PTR(held);
		assert_null(held);
	}
	assert_int_equal(freed, 0);
	assert_non_null(taken);
	free(taken);
}

static void take_fd_leaves_minus_one(_unused_ void **state)
{
	int fd = 7;

	assert_int_equal(TAKE_FD(fd), 7);
	assert_int_equal(fd, -1);
}

static int next(int *counter)
{
	return ++*counter;
}

static void min_max_clamp_evaluate_once(_unused_ void **state)
{
	int counter = 0;

	assert_int_equal(MIN(next(&counter), 5), 1);
	assert_int_equal(MAX(next(&counter), 1), 2);
	assert_int_equal(CLAMP(next(&counter), 0, 9), 3);
	assert_int_equal(counter, 3);
	assert_int_equal(CLAMP(-4, 0, 9), 0);
	assert_int_equal(CLAMP(12, 0, 9), 9);
	assert_int_equal(MAX(-1, MIN(3, MIN(2, MAX(1, 0)))), 1);
	assert_int_equal(CLAMP(MIN(7, 8), MAX(1, 2), 9), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cleanup_frees_once_and_skips_null),
		cmocka_unit_test(take_ptr_moves_ownership),
		cmocka_unit_test(take_fd_leaves_minus_one),
		cmocka_unit_test(min_max_clamp_evaluate_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
