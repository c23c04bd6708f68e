// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "cupti_plugin/plugin.h"

static uint8_t *request(void)
{
	uint8_t *buffer;
	size_t size, records = 1;

	buffers_requested(&buffer, &size, &records);
	assert_int_equal(size, buffer ? BUFFER_BYTES : 0);
	assert_int_equal(records, 0);
	return buffer;
}

/* Without CUPTI the version is none: a buffer is given in any case, and what is in it is not read. */
static void there_are_only_so_many(void **state)
{
	uint8_t *given[BUFFERS];
	struct buffer buffer;

	(void)state;
	buffers_accept(true);
	for (unsigned i = 0; i < BUFFERS; i++) {
		given[i] = request();
		assert_non_null(given[i]);
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(given[i], given[k]);
	}
	assert_int_equal(buffers_given(), BUFFERS);
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *waste = request();

		assert_non_null(waste);
		for (unsigned k = 0; k < BUFFERS; k++)
			assert_ptr_not_equal(waste, given[k]);
		buffers_completed(NULL, 0, waste, BUFFER_BYTES, 100);
	}
	assert_int_equal(buffers_dropped(), 3); /* at least one in each */
	assert_false(buffers_take(&buffer));
	for (unsigned i = 0; i < BUFFERS; i++)
		buffers_completed(NULL, 0, given[i], BUFFER_BYTES, i);
	assert_int_equal(buffers_given(), 0);
	/* One with nothing in it is free at once; what CUPTI says twice is said once. */
	buffers_completed(NULL, 0, given[1], BUFFER_BYTES, 50);
	for (unsigned i = 1; i < BUFFERS; i++) {
		assert_true(buffers_take(&buffer));
		assert_ptr_equal(buffer.data, given[i]);
		assert_int_equal(buffer.valid, i);
		buffers_give(&buffer);
	}
	assert_false(buffers_take(&buffer));
}

static void none_is_given_while_nobody_listens(void **state)
{
	uint64_t dropped = buffers_dropped();
	uint8_t *first, *second;

	(void)state;
	buffers_accept(false);
	first = request();
	second = request();
	assert_ptr_equal(first, second); /* the one that is not read */
	assert_int_equal(buffers_given(), 0);
	buffers_completed(NULL, 0, first, BUFFER_BYTES, 100);
	assert_int_equal(buffers_dropped(), dropped);
	buffers_accept(true);
}

/* CUPTI cannot have written more than the buffer holds. */
static void what_is_valid_is_bounded(void **state)
{
	uint8_t *given = request();
	struct buffer buffer;

	(void)state;
	buffers_completed(NULL, 0, given, BUFFER_BYTES, SIZE_MAX);
	assert_true(buffers_take(&buffer));
	assert_int_equal(buffer.valid, BUFFER_BYTES);
	memset(buffer.data, 1, buffer.valid);
	buffers_give(&buffer);
	buffers_release();
	assert_int_equal(buffer.data[0], 0); /* its memory has been given back */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_only_so_many),
		cmocka_unit_test(none_is_given_while_nobody_listens),
		cmocka_unit_test(what_is_valid_is_bounded),
	};

	setenv("GPUSONDE_CUPTI_LIBRARY", "/nonexistent", 1);
	library_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
