// SPDX-License-Identifier: Apache-2.0
/* Files that would take long to analyse: the rest is refused, with a reason, and counted. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "elf/elf.h"
#include "elf/image.h"
#include "elf/slow.h"

static int64_t cpu_ns;

static int64_t fake_cpu_ns(void)
{
	return cpu_ns;
}

/* Reading the symbols ends early, when they are read for this time; 0: never. */
static unsigned out_of_time;

static int fake_entries(struct elf_file *file, elf_symbol_fn *fn, void *userdata)
{
	return out_of_time > 0 && --out_of_time == 0 ? -ETIME : elf_entries(file, fn, userdata);
}

#include "trace/list.h"

static const uint64_t all_steps = TRACE_LIST_STEPS;
static uint64_t steps;

#undef TRACE_LIST_STEPS
#define TRACE_LIST_STEPS steps
#define clock_thread_cpu_ns fake_cpu_ns
#define elf_entries fake_entries
#include "trace/list.c"

enum { SEARCHED = SITE_CODE_MAX };

static const bool driver[PROBE_LIBRARIES] = { [PROBE_CUDA] = true };

struct seen {
	unsigned n, chosen, too_much, too_long;
};

static int see(const struct trace_listing *listing, void *userdata)
{
	struct seen *seen = userdata;

	seen->n++;
	seen->chosen += listing->site.chosen;
	seen->too_much += strstr(listing->site.reason, "more code in probed functions") != NULL;
	seen->too_long += strstr(listing->site.reason, "takes longer") != NULL;
	assert_true(listing->site.chosen == (listing->site.class != SITE_REFUSED));
	assert_true(strlen(listing->site.reason) < sizeof(listing->site.reason) - 1);
	return 0;
}

static int list_for(unsigned users, enum slow_kind kind, unsigned n, struct seen *seen)
{
	size_t size;
	_cleanup_free_ uint8_t *bytes = slow_make(kind, n, &size);
	_cleanup_close_ int fd = image_open(bytes, size);
	struct site_query query = { .users = users };

	memcpy(query.libraries, driver, sizeof(query.libraries));
	site_rules_default(EM_X86_64, &query.rules);
	*seen = (struct seen){ 0 };
	return trace_list_sites(fd, &query, see, seen, NULL);
}

static int list(enum slow_kind kind, unsigned n, struct seen *seen)
{
	return list_for(0, kind, n, seen);
}

static int set_up(_unused_ void **state)
{
	cpu_ns = INT64_MAX / 2; /* src/elf has the real clock, which is never past this */
	steps = all_steps;
	out_of_time = 0;
	return 0;
}

/* What looks like a jump and is none does not refuse a function, and one decoding tells them all. */
static void all_sites_of_an_ordinary_number(_unused_ void **state)
{
	struct seen seen;

	assert_int_equal(list(SLOW_JUMPS, 3, &seen), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.chosen, 3);
}

static void bounds_the_code(_unused_ void **state)
{
	static const enum slow_kind kinds[] = { SLOW_JUMPS, SLOW_OVERLAPS };
	enum { MOST = TRACE_LIST_CODE_MAX / SEARCHED };
	struct seen seen;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(list(kinds[i], MOST, &seen), 0);
		assert_int_equal(seen.n, MOST);
		assert_int_equal(seen.too_much, 0);
		assert_int_equal(seen.too_long, 0);
		assert_int_equal(list(kinds[i], MOST + 9, &seen), 0);
		assert_int_equal(seen.n, MOST + 9);
		assert_int_equal(seen.too_much, 9);
	}
}

/* In the middle of the functions; one takes more than 7,000 steps. */
static void bounds_the_steps(_unused_ void **state)
{
	struct seen seen;

	steps = UINT64_C(4) * 7000;
	assert_int_equal(list(SLOW_JUMPS, 12, &seen), 0);
	assert_int_equal(seen.n, 12);
	assert_int_equal(seen.chosen, 4);
	assert_int_equal(seen.too_long, 8);
}

/* While symbols are read: where a function is known, it is refused, else the file is. */
static void bounds_the_steps_of_symbols(_unused_ void **state)
{
	struct seen seen;

	out_of_time = 1;
	assert_int_equal(list(SLOW_NAMES, 10, &seen), -E2BIG);
	assert_int_equal(seen.n, 0);
	out_of_time = 2;
	assert_int_equal(list(SLOW_JUMPS, 3, &seen), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.too_long, 3);
	steps = 1000;
	assert_int_equal(list(SLOW_NAMES, 10000, &seen), -E2BIG);
	assert_int_equal(seen.n, 0);
}

/* A machine on which a thread's time is that of others, too, lists all; what the user names may take long. */
static void time_bounds_what_is_named_only(_unused_ void **state)
{
	struct seen seen;

	cpu_ns = -10 * TRACE_LIST_CPU_NS; /* the limit that src/elf gets is past at once */
	assert_int_equal(list_for(1, SLOW_NAMES, 10, &seen), -E2BIG);
	assert_int_equal(seen.n, 0);
	assert_int_equal(list(SLOW_NAMES, 10, &seen), 0);
	assert_int_equal(seen.chosen, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_sites_of_an_ordinary_number, set_up),
		cmocka_unit_test_setup(bounds_the_code, set_up),
		cmocka_unit_test_setup(bounds_the_steps, set_up),
		cmocka_unit_test_setup(bounds_the_steps_of_symbols, set_up),
		cmocka_unit_test_setup(time_bounds_what_is_named_only, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
