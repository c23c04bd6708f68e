// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "model/nccl.h"

static void bandwidth_of_the_bus(void **state)
{
	(void)state;
	assert_float_equal(nccl_bus_factor(NCCL_ALL_REDUCE, 8), 1.75, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_ALL_GATHER, 8), 0.875, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_REDUCE_SCATTER, 2), 0.5, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_ALL_TO_ALL, 4), 0.75, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_BROADCAST, 8), 1, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_SEND, 8), 1, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_ALL_REDUCE, 1), 0, 1e-9);
	assert_float_equal(nccl_bus_factor(NCCL_ALL_REDUCE, 0), 0, 1e-9);
}

static void arguments_of_one_rank(void **state)
{
	static const bool wanted[NCCL_OPERATIONS] = {
		[NCCL_REDUCE_SCATTER] = true, [NCCL_ALL_GATHER] = true, [NCCL_ALL_TO_ALL] = true,
		[NCCL_GATHER] = true,         [NCCL_SCATTER] = true,
	};

	(void)state;
	for (unsigned i = 0; i < NCCL_OPERATIONS; i++)
		assert_int_equal(nccl_operation_is_per_rank((enum nccl_operation)i), wanted[i]);
}

static void types_have_sizes(void **state)
{
	static const uint32_t bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(nccl_type_bytes(i), bytes[i]);
		assert_non_null(nccl_type_name(i));
	}
	assert_int_equal(nccl_type_bytes(12), 0);
	assert_null(nccl_type_name(UINT32_MAX));
}

static void texts(void **state)
{
	char text[NCCL_SIZE_TEXT];

	(void)state;
	nccl_size_text(NCCL_RANKS_UNKNOWN, text);
	assert_string_equal(text, "unknown");
	nccl_size_text(NCCL_RANKS_OTHER, text);
	assert_string_equal(text, "other");
	nccl_size_text(16384, text);
	assert_string_equal(text, "16384");
	assert_string_equal(nccl_operation_name(NCCL_WAIT_SIGNAL), "wait_signal");
	assert_string_equal(nccl_operation_name((enum nccl_operation)NCCL_OPERATIONS), "");
	assert_string_equal(nccl_reduction_name(4), "avg");
	assert_null(nccl_reduction_name(5));
	assert_string_equal(nccl_error_words(6), "remote process error");
	assert_null(nccl_error_words(0));
	assert_null(nccl_error_words(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bandwidth_of_the_bus),
		cmocka_unit_test(arguments_of_one_rank),
		cmocka_unit_test(types_have_sizes),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
