// SPDX-License-Identifier: Apache-2.0
#include "torch/torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity/incarnations.h"
#include "activity/pool.h"
#include "activity/users.h"
#include "base/hashmap.h"
#include "base/saturated.h"
#include "base/text.h"

#define STEP "Optimizer.step#"

/* An allocation and its operator. */
struct block {
	uint32_t next_free; /* the pool's */
	uint16_t call;
	uint64_t bytes;
};

/* A name that is counted. */
struct row {
	char name[TORCH_LABEL];
	uint64_t count, first_ns, last_ns;
};

struct torch_traced {
	uint32_t tgid, user;
	uint64_t incarnation; /* 0: not known */
	uint64_t first_ns; /* of its first event */
	bool over;
	struct torch_process shown; /* without names' and devices' places, comm */
	struct torch_memory memories[TORCH_DEVICES_MAX];
	struct hashmap blocks, types; /* by address: index in the pool; by type of node: in nodes */
	uint32_t types_n;
	struct row *nodes, *ranges;
	struct traced_operator *operators; /* shown.operators_n of them */
	bool work_known; /* they have what CUDA did for them */
	uint64_t first_step_ns, last_step_ns;
};

struct torch {
	uint32_t series, series_used;
	bool keep, doubtful;
	struct incarnations incarnations;
	struct pool blocks;
	struct traced_users *users; /* borrowed; NULL: all processes are one user's */
	struct torch_traced *processes[TORCH_PROCESSES_MAX];
	uint32_t processes_n;
	struct hashmap by_tgid; /* of those that run */
	uint64_t beyond;
	uint32_t operators_n; /* of all processes */
	struct torch_operator operators[TRACE_CALLS_MAX];
};

/* ---- allocations and their operators ---- */

static void block_end(struct torch *torch, struct torch_traced *p, uint64_t address)
{
	struct torch_operator *operator;
	struct block *block;
	uint32_t index;

	if (!hashmap_get(&p->blocks, address, &index))
		return;
	block = pool_at(&torch->blocks, index);
	operator= & torch->operators[block->call];
	operator->held_bytes -= MIN(operator->held_bytes, block->bytes);
	hashmap_del(&p->blocks, address);
	pool_give(&torch->blocks, index);
	traced_users_give(torch->users, TRACED_TABLE_BLOCKS, p->user, 1);
}

static void block_begin(struct torch *torch, struct torch_traced *p, const struct trace_call *call)
{
	uint16_t of = call->header.operator% TRACE_CALLS_MAX;
	struct torch_operator *operator= & torch->operators[of];
	struct block *block;
	uint32_t index = POOL_NONE;

	block_end(torch, p, call->addr);
	operator->allocated_bytes = add_saturated(operator->allocated_bytes, call->size);
	if (p->blocks.count < TORCH_PROCESS_BLOCKS_MAX &&
	    traced_users_have(torch->users, TRACED_TABLE_BLOCKS, p->user, 1))
		index = pool_take(&torch->blocks, sizeof(*block), TORCH_BLOCKS_MAX);
	if (index != POOL_NONE && hashmap_put(&p->blocks, call->addr, index) < 0) {
		pool_give(&torch->blocks, index);
		index = POOL_NONE;
	}
	if (index == POOL_NONE) {
		torch->doubtful = true;
		return;
	}
	traced_users_take(torch->users, TRACED_TABLE_BLOCKS, p->user, 1);
	block = pool_at(&torch->blocks, index);
	block->call = of;
	block->bytes = call->size;
	operator->held_bytes = add_saturated(operator->held_bytes, call->size);
}

/* The process has ended: nothing is held any more. */
static void blocks_end(struct torch *torch, struct torch_traced *p)
{
	for (uint32_t i = 0; p->blocks.slots && i <= p->blocks.mask; i++) {
		struct torch_operator *operator;
		struct block *block;

		if (!p->blocks.slots[i].used)
			continue;
		block = pool_at(&torch->blocks, p->blocks.slots[i].value);
		operator= & torch->operators[block->call];
		operator->held_bytes -= MIN(operator->held_bytes, block->bytes);
		pool_give(&torch->blocks, p->blocks.slots[i].value);
	}
	traced_users_give(torch->users, TRACED_TABLE_BLOCKS, p->user, p->blocks.count);
	hashmap_done(&p->blocks);
	p->blocks = (struct hashmap){ 0 };
}

/* ---- processes ---- */

static void traced_free(struct torch *torch, struct torch_traced *p)
{
	blocks_end(torch, p);
	hashmap_done(&p->types);
	free(p->nodes);
	free(p->ranges);
	torch->operators_n -= p->shown.operators_n;
	traced_users_give(torch->users, TRACED_TABLE_OPERATORS, p->user, p->shown.operators_n);
	traced_users_give(torch->users, TRACED_TABLE_TORCH, p->user, 1);
	free(p->operators);
	free(p);
}

static struct torch_traced *traced_find(const struct torch *torch, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&torch->by_tgid, tgid, &i) ? torch->processes[i] : NULL;
}

/* @first_ns: of its first event. NULL: there is no room. */
static struct torch_traced *traced_get(struct torch *torch, uint32_t tgid, uint64_t first_ns)
{
	struct torch_traced *p = traced_find(torch, tgid);
	uint32_t user;

	if (p || torch->processes_n == TORCH_PROCESSES_MAX ||
	    traced_users_enter(torch->users, TRACED_TABLE_TORCH, tgid, &user) < 0)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p) {
		traced_users_give(torch->users, TRACED_TABLE_TORCH, user, 1);
		return NULL;
	}
	p->user = user;
	p->nodes = calloc(TORCH_NODES_MAX, sizeof(*p->nodes));
	p->ranges = calloc(TORCH_RANGES_MAX, sizeof(*p->ranges));
	if (!p->nodes || !p->ranges || hashmap_put(&torch->by_tgid, tgid, torch->processes_n) < 0) {
		traced_free(torch, p);
		return NULL;
	}
	p->tgid = tgid;
	p->incarnation = incarnations_of(&torch->incarnations, p->tgid);
	p->first_ns = first_ns;
	p->shown.has_series = torch->series_used < torch->series;
	torch->series_used += p->shown.has_series;
	torch->processes[torch->processes_n++] = p;
	return p;
}

static void traced_end(struct torch *torch, struct torch_traced *p)
{
	p->over = true;
	hashmap_del(&torch->by_tgid, p->tgid);
	blocks_end(torch, p);
}

void torch_process_over(struct torch *torch, uint32_t tgid, uint64_t incarnation)
{
	struct torch_traced *p = traced_find(torch, tgid);

	if (p && incarnation_is(p->incarnation, incarnation))
		traced_end(torch, p);
}

static void process_event(struct torch *torch, const struct trace_header *event, uint32_t size)
{
	struct torch_traced *p = traced_find(torch, event->tgid);

	incarnations_event(&torch->incarnations, event, size);
	if (p && incarnation_ends(&p->incarnation, p->first_ns, event, size))
		traced_end(torch, p);
}

void torch_call_process(struct torch *torch, uint32_t tgid, const char *comm)
{
	for (uint32_t i = 0; i < torch->processes_n; i++) {
		struct torch_traced *p = torch->processes[i];

		if (p->tgid != tgid || (p->over && *p->shown.comm))
			continue;
		snprintf(p->shown.comm, sizeof(p->shown.comm), "%s", comm);
		utf8_sanitize(p->shown.comm);
	}
}

void torch_lost(struct torch *torch, uint32_t tgid)
{
	torch->doubtful = true;
	for (uint32_t i = 0; i < torch->processes_n; i++)
		if (tgid == 0 || torch->processes[i]->tgid == tgid)
			torch->processes[i]->shown.lost |= !torch->processes[i]->over;
}

static void forget(struct torch *torch, uint32_t i)
{
	torch->series_used -= torch->processes[i]->shown.has_series;
	traced_free(torch, torch->processes[i]);
	torch->processes[i] = torch->processes[--torch->processes_n];
}

/* ---- allocators ---- */

static struct torch_memory *memory_get(struct torch_traced *p, uint32_t kind)
{
	struct torch_device device = { .type = (int8_t)kind, .index = (int8_t)(kind >> 8) };

	for (uint32_t i = 0; i < p->shown.memories_n; i++)
		if (p->memories[i].device.type == device.type && p->memories[i].device.index == device.index)
			return &p->memories[i];
	if (p->shown.memories_n == TORCH_DEVICES_MAX)
		return NULL;
	p->memories[p->shown.memories_n].device = device;
	return &p->memories[p->shown.memories_n++];
}

static void on_memory(struct torch *torch, struct torch_traced *p, const struct trace_call *call)
{
	struct torch_memory *memory = memory_get(p, call->kind);

	if ((int64_t)call->size < 0)
		block_end(torch, p, call->addr);
	else
		block_begin(torch, p, call);
	if (!memory)
		return;
	memory->allocated = call->stream;
	memory->reserved = call->handle;
	memory->allocated_peak = MAX(memory->allocated_peak, call->stream);
	memory->reserved_peak = MAX(memory->reserved_peak, call->handle);
	if ((int64_t)call->size < 0) {
		memory->frees++;
		return;
	}
	memory->allocations++;
	memory->allocated_bytes = add_saturated(memory->allocated_bytes, call->size);
}

static void on_oom(struct torch_traced *p, const struct trace_call *call)
{
	struct torch_memory *memory = memory_get(p, call->kind);

	if (!memory)
		return;
	memory->ooms++;
	memory->oom_asked = call->size;
	memory->oom_allocated = call->stream;
	memory->oom_reserved = call->handle;
	memory->oom_call = call->header.operator;
}

/* ---- nodes and ranges ---- */

/* The row of the name, added if needed. NULL: there is no room. */
static struct row *count_row(struct row *rows, uint32_t *n, uint32_t max, const char *name)
{
	for (uint32_t i = 0; i < *n; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	if (*n == max)
		return NULL;
	snprintf(rows[*n].name, sizeof(rows[*n].name), "%s", name);
	return &rows[(*n)++];
}

/* Events of several CPUs may arrive swapped. */
static void row_count(struct row *row, uint64_t now_ns)
{
	row->first_ns = row->count++ == 0 ? now_ns : MIN(row->first_ns, now_ns);
	row->last_ns = MAX(row->last_ns, now_ns);
}

static void on_node(struct torch_traced *p, const struct trace_call *call)
{
	uint32_t index;

	p->shown.joined += call->header.forward != 0;
	if (hashmap_get(&p->types, call->handle, &index))
		row_count(&p->nodes[index], call->header.time_ns);
	else
		p->shown.other_nodes++;
}

/* Types are forgotten, and are told again, where a program has more of them than names. */
static void on_type(struct torch_traced *p, const struct trace_name *event)
{
	char name[TORCH_LABEL];
	struct row *row;

	hashmap_del(&p->types, event->handle);
	if (event->header.flags & TRACE_FLAG_UNREAD || event->cut || !torch_node_name(event->name, name))
		return;
	row = count_row(p->nodes, &p->shown.nodes_n, TORCH_NODES_MAX, name);
	if (row && p->types.count < TORCH_NODES_MAX)
		hashmap_put(&p->types, event->handle, (uint32_t)(row - p->nodes));
}

static void on_range(struct torch_traced *p, const struct trace_name *event)
{
	char name[TORCH_LABEL];
	struct row *row;

	if (event->header.flags & TRACE_FLAG_UNREAD) {
		p->shown.other_ranges++;
		return;
	}
	snprintf(name, sizeof(name), "%s", event->name);
	utf8_sanitize(name);
	row = count_row(p->ranges, &p->shown.ranges_n, TORCH_RANGES_MAX, name);
	if (row)
		row_count(row, event->header.time_ns);
	else
		p->shown.other_ranges++;
	if (strncmp(name, STEP, strlen(STEP)) != 0)
		return;
	p->first_step_ns =
		p->shown.steps++ == 0 ? event->header.time_ns : MIN(p->first_step_ns, event->header.time_ns);
	p->last_step_ns = MAX(p->last_step_ns, event->header.time_ns);
}

/* ---- operators ---- */

/* An incarnation is the time it began at. */
static struct torch_traced *traced_exactly(const struct torch *torch, uint32_t tgid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < torch->processes_n; i++) {
		struct torch_traced *p = torch->processes[i];

		if (p->tgid == tgid &&
		    (p->incarnation == incarnation || (!p->incarnation && p->first_ns >= incarnation)))
			return p;
	}
	return NULL;
}

/* How many of @n operators the process may have; it has none. */
static uint32_t operators_room(const struct torch *torch, const struct torch_traced *p, uint32_t n)
{
	uint32_t room = MIN(MIN(n, (uint32_t)TORCH_PROCESS_OPERATORS_MAX),
			    (TORCH_OPERATORS_MAX - (torch->operators_n - p->shown.operators_n)) / 8);

	while (room > 0 && !traced_users_have(torch->users, TRACED_TABLE_OPERATORS, p->user, room))
		room--;
	return room;
}

/* Those that have no room are only counted. */
static void keep_operators(struct torch *torch, struct torch_traced *p,
			   const struct traced_operator *operators, uint32_t n)
{
	struct traced_operator *copies;
	uint32_t kept;

	traced_users_give(torch->users, TRACED_TABLE_OPERATORS, p->user, p->shown.operators_n);
	kept = operators_room(torch, p, n);
	copies = calloc(MAX(kept, 1U), sizeof(*copies));
	traced_users_take(torch->users, TRACED_TABLE_OPERATORS, p->user,
			  copies ? kept : p->shown.operators_n);
	if (!copies)
		return;
	memcpy(copies, operators, kept * sizeof(*copies));
	free(p->operators);
	p->operators = copies;
	torch->operators_n += kept - p->shown.operators_n;
	p->shown.operators_n = kept;
	p->shown.other_operators = n - kept;
	p->shown.other_operator_calls = 0;
	for (uint32_t i = kept; i < n; i++)
		p->shown.other_operator_calls += operators[i].v[OPERATOR_METRIC_CALLS];
}

void torch_operators_of(struct torch *torch, uint32_t tgid, uint64_t incarnation, unsigned over,
			bool work_known, const struct traced_operator *operators, uint32_t n)
{
	struct torch_traced *p = traced_exactly(torch, tgid, incarnation);

	/* Of one PID, another process may be known. */
	if (!p && over <= 1 && !traced_find(torch, tgid)) {
		p = traced_get(torch, tgid, incarnation);
		if (p)
			p->incarnation = incarnation;
		if (p && over > 0)
			traced_end(torch, p);
	}
	/* What CUDA did is forgotten once the process is over and was shown: its last figures stay. */
	if (!p || (p->work_known && !work_known))
		return;
	p->work_known = work_known;
	keep_operators(torch, p, operators, n);
}

/* ---- events ---- */

bool torch_is_event(const struct trace_header *event)
{
	return (event->type == TRACE_EVENT_CALL || event->type == TRACE_EVENT_NAME) &&
	       event->op >= TRACE_OP_TORCH_EDGE && event->op <= TRACE_OP_TORCH_RANGE;
}

static void take_event(struct torch *torch, struct torch_traced *p, const struct trace_header *event)
{
	const struct trace_call *call = (const struct trace_call *)event;

	if (event->type == TRACE_EVENT_NAME && event->op == TRACE_OP_TORCH_NODE)
		on_type(p, (const struct trace_name *)event);
	else if (event->type == TRACE_EVENT_NAME)
		on_range(p, (const struct trace_name *)event);
	else if (event->op == TRACE_OP_TORCH_NODE)
		on_node(p, call);
	else if (event->op == TRACE_OP_TORCH_MEMORY)
		on_memory(torch, p, call);
	else if (event->op == TRACE_OP_TORCH_OOM)
		on_oom(p, call);
}

void torch_event(struct torch *torch, const struct trace_header *event, uint32_t size)
{
	struct torch_traced *p;

	if (event->type == TRACE_EVENT_PROCESS || event->type == TRACE_EVENT_EXEC ||
	    event->type == TRACE_EVENT_EXIT)
		process_event(torch, event, size);
	if (!torch_is_event(event) ||
	    size < (event->type == TRACE_EVENT_CALL ? sizeof(struct trace_call) : sizeof(struct trace_name)))
		return;
	p = traced_get(torch, event->tgid, event->time_ns);
	if (p)
		take_event(torch, p, event);
	else
		torch->beyond++;
}

void torch_share(struct torch *torch, struct traced_users *users)
{
	torch->users = users;
	traced_users_room(users, TRACED_TABLE_TORCH, TORCH_PROCESSES_MAX);
	traced_users_room(users, TRACED_TABLE_OPERATORS, TORCH_OPERATORS_MAX);
	traced_users_room(users, TRACED_TABLE_BLOCKS, TORCH_BLOCKS_MAX);
}

struct torch *torch_new(uint32_t series, bool keep)
{
	struct torch *torch = calloc(1, sizeof(*torch));

	if (!torch)
		return NULL;
	torch->series = series;
	torch->keep = keep;
	return torch;
}

void torch_free(struct torch *torch)
{
	if (!torch)
		return;
	for (uint32_t i = 0; i < torch->processes_n; i++)
		traced_free(torch, torch->processes[i]);
	hashmap_done(&torch->by_tgid);
	pool_done(&torch->blocks);
	free(torch);
}

const struct torch_operator *torch_operators(const struct torch *torch)
{
	return torch->operators;
}

bool torch_is_doubtful(const struct torch *torch)
{
	return torch->doubtful;
}

/* ---- figures ---- */

/* Of those with one PID the youngest comes last, and the one that runs behind those that have ended. */
static int by_tgid(const void *a, const void *b)
{
	const struct torch_traced *x = *(const struct torch_traced *const *)a,
				  *y = *(const struct torch_traced *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->over != y->over)
		return y->over - x->over;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static int by_count(const void *a, const void *b)
{
	const struct torch_count *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void counts_fill(struct torch_view *view, const struct row *rows, uint32_t n, uint32_t *ret_first)
{
	struct torch_count *to = &view->counts[view->counts_n];

	*ret_first = view->counts_n;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(to[i].name, rows[i].name, sizeof(to[i].name));
		to[i].count = rows[i].count;
		to[i].seconds = (double)(rows[i].last_ns - rows[i].first_ns) / 1e9;
	}
	qsort(to, n, sizeof(*to), by_count);
	view->counts_n += n;
}

static void process_fill(const struct torch_traced *p, struct torch_view *view)
{
	struct torch_process *shown = &view->processes[view->processes_n++];

	*shown = p->shown;
	shown->pid = p->tgid;
	shown->exited = p->over;
	shown->memories_first = view->memories_n;
	memcpy(&view->memories[view->memories_n], p->memories, shown->memories_n * sizeof(*p->memories));
	view->memories_n += shown->memories_n;
	counts_fill(view, p->nodes, shown->nodes_n, &shown->nodes_first);
	counts_fill(view, p->ranges, shown->ranges_n, &shown->ranges_first);
	shown->operators_first = view->operators_n;
	if (shown->operators_n > 0)
		memcpy(&view->operators[view->operators_n], p->operators,
		       shown->operators_n * sizeof(*p->operators));
	view->operators_n += shown->operators_n;
	if (shown->steps > 1)
		shown->step_seconds =
			(double)(p->last_step_ns - p->first_step_ns) / 1e9 / (double)(shown->steps - 1);
}

/* The processes have other places now. The map has room for them: it had them before. */
static void index_again(struct torch *torch)
{
	hashmap_clear(&torch->by_tgid);
	for (uint32_t i = 0; i < torch->processes_n; i++)
		if (!torch->processes[i]->over)
			hashmap_put(&torch->by_tgid, torch->processes[i]->tgid, i);
}

struct torch_view *torch_window(struct torch *torch)
{
	uint32_t memories = 0, counts = 0;
	struct torch_view *view;

	for (uint32_t i = 0; i < torch->processes_n; i++) {
		memories += torch->processes[i]->shown.memories_n;
		counts += torch->processes[i]->shown.nodes_n + torch->processes[i]->shown.ranges_n;
	}
	view = torch_view_new(torch->processes_n, memories, counts, torch->operators_n);
	if (!view)
		return NULL;
	qsort(torch->processes, torch->processes_n, sizeof(torch->processes[0]), by_tgid);
	for (uint32_t i = 0; i < torch->processes_n; i++)
		process_fill(torch->processes[i], view);
	for (uint32_t i = torch->processes_n; !torch->keep && i-- > 0;)
		if (torch->processes[i]->over)
			forget(torch, i);
	index_again(torch);
	view->beyond = torch->beyond;
	return view;
}
