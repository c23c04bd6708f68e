// SPDX-License-Identifier: Apache-2.0
/*
 * What several threads have to say of the parts of a file, written in the order of the parts. Whose turn it
 * is writes as it goes; the others keep a bounded amount, and then wait. The lowest part that is under way
 * always has its turn, and whoever has it waits for nobody.
 *
 * A part is one thread's, from its begin to inspect_order_end(), and numbers are taken in order. write() is
 * called by one thread at a time; after its first error nothing is written, and everybody is told of that
 * error.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct inspect_chunk {
	struct strbuf text;
	struct strbuf troubles; /* each an uint64_t, its offset, and a text with its NUL */
	uint64_t troubles_left_out;
};
void inspect_chunk_init(struct inspect_chunk *chunk);
void inspect_chunk_done(struct inspect_chunk *chunk);
void inspect_chunk_reset(struct inspect_chunk *chunk);

struct inspect_kept;
struct inspect_order {
	int (*write)(const struct inspect_chunk *chunk, void *userdata);
	void *userdata;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	_Atomic uint64_t turn; /* changed under the lock by whose turn it is */
	atomic_int error;
	struct inspect_kept *kept; /* parts that have ended before their turn */
	struct inspect_kept *spare;
	unsigned kept_n, spare_n;
	size_t kept_bytes;
};
void inspect_order_init(struct inspect_order *order, int (*write)(const struct inspect_chunk *, void *),
			void *userdata);
void inspect_order_done(struct inspect_order *order);
/* From part 0 again: all have ended. */
void inspect_order_again(struct inspect_order *order);

/*
 * What a part has so far, to be called often: @chunk is written and empty then, or stays as it is. 0, or the
 * error of all.
 */
int inspect_order_more(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk);
/* Waits for its turn. */
int inspect_order_await(struct inspect_order *order, uint64_t part);
/* The last of it; @chunk is empty then. To be called in any case. */
int inspect_order_end(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk);
