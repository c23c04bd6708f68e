// SPDX-License-Identifier: Apache-2.0
/* What one request takes to the server: made by a kind of destination (kind.h), and kept as it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	BATCH_BYTES_MAX = 8 << 20, /* packed */
	BATCHES_MAX = 256, /* of what the agent hands over at once */
};

struct batch {
	uint8_t *data;
	size_t n;
	int64_t real_ns; /* when its samples were taken; 0: as if they were of now */
	uint32_t samples;
	uint32_t format; /* of its kind: see struct push_kind */
};

void batch_done(struct batch *batch);

/* In the order in which they are sent. */
struct batches {
	struct batch list[BATCHES_MAX];
	unsigned n;
};

/* Takes the batch. -EFBIG: there are too many, and it was freed. */
int batches_add(struct batches *batches, struct batch *batch);
void batches_done(struct batches *batches);
