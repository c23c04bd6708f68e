// SPDX-License-Identifier: Apache-2.0
#include "nccl/nccl.h"

#include <stdlib.h>

#include "base/saturated.h"
#include "nccl/private.h"

enum { IN_PROGRESS = 7 }; /* ncclInProgress */

/* ---- identities ---- */

struct hash {
	uint64_t a, b;
};

static void hash_add(struct hash *h, uint64_t value, uint64_t bytes)
{
	h->a ^= bytes;
	h->a += h->b;
	h->b ^= h->a;
	h->a ^= h->a >> 31;
	h->a *= UINT64_C(0x9de62bbc8cef3ce3);
	h->b ^= h->b >> 32;
	h->b *= UINT64_C(0x485cd6311b599e79);
	h->a += value;
}

static uint64_t hash_end(const struct hash *h)
{
	uint64_t x = h->a ^ h->a >> 31;

	x *= UINT64_C(0xbac3bd562846de6b);
	x += h->b;
	x ^= x >> 32;
	return x * UINT64_C(0x995a187a14e7b445);
}

uint64_t nccl_child_id(uint64_t parent, uint32_t count, uint32_t color)
{
	struct hash hash = { 1, 1 };

	hash_add(&hash, parent, sizeof(parent));
	hash_add(&hash, count, sizeof(count));
	hash_add(&hash, color, sizeof(color));
	return hash_end(&hash);
}

/* ---- processes ---- */

static void traced_free(struct nccl_traced *p)
{
	if (!p)
		return;
	free(p->communicators);
	free(p->sizes);
	free(p);
}

void nccl_index_again(struct nccl *nccl)
{
	hashmap_clear(&nccl->by_tgid);
	for (uint32_t i = 0; i < nccl->processes_n; i++)
		if (!nccl->processes[i]->over)
			hashmap_put(&nccl->by_tgid, nccl->processes[i]->tgid, i);
}

void nccl_forget(struct nccl *nccl, uint32_t i)
{
	nccl->series_used -= nccl->processes[i]->has_series;
	traced_users_give(nccl->users, TRACED_TABLE_NCCL, nccl->processes[i]->user, 1);
	traced_free(nccl->processes[i]);
	nccl->processes[i] = nccl->processes[--nccl->processes_n];
}

static struct nccl_traced *traced_find(const struct nccl *nccl, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&nccl->by_tgid, tgid, &i) ? nccl->processes[i] : NULL;
}

const struct nccl_communicator *nccl_communicator(const struct nccl *nccl, uint32_t tgid, uint64_t handle)
{
	struct nccl_traced *p = traced_find(nccl, tgid);
	const struct communicator *c = p ? communicator_find(p, handle) : NULL;

	return c ? &c->shown : NULL;
}

static struct nccl_traced *traced_get(struct nccl *nccl, const struct trace_call *call)
{
	struct nccl_traced *p = traced_find(nccl, call->header.tgid);
	uint32_t user;

	if (p || nccl->processes_n == NCCL_PROCESSES_MAX ||
	    traced_users_enter(nccl->users, TRACED_TABLE_NCCL, call->header.tgid, &user) < 0)
		return p;
	p = calloc(1, sizeof(*p));
	if (p)
		p->sizes = calloc(1, sizeof(*p->sizes));
	if (!p || !p->sizes || hashmap_put(&nccl->by_tgid, call->header.tgid, nccl->processes_n) < 0) {
		traced_users_give(nccl->users, TRACED_TABLE_NCCL, user, 1);
		traced_free(p);
		return NULL;
	}
	p->user = user;
	p->tgid = call->header.tgid;
	p->incarnation = incarnations_of(&nccl->incarnations, p->tgid);
	p->first_ns = add_saturated(call->header.time_ns, call->duration_ns);
	p->has_series = nccl->series_used < nccl->series;
	nccl->series_used += p->has_series;
	nccl->processes[nccl->processes_n++] = p;
	return p;
}

static void traced_end(struct nccl *nccl, struct nccl_traced *p)
{
	p->over = true;
	hashmap_del(&nccl->by_tgid, p->tgid);
	for (uint32_t i = 0; i < p->communicators_n; i++)
		p->communicators[i].shown.ended = true;
}

void nccl_lost(struct nccl *nccl, uint32_t tgid)
{
	for (uint32_t i = 0; i < nccl->processes_n; i++) {
		struct nccl_traced *p = nccl->processes[i];

		for (uint32_t k = 0; (tgid == 0 || p->tgid == tgid) && k < p->communicators_n; k++)
			p->communicators[k].shown.late = true;
	}
}

void nccl_process_over(struct nccl *nccl, uint32_t tgid, uint64_t incarnation)
{
	struct nccl_traced *p = traced_find(nccl, tgid);

	if (p && incarnation_is(p->incarnation, incarnation))
		traced_end(nccl, p);
}

static void on_process(struct nccl *nccl, const struct trace_header *event, uint32_t size)
{
	struct nccl_traced *p = traced_find(nccl, event->tgid);

	incarnations_event(&nccl->incarnations, event, size);
	if (p && incarnation_ends(&p->incarnation, p->first_ns, event, size))
		traced_end(nccl, p);
}

/* ---- operations ---- */

static uint32_t size_slot(struct nccl *nccl, uint32_t ranks)
{
	for (uint32_t i = 0; i < nccl->sizes_n; i++)
		if (nccl->ranks[i] == ranks)
			return i;
	if (nccl->sizes_n == NCCL_SIZES_MAX - 1 || ranks == NCCL_RANKS_OTHER)
		return NCCL_SIZES_MAX - 1;
	nccl->ranks[nccl->sizes_n] = ranks;
	return nccl->sizes_n++;
}

static enum nccl_operation operation_of(const struct trace_header *event)
{
	static const uint8_t of[] = {
#define OF(id_) [TRACE_OP_NCCL_##id_ - TRACE_OP_NCCL_FIRST] = NCCL_##id_
		OF(ALL_REDUCE), OF(REDUCE), OF(REDUCE_SCATTER), OF(BROADCAST), OF(ALL_GATHER),
		OF(ALL_TO_ALL), OF(GATHER), OF(SCATTER),        OF(SEND),      OF(RECV),
		OF(PUT),        OF(SIGNAL), OF(WAIT_SIGNAL),
#undef OF
	};

	return of[event->op - TRACE_OP_NCCL_FIRST];
}

static void count(struct counts *counts, const struct trace_call *call, uint64_t traffic)
{
	if (call->result != 0) {
		counts->failed++;
		return;
	}
	counts->calls++;
	counts->grouped += (call->header.flags & TRACE_FLAG_GROUPED) != 0;
	counts->bytes = add_saturated(counts->bytes, call->size);
	counts->traffic = add_saturated(counts->traffic, traffic);
	counts->seconds += (double)call->duration_ns / 1e9;
}

static void on_operation(struct nccl *nccl, struct nccl_traced *p, const struct trace_call *call)
{
	enum nccl_operation operation = operation_of(&call->header);
	struct communicator *c = p ? communicator_get(p, call->addr, nccl->keep) : NULL;
	uint32_t ranks = c ? c->shown.ranks : NCCL_RANKS_UNKNOWN, slot = size_slot(nccl, ranks);
	uint64_t traffic =
		nccl_operation_is_per_rank(operation) ? multiply_saturated(call->size, ranks) : call->size;

	count(&nccl->totals.at[slot][operation], call, traffic);
	if (!p) {
		nccl->beyond++;
		return;
	}
	count(&p->sizes->at[slot][operation], call, traffic);
	if (call->result != 0)
		return;
	if (!c) {
		p->left_out++;
		return;
	}
	c->operations++;
	if (operation < NCCL_SEND)
		c->shown.sequence++;
	else
		c->shown.point_to_point++;
}

bool nccl_is_collective(const struct trace_header *event)
{
	return nccl_is_event(event) && event->op <= TRACE_OP_NCCL_LAST_MOVING &&
	       operation_of(event) < NCCL_SEND;
}

/* ---- communicators ---- */

static void on_made(struct nccl *nccl, struct nccl_traced *p, const struct trace_call *call)
{
	struct communicator *parent, *made;
	struct nccl_communicator new = { .rank = (int32_t)call->other };

	if (call->header.flags & TRACE_FLAG_NO_RESULT)
		return;
	switch (call->header.op) {
	case TRACE_OP_NCCL_INIT:
		new.id = call->header.flags &TRACE_FLAG_UNREAD ? 0 : call->addr;
		new.ranks = call->kind;
		break;
	case TRACE_OP_NCCL_INIT_ALL:
		new.ranks = call->kind;
		break;
	default:
		parent = communicator_get(p, call->addr, nccl->keep);
		if (!parent)
			return;
		new.rank = NCCL_RANK_UNKNOWN;
		if (call->header.op == TRACE_OP_NCCL_SPLIT)
			parent->children++;
		if (call->header.op != TRACE_OP_NCCL_GROW && parent->shown.id && !parent->shown.late)
			new.id = call->header.op == TRACE_OP_NCCL_SPLIT ?
					 nccl_child_id(parent->shown.id, parent->children, call->kind) :
					 nccl_child_id(parent->shown.id, 0, 0);
		if (call->header.op == TRACE_OP_NCCL_GROW)
			new.ranks = call->kind;
		else if (call->header.op == TRACE_OP_NCCL_SHRINK && parent->shown.ranks > call->kind)
			new.ranks = parent->shown.ranks - call->kind;
	}
	made = call->handle ? communicator_make(p, call->handle, nccl->keep) : NULL;
	if (!made)
		return;
	new.handle = call->handle;
	made->shown = new;
}

/* What the program asks of a communicator, and is told. */
static void on_asked(struct nccl *nccl, struct nccl_traced *p, const struct trace_call *call)
{
	struct communicator *c = communicator_get(p, call->addr, nccl->keep);

	if (!c || call->header.flags & (TRACE_FLAG_NO_RESULT | TRACE_FLAG_UNREAD))
		return;
	if (call->header.op == TRACE_OP_NCCL_COUNT)
		c->shown.ranks = call->kind;
	else if (call->header.op == TRACE_OP_NCCL_USER_RANK)
		c->shown.rank = (int32_t)call->kind;
	else if (call->kind != 0 && call->kind != IN_PROGRESS)
		c->shown.async_error = (int32_t)call->kind;
}

static void on_ended(struct nccl_traced *p, const struct trace_call *call)
{
	struct communicator *c = communicator_find(p, call->addr);

	if (c)
		c->shown.ended = true;
}

static void on_group_end(struct nccl *nccl, struct nccl_traced *p, const struct trace_call *call)
{
	uint64_t end_ns = add_saturated(call->header.time_ns, call->duration_ns);
	double seconds = end_ns > call->stream ? (double)(end_ns - call->stream) / 1e9 : 0;

	/* Not the outermost, or of a group that began before it was traced. */
	if (call->other != 1 || call->stream == 0)
		return;
	nccl->groups++;
	nccl->group_seconds += seconds;
	if (!p)
		return;
	p->groups++;
	p->group_operations = add_saturated(p->group_operations, call->handle);
	p->group_seconds += seconds;
}

static void on_call(struct nccl *nccl, const struct trace_call *call)
{
	struct nccl_traced *p = traced_get(nccl, call);
	bool failed = call->result != 0;

	if (call->header.op <= TRACE_OP_NCCL_LAST_MOVING)
		return on_operation(nccl, p, call);
	if (call->header.op == TRACE_OP_NCCL_GROUP_END)
		return on_group_end(nccl, p, call);
	if (!p || failed)
		return;
	switch (call->header.op) {
	case TRACE_OP_NCCL_INIT:
	case TRACE_OP_NCCL_INIT_ALL:
	case TRACE_OP_NCCL_SPLIT:
	case TRACE_OP_NCCL_SHRINK:
	case TRACE_OP_NCCL_GROW:
		return on_made(nccl, p, call);
	case TRACE_OP_NCCL_COUNT:
	case TRACE_OP_NCCL_USER_RANK:
	case TRACE_OP_NCCL_ASYNC_ERROR:
		return on_asked(nccl, p, call);
	case TRACE_OP_NCCL_DESTROY:
	case TRACE_OP_NCCL_ABORT:
		return on_ended(p, call);
	default: /* only counted */
		return;
	}
}

bool nccl_is_event(const struct trace_header *event)
{
	return event->type == TRACE_EVENT_CALL && event->op >= TRACE_OP_NCCL_FIRST &&
	       event->op <= TRACE_OP_NCCL_LAST;
}

void nccl_event(struct nccl *nccl, const struct trace_header *event, uint32_t size)
{
	if (nccl_is_event(event) && size >= sizeof(struct trace_call))
		on_call(nccl, (const struct trace_call *)event);
	else if (event->type == TRACE_EVENT_PROCESS || event->type == TRACE_EVENT_EXEC ||
		 event->type == TRACE_EVENT_EXIT)
		on_process(nccl, event, size);
}

void nccl_share(struct nccl *nccl, struct traced_users *users)
{
	nccl->users = users;
	traced_users_room(users, TRACED_TABLE_NCCL, NCCL_PROCESSES_MAX);
}

struct nccl *nccl_new(uint32_t series, bool keep)
{
	struct nccl *nccl = calloc(1, sizeof(*nccl));

	if (!nccl)
		return NULL;
	nccl->series = series;
	nccl->keep = keep;
	nccl->ranks[NCCL_SIZES_MAX - 1] = NCCL_RANKS_OTHER;
	nccl->sizes_n = 1; /* NCCL_RANKS_UNKNOWN */
	return nccl;
}

void nccl_free(struct nccl *nccl)
{
	for (uint32_t i = 0; nccl && i < nccl->processes_n; i++)
		traced_free(nccl->processes[i]);
	if (nccl)
		hashmap_done(&nccl->by_tgid);
	free(nccl);
}
