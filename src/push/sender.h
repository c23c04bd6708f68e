// SPDX-License-Identifier: Apache-2.0
/*
 * Batches to the server, one after the other, the oldest first. One that is not taken at once is kept in the
 * queue, so that the end of the process or of the machine does not lose it, and tried five times at growing
 * distances, not before the server wants it; then nothing is tried until the next batch comes.
 *
 * Of a status of 400 to 499 nothing is tried again at once: 401, 403, 404 and the like are about who asks, so
 * the batch waits as after other failures; any other is about the batch, which is dropped and counted.
 */
#pragma once

#include "push/batch.h"
#include "push/post.h"
#include "push/queue.h"

struct sender;

/* Of batches and requests since sender_take_figures() was last called, and how things stand. */
struct sender_figures {
	enum push_outcome outcome;
	const char *error; /* borrowed; "" */
	uint64_t sent, queued, refused;
	uint64_t refused_samples; /* of those, and of batches that were taken in part */
	uint64_t failures[NET_FAILURES];
	uint64_t lost; /* that could be neither sent nor kept */
	uint64_t full; /* of which there is no room for even one */
};

/* Borrows all; @state is the kind's. @queue may be NULL: nothing can be kept. -ENOMEM. */
int sender_new(const struct push_kind *kind, void *state, struct post *post, struct queue *queue,
	       struct sender **ret_sender);
void sender_free(struct sender *sender);
DEFINE_CLEANUP(struct sender *, sender_free, sender_freep)

/* @key "": there is none. @waits: nothing is sent for now. */
void sender_set_key(struct sender *sender, const char *key, bool waits);
/* Batches to send, which are @sender's from now on. */
void sender_put(struct sender *sender, struct batches *batches);
/* Goes on. Returns when to call it again at the latest, monotonic clock. */
int64_t sender_step(struct sender *sender, int64_t now_ns);
/* Whether something is under way, or is tried before the next batch comes. */
bool sender_is_busy(const struct sender *sender);
void sender_take_figures(struct sender *sender, struct sender_figures *ret_figures);

/* How long after the attempt @attempts (1 ..) the next one is, @random of 0 to 1. */
int64_t sender_delay_ns(unsigned attempts, double random);
/* Whether an answer of this status is about the batch itself, which no later request changes. */
bool sender_is_refusal(long status);
