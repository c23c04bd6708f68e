// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/inspect/order.h"

enum { THREADS = 4, PARTS = 3000, LONG_PART = 1500 };

struct work {
	struct inspect_order order;
	struct strbuf got;
	unsigned writers; /* in write_it() now */
	_Atomic uint64_t next;
	uint64_t fail_at; /* bytes; 0: never */
};

static int write_it(const struct inspect_chunk *chunk, void *userdata)
{
	struct work *work = userdata;

	assert_int_equal(work->writers++, 0);
	strbuf_add(&work->got, chunk->text.data, chunk->text.len);
	strbuf_add(&work->got, chunk->errors.data, chunk->errors.len);
	work->writers--;
	return work->fail_at && work->got.len >= work->fail_at ? -ENOSPC : 0;
}

/* Few parts are long, many are empty. */
static unsigned lines_of(uint64_t part)
{
	if (part % LONG_PART == 7)
		return 200000;
	return part % 5 == 3 ? 0 : (unsigned)(part * 7919 % 300);
}

static void *produce(void *userdata)
{
	struct work *work = userdata;
	struct inspect_chunk chunk;
	uint64_t part;
	int r = 0;

	inspect_chunk_init(&chunk);
	while (r == 0 && (part = atomic_fetch_add(&work->next, 1)) < PARTS) {
		for (unsigned i = 0; i < lines_of(part) && r == 0; i++) {
			strbuf_addf(&chunk.text, "%llu %u: a line of some length\n", (unsigned long long)part,
				    i);
			r = inspect_order_flush(&work->order, part, &chunk);
		}
		if (part % 100 == 50 && r == 0) {
			r = inspect_order_await(&work->order, part);
			assert_true(r < 0 || atomic_load(&work->order.next_part) == part);
		}
		strbuf_adds(&chunk.errors, "end\n");
		r = inspect_order_end(&work->order, part, &chunk);
		assert_int_equal(chunk.text.len, 0);
	}
	inspect_chunk_done(&chunk);
	return NULL;
}

static void produce_by(unsigned threads, uint64_t fail_at, struct strbuf *ret_got, int *ret_error)
{
	struct work work = { .fail_at = fail_at };
	pthread_t others[THREADS];

	strbuf_init(&work.got, 0);
	inspect_order_init(&work.order, write_it, &work);
	for (unsigned i = 1; i < threads; i++)
		assert_int_equal(pthread_create(&others[i], NULL, produce, &work), 0);
	produce(&work);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	*ret_error = atomic_load(&work.order.error);
	inspect_order_done(&work.order);
	*ret_got = work.got;
}

static void parts_come_out_in_order(_unused_ void **state)
{
	struct strbuf want, got;
	int error;

	produce_by(1, 0, &want, &error);
	assert_int_equal(error, 0);
	assert_true(want.len > 10 << 20);
	for (unsigned threads = 2; threads <= THREADS; threads++) {
		produce_by(threads, 0, &got, &error);
		assert_int_equal(error, 0);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, want.len);
		strbuf_done(&got);
	}
	strbuf_done(&want);
}

static void an_error_of_writing_ends_it_for_all(_unused_ void **state)
{
	static const uint64_t at[] = { 1, 100000, 5 << 20 };
	struct strbuf got;
	int error;

	for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
		for (unsigned threads = 1; threads <= THREADS; threads++) {
			produce_by(threads, at[i], &got, &error);
			assert_int_equal(error, -ENOSPC);
			/* The write that failed was the last. */
			assert_true(got.len >= at[i] && got.len < at[i] + (4 << 20));
			strbuf_done(&got);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_come_out_in_order),
		cmocka_unit_test(an_error_of_writing_ends_it_for_all),
	};

	return cmocka_run_group_tests_name("inspect_order", tests, NULL, NULL);
}
