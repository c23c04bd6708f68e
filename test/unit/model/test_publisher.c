// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/macro.h"
#include "model/publisher.h"

enum { ENTITIES = 9, READERS = 4, ROUNDS = 2000 };

static const struct snapshot_sizes small = {
	.entities = ENTITIES, .processes = 4, .exited = 4, .workloads = 2, .xids = 1
};

static struct snapshot *take(struct publisher *publisher, const struct snapshot_sizes *sizes,
			     uint64_t *ret_tag)
{
	struct snapshot *s;

	assert_int_equal(publisher_take(publisher, sizes, &s, ret_tag), 0);
	return s;
}

static void put(struct publisher *publisher)
{
	uint64_t tag;

	publisher_put(publisher, take(publisher, &small, &tag));
}

static void nothing_before_the_first(_unused_ void **state)
{
	struct publisher *publisher;

	assert_int_equal(publisher_new(&publisher), 0);
	assert_null(publisher_get(publisher));
	publisher_free(publisher);
	publisher_free(NULL);
	snapshot_unref(NULL);
}

static void the_newest_is_shown_and_numbered(_unused_ void **state)
{
	struct publisher *publisher;
	struct snapshot *first, *second;

	assert_int_equal(publisher_new(&publisher), 0);
	put(publisher);
	first = publisher_get(publisher);
	put(publisher);
	second = publisher_get(publisher);
	assert_int_equal(first->seq, 1);
	assert_int_equal(second->seq, 2);
	assert_ptr_not_equal(first, second);
	snapshot_unref(first);
	snapshot_unref(second);
	publisher_free(publisher);
}

static void snapshots_are_recycled(_unused_ void **state)
{
	struct publisher *publisher;
	struct snapshot *seen[2];
	uint64_t tag;

	assert_int_equal(publisher_new(&publisher), 0);
	for (unsigned i = 0; i < 2; i++) {
		seen[i] = take(publisher, &small, &tag);
		publisher_put(publisher, seen[i]);
	}
	for (unsigned i = 0; i < 10; i++) {
		struct snapshot *s = take(publisher, &small, &tag);
		struct entity *entities = s->entities;

		assert_ptr_equal(s, seen[i % 2]);
		publisher_put(publisher, s);
		assert_ptr_equal(s->entities, entities);
	}
	publisher_free(publisher);
}

static void a_snapshot_in_use_is_not_recycled(_unused_ void **state)
{
	struct publisher *publisher;
	struct snapshot *held;
	uint64_t tag;

	assert_int_equal(publisher_new(&publisher), 0);
	put(publisher);
	held = publisher_get(publisher);
	for (unsigned i = 0; i < 5; i++) {
		struct snapshot *s = take(publisher, &small, &tag);

		assert_ptr_not_equal(s, held);
		publisher_put(publisher, s);
	}
	assert_int_equal(held->seq, 1);
	snapshot_unref(held);
	publisher_free(publisher);
}

static void arrays_grow_and_forget_their_tag(_unused_ void **state)
{
	struct snapshot_sizes sizes = small;
	struct publisher *publisher;
	struct snapshot *s;
	uint64_t tag;

	assert_int_equal(publisher_new(&publisher), 0);
	s = take(publisher, &sizes, &tag);
	assert_int_equal(tag, 0);
	publisher_tag_exited(s, 17);
	publisher_put(publisher, s);
	put(publisher);
	s = take(publisher, &sizes, &tag);
	assert_int_equal(tag, 17);
	publisher_put(publisher, s);
	put(publisher);
	sizes.exited = sizes.processes = sizes.entities = 200;
	s = take(publisher, &sizes, &tag);
	assert_int_equal(tag, 0);
	memset(s->exited, 0, 200 * sizeof(*s->exited));
	memset(s->processes, 0, 200 * sizeof(*s->processes));
	memset(s->entities, 0, 200 * sizeof(*s->entities));
	publisher_put(publisher, s);
	publisher_free(publisher);
}

static void a_snapshot_outlives_its_publisher(_unused_ void **state)
{
	struct publisher *publisher;
	struct snapshot *newest, *older;

	assert_int_equal(publisher_new(&publisher), 0);
	put(publisher);
	older = publisher_get(publisher);
	put(publisher);
	newest = publisher_get(publisher);
	publisher_free(publisher);
	assert_int_equal(newest->seq, 2);
	snapshot_unref(newest);
	assert_int_equal(older->seq, 1);
	snapshot_unref(older);
}

struct shared {
	struct publisher *publisher;
	atomic_bool end;
	atomic_uint torn, backwards, seen;
};

/*
 * Each snapshot is filled with its own number all over: a reader that finds two numbers in one has seen it
 * torn.
 */
static void *reader(void *argument)
{
	struct shared *shared = argument;
	uint64_t newest = 0;

	while (!atomic_load(&shared->end)) {
		struct snapshot *s = publisher_get(shared->publisher), *again;

		if (!s)
			continue;
		again = snapshot_ref(s);
		for (uint32_t i = 0; i < s->entities_n; i++)
			if (s->entities[i].samples != (uint64_t)s->real_ns)
				atomic_fetch_add(&shared->torn, 1);
		if (s->seq < newest)
			atomic_fetch_add(&shared->backwards, 1);
		newest = s->seq;
		atomic_fetch_add(&shared->seen, 1);
		snapshot_unref(s);
		snapshot_unref(again);
	}
	return NULL;
}

static void readers_in_other_threads_see_whole_snapshots(_unused_ void **state)
{
	struct shared shared = { 0 };
	pthread_t threads[READERS];

	assert_int_equal(publisher_new(&shared.publisher), 0);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &shared), 0);
	for (int64_t round = 1; round <= ROUNDS || atomic_load(&shared.seen) < READERS; round++) {
		uint64_t tag;
		struct snapshot *s = take(shared.publisher, &small, &tag);

		s->real_ns = round;
		s->entities_n = ENTITIES;
		for (uint32_t i = 0; i < ENTITIES; i++)
			s->entities[i].samples = (uint64_t)round;
		publisher_put(shared.publisher, s);
	}
	atomic_store(&shared.end, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.torn, 0);
	assert_int_equal(shared.backwards, 0);
	publisher_free(shared.publisher);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_the_first),
		cmocka_unit_test(the_newest_is_shown_and_numbered),
		cmocka_unit_test(snapshots_are_recycled),
		cmocka_unit_test(a_snapshot_in_use_is_not_recycled),
		cmocka_unit_test(arrays_grow_and_forget_their_tag),
		cmocka_unit_test(a_snapshot_outlives_its_publisher),
		cmocka_unit_test(readers_in_other_threads_see_whole_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
