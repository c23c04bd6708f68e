// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/process_id.h"

static struct process_id id_of(uint32_t pid, uint64_t start_ticks)
{
	return (struct process_id){ .pid = pid, .start_ticks = start_ticks };
}

static void a_pid_that_came_again_is_another_process(_unused_ void **state)
{
	assert_true(process_id_equal(id_of(7, 100), id_of(7, 100)));
	assert_false(process_id_equal(id_of(7, 100), id_of(7, 101)));
	assert_false(process_id_equal(id_of(7, 100), id_of(8, 100)));
	assert_true(process_id_may_equal(id_of(7, 100), id_of(7, 100)));
	assert_false(process_id_may_equal(id_of(7, 100), id_of(7, 101)));
	assert_int_equal(process_id_hash(id_of(7, 100)), process_id_hash(id_of(7, 100)));
	assert_int_not_equal(process_id_hash(id_of(7, 100)), process_id_hash(id_of(7, 101)));
	assert_int_not_equal(process_id_hash(id_of(7, 100)), process_id_hash(id_of(100, 7)));
}

static void an_unknown_start_is_never_surely_equal(_unused_ void **state)
{
	assert_false(process_id_equal(id_of(7, 0), id_of(7, 0)));
	assert_false(process_id_equal(id_of(7, 0), id_of(7, 100)));
	assert_true(process_id_may_equal(id_of(7, 0), id_of(7, 100)));
	assert_true(process_id_may_equal(id_of(7, 100), id_of(7, 0)));
	assert_false(process_id_may_equal(id_of(7, 0), id_of(8, 0)));
}

/* The kernel rounds down when it writes ticks: every moment of a tick is that tick. */
static void nanoseconds_and_ticks_agree(_unused_ void **state)
{
	const uint64_t tick = (uint64_t)(NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
	static const uint64_t ticks[] = { 0, 1, 2, 99, 100, 987654, UINT64_C(1) << 39 };

	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		const uint64_t begin = (uint64_t)process_boot_ns(ticks[i]);

		assert_int_equal(begin, ticks[i] * tick);
		assert_int_equal(process_ticks(begin), ticks[i]);
		assert_int_equal(process_ticks(begin + tick / 2), ticks[i]);
		assert_int_equal(process_ticks(begin + tick - 1), ticks[i]);
		assert_int_equal(process_ticks(begin + tick), ticks[i] + 1);
	}
}

static void more_than_fits_is_the_end_of_time(_unused_ void **state)
{
	assert_int_equal(process_boot_ns(UINT64_MAX), INT64_MAX);
	assert_int_equal(process_boot_ns(UINT64_MAX / 1000), INT64_MAX);
	assert_int_equal(process_boot_ns((uint64_t)INT64_MAX / 10000000 + 1), INT64_MAX);
}

/* Our own start lies before now, and after the moment at which a tick that is not ours had ended. */
static void what_the_kernel_says_of_us_is_of_its_boot_clock(_unused_ void **state)
{
	struct process_stat stat;
	char text[1024];
	size_t length;

	assert_int_equal(read_file("/proc/self/stat", text, sizeof(text), &length), 0);
	assert_int_equal(process_stat_parse(text, length, &stat), 0);
	assert_true(stat.start_ticks > 0);
	assert_true(process_boot_ns(stat.start_ticks) <= clock_boot_ns());
	assert_true(clock_boot_ns() - process_boot_ns(stat.start_ticks) < 3600 * NSEC_PER_SEC);
	/* qemu's user-mode emulation writes 0 where it has no value. */
	if (stat.state != '0') {
		assert_int_equal(stat.state, 'R');
		assert_int_equal(stat.threads, 1);
		assert_true(stat.env_start != 0 && stat.env_start <= stat.env_end);
	}
}

#define TO_START "S 1 2 3 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 9 0 987654"
#define TO_ENV   \
	TO_START \
	" 1000 20 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 94000 94999 0"

static void hostile_names_end_at_the_last_parenthesis(_unused_ void **state)
{
	static const char *const names[] = {
		"",
		")",
		"(",
		") (",
		"a b",
		"a) S 1 2 (b",
		") R 1 2 3 4 5 6",
		"((((",
		"))))",
		"two\nlines",
		"\xff\x01\x80",
		"1 (x) Z",
		"\n",
		" ",
		TO_START ")",
	};
	struct process_stat stat;
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "4711 (%s) " TO_ENV "\n", names[i]);
		assert_int_equal(process_stat_parse(text, strlen(text), &stat), 0);
		assert_int_equal(cursor_left(&stat.comm), strlen(names[i]));
		assert_memory_equal(stat.comm.p, names[i], strlen(names[i]));
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.user_ticks, 5);
		assert_int_equal(stat.kernel_ticks, 6);
		assert_int_equal(stat.threads, 9);
		assert_int_equal(stat.start_ticks, 987654);
		assert_int_equal(stat.env_start, 94000);
		assert_int_equal(stat.env_end, 94999);
	}
}

/* At every length, in memory of exactly that length: ASan sees what is read beyond. */
static void a_text_that_is_cut_is_refused_or_right(_unused_ void **state)
{
	static const char whole[] = "4711 (a) b (c) " TO_ENV "\n";
	const size_t start = strlen("4711 (a) b (c) " TO_START);

	for (size_t n = 0; n < sizeof(whole); n++) {
		struct process_stat stat = { .threads = 77 };
		char *text = malloc(n ? n : 1);

		assert_non_null(text);
		memcpy(text, whole, n);
		if (process_stat_parse(text, n, &stat) == 0) {
			assert_int_equal(stat.threads, 9);
			assert_int_equal(stat.start_ticks, 987654);
		} else {
			assert_true(n <= start);
			assert_int_equal(stat.threads, 77);
		}
		free(text);
	}
}

static void what_is_no_stat_is_refused(_unused_ void **state)
{
	static const char *const texts[] = {
		"",
		"4711",
		"4711 (x",
		"4711 x) " TO_ENV,
		"4711 )x( " TO_ENV,
		"4711 (x) S 1 2 3\n",
		"4711 (x) S 1 2 3 0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 -5 1",
		"4711 (x) S 1 2 3 0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 12x 1",
		"4711 (x) S 1 2 3 0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 18446744073709551616 1",
		"4711 (x) S 1 2 3 0 -1 0 0 0 0 0 5 6 0 0 20 0 many 0 987654 1",
		"4711 (x) S 1 2 3\n0 -1 0 0 0 0 0 5 6 0 0 20 0\n",
		"4711 (x) S 1 2 3\n3 0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 987654 1",
		"4711 (x) S 1 2  0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 987654 1",
	};
	struct process_stat stat;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(process_stat_parse(texts[i], strlen(texts[i]), &stat), -EBADMSG);
}

/* Kernels before 3.5 have fewer fields; what is not there is not known. */
static void further_fields_may_be_missing(_unused_ void **state)
{
	static const char text[] = "4711 (x) " TO_START "\n";
	struct process_stat stat;

	assert_int_equal(process_stat_parse(text, strlen(text), &stat), 0);
	assert_int_equal(stat.start_ticks, 987654);
	assert_int_equal(stat.env_start, 0);
	assert_int_equal(stat.env_end, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pid_that_came_again_is_another_process),
		cmocka_unit_test(an_unknown_start_is_never_surely_equal),
		cmocka_unit_test(nanoseconds_and_ticks_agree),
		cmocka_unit_test(more_than_fits_is_the_end_of_time),
		cmocka_unit_test(what_the_kernel_says_of_us_is_of_its_boot_clock),
		cmocka_unit_test(hostile_names_end_at_the_last_parenthesis),
		cmocka_unit_test(a_text_that_is_cut_is_refused_or_right),
		cmocka_unit_test(what_is_no_stat_is_refused),
		cmocka_unit_test(further_fields_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
