// SPDX-License-Identifier: Apache-2.0
/*
 * The ledger: what a process has allocated and not freed.
 *
 * Looked up by address in the process, on any device and thread. Physical memory (cuMemCreate) and arrays
 * have handles, which may equal addresses: each kind has its own key space. Physical memory is freed by its
 * release or by the end of its last mapping, whichever comes later; mappings themselves are address space,
 * not bytes. Stream-ordered frees count when they are called.
 *
 * Allocations beyond the limit, and invalid ones (an unreadable address, more than 8 TiB), are left out of
 * the sums, and the process is marked: their frees cannot be distinguished from others.
 */
#include "cuda/private.h"

/* More than any device has, and 2^20 such allocations still fit into 64 bits. */
#define SIZE_BELIEVED (UINT64_C(1) << 43)
enum { SLOTS_KEPT = 256 };

static const uint8_t space_of[TRACE_MEMORIES] = {
	[TRACE_MEMORY_DEVICE] = SPACE_ADDRESS,     [TRACE_MEMORY_ASYNC] = SPACE_ADDRESS,
	[TRACE_MEMORY_MANAGED] = SPACE_ADDRESS,    [TRACE_MEMORY_HOST] = SPACE_ADDRESS,
	[TRACE_MEMORY_REGISTERED] = SPACE_ADDRESS, [TRACE_MEMORY_PHYSICAL] = SPACE_PHYSICAL,
	[TRACE_MEMORY_ARRAY] = SPACE_ARRAY,
};

/* ---- rows, in chunks that stay where they are ---- */

static struct allocation *allocation_row(const struct cuda *cuda, uint32_t index)
{
	return &cuda->chunks[index / ALLOCATIONS_CHUNK][index % ALLOCATIONS_CHUNK];
}

static bool new_chunk(struct cuda *cuda)
{
	if (!cuda->chunks) {
		cuda->chunks_n = 0;
		cuda->chunks =
			calloc(cuda->limits.allocations / ALLOCATIONS_CHUNK + 1, sizeof(*cuda->chunks));
		if (!cuda->chunks)
			return false;
	}
	cuda->chunks[cuda->chunks_n] = malloc(ALLOCATIONS_CHUNK * sizeof(**cuda->chunks));
	if (!cuda->chunks[cuda->chunks_n])
		return false;
	cuda->chunks_n++;
	return true;
}

static uint32_t row_take(struct cuda *cuda)
{
	uint32_t index;

	if (cuda->allocations_n >= cuda->limits.allocations)
		return NONE;
	if (cuda->allocation_free) {
		index = cuda->allocation_free - 1;
		cuda->allocation_free = allocation_row(cuda, index)->next_free;
	} else {
		if (cuda->allocations_made == cuda->chunks_n * ALLOCATIONS_CHUNK && !new_chunk(cuda))
			return NONE;
		index = cuda->allocations_made++;
	}
	cuda->allocations_n++;
	memset(allocation_row(cuda, index), 0, sizeof(struct allocation));
	return index;
}

void ledger_done(struct cuda *cuda)
{
	for (uint32_t i = 0; i < cuda->chunks_n; i++)
		free(cuda->chunks[i]);
	free(cuda->chunks);
}

/* ---- adding and removing ---- */

static void link_row(struct cuda *cuda, struct process *p, uint32_t index, uint32_t context)
{
	struct allocation *a = allocation_row(cuda, index);
	struct context *c = &p->contexts[context];

	a->context = (uint16_t)context;
	a->previous = 0;
	a->next = c->allocations;
	if (a->next)
		allocation_row(cuda, a->next - 1)->previous = index + 1;
	c->allocations = index + 1;
}

static void unlink_row(struct cuda *cuda, struct process *p, const struct allocation *a)
{
	if (a->previous)
		allocation_row(cuda, a->previous - 1)->next = a->next;
	else
		p->contexts[a->context].allocations = a->next;
	if (a->next)
		allocation_row(cuda, a->next - 1)->previous = a->previous;
}

/*
 * Otherwise each process would keep its largest table, and the sum of many would exceed the limit of
 * allocations.
 */
static void allocation_shrink(struct hashmap *map)
{
	struct hashmap smaller;

	if (map->mask < SLOTS_KEPT || map->count >= map->mask / 16 ||
	    hashmap_init(&smaller, map->count * 2 + 1) < 0)
		return;
	for (uint32_t i = 0; i <= map->mask; i++)
		if (map->slots[i].used) /* large enough: cannot fail */
			hashmap_put(&smaller, map->slots[i].key, map->slots[i].value);
	hashmap_done(map);
	*map = smaller;
}

/* Device memory of the process, and of all processes on the device. */
static void live_grow(struct cuda *cuda, struct usage *u, uint64_t bytes)
{
	struct total *total = &cuda->totals[u->device];

	u->device_live += bytes;
	total->device_live += bytes;
	u->now[TRACED_PEAK] = MAX(u->now[TRACED_PEAK], u->device_live);
	total->peak = MAX(total->peak, total->device_live);
}

static void live_shrink(struct cuda *cuda, struct usage *u, uint64_t bytes)
{
	u->device_live -= bytes;
	cuda->totals[u->device].device_live -= bytes;
}

static void remove_row(struct cuda *cuda, struct process *p, uint32_t index)
{
	struct allocation *a = allocation_row(cuda, index);
	struct usage *u = &p->usages[a->usage];

	unlink_row(cuda, p, a);
	hashmap_del(&p->memory[a->space], salted(cuda, a->addr));
	allocation_shrink(&p->memory[a->space]);
	if (a->space != SPACE_MAPPING) {
		u->now[TRACED_LIVE_DEVICE + a->kind] -= a->size;
		if (memory_on_device(a->kind))
			live_shrink(cuda, u, a->size);
		if (a->holder)
			holder_remove(p, a->holder - 1, a->size);
		if (a->kind == TRACE_MEMORY_ARRAY && a->size == 0)
			u->unsized--;
	}
	a->next_free = cuda->allocation_free;
	cuda->allocation_free = index + 1;
	cuda->allocations_n--;
}

static struct allocation *add_row(struct cuda *cuda, struct process *p, uint8_t space, uint64_t addr,
				  uint32_t context)
{
	uint32_t index;
	struct allocation *a;

	if (hashmap_get(&p->memory[space], salted(cuda, addr), &index)) {
		cuda->stats.replaced_allocations++;
		remove_row(cuda, p, index);
	}
	index = row_take(cuda);
	if (index != NONE && hashmap_put(&p->memory[space], salted(cuda, addr), index) < 0) {
		allocation_row(cuda, index)->next_free = cuda->allocation_free;
		cuda->allocation_free = index + 1;
		cuda->allocations_n--;
		index = NONE;
	}
	if (index == NONE) {
		cuda->stats.overflow[CUDA_LIMIT_ALLOCATIONS]++;
		p->incomplete |= TRACED_INCOMPLETE_LIMIT;
		return NULL;
	}
	a = allocation_row(cuda, index);
	a->space = space;
	a->addr = addr;
	link_row(cuda, p, index, context);
	return a;
}

static void ledger_allocate(struct cuda *cuda, struct process *p, const struct trace_call *call,
			    uint32_t context)
{
	uint32_t index = p->contexts[context].usage;
	struct usage *u = &p->usages[index];
	struct allocation *a;

	usage_count(u, TRACED_ALLOCATIONS, 1);
	if (call->header.flags & TRACE_FLAG_NO_RESULT)
		return; /* whether it has an address is unknown */
	if (call->addr == 0 && call->size == 0 && !(call->header.flags & TRACE_FLAG_UNREAD))
		return; /* nothing was requested */
	if (call->addr == 0 || call->size > SIZE_BELIEVED || (call->header.flags & TRACE_FLAG_UNREAD)) {
		cuda->stats.overflow[CUDA_LIMIT_ALLOCATIONS]++;
		p->incomplete |= TRACED_INCOMPLETE_LIMIT;
		return;
	}
	a = add_row(cuda, p, space_of[call->kind], call->addr, context);
	if (!a)
		return;
	a->size = call->size;
	a->kind = (uint8_t)call->kind;
	a->usage = (uint16_t)index;
	u->now[TRACED_LIVE_DEVICE + call->kind] += call->size;
	u->peaks[call->kind] = MAX(u->peaks[call->kind], u->now[TRACED_LIVE_DEVICE + call->kind]);
	u->unsized += call->kind == TRACE_MEMORY_ARRAY && call->size == 0;
	if (!memory_on_device(a->kind))
		return;
	live_grow(cuda, u, call->size);
	a->holder = holder_add(cuda, p, call->header.tid, call->size) + 1; /* NONE plus one is 0 */
}

static void ledger_release(struct cuda *cuda, struct process *p, const struct trace_call *call,
			   uint32_t context)
{
	struct allocation *a;
	uint32_t index;

	if (call->addr == 0)
		return; /* valid, but frees nothing */
	usage_count(usage_of(p, context), TRACED_FREES, 1);
	if (!hashmap_get(&p->memory[space_of[call->kind]], salted(cuda, call->addr), &index)) {
		cuda->stats.unknown_frees++;
		return;
	}
	a = allocation_row(cuda, index);
	if (a->space == SPACE_PHYSICAL && a->mappings > 0)
		a->released = true;
	else
		remove_row(cuda, p, index);
}

/* ---- mappings ---- */

static void ledger_map(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	struct allocation *a;
	uint32_t index;

	if (call->size == 0 || call->size > SIZE_BELIEVED ||
	    !hashmap_get(&p->memory[SPACE_PHYSICAL], salted(cuda, call->handle), &index))
		return;
	allocation_row(cuda, index)->mappings++;
	a = add_row(cuda, p, SPACE_MAPPING, call->addr, CONTEXT_UNKNOWN);
	if (!a) {
		allocation_row(cuda, index)->mappings--;
		return;
	}
	a->size = call->size;
	a->handle = call->handle;
}

static void unmap_one(struct cuda *cuda, struct process *p, uint32_t index)
{
	uint64_t handle = allocation_row(cuda, index)->handle;
	struct allocation *a;
	uint32_t behind;

	remove_row(cuda, p, index);
	if (!hashmap_get(&p->memory[SPACE_PHYSICAL], salted(cuda, handle), &behind))
		return;
	a = allocation_row(cuda, behind);
	a->mappings -= a->mappings > 0;
	if (a->released && a->mappings == 0)
		remove_row(cuda, p, behind);
}

/* One call may end several adjacent mappings. */
static void ledger_unmap(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint64_t at = call->addr, end = add_saturated(call->addr, call->size);
	uint32_t index;

	while (at < end && hashmap_get(&p->memory[SPACE_MAPPING], salted(cuda, at), &index)) {
		at = add_saturated(at, allocation_row(cuda, index)->size);
		unmap_one(cuda, p, index);
	}
}

/* ---- implicit frees ---- */

/*
 * A destroyed context frees what was allocated in it; pools belong to the device and are freed by its reset;
 * physical memory belongs to the process.
 */
static bool goes_with(const struct allocation *a, bool reset)
{
	if (a->space == SPACE_MAPPING || a->kind == TRACE_MEMORY_PHYSICAL)
		return false;
	return reset || a->kind != TRACE_MEMORY_ASYNC;
}

static void allocation_drop(struct cuda *cuda, struct process *p, uint32_t context, bool all, bool reset)
{
	uint32_t next;

	for (uint32_t at = p->contexts[context].allocations; at; at = next) {
		struct allocation *a = allocation_row(cuda, at - 1);

		next = a->next;
		if (all || goes_with(a, reset)) {
			cuda->stats.implicit_frees += a->space != SPACE_MAPPING;
			leaked_add(p, a);
			remove_row(cuda, p, at - 1);
		} else {
			unlink_row(cuda, p, a);
			link_row(cuda, p, at - 1, CONTEXT_UNKNOWN);
		}
	}
}

void ledger_drop(struct cuda *cuda, struct process *p, uint32_t context, bool reset)
{
	if (context != NONE) {
		allocation_drop(cuda, p, context, false, reset);
		return;
	}
	for (uint32_t i = 0; i < p->contexts_n; i++)
		allocation_drop(cuda, p, i, true, true);
}

void ledger_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	uint32_t context = context_current(cuda, p, &call->header), stream;

	switch (call->header.op) {
	case TRACE_OP_MAP:
		ledger_map(cuda, p, call);
		return;
	case TRACE_OP_UNMAP:
		ledger_unmap(cuda, p, call);
		return;
	default:
		break;
	}
	if (call->kind >= TRACE_MEMORIES)
		return;
	if (call->kind == TRACE_MEMORY_ASYNC) {
		stream = stream_of(cuda, p, &call->header, call->stream, context);
		if (stream != NONE && stream_at(p, stream)->capture)
			return; /* a node of a graph */
		if (stream != NONE && stream_at(p, stream)->context != CONTEXT_UNKNOWN)
			context = stream_at(p, stream)->context;
	}
	if (call->header.op == TRACE_OP_ALLOC)
		ledger_allocate(cuda, p, call, context);
	else
		ledger_release(cuda, p, call, context);
}
