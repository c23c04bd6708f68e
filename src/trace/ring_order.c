// SPDX-License-Identifier: Apache-2.0
#include "trace/ring.h"

#include <errno.h>
#include <stdlib.h>

#include "trace/probe.h"

static const uint32_t sizes[TRACE_EVENTS] = {
	[TRACE_EVENT_LAUNCH] = sizeof(struct trace_launch),
	[TRACE_EVENT_CALL] = sizeof(struct trace_call),
	[TRACE_EVENT_PROCESS] = sizeof(struct trace_process),
	[TRACE_EVENT_EXEC] = sizeof(struct trace_process),
	[TRACE_EVENT_EXIT] = sizeof(struct trace_process),
	[TRACE_EVENT_NAME] = sizeof(struct trace_name) + TRACE_NAME_SMALL,
	[TRACE_EVENT_STAT] = sizeof(struct trace_stat_new),
	[TRACE_EVENT_CODE] = sizeof(struct trace_code) + TRACE_LINES_SMALL,
	[TRACE_EVENT_STACK] = sizeof(struct trace_stack) + TRACE_STACK_SMALL * sizeof(struct trace_frame),
	[TRACE_EVENT_NATIVE] = sizeof(struct trace_native) + TRACE_STACK_SMALL * sizeof(__u64),
};

int ring_order_init(struct ring_order *order, uint32_t cpus)
{
	*order = (struct ring_order){ .cpus = calloc(cpus, sizeof(*order->cpus)), .cpus_n = cpus };
	return order->cpus ? 0 : -ENOMEM;
}

void ring_order_done(struct ring_order *order)
{
	free(order->cpus);
	*order = (struct ring_order){ 0 };
}

/*
 * Events may come out of order: a program may be interrupted between taking its number and reserving its
 * record. So a gap may be filled later; the highest number minus the number of events received is right in
 * any order.
 */
static void order_count(struct ring_order *order, const struct trace_header *event)
{
	struct ring_cpu *cpu = &order->cpus[event->cpu];

	order->received++;
	cpu->received++;
	if (event->seq > cpu->highest) {
		order->missing += event->seq - cpu->highest - 1;
		cpu->highest = event->seq;
	} else if (order->missing > 0) {
		order->missing--;
	}
}

/* Whether it has one of the three sizes, and the name ends within it. */
static bool is_named(const struct trace_name *event, uint32_t size)
{
	uint32_t capacity = size - (uint32_t)sizeof(*event);

	return (capacity == TRACE_NAME_SMALL || capacity == TRACE_NAME_MEDIUM ||
		capacity == TRACE_NAME_LARGE) &&
	       event->name_n < capacity && event->name[event->name_n] == '\0';
}

static bool is_code(const struct trace_code *event, uint32_t size)
{
	uint32_t capacity = size - (uint32_t)sizeof(*event);

	return (capacity == TRACE_LINES_SMALL || capacity == TRACE_LINES_LARGE) &&
	       event->lines_n <= capacity && event->name.n <= sizeof(event->name_text) &&
	       event->file.n <= sizeof(event->file_text);
}

static bool is_stack(const struct trace_stack *event, uint32_t size)
{
	uint32_t capacity = (size - (uint32_t)sizeof(*event)) / (uint32_t)sizeof(struct trace_frame);

	return (capacity == TRACE_STACK_SMALL || capacity == TRACE_STACK_LARGE) && event->n <= capacity;
}

static bool is_native(const struct trace_native *event, uint32_t size)
{
	uint32_t capacity = (size - (uint32_t)sizeof(*event)) / (uint32_t)sizeof(event->pcs[0]);

	return (capacity == TRACE_STACK_SMALL || capacity == TRACE_STACK_LARGE) && event->n <= capacity &&
	       event->stop < TRACE_NATIVE_STOPS && event->python < TRACE_STACK_NONES;
}

/* Whether what it counts lies within it. */
static bool holds_what_it_counts(const struct trace_header *event, uint32_t size)
{
	switch (event->type) {
	case TRACE_EVENT_NAME:
		return is_named((const struct trace_name *)event, size);
	case TRACE_EVENT_CODE:
		return is_code((const struct trace_code *)event, size);
	case TRACE_EVENT_STACK:
		return is_stack((const struct trace_stack *)event, size);
	case TRACE_EVENT_NATIVE:
		return is_native((const struct trace_native *)event, size);
	default:
		return true;
	}
}

const struct trace_header *ring_order_take(struct ring_order *order, const void *data, uint32_t size)
{
	const struct trace_header *event = data;

	if (size < sizeof(*event) || event->cpu >= order->cpus_n || event->seq == 0) {
		order->bad++;
		return NULL;
	}
	order_count(order, event);
	if (event->type == TRACE_EVENT_NONE || event->type >= TRACE_EVENTS) {
		order->unknown++;
		return NULL;
	}
	if (size < sizes[event->type] || event->call >= probe_calls() || !holds_what_it_counts(event, size)) {
		order->bad++;
		return NULL;
	}
	order->by_type[event->type]++;
	return event;
}
