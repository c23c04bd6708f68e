// SPDX-License-Identifier: Apache-2.0
/*
 * What a process allocated and never freed, by size. Registered memory is the program's own, and a mapping
 * is no memory. A released physical allocation that is still mapped was freed as far as the program could.
 */
#include "cuda/private.h"

#include <stdlib.h>

static struct traced_size *size_of(struct leaked *leaked, uint64_t bytes)
{
	uint32_t i = leaked->newest;

	if (i < leaked->sizes_n && leaked->sizes[i].bytes == bytes)
		return &leaked->sizes[i];
	for (i = 0; i < leaked->sizes_n; i++)
		if (leaked->sizes[i].bytes == bytes)
			break;
	if (i == LEAKED_SIZES)
		return NULL;
	if (i == leaked->sizes_n)
		leaked->sizes[leaked->sizes_n++] = (struct traced_size){ .bytes = bytes };
	leaked->newest = i;
	return &leaked->sizes[i];
}

void leaked_add(struct process *p, const struct allocation *a)
{
	struct usage *u = &p->usages[a->usage];
	struct traced_size *size;

	if (a->space == SPACE_MAPPING || a->kind == TRACE_MEMORY_REGISTERED || a->released)
		return;
	usage_count(u, TRACED_LEAKED_ALLOCATIONS, 1);
	usage_count(u, TRACED_LEAKED_BYTES, a->size);
	if (!p->leaked)
		p->leaked = calloc(1, sizeof(*p->leaked));
	if (!p->leaked)
		return;
	p->leaked->allocations++;
	p->leaked->bytes = add_saturated(p->leaked->bytes, a->size);
	size = size_of(p->leaked, a->size);
	if (size)
		size->allocations++;
}

static uint64_t all_bytes(const struct traced_size *size)
{
	return multiply_saturated(size->bytes, size->allocations);
}

void leaked_top(const struct process *p, struct traced_process *ret)
{
	const struct leaked *leaked = p->leaked;
	uint32_t n = 0;

	if (!leaked)
		return;
	ret->leaked_allocations = leaked->allocations;
	ret->leaked_bytes = leaked->bytes;
	for (uint32_t i = 0; i < leaked->sizes_n; i++) {
		uint32_t at = n;

		for (; at > 0 && all_bytes(&leaked->sizes[i]) > all_bytes(&ret->leaked[at - 1]); at--)
			if (at < TRACED_SIZES_MAX)
				ret->leaked[at] = ret->leaked[at - 1];
		if (at < TRACED_SIZES_MAX)
			ret->leaked[at] = leaked->sizes[i];
		n += n < TRACED_SIZES_MAX;
	}
	ret->leaked_n = n;
}
