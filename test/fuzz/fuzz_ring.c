// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "trace/ring.h"

enum { BYTES = 4096, CPUS = 8 };

struct check {
	struct ring_order order;
	uint64_t records, events;
	volatile uint8_t touched;
};

/* Every byte of an event may be read, and its numbers index what they may. */
static void on_record(const void *data, uint32_t size, void *userdata)
{
	static const uint32_t sizes[TRACE_EVENTS] = {
		[TRACE_EVENT_LAUNCH] = sizeof(struct trace_launch),
		[TRACE_EVENT_CALL] = sizeof(struct trace_call),
		[TRACE_EVENT_PROCESS] = sizeof(struct trace_process),
		[TRACE_EVENT_EXEC] = sizeof(struct trace_process),
		[TRACE_EVENT_EXIT] = sizeof(struct trace_process),
		[TRACE_EVENT_STAT] = sizeof(struct trace_stat_new),
		[TRACE_EVENT_NAME] = sizeof(struct trace_name) + TRACE_NAME_SMALL,
		[TRACE_EVENT_CODE] = sizeof(struct trace_code) + TRACE_LINES_SMALL,
		[TRACE_EVENT_STACK] =
			sizeof(struct trace_stack) + TRACE_STACK_SMALL * sizeof(struct trace_frame),
		[TRACE_EVENT_NATIVE] = sizeof(struct trace_native) + TRACE_STACK_SMALL * sizeof(__u64),
	};
	const struct trace_name *name = data;
	const struct trace_code *code = data;
	const struct trace_stack *stack = data;
	const struct trace_native *native = data;
	struct check *check = userdata;
	const struct trace_header *event;

	check->records++;
	for (uint32_t i = 0; i < size; i++)
		check->touched ^= ((const uint8_t *)data)[i];
	event = ring_order_take(&check->order, data, size);
	if (!event)
		return;
	check->events++;
	if (event->type >= TRACE_EVENTS || sizes[event->type] == 0 || size < sizes[event->type] ||
	    event->cpu >= CPUS || event->call >= TRACE_CALLS_MAX || event->seq == 0)
		abort();
	if (event->type == TRACE_EVENT_NAME &&
	    (name->name_n >= size - sizeof(*name) || name->name[name->name_n]))
		abort();
	if (event->type == TRACE_EVENT_CODE && code->lines_n > size - sizeof(*code))
		abort();
	if (event->type == TRACE_EVENT_STACK &&
	    (uint64_t)stack->n * sizeof(stack->frames[0]) > size - sizeof(*stack))
		abort();
	if (event->type == TRACE_EVENT_NATIVE &&
	    (uint64_t)native->n * sizeof(native->pcs[0]) > size - sizeof(*native))
		abort();
}

/*
 * The first two bytes: where the consumer stands; the next two: how much was produced; the rest: what lies
 * there.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	/* On the heap, and no larger than the ring, for the sanitizer to see. */
	uint8_t *memory;
	struct check check = { 0 };
	uint64_t consumer, producer, before;
	struct ring ring;
	uint16_t at, produced;

	if (size < 4 || posix_memalign((void **)&memory, 8, BYTES) != 0)
		return 0;
	memcpy(&at, data, 2);
	memcpy(&produced, data + 2, 2);
	memset(memory, 0, BYTES);
	consumer = at / 8 * 8;
	for (size_t i = 4; i < size && i - 4 < BYTES; i++)
		memory[(consumer + i - 4) % BYTES] = data[i];
	producer = consumer + produced / 8 * 8;
	ring = (struct ring){
		.consumer = &consumer, .producer = &producer, .data = memory, .mask = BYTES - 1
	};
	if (ring_order_init(&check.order, CPUS) < 0)
		abort();
	before = consumer;
	if (ring_drain(&ring, on_record, &check) != check.records)
		abort();
	if (consumer < before || consumer > producer || check.events > check.order.received ||
	    check.order.received + check.order.bad < check.events)
		abort();
	(void)ring_pending(&ring);
	ring_order_done(&check.order);
	free(memory);
	return 0;
}
