// SPDX-License-Identifier: Apache-2.0
#include "python/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct slot_link *link_of(const struct slots *slots, uint32_t index)
{
	return (struct slot_link *)((char *)slots->entries + index * slots->size);
}

int slots_init(struct slots *slots, uint32_t max, size_t size)
{
	*slots = (struct slots){ .entries = calloc(max, size), .size = size, .max = max };
	return slots->entries ? 0 : -ENOMEM;
}

void slots_done(struct slots *slots)
{
	free(slots->entries);
	hashmap_done(&slots->chains);
}

bool slots_have(const struct slots *slots)
{
	return slots->free || slots->begun < slots->max;
}

int slots_take(struct slots *slots, uint32_t tgid, uint32_t *ret_index)
{
	uint32_t index = slots->free ? slots->free - 1 : slots->begun, first = 0;
	int r;

	hashmap_get(&slots->chains, tgid, &first);
	r = hashmap_put(&slots->chains, tgid, index + 1);
	if (r < 0)
		return r;
	if (slots->free)
		slots->free = link_of(slots, index)->after;
	else
		slots->begun++;
	*link_of(slots, index) = (struct slot_link){ .after = first };
	if (first)
		link_of(slots, first - 1)->before = index + 1;
	*ret_index = index;
	return 0;
}

void slots_give(struct slots *slots, uint32_t tgid, uint32_t index)
{
	struct slot_link *link = link_of(slots, index);

	if (link->after)
		link_of(slots, link->after - 1)->before = link->before;
	if (link->before)
		link_of(slots, link->before - 1)->after = link->after;
	else if (link->after)
		hashmap_put(&slots->chains, tgid, link->after); /* replaces: needs no memory */
	else
		hashmap_del(&slots->chains, tgid);
	memset(link, 0, slots->size);
	link->after = slots->free;
	slots->free = index + 1;
}

bool slots_first(const struct slots *slots, uint32_t tgid, uint32_t *ret_index)
{
	uint32_t first;

	if (!hashmap_get(&slots->chains, tgid, &first))
		return false;
	*ret_index = first - 1;
	return true;
}

uint32_t slots_next(const struct slots *slots, uint32_t *next)
{
	uint32_t index = *next < slots->begun ? *next : 0;

	*next = index + 1;
	return index;
}
