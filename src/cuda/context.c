// SPDX-License-Identifier: Apache-2.0
/*
 * Contexts of a process, and which one is current in each thread.
 *
 * The driver has a stack of contexts for each thread (push, pop; set replaces the top); the runtime's
 * cudaSetDevice makes the primary context of a device current. A thread for which neither was seen uses
 * device 0 if it calls the runtime and the process was traced from its beginning, else the unknown context:
 * index 0, CONTEXT_UNKNOWN. A context whose creation was not seen has an unknown ordinal; device.c tries to
 * determine its device.
 */
#include "cuda/private.h"

#include <errno.h>

int context_setup(struct process *p)
{
	p->contexts = calloc(2, sizeof(*p->contexts));
	if (!p->contexts)
		return -ENOMEM;
	p->contexts_room = 2;
	p->contexts_n = 1;
	p->contexts[CONTEXT_UNKNOWN] = (struct context){ .ordinal = ORDINAL_UNKNOWN, .legacy = NONE };
	return 0;
}

static uint32_t no_room(struct cuda *cuda, struct process *p)
{
	cuda->stats.overflow[CUDA_LIMIT_CONTEXTS]++;
	p->incomplete |= TRACED_INCOMPLETE_LIMIT;
	return CONTEXT_UNKNOWN;
}

static uint32_t context_new(struct cuda *cuda, struct process *p, uint64_t handle, int32_t ordinal)
{
	uint32_t limit = cuda->limits.contexts + 1, index = 1, room;
	struct context *contexts;

	while (index < p->contexts_n && !p->contexts[index].gone)
		index++;
	if (index == p->contexts_n) {
		if (p->contexts_n >= limit)
			return no_room(cuda, p);
		if (p->contexts_n == p->contexts_room) {
			room = MIN(p->contexts_room * 2, limit);
			contexts = realloc(p->contexts, room * sizeof(*contexts));
			if (!contexts)
				return no_room(cuda, p);
			p->contexts = contexts;
			p->contexts_room = room;
		}
		p->contexts_n++;
	}
	p->contexts[index] = (struct context){ .handle = handle, .ordinal = ordinal, .legacy = NONE };
	if (handle != 0 && hashmap_put(&p->context_map, salted(cuda, handle), index) < 0)
		p->contexts[index].handle = 0;
	device_resolve(cuda, p);
	return index;
}

/* The primary context of a device. */
static uint32_t context_primary(struct cuda *cuda, struct process *p, uint32_t ordinal)
{
	uint32_t index;

	if (ordinal > INT32_MAX)
		return CONTEXT_UNKNOWN;
	for (uint32_t i = 1; i < p->contexts_n; i++)
		if (p->contexts[i].primary && !p->contexts[i].gone &&
		    p->contexts[i].ordinal == (int32_t)ordinal)
			return i;
	index = context_new(cuda, p, 0, (int32_t)ordinal);
	if (index != CONTEXT_UNKNOWN)
		p->contexts[index].primary = true;
	return index;
}

static uint32_t by_handle(struct cuda *cuda, struct process *p, uint64_t handle)
{
	uint32_t index;

	if (handle == 0)
		return CONTEXT_UNKNOWN;
	if (hashmap_get(&p->context_map, salted(cuda, handle), &index))
		return index;
	return context_new(cuda, p, handle, ORDINAL_UNKNOWN);
}

/* ---- threads ---- */

struct thread *thread_find(struct cuda *cuda, struct process *p, uint32_t tid)
{
	struct thread *t;
	uint32_t index;

	if (!hashmap_get(&p->thread_map, salted(cuda, tid), &index))
		return NULL;
	t = pool_at(&p->threads, index);
	t->used = true;
	return t;
}

/* The end of a thread is not traced, so the least recently used one, approximately, is removed. */
static void thread_evict(struct cuda *cuda, struct process *p)
{
	for (;;) {
		uint32_t at = p->thread_hand++ % p->threads.n;
		struct thread *t = pool_at(&p->threads, at);

		if (t->used) {
			t->used = false;
			continue;
		}
		cuda->stats.overflow[CUDA_LIMIT_THREADS]++;
		p->incomplete |= TRACED_INCOMPLETE_LIMIT;
		hashmap_del(&p->thread_map, salted(cuda, t->tid));
		pool_give(&p->threads, at);
		return;
	}
}

struct thread *thread_get(struct cuda *cuda, struct process *p, uint32_t tid)
{
	struct thread *t = thread_find(cuda, p, tid);
	uint32_t index;

	if (t)
		return t;
	if (p->threads.used > 0 && p->threads.used >= cuda->limits.threads)
		thread_evict(cuda, p);
	index = pool_take(&p->threads, sizeof(*t), cuda->limits.threads);
	if (index == NONE)
		return NULL;
	t = pool_at(&p->threads, index);
	t->tid = tid;
	t->used = true;
	if (hashmap_put(&p->thread_map, salted(cuda, tid), index) < 0) {
		pool_give(&p->threads, index);
		return NULL;
	}
	return t;
}

static void context_push(struct cuda *cuda, struct process *p, uint32_t tid, uint32_t context, bool replace)
{
	struct thread *t = thread_get(cuda, p, tid);

	if (!t)
		return;
	if (replace && t->depth > 0)
		t->depth--;
	if (t->depth == STACK_MAX) {
		memmove(t->stack, t->stack + 1, sizeof(t->stack) - sizeof(t->stack[0]));
		t->depth--;
		cuda->stats.overflow[CUDA_LIMIT_CONTEXTS]++;
	}
	t->stack[t->depth++] = (uint16_t)context;
}

static void context_pop(struct cuda *cuda, struct process *p, uint32_t tid)
{
	struct thread *t = thread_find(cuda, p, tid);

	if (t && t->depth > 0)
		t->depth--;
}

uint32_t context_current(struct cuda *cuda, struct process *p, const struct trace_header *header)
{
	const struct thread *t = thread_find(cuda, p, header->tid);

	if (t && t->depth > 0)
		return t->stack[t->depth - 1];
	/* Before it was traced a thread may have chosen another device than the default one. */
	if ((header->flags & TRACE_FLAG_RUNTIME) && !(p->incomplete & TRACED_INCOMPLETE_LATE))
		return context_primary(cuda, p, 0);
	return CONTEXT_UNKNOWN;
}

/* ---- ends ---- */

/* No thread has it current any more; their current contexts become unknown. */
static void forget_current(struct process *p, uint32_t context)
{
	for (uint32_t i = 0; i < p->threads.n; i++) {
		struct thread *t = pool_at(&p->threads, i);

		for (unsigned k = 0; k < t->depth && k < STACK_MAX; k++)
			if (t->stack[k] == context)
				t->depth = 0;
	}
}

static void context_destroyed(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index;
	struct thread *t = thread_find(cuda, p, call->header.tid);

	if (!hashmap_get(&p->context_map, salted(cuda, call->handle), &index))
		return;
	streams_drop(cuda, p, index, returned_ns(call));
	ledger_drop(cuda, p, index, false);
	hashmap_del(&p->context_map, salted(cuda, call->handle));
	if (t && t->depth > 0 && t->stack[t->depth - 1] == index)
		t->depth--;
	forget_current(p, index);
	p->contexts[index].gone = true;
}

/* Frees the resources of a primary context, which is created again at its next use. */
static void context_reset(struct cuda *cuda, struct process *p, uint32_t context,
			  const struct trace_call *call, bool device)
{
	streams_drop(cuda, p, context, returned_ns(call));
	ledger_drop(cuda, p, context, device);
	p->contexts[context].retains = 0;
}

/* The last reference is only known if all were traced; the runtime also holds one. */
static void context_release(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index = context_primary(cuda, p, call->kind);
	struct context *c = &p->contexts[index];

	if (index == CONTEXT_UNKNOWN || c->retains == 0)
		return;
	if (--c->retains == 0 && !p->runtime && p->incomplete == 0)
		context_reset(cuda, p, index, call, false);
}

static void context_retain(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index;
	struct context *c;

	if (call->handle != 0 && hashmap_get(&p->context_map, salted(cuda, call->handle), &index) &&
	    p->contexts[index].ordinal == ORDINAL_UNKNOWN && call->kind <= INT32_MAX) {
		p->contexts[index].ordinal = (int32_t)call->kind;
		p->contexts[index].primary = true;
		device_resolve(cuda, p);
	}
	index = context_primary(cuda, p, call->kind);
	c = &p->contexts[index];
	if (index == CONTEXT_UNKNOWN)
		return;
	c->retains++;
	if (call->handle != 0 && c->handle != call->handle &&
	    hashmap_put(&p->context_map, salted(cuda, call->handle), index) == 0) {
		if (c->handle != 0)
			hashmap_del(&p->context_map, salted(cuda, c->handle));
		c->handle = call->handle;
	}
}

static void context_create(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t index;

	/* An earlier one with that handle, whose end was not seen. */
	context_destroyed(cuda, p, call);
	index = call->handle ? context_new(cuda, p, call->handle,
					   call->kind <= INT32_MAX ? (int32_t)call->kind : ORDINAL_UNKNOWN) :
			       CONTEXT_UNKNOWN;
	context_push(cuda, p, call->header.tid, index, false);
}

void context_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t tid = call->header.tid, context;

	switch (call->header.op) {
	case TRACE_OP_CONTEXT_CREATE:
		context_create(cuda, p, call);
		break;
	case TRACE_OP_CONTEXT_RETAIN:
		context_retain(cuda, p, call);
		break;
	case TRACE_OP_CONTEXT_RELEASE:
		context_release(cuda, p, call);
		break;
	case TRACE_OP_CONTEXT_RESET:
		context = context_primary(cuda, p, call->kind);
		if (context != CONTEXT_UNKNOWN)
			context_reset(cuda, p, context, call, true);
		break;
	case TRACE_OP_CONTEXT_DESTROY:
		context_destroyed(cuda, p, call);
		break;
	case TRACE_OP_CONTEXT_SET:
		if (call->handle == 0)
			context_pop(cuda, p, tid);
		else
			context_push(cuda, p, tid, by_handle(cuda, p, call->handle), true);
		break;
	case TRACE_OP_CONTEXT_PUSH:
		context_push(cuda, p, tid, by_handle(cuda, p, call->handle), false);
		break;
	case TRACE_OP_CONTEXT_POP:
		context_pop(cuda, p, tid);
		break;
	case TRACE_OP_DEVICE_SET:
		context_push(cuda, p, tid, context_primary(cuda, p, call->kind), true);
		break;
	case TRACE_OP_DEVICE_RESET:
		context = context_current(cuda, p, &call->header);
		if (context != CONTEXT_UNKNOWN)
			context_reset(cuda, p, context, call, true);
		break;
	default:
		break;
	}
}
