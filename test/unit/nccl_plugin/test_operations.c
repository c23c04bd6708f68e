// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "nccl_plugin/plugin.h"

static const struct plugin_operation timed = { .told = { .channels = 2, .sequence = 9 }, .timed = true };

static struct nccl_wire_operation told(void)
{
	struct nccl_wire_operation operation;

	assert_true(ring_take(&operation));
	return operation;
}

static void none_told(void)
{
	struct nccl_wire_operation operation;

	assert_false(ring_take(&operation));
}

static void from_the_first_start_to_the_last_end(void **state)
{
	uintptr_t handle = operation_begin(&timed), a, b;
	struct nccl_wire_operation operation;

	(void)state;
	operation_event_end(handle); /* enqueued */
	none_told();
	a = operation_channel_begin(handle, 1000);
	b = operation_channel_begin(handle, 900);
	operation_channel_time(a, 2000);
	operation_event_end(a);
	none_told();
	operation_proxy(handle);
	operation_channel_time(b, 1900);
	operation_event_end(b);
	operation = told();
	assert_int_equal(operation.duration_ns, 1100);
	assert_int_equal(operation.timing, NCCL_TIMING_GPU);
	assert_int_equal(operation.sequence, 9);
	assert_int_equal(operation.proxy_operations, 1);
	/* It has ended: late events find nothing. */
	assert_int_equal(operation_channel_begin(handle, 5), 0);
	operation_event_end(a);
	operation_event_end(handle);
	none_told();
}

static void channels_may_end_before_it_is_enqueued(void **state)
{
	uintptr_t handle = operation_begin(&timed);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uintptr_t channel = operation_channel_begin(handle, 1000);

		operation_channel_time(channel, 1500);
		operation_event_end(channel);
	}
	none_told();
	operation_event_end(handle);
	assert_int_equal(told().duration_ns, 500);
}

static void times_that_cannot_be(void **state)
{
	uintptr_t handle = operation_begin(&timed);
	struct nccl_wire_operation operation;

	(void)state;
	operation_event_end(handle);
	for (unsigned i = 0; i < 2; i++) {
		uintptr_t channel = operation_channel_begin(handle, 1000);

		operation_channel_time(channel, 500);
		operation_event_end(channel);
	}
	operation = told();
	assert_int_equal(operation.duration_ns, 0);
	assert_int_equal(operation.timing, NCCL_TIMING_NONE);
}

static void without_times_it_ends_when_it_is_enqueued(void **state)
{
	const struct plugin_operation plain = { .told.channels = 4 };
	struct nccl_wire_operation operation;

	(void)state;
	operation_event_end(operation_begin(&plain));
	operation = told();
	assert_int_equal(operation.duration_ns, 0);
	assert_true(operation.start_ns > 0);
}

static void by_the_hosts_clock(void **state)
{
	const struct plugin_operation one = { .told.channels = 1, .timed = true };
	uintptr_t handle = operation_begin(&one), channel = operation_channel_begin(handle, 0);
	struct nccl_wire_operation operation;

	(void)state;
	operation_event_end(handle);
	operation_event_end(channel);
	operation = told();
	assert_true(operation.timing == NCCL_TIMING_HOST || operation.duration_ns == 0);
}

/* NCCL tells no channels of some: they are told when their communicator ends. */
static void what_is_left_when_a_communicator_ends(void **state)
{
	struct plugin_operation one = timed, other = timed;
	struct nccl_wire_operation operation;
	uintptr_t handle;

	(void)state;
	one.context = &one;
	other.context = &other;
	other.told.sequence = 10;
	operation_event_end(operation_begin(&one));
	handle = operation_begin(&other);
	operation_event_end(handle);
	none_told();
	operations_end(&one);
	operation = told();
	assert_int_equal(operation.sequence, 9);
	assert_int_equal(operation.timing, NCCL_TIMING_NONE);
	none_told();
	operations_end(&other);
	assert_int_equal(told().sequence, 10);
}

/* Those whose channels do not end have their places until they are old. */
static void there_is_only_so_much_room(void **state)
{
	const struct plugin_operation plain = { .told.channels = 1 };
	uintptr_t earlier = operation_begin(&plain);
	uint64_t lost = ring_lost();
	unsigned begun = 0;

	(void)state;
	operation_event_end(earlier);
	told();
	for (unsigned i = 0; i < 10000; i++)
		begun += operation_begin(&timed) != 0;
	assert_int_equal(begun, 4096);
	assert_int_equal(ring_lost() - lost, 10000 - 4096);
	/* Its place is another one's now. */
	assert_int_equal(operation_channel_begin(earlier, 1), 0);
}

static void handles_that_are_none(void **state)
{
	(void)state;
	for (uintptr_t i = 0; i < 100000; i++) {
		operation_event_end(i * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0x3fff));
		operation_channel_time(UINT64_MAX - i, 1);
		assert_int_equal(operation_channel_begin(UINTPTR_MAX - i, 1), 0);
	}
	operation_event_end(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_first_start_to_the_last_end),
		cmocka_unit_test(channels_may_end_before_it_is_enqueued),
		cmocka_unit_test(times_that_cannot_be),
		cmocka_unit_test(without_times_it_ends_when_it_is_enqueued),
		cmocka_unit_test(by_the_hosts_clock),
		cmocka_unit_test(what_is_left_when_a_communicator_ends),
		cmocka_unit_test(handles_that_are_none),
		cmocka_unit_test(there_is_only_so_much_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
