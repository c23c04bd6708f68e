// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "model/blas.h"

static void boards_are_found_by_whole_words(void **state)
{
	(void)state;
	assert_non_null(blas_peak_find("NVIDIA H100 80GB HBM3"));
	assert_ptr_not_equal(blas_peak_find("NVIDIA A100-SXM4-80GB"), blas_peak_find("NVIDIA A10"));
	assert_ptr_not_equal(blas_peak_find("NVIDIA H200 NVL"), blas_peak_find("NVIDIA H200"));
	assert_non_null(blas_peak_find("NVIDIA A10"));
	assert_null(blas_peak_find("NVIDIA A10G"));
	assert_null(blas_peak_find("NVIDIA GeForce RTX 4090"));
	assert_null(blas_peak_find(""));
}

static void times_at_the_peak_add_up_or_are_not_known(void **state)
{
	const struct blas_peak *a100 = blas_peak_find("NVIDIA A100-PCIE-40GB");
	struct blas_sum sums[BLAS_PRECISIONS] = { [BLAS_BF16] = { 1, 312e12 }, [BLAS_TF32] = { 1, 78e12 } };

	(void)state;
	assert_true(blas_peak_seconds(a100, sums) == 1.5);
	sums[BLAS_FP8] = (struct blas_sum){ 1, 1 };
	assert_true(blas_peak_seconds(a100, sums) < 0);
}

static void precisions_follow_from_types(void **state)
{
	(void)state;
	assert_int_equal(blas_precision_of(14, 68, -1), BLAS_BF16);
	assert_int_equal(blas_precision_of(2, 64, -1), BLAS_FP16);
	assert_int_equal(blas_precision_of(28, 68, 0), BLAS_FP8);
	assert_int_equal(blas_precision_of(0, 69, 3), BLAS_FP32); /* pedantic, whatever the handle says */
	assert_int_equal(blas_precision_of(0, 0xff, 0), BLAS_FP32_OR_TF32);
	assert_int_equal(blas_precision_of(0, 68, -1), BLAS_FP32_OR_TF32);
	assert_int_equal(blas_precision_of(0, 78, 0), BLAS_EMULATED);
	assert_int_equal(blas_precision_of(1, 79, 0), BLAS_EMULATED);
	assert_int_equal(blas_precision_of(3, 72, 0), BLAS_INT8);
	assert_int_equal(blas_precision_of(200, 68, 0), BLAS_OTHER);
	for (unsigned i = 0; i < BLAS_PRECISIONS; i++)
		assert_true(*blas_precision_name((enum blas_precision)i));
	assert_string_equal(blas_type_name(29), "fp8_e5m2");
	assert_null(blas_type_name(255));
	assert_string_equal(blas_compute_name(77), "32f_fast_tf32");
	assert_null(blas_compute_name(0));
}

static void complex_numbers_take_four_times_as_many(void **state)
{
	struct blas_shape shape = { .m = 2, .n = 3, .k = 5, .batch = 7 };

	(void)state;
	assert_true(blas_flop(&shape) == 2 * 210.0);
	shape.types[BLAS_A] = 4;
	assert_true(blas_flop(&shape) == 8 * 210.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boards_are_found_by_whole_words),
		cmocka_unit_test(times_at_the_peak_add_up_or_are_not_known),
		cmocka_unit_test(precisions_follow_from_types),
		cmocka_unit_test(complex_numbers_take_four_times_as_many),
	};

	return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
