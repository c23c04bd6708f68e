// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "python/slots.h"

enum { MAX = 4, PID = 10 };

struct entry {
	struct slot_link link;
	uint32_t value;
};

static uint32_t take(struct slots *slots, uint32_t tgid)
{
	uint32_t index;

	assert_true(slots_have(slots));
	assert_int_equal(slots_take(slots, tgid, &index), 0);
	assert_true(index < MAX);
	return index;
}

static unsigned of_process(const struct slots *slots, uint32_t tgid)
{
	const struct entry *entries = slots->entries;
	uint32_t first, n = 0;

	if (!slots_first(slots, tgid, &first))
		return 0;
	for (uint32_t i = first + 1; i; i = entries[i - 1].link.after)
		n++;
	return n;
}

/* All can be had, and again what was given back; each is in its process's chain alone. */
static void taken_and_given_back(void **state)
{
	struct slots slots;
	struct entry *entries;
	uint32_t index[MAX];

	(void)state;
	assert_int_equal(slots_init(&slots, MAX, sizeof(struct entry)), 0);
	entries = slots.entries;
	for (uint32_t i = 0; i < MAX; i++) {
		index[i] = take(&slots, PID + i % 2);
		entries[index[i]].value = i;
	}
	assert_false(slots_have(&slots));
	assert_int_equal(of_process(&slots, PID), MAX / 2);
	assert_int_equal(of_process(&slots, PID + 1), MAX / 2);
	slots_give(&slots, PID, index[0]); /* the last of its chain */
	assert_int_equal(entries[index[0]].value, 0);
	assert_int_equal(of_process(&slots, PID), 1);
	assert_int_equal(take(&slots, PID + 1), index[0]);
	assert_int_equal(of_process(&slots, PID + 1), 3);
	slots_give(&slots, PID + 1, index[3]); /* in the midst of it */
	assert_int_equal(of_process(&slots, PID + 1), 2);
	slots_give(&slots, PID + 1, index[0]); /* the first */
	slots_give(&slots, PID + 1, index[1]); /* the only one */
	assert_int_equal(of_process(&slots, PID + 1), 0);
	assert_int_equal(of_process(&slots, PID), 1);
	for (uint32_t i = 1; i < MAX; i++)
		take(&slots, PID);
	assert_false(slots_have(&slots));
	slots_done(&slots);
}

static void the_next_goes_round_what_was_used(void **state)
{
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, MAX, sizeof(struct entry)), 0);
	take(&slots, PID);
	take(&slots, PID);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(slots_next(&slots, &slots.next), i % 2);
	assert_int_equal(slots_next(&slots, &slots.share_next), 0);
	/* More of them change nothing of where it is. */
	take(&slots, PID);
	assert_int_equal(slots_next(&slots, &slots.next), 1);
	assert_int_equal(slots_next(&slots, &slots.next), 2);
	assert_int_equal(slots_next(&slots, &slots.next), 0);
	slots_done(&slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_and_given_back),
		cmocka_unit_test(the_next_goes_round_what_was_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
