// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "blas/layouts.h"

static void make(struct layouts *layouts, uint64_t digest, uint64_t rows)
{
	layouts_made(layouts,
		     &(struct layout){ .digest = digest, .rows = rows, .cols = 7, .batch = 1, .type = 2 });
}

static void contents_are_known_by_their_digest_alone(void **state)
{
	struct layouts layouts = { 0 };

	(void)state;
	make(&layouts, 11, 100);
	assert_int_equal(layouts_find(&layouts, 11)->rows, 100);
	assert_null(layouts_find(&layouts, 12));
	/* What could not be read is neither kept nor found. */
	make(&layouts, 0, 100);
	assert_null(layouts_find(&layouts, 0));
	layouts_done(&layouts);
}

static void attributes_make_another_layout(void **state)
{
	struct layouts layouts = { 0 };

	(void)state;
	make(&layouts, 11, 100);
	layouts_set(&layouts, 11, 12, 5, UINT64_C(0xffff00000008), 4); /* the batch, of 32 bits */
	layouts_set(&layouts, 12, 13, 2, UINT64_C(0x100000000), 8);
	layouts_set(&layouts, 13, 14, 1, 1, 4); /* the order */
	assert_int_equal(layouts_find(&layouts, 12)->batch, 8);
	assert_int_equal(layouts_find(&layouts, 12)->rows, 100);
	assert_int_equal(layouts_find(&layouts, 14)->rows, UINT64_C(0x100000000));
	assert_int_equal(layouts_find(&layouts, 14)->batch, 8);
	assert_int_equal(layouts_find(&layouts, 11)->batch, 1);
	/* Of one that is not known nothing is. */
	layouts_set(&layouts, 99, 100, 5, 8, 4);
	assert_null(layouts_find(&layouts, 100));
	layouts_done(&layouts);
}

static void the_oldest_is_replaced(void **state)
{
	struct layouts layouts = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 2 * LAYOUTS_MAX + 1; i++)
		make(&layouts, i, i);
	assert_int_equal(layouts.n, LAYOUTS_MAX);
	assert_null(layouts_find(&layouts, LAYOUTS_MAX + 1));
	for (uint64_t i = LAYOUTS_MAX + 2; i <= 2 * LAYOUTS_MAX + 1; i++)
		assert_int_equal(layouts_find(&layouts, i)->rows, i);
	layouts_done(&layouts);
}

static void descriptors_that_differ_are_not_told_by_one_digest(void **state)
{
	struct layouts layouts = { 0 };

	(void)state;
	layouts_described(&layouts, 5, 68);
	layouts_described(&layouts, 5, 68);
	layouts_described(&layouts, 6, 77);
	assert_int_equal(layouts_compute(&layouts, 5), 68);
	assert_int_equal(layouts_compute(&layouts, 6), 77);
	assert_int_equal(layouts_compute(&layouts, 7), BLAS_TYPE_UNKNOWN);
	layouts_described(&layouts, 5, 77);
	assert_int_equal(layouts_compute(&layouts, 5), BLAS_TYPE_UNKNOWN);
	for (uint64_t i = 100; i < 100 + 3 * DESCRIPTORS_MAX; i++)
		layouts_described(&layouts, i, 68);
	assert_in_range(layouts.computes_n, 1, DESCRIPTORS_MAX);
	layouts_done(&layouts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_are_known_by_their_digest_alone),
		cmocka_unit_test(attributes_make_another_layout),
		cmocka_unit_test(the_oldest_is_replaced),
		cmocka_unit_test(descriptors_that_differ_are_not_told_by_one_digest),
	};

	return cmocka_run_group_tests_name("layouts", tests, NULL, NULL);
}
