// SPDX-License-Identifier: Apache-2.0
#include "nccl/private.h"

#include <stdlib.h>

struct communicator *communicator_find(struct nccl_traced *p, uint64_t handle)
{
	if (p->last < p->communicators_n && p->communicators[p->last].shown.handle == handle &&
	    !p->communicators[p->last].shown.ended)
		return &p->communicators[p->last];
	for (uint32_t i = p->communicators_n; i-- > 0;)
		if (p->communicators[i].shown.handle == handle && !p->communicators[i].shown.ended) {
			p->last = i;
			return &p->communicators[i];
		}
	return NULL;
}

/* The oldest one that has ended; NULL: none has. */
static struct communicator *communicator_ended(struct nccl_traced *p)
{
	for (uint32_t i = 0; i < p->communicators_n; i++)
		if (p->communicators[i].shown.ended)
			return &p->communicators[i];
	return NULL;
}

static struct communicator *communicator_place(struct nccl_traced *p, bool keep)
{
	struct communicator *ended = keep ? NULL : communicator_ended(p), *grown;
	uint32_t room = p->communicators_room ? p->communicators_room * 2 : 4;

	if (ended)
		return ended;
	if (p->communicators_n == NCCL_COMMUNICATORS_MAX)
		return communicator_ended(p);
	if (p->communicators_n == p->communicators_room) {
		grown = reallocarray(p->communicators, room, sizeof(*grown));
		if (!grown)
			return NULL;
		p->communicators = grown;
		p->communicators_room = room;
	}
	return &p->communicators[p->communicators_n++];
}

struct communicator *communicator_make(struct nccl_traced *p, uint64_t handle, bool keep)
{
	struct communicator *c = communicator_find(p, handle);

	/* Its end was not seen. */
	if (c)
		c->shown.ended = true;
	c = communicator_place(p, keep);
	if (c)
		*c = (struct communicator){ .shown = { .handle = handle, .rank = NCCL_RANK_UNKNOWN } };
	return c;
}

struct communicator *communicator_get(struct nccl_traced *p, uint64_t handle, bool keep)
{
	struct communicator *c = communicator_find(p, handle);

	if (c)
		return c;
	c = communicator_make(p, handle, keep);
	if (c)
		c->shown.late = true;
	return c;
}
