// SPDX-License-Identifier: Apache-2.0
/*
 * The consumer of the BPF ring buffer. libbpf's consumer maps the data twice, so that no record wraps, which
 * counts each page twice in resident memory. This one maps the data once and copies the few records that
 * wrap.
 *
 * The contents of the ring are not trusted: lengths are checked against the producer's position, types and
 * sizes against bpf/event.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "bpf/stack.h"

struct ring {
	uint64_t *consumer; /* positions count bytes since the start and never decrease */
	const uint64_t *producer;
	const uint8_t *data;
	uint64_t mask; /* size - 1; the size is a power of two */
	void *pages; /* producer's page and data, as mapped; NULL: not mapped */
	size_t pages_n;
	uint64_t torn; /* times that a length was invalid, and all pending records were skipped */
};

/* Maps the ring of @map_fd, which has @bytes of data. */
int ring_map(int map_fd, uint32_t bytes, struct ring *ret_ring);
void ring_unmap(struct ring *ring);

/* A record; @data is valid during the call only. */
typedef void ring_fn(const void *data, uint32_t size, void *userdata);
/* Calls @fn for the complete records, up to a few times the ring's size. Returns their number. */
uint64_t ring_drain(struct ring *ring, ring_fn *fn, void *userdata);
/* Whether a complete record is pending. */
bool ring_pending(const struct ring *ring);

/* ---- events in the ring ---- */

/* Numbers that events carry, by CPU. */
struct ring_order {
	struct ring_cpu {
		uint64_t highest; /* number seen */
		uint64_t received;
	} * cpus;
	uint32_t cpus_n;
	uint64_t received; /* with a readable header, including those of unknown type */
	uint64_t by_type[TRACE_EVENTS]; /* of these, the valid ones */
	uint64_t unknown, bad; /* of unknown type; of an invalid size, CPU or call */
	uint64_t missing; /* numbers below the highest that have not come: dropped, or still to come */
};

int ring_order_init(struct ring_order *order, uint32_t cpus);
void ring_order_done(struct ring_order *order);
/*
 * Validates a record and counts it. Returns the event; NULL: unknown or bad, which is counted. The event has
 * at least the size of its type. A NAME event's name is NUL-terminated at name_n; other texts may not be
 * terminated.
 */
const struct trace_header *ring_order_take(struct ring_order *order, const void *data, uint32_t size);
