// SPDX-License-Identifier: Apache-2.0
/*
 * Kinds of destinations (model/push_kinds.h): how what the agent hands over becomes batches, and what a
 * request has. All else is the same for all: the queue, attempts, requests, figures.
 *
 * To add one: a row of PUSH_KIND_LIST, a struct push_kind and its row in kind.c, its options and its row in
 * agent/outputs/push_config.c.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "push/batch.h"
#include "push/protocol.h"

struct post_result;

struct push_kind {
	const char *name; /* PUSH_KIND_LIST's */
	const char *section, *url; /* of its options, and which has the address */
	/* Appends to the address that is configured; NULL: nothing. @cluster is escaped. */
	void (*add_path)(struct strbuf *url, const char *cluster);
	const char *key_header; /* "X-API-Key": the header that has the key */
	/* Headers of a request of this format, NULL-terminated. */
	const char *const *(*headers)(uint32_t format);
	/*
	 * Each batch is on the disk before it is first sent, so that the end of the process loses none.
	 * Otherwise one is kept when it was not taken at once.
	 */
	bool keeps_first;
	bool repeats_answers; /* what the server says of a batch that it refuses may be shown */

	/* State of this kind, from then on @state; NULL: it has none. */
	int (*begin)(const struct push_settings *settings, void **ret_state);
	void (*end)(void *state);
	/* What the agent has handed over as batches. Of -errno nothing is in @batches that is not whole. */
	int (*make)(void *state, const void *data, size_t n, struct batches *batches);
	/* What is to be sent last, when the agent ends; NULL: nothing. */
	int (*finish)(void *state, int64_t real_ns, struct batches *batches);
	/* Makes of a batch, which may be of a former process, what this server takes; NULL: it is that. */
	int (*fit)(void *state, struct batch *batch);
	/*
	 * Samples that the server did not take of a batch that it took, by the beginning of its answer,
	 * which is hostile; *ret_words says why. NULL: its answer does not say.
	 */
	uint64_t (*refused)(const uint8_t *answer, size_t n, char *ret_words, size_t size);
	/* True: another form of the batch is to be tried at once, and fit() makes it; NULL: never. */
	bool (*is_unfit)(void *state, const struct batch *batch, const struct post_result *result);
};

extern const struct push_kind *const push_kinds[PUSH_KINDS];
