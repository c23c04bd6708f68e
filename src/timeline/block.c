// SPDX-License-Identifier: Apache-2.0
#include "timeline/block.h"

#include <stdlib.h>
#include <string.h>

struct timeline_block *timeline_block_new(const void *data, size_t n)
{
	struct timeline_block *block = malloc(sizeof(*block) + n);

	if (!block)
		return NULL;
	*block = (struct timeline_block){ .refs = 1, .n = n };
	memcpy(block->data, data, n);
	return block;
}

struct timeline_block *timeline_block_ref(struct timeline_block *block)
{
	atomic_fetch_add(&block->refs, 1);
	return block;
}

void timeline_block_unref(struct timeline_block *block)
{
	if (block && atomic_fetch_sub(&block->refs, 1) == 1)
		free(block);
}
