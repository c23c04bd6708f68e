// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>

#include "activity/incarnations.h"
#include "base/macro.h"

enum { PID = 100 };

static struct trace_process about(uint32_t tgid, uint8_t type, uint64_t incarnation)
{
	return (struct trace_process){ .header = { .tgid = tgid, .type = type }, .incarnation = incarnation };
}

static void hear(struct incarnations *incarnations, uint32_t tgid, uint8_t type, uint64_t incarnation)
{
	const struct trace_process event = about(tgid, type, incarnation);

	incarnations_event(incarnations, &event.header, sizeof(event));
}

static void the_newest_is_known(_unused_ void **state)
{
	struct incarnations *incarnations = calloc(1, sizeof(*incarnations));

	assert_non_null(incarnations);
	assert_int_equal(incarnations_of(incarnations, PID), 0);
	hear(incarnations, PID, TRACE_EVENT_PROCESS, 5);
	hear(incarnations, PID + 1, TRACE_EVENT_PROCESS, 6);
	assert_int_equal(incarnations_of(incarnations, PID), 5);
	hear(incarnations, PID, TRACE_EVENT_EXEC, 5);
	assert_int_equal(incarnations_of(incarnations, PID), 0);
	hear(incarnations, PID, TRACE_EVENT_PROCESS, 7);
	hear(incarnations, PID, TRACE_EVENT_CALL, 8);
	assert_int_equal(incarnations_of(incarnations, PID), 7);
	hear(incarnations, PID + INCARNATIONS, TRACE_EVENT_EXIT, 7); /* another one's */
	assert_int_equal(incarnations_of(incarnations, PID), 7);
	hear(incarnations, PID + INCARNATIONS, TRACE_EVENT_PROCESS, 9);
	assert_int_equal(incarnations_of(incarnations, PID), 0);
	assert_int_equal(incarnations_of(incarnations, PID + INCARNATIONS), 9);
	free(incarnations);
}

static bool ends(uint64_t *incarnation, uint64_t first_ns, uint8_t type, uint64_t said)
{
	const struct trace_process event = about(PID, type, said);

	return incarnation_ends(incarnation, first_ns, &event.header, sizeof(event));
}

static void one_ends_by_what_is_said_of_it(_unused_ void **state)
{
	uint64_t known = 5, learnt = 0;

	assert_false(ends(&known, 10, TRACE_EVENT_PROCESS, 5));
	assert_false(ends(&known, 10, TRACE_EVENT_CALL, 6));
	assert_false(ends(&known, 10, TRACE_EVENT_EXIT, 4));
	assert_true(ends(&known, 10, TRACE_EVENT_EXIT, 5));
	assert_true(ends(&known, 10, TRACE_EVENT_EXEC, 0));
	assert_true(ends(&known, 10, TRACE_EVENT_PROCESS, 6));
	assert_int_equal(known, 5);
	/* Its first call was before another one's beginning, or overtook its own. */
	assert_true(ends(&learnt, 10, TRACE_EVENT_PROCESS, 11));
	assert_int_equal(learnt, 0);
	assert_false(ends(&learnt, 10, TRACE_EVENT_PROCESS, 9));
	assert_int_equal(learnt, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_is_known),
		cmocka_unit_test(one_ends_by_what_is_said_of_it),
	};

	return cmocka_run_group_tests_name("incarnations", tests, NULL, NULL);
}
