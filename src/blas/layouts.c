// SPDX-License-Identifier: Apache-2.0
#include "blas/layouts.h"

#include <stdlib.h>

#include "base/macro.h"

/* enum cublasLtMatrixLayoutAttribute_t in cublasLt.h */
enum { ATTRIBUTE_TYPE = 0, ATTRIBUTE_ROWS = 2, ATTRIBUTE_COLS = 3, ATTRIBUTE_BATCH_COUNT = 5 };

void layouts_done(struct layouts *layouts)
{
	hashmap_done(&layouts->map);
	hashmap_done(&layouts->computes);
	free(layouts->at);
	*layouts = (struct layouts){ 0 };
}

static bool layouts_grow(struct layouts *layouts)
{
	uint32_t room = layouts->room ? layouts->room * 2 : 16;
	struct layout *at;

	if (layouts->n < layouts->room)
		return true;
	at = reallocarray(layouts->at, room, sizeof(*at));
	if (!at)
		return false;
	layouts->at = at;
	layouts->room = room;
	return true;
}

void layouts_made(struct layouts *layouts, const struct layout *layout)
{
	uint32_t i;

	if (!layout->digest)
		return;
	if (!hashmap_get(&layouts->map, layout->digest, &i)) {
		if (layouts->n < LAYOUTS_MAX) {
			if (!layouts_grow(layouts))
				return;
			i = layouts->n;
		} else {
			i = layouts->hand;
			layouts->hand = (layouts->hand + 1) % LAYOUTS_MAX;
			hashmap_del(&layouts->map, layouts->at[i].digest);
			layouts->at[i].digest = 0;
		}
		if (hashmap_put(&layouts->map, layout->digest, i) < 0)
			return;
		layouts->n += i == layouts->n;
	}
	layouts->at[i] = *layout;
}

const struct layout *layouts_find(const struct layouts *layouts, uint64_t digest)
{
	uint32_t i;

	return digest && hashmap_get(&layouts->map, digest, &i) ? &layouts->at[i] : NULL;
}

void layouts_set(struct layouts *layouts, uint64_t before, uint64_t after, uint32_t attribute, uint64_t value,
		 uint64_t size)
{
	const struct layout *known = layouts_find(layouts, before);
	struct layout changed;

	if (!known || size < 4)
		return;
	changed = *known;
	changed.digest = after;
	if (size < 8)
		value &= UINT32_MAX;
	switch (attribute) {
	case ATTRIBUTE_TYPE:
		changed.type = (uint8_t)MIN(value, (uint64_t)BLAS_TYPE_UNKNOWN);
		break;
	case ATTRIBUTE_ROWS:
		changed.rows = value;
		break;
	case ATTRIBUTE_COLS:
		changed.cols = value;
		break;
	case ATTRIBUTE_BATCH_COUNT:
		changed.batch = value;
		break;
	default: /* order, leading dimension, strides: the sizes stay */
		break;
	}
	layouts_made(layouts, &changed);
}

void layouts_described(struct layouts *layouts, uint64_t digest, uint32_t compute)
{
	uint32_t known;

	if (!digest)
		return;
	compute = MIN(compute, (uint32_t)BLAS_TYPE_UNKNOWN);
	/* Its first bytes do not tell the type, in a version that is not known here. */
	if (hashmap_get(&layouts->computes, digest, &known)) {
		if (known != compute)
			hashmap_put(&layouts->computes, digest, BLAS_TYPE_UNKNOWN);
		return;
	}
	if (layouts->computes_n == DESCRIPTORS_MAX) {
		hashmap_clear(&layouts->computes);
		layouts->computes_n = 0;
	}
	if (hashmap_put(&layouts->computes, digest, compute) == 0)
		layouts->computes_n++;
}

uint8_t layouts_compute(const struct layouts *layouts, uint64_t digest)
{
	uint32_t compute;

	return digest && hashmap_get(&layouts->computes, digest, &compute) ? (uint8_t)compute :
									     BLAS_TYPE_UNKNOWN;
}
