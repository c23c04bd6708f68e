// SPDX-License-Identifier: Apache-2.0
/*
 * Functions, as passed to launches, on a device. The kernel of each is requested once, at its first launch; a
 * request that failed is repeated at the end of each window, and at a launch in a later one. The answer has
 * the request's number, so it finds the function even if its handle was reused in the meantime.
 *
 * A function that refers to another one has that one's row, so that a kernel launched by handle and by host
 * function is counted as one. For two devices of one architecture there is one request, if its answer arrives
 * in time.
 */
#include "cuda/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Addresses have at most 57 bits and usages 7, so keys of valid functions are unique. */
static uint64_t key_of(const struct cuda *cuda, uint64_t function, uint32_t usage)
{
	return salted(cuda, (function << 7 | function >> 57) ^ usage);
}

static uint32_t function_find(const struct cuda *cuda, const struct process *p, uint64_t function,
			      uint32_t usage)
{
	uint32_t index;

	if (!hashmap_get(&p->function_map, key_of(cuda, function, usage), &index))
		return NONE;
	return function_at(p, index)->function == function && function_at(p, index)->usage == usage ? index :
												      NONE;
}

const struct kernel *cuda_function_kernel(struct cuda *cuda, uint32_t tgid, uint64_t function)
{
	const struct process *p = process_find(cuda, tgid);

	for (uint32_t usage = 0; p && usage < p->usages_n; usage++) {
		uint32_t index = function_find(cuda, p, function, usage);

		if (index != NONE && row_at(p, function_at(p, index)->row)->settled)
			return row_at(p, function_at(p, index)->row)->kernel;
	}
	return NULL;
}

/* ---- questions ---- */

/* For an unknown device: the architecture of all the node's devices, if it is the same. */
static uint16_t usage_sm(const struct cuda *cuda, const struct process *p, uint32_t usage)
{
	const struct cuda_device *device = device_find(cuda, p->usages[usage].device);

	if (device)
		return device->sm;
	for (uint32_t i = 1; i < cuda->devices_n; i++)
		if (cuda->devices[i].sm != cuda->devices[0].sm)
			return 0;
	return cuda->devices_n > 0 ? cuda->devices[0].sm : 0;
}

/* No answer will come, or none is needed: the current data are final. */
static void settle_as_is(struct cuda *cuda, struct process *p, uint32_t index)
{
	uint32_t row = function_at(p, index)->row;

	if (!row_at(p, row)->settled)
		row_settle(cuda, p, row, row_at(p, row)->kernel);
}

static void forget_question(struct cuda *cuda, struct function *f)
{
	if (f->id)
		hashmap_del(&cuda->questions, salted(cuda, f->id));
	f->id = 0;
}

static void function_want(struct process *p, uint32_t index)
{
	p->wants = function_at(p, index)->wanted = true;
	row_at(p, function_at(p, index)->row)->wanted = true;
	recent_forget(p);
}

/* The answer may arrive before this function returns. */
static void function_ask(struct cuda *cuda, struct process *p, uint32_t index)
{
	struct function *f = function_at(p, index);
	struct cuda_function question = {
		.id = ++cuda->questions_n << QUESTION_SHIFT | index,
		.tgid = p->tgid,
		.incarnation = p->incarnation,
		.start_boot_ns = p->start_boot_ns,
		.sm = usage_sm(cuda, p, f->usage),
	};
	struct origin origin;
	int r = -EAGAIN;

	handle_origin(cuda, p, f->function, &origin);
	question.function = origin.function;
	question.symbol = origin.symbol;
	question.image = origin.image;
	question.path = origin.path;
	if (!origin.symbol && f->made) {
		handle_origin(cuda, p, f->made, &origin);
		question.symbol = origin.symbol;
		question.image = origin.image;
		question.path = origin.path;
		question.symbol_last = true;
	}
	forget_question(cuda, f);
	row_at(p, f->row)->tried = cuda->window;
	f->wanted = false;
	f->id = question.id;
	if (hashmap_put(&cuda->questions, salted(cuda, f->id), p->tgid) == 0)
		r = cuda->ops.function(&question, cuda->userdata);
	f = function_at(p, index);
	if (r == 0 || !f->used || f->id != question.id)
		return;
	forget_question(cuda, f);
	f->wanted = r == -EAGAIN;
	if (f->wanted)
		function_want(p, index);
	else
		settle_as_is(cuda, p, index);
}

/*
 * Repeats a failed request for the row of @index: one of its functions per window, since the answer may
 * change their list.
 */
static void ask_again(struct cuda *cuda, struct process *p, uint32_t index)
{
	struct kernel_row *row = row_at(p, function_at(p, index)->row);
	uint32_t wanted = NONE;

	if (row->tried == cuda->window)
		return;
	row->wanted = false;
	for (uint32_t at = row->functions; at; at = function_at(p, at - 1)->next) {
		if (!function_at(p, at - 1)->wanted)
			continue;
		row->wanted |= wanted != NONE;
		wanted = wanted == NONE ? at - 1 : wanted;
	}
	if (wanted != NONE)
		function_ask(cuda, p, wanted);
}

void functions_ask(struct cuda *cuda, struct process *p)
{
	if (!p->wants)
		return;
	p->wants = false;
	for (uint32_t i = 0; i < p->functions.n && !p->wants; i++)
		if (function_at(p, i)->used && function_at(p, i)->wanted)
			function_ask(cuda, p, i);
	/* One that must wait makes those behind it wait as well. */
}

/* ---- making them ---- */

/* The data about a kernel that are known without an answer. */
static struct kernel *provisional_kernel(const struct origin *origin)
{
	struct kernel *kernel = NULL;
	struct kernel from = { .source = KERNEL_SOURCE_HANDLE };
	char address[32];

	if (!origin->symbol) {
		snprintf(address, sizeof(address), "0x%" PRIx64, origin->function);
		from.source = KERNEL_SOURCE_UNRESOLVED;
	}
	from.symbol = from.name = from.brief = origin->symbol ? origin->symbol : address;
	from.file = origin->path ? origin->path : "";
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		from.figures[i] = -1;
	kernel_new(&from, &kernel);
	return kernel;
}

/* The answer to the same question about another device. */
static struct kernel *known_elsewhere(const struct cuda *cuda, const struct process *p, uint64_t function,
				      uint32_t usage)
{
	uint16_t sm = usage_sm(cuda, p, usage);

	for (uint32_t i = 0; i < p->usages_n; i++) {
		uint32_t index =
			i != usage && usage_sm(cuda, p, i) == sm ? function_find(cuda, p, function, i) : NONE;

		if (index != NONE && function_at(p, index)->id == 0 && !function_at(p, index)->wanted)
			return row_at(p, function_at(p, index)->row)->kernel;
	}
	return NULL;
}

static uint32_t functions_limit(const struct cuda *cuda)
{
	return cuda->limits.kernels * FUNCTIONS_PER_ROW;
}

static uint32_t function_take(struct cuda *cuda, struct process *p, uint64_t function, uint32_t usage,
			      uint32_t row)
{
	uint32_t index = pool_take(&p->functions, sizeof(struct function), functions_limit(cuda));

	if (index == NONE)
		return NONE;
	if (hashmap_put(&p->function_map, key_of(cuda, function, usage), index) < 0) {
		pool_give(&p->functions, index);
		return NONE;
	}
	*function_at(p, index) = (struct function){ .usage = usage, .used = true, .function = function };
	row_link(p, row, index);
	return index;
}

/* Creates a function with its own row. */
static uint32_t first_launch(struct cuda *cuda, struct process *p, uint32_t usage,
			     const struct origin *origin, const struct trace_launch *launch)
{
	_cleanup_(kernel_unrefp) struct kernel *kernel = NULL;
	struct kernel *known;
	uint32_t row, index;

	if (p->functions.used >= functions_limit(cuda) || p->rows.used >= cuda->limits.kernels)
		return NONE;
	known = known_elsewhere(cuda, p, origin->function, usage);
	kernel = known ? kernel_ref(known) : provisional_kernel(origin);
	row = kernel ? row_new(cuda, p, usage, kernel) : NONE;
	if (row == NONE)
		return NONE;
	index = function_take(cuda, p, origin->function, usage, row);
	if (index == NONE) {
		row_settle(cuda, p, row, kernel); /* no memory: it stays empty, or is another's */
		return NONE;
	}
	function_at(p, index)->made = origin->symbol ? 0 : handle_made_within(p, launch);
	if (known || !cuda->ops.function)
		settle_as_is(cuda, p, index);
	else
		function_ask(cuda, p, index);
	return index;
}

static uint32_t function_new(struct cuda *cuda, struct process *p, uint32_t usage,
			     const struct trace_launch *launch)
{
	uint64_t function = launch->function;
	struct origin origin;
	uint32_t index;

	handle_origin(cuda, p, function, &origin);
	index = function_find(cuda, p, origin.function, usage);
	if (index == NONE)
		index = first_launch(cuda, p, usage, &origin, launch);
	if (index == NONE || origin.function == function)
		return index;
	return function_take(cuda, p, function, usage, function_at(p, index)->row);
}

static uint32_t look_up(struct cuda *cuda, struct process *p, uint32_t usage,
			const struct trace_launch *launch)
{
	const struct function *f;
	uint32_t index;

	if (launch->function == 0)
		return NONE; /* the name could not be read */
	if (!hashmap_get(&p->function_map, key_of(cuda, launch->function, usage), &index)) {
		index = function_new(cuda, p, usage, launch);
		if (index == NONE)
			cuda->stats.overflow[CUDA_LIMIT_KERNELS]++;
		return index == NONE ? NONE : function_at(p, index)->row;
	}
	f = function_at(p, index);
	if (f->function != launch->function || f->usage != usage)
		return NONE;
	if (row_at(p, f->row)->wanted)
		ask_again(cuda, p, index);
	return function_at(p, index)->row;
}

uint32_t function_row(struct cuda *cuda, struct process *p, uint32_t usage, const struct trace_launch *launch)
{
	uint64_t hash = (launch->function ^ usage) * 0x9e3779b97f4a7c15; /* 2^64 over the golden ratio */
	struct recent_function *recent;
	uint32_t row;

	if (!p->recent)
		p->recent = calloc(1 << RECENT_BITS, sizeof(*p->recent));
	if (!p->recent)
		return look_up(cuda, p, usage, launch);
	recent = &p->recent[hash >> (64 - RECENT_BITS)];
	if (recent->function == launch->function && recent->usage == usage && recent->row)
		return recent->row - 1;
	row = look_up(cuda, p, usage, launch);
	if (row != NONE && !row_at(p, row)->wanted)
		*recent = (struct recent_function){ launch->function, usage, row + 1 };
	return row;
}

/* ---- their ends ---- */

/* Removes it from look-up and from further accounting. */
static void function_leave(struct cuda *cuda, struct process *p, uint32_t index)
{
	uint32_t row = function_at(p, index)->row;

	row_unlink(p, index);
	pool_give(&p->functions, index);
	if (!row_at(p, row)->functions && !row_at(p, row)->settled)
		row_settle(cuda, p, row, row_at(p, row)->kernel);
}

/* Its pending answer still applies to its past launches: it is kept until then. */
static void function_hide(struct cuda *cuda, struct process *p, uint32_t index)
{
	struct function *f = function_at(p, index);

	hashmap_del(&p->function_map, key_of(cuda, f->function, f->usage));
	f->dropped = true;
	f->wanted = false;
	recent_forget(p);
}

bool function_drop(struct cuda *cuda, struct process *p, uint64_t function)
{
	bool launched = false;

	for (uint32_t i = 0; p->functions.used > 0 && i < p->usages_n; i++) {
		uint32_t index = function_find(cuda, p, function, i);

		if (index == NONE)
			continue;
		function_hide(cuda, p, index);
		if (function_at(p, index)->id == 0)
			function_leave(cuda, p, index);
		launched = true;
	}
	return launched;
}

bool functions_asked(const struct process *p)
{
	for (uint32_t i = 0; i < p->functions.n; i++)
		if (function_at(p, i)->used && function_at(p, i)->id)
			return true;
	return false;
}

void functions_done(struct cuda *cuda, struct process *p)
{
	for (uint32_t i = 0; i < p->functions.n; i++)
		if (function_at(p, i)->used)
			forget_question(cuda, function_at(p, i));
	pool_done(&p->functions);
	hashmap_done(&p->function_map);
	free(p->recent);
	p->recent = NULL;
}

/* ---- answers ---- */

static bool is_unresolved(const struct kernel_row *row)
{
	return row->kernel->source == KERNEL_SOURCE_UNRESOLVED;
}

/* If there is no free row for @kernel, the function has none: its launches count in the rest. */
static void function_answered(struct cuda *cuda, struct process *p, uint32_t index, struct kernel *kernel)
{
	uint32_t row = function_at(p, index)->row, found;

	if (row_at(p, row)->settled && is_unresolved(row_at(p, row)) &&
	    kernel->source != KERNEL_SOURCE_UNRESOLVED)
		row_unsettle(cuda, p, row_at(p, row));
	if (!row_at(p, row)->settled) {
		row_settle(cuda, p, row, kernel);
		return;
	}
	found = row_find(cuda, p, row_at(p, row)->usage, kernel);
	if (found == row) {
		row_blend(row_at(p, row), kernel);
		return;
	}
	/* A different kernel than before: earlier launches do not belong to it. */
	if (found == NONE) {
		found = row_new(cuda, p, row_at(p, row)->usage, kernel);
		if (found == NONE) {
			if (!function_at(p, index)->dropped)
				function_hide(cuda, p, index);
			return;
		}
		found = row_settle(cuda, p, found, kernel);
	} else {
		row_blend(row_at(p, found), kernel);
	}
	row_unlink(p, index);
	row_link(p, found, index);
}

/* One that was launched before anything was known of it. */
static void function_renew_one(struct cuda *cuda, struct process *p, uint32_t index)
{
	_cleanup_(kernel_unrefp) struct kernel *kernel = NULL;
	struct origin origin;

	if (cuda->ops.function) {
		function_want(p, index);
		row_at(p, function_at(p, index)->row)->tried = 0;
		return;
	}
	handle_origin(cuda, p, function_at(p, index)->function, &origin);
	kernel = origin.symbol ? provisional_kernel(&origin) : NULL;
	if (kernel)
		function_answered(cuda, p, index, kernel);
	if (function_at(p, index)->dropped)
		function_leave(cuda, p, index);
}

void function_renew(struct cuda *cuda, struct process *p, uint64_t function)
{
	for (uint32_t i = 0; p->functions.used > 0 && i < p->usages_n; i++) {
		uint32_t index = function_find(cuda, p, function, i);

		if (index != NONE)
			function_renew_one(cuda, p, index);
	}
}

static bool has_asked(const struct process *p, uint32_t index, uint64_t id)
{
	return index < p->functions.n && function_at(p, index)->used && function_at(p, index)->id == id;
}

/* A process that has ended may have a successor with the same PID, which did not send the request. */
static struct process *question_process(struct cuda *cuda, uint32_t tgid, uint32_t index, uint64_t id)
{
	struct process *p = process_find(cuda, tgid);

	if (p && has_asked(p, index, id))
		return p;
	for (uint32_t i = 0; i < cuda->processes_n; i++)
		if (cuda->processes[i]->tgid == tgid && has_asked(cuda->processes[i], index, id))
			return cuda->processes[i];
	return NULL;
}

void cuda_kernel(struct cuda *cuda, uint64_t id, struct kernel *kernel)
{
	uint32_t index = id & ((1u << QUESTION_SHIFT) - 1), tgid;
	struct process *p;

	if (!hashmap_get(&cuda->questions, salted(cuda, id), &tgid)) {
		cuda->stats.late_answers++;
		return;
	}
	p = question_process(cuda, tgid, index, id);
	hashmap_del(&cuda->questions, salted(cuda, id));
	if (!p) {
		cuda->stats.late_answers++;
		return;
	}
	function_at(p, index)->id = 0;
	cuda->stats.answers++;
	if (kernel)
		function_answered(cuda, p, index, kernel);
	else
		settle_as_is(cuda, p, index);
	if (function_at(p, index)->dropped)
		function_leave(cuda, p, index);
}
