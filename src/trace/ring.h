// SPDX-License-Identifier: Apache-2.0
/*
 * The user's side of the BPF ring buffer. An own one, because libbpf's maps the data twice over, so that
 * records are never cut in two, and each page counts in resident memory again: here those few that go round
 * the end are copied together instead.
 *
 * Nothing in the ring is believed: lengths are checked against what was produced, types and sizes against
 * bpf/event.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "bpf/event.h"

struct ring {
	uint64_t *consumer; /* positions count bytes since the beginning and never go back */
	const uint64_t *producer;
	const uint8_t *data;
	uint64_t mask; /* size - 1; the size is a power of two */
	void *pages; /* producer's page and data, as mapped; NULL: not ours */
	size_t pages_n;
	uint64_t torn; /* times that a record could not be, and all that was there was skipped */
};

/* Maps the ring of @map_fd, whose data are @bytes long. */
int ring_map(int map_fd, uint32_t bytes, struct ring *ret_ring);
void ring_unmap(struct ring *ring);

/* A record; @data is good during the call only. */
typedef void ring_fn(const void *data, uint32_t size, void *userdata);
/* Hands on the records that are complete, a few times the ring's size at most. Returns how many. */
uint64_t ring_drain(struct ring *ring, ring_fn *fn, void *userdata);
/* More could be read at once. */
bool ring_pending(const struct ring *ring);

/* ---- events in it ---- */

/* Numbers that events carry, by CPU. */
struct ring_order {
	struct ring_cpu {
		uint64_t highest; /* number seen */
		uint64_t received;
	} * cpus;
	uint32_t cpus_n;
	uint64_t received; /* all of them; those of unknown type, too, where their header could be read */
	uint64_t unknown, bad; /* of a type, or of a size or CPU, that cannot be */
	uint64_t missing; /* numbers below the highest that have not come: dropped, or on their way */
};

int ring_order_init(struct ring_order *order, uint32_t cpus);
void ring_order_done(struct ring_order *order);
/*
 * Looks a record over and counts it. The event; NULL: nothing that we know, counted as such. What a known
 * event consists of is there in full; a name in it ends where it says, other texts need not.
 */
const struct trace_header *ring_order_take(struct ring_order *order, const void *data, uint32_t size);
