// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "nccl_plugin/plugin.h"

static void what_is_put_is_taken_in_order(void **state)
{
	struct nccl_wire_operation operation = { 0 };

	(void)state;
	assert_false(ring_take(&operation));
	for (uint64_t round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < PLUGIN_RING; i++) {
			operation.sequence = i;
			assert_true(ring_put(&operation));
		}
		assert_false(ring_put(&operation));
		assert_int_equal(ring_lost(), round + 1);
		for (uint64_t i = 0; i < PLUGIN_RING; i++) {
			assert_true(ring_take(&operation));
			assert_int_equal(operation.sequence, i);
		}
		assert_false(ring_take(&operation));
	}
}

enum { WRITERS = 4, EACH = 20000 };
static atomic_uint put, ended;

static void *writer(void *arg)
{
	const struct nccl_wire_operation operation = { .comm = (uintptr_t)arg,
						       .bytes = ~(uint64_t)(uintptr_t)arg };

	for (unsigned i = 0; i < EACH; i++)
		put += ring_put(&operation);
	ended++;
	return NULL;
}

static void writers_at_once(void **state)
{
	struct nccl_wire_operation operation;
	uint64_t lost = ring_lost();
	pthread_t threads[WRITERS];
	unsigned taken = 0;

	(void)state;
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, writer, (void *)(i + 1)), 0);
	for (;;) {
		bool over = ended == WRITERS;

		while (ring_take(&operation)) {
			/* Whole, whichever thread wrote it. */
			assert_true(operation.bytes == ~operation.comm);
			taken++;
		}
		if (over)
			break;
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(taken, put);
	assert_int_equal(put + ring_lost() - lost, WRITERS * EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_taken_in_order),
		cmocka_unit_test(writers_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
