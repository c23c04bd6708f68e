// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the texts of the parts of a file in the order of the parts, while several threads produce them. The
 * thread of the next part in order writes directly; the other threads buffer a bounded amount, then wait. The
 * lowest part in progress is always the next in order, so its thread never waits for another.
 *
 * Each part belongs to one thread until inspect_order_end(), and parts are begun in order. write() is called
 * by one thread at a time; after its first error nothing more is written, and every call returns that error.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct inspect_chunk {
	struct strbuf text;
	struct strbuf errors; /* of each the offset, an uint64_t, and the text with its NUL */
	uint64_t errors_left_out;
};
void inspect_chunk_init(struct inspect_chunk *chunk);
void inspect_chunk_done(struct inspect_chunk *chunk);
void inspect_chunk_reset(struct inspect_chunk *chunk);

struct inspect_pending;
struct inspect_order {
	int (*write)(const struct inspect_chunk *chunk, void *userdata);
	void *userdata;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic uint64_t next_part; /* the next one to be written; changed under the lock by its thread */
	atomic_int error;
	struct inspect_pending *pending; /* parts that have ended but cannot be written yet */
	struct inspect_pending *spare; /* for reuse */
	unsigned pending_n, spare_n;
	size_t pending_bytes;
};
void inspect_order_init(struct inspect_order *order, int (*write)(const struct inspect_chunk *, void *),
			void *userdata);
void inspect_order_done(struct inspect_order *order);
/* Starts again at part 0. All parts must have ended. */
void inspect_order_restart(struct inspect_order *order);

/*
 * Writes and empties @chunk, the text of @part so far, if that is large enough and the part is next in order;
 * to be called after each addition. Waits for the part's turn when the chunk is full. 0, or the first error.
 */
int inspect_order_flush(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk);
/* Waits until @part is the next in order. 0, or the first error. */
int inspect_order_await(struct inspect_order *order, uint64_t part);
/* Ends @part with its remaining text and empties @chunk. Must be called for each part, even after errors. */
int inspect_order_end(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk);
