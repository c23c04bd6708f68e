// SPDX-License-Identifier: Apache-2.0
/*
 * Passes over all code of a file. A call is found by its bytes only, so neither constructors nor callbacks
 * have to be followed, and inlining, relocatable device code and link-time optimisation make no difference.
 * Its arguments are then decoded from the instructions before it. Where those begin is not known, so decoding
 * starts some way earlier, and counts if it comes out at the call exactly and the arguments are what they
 * must be.
 */
#include "cubin/stub_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

enum {
	CHUNK = 1 << 20,
	BEFORE = 192, /* bytes that arguments are looked for in */
	AFTER = 128, /* bytes within which a call must follow */
	STARTS = 8, /* tried first, distributed over these bytes: nearby ones may agree wrongly */
	LAUNCH_STARTS = 3, /* most launches' functions are not constants */
	NAME_PART = 512,
	RANGES_MAX = 64,
};
#define DECODED_MAX (UINT64_C(32) << 20)

/* The arguments' numbers. */
static const struct {
	const char *name;
	enum stub_callee callee;
} wanted[] = {
	{ "__cudaRegisterFunction", STUB_REGISTER },
	{ "__cudaGetKernel", STUB_GET_KERNEL },
	{ "cudaLaunchKernel", STUB_LAUNCH },
	{ "cudaLaunchKernel_ptsz", STUB_LAUNCH },
	{ "cudaLaunchCooperativeKernel", STUB_LAUNCH },
	{ "cudaLaunchCooperativeKernel_ptsz", STUB_LAUNCH },
	{ "cudaLaunchKernelExC", STUB_LAUNCH_EX },
	{ "cudaLaunchKernelExC_ptsz", STUB_LAUNCH_EX },
};

static const struct {
	uint8_t host;
	int8_t other; /* -1: none */
} arguments[STUB_CALLEES] = {
	[STUB_REGISTER] = { 1, 3 },
	[STUB_GET_KERNEL] = { 1, 0 },
	[STUB_LAUNCH] = { 0, -1 },
	[STUB_LAUNCH_EX] = { 1, -1 },
};

struct pass;
typedef int sight_fn(struct pass *pass, const struct stub_sight *sight);

struct pass {
	struct stub_scan *scan;
	sight_fn *fn;
	enum stub_aim aim;
	const struct hashmap *hosts;
	/* the current bytes, preceded by BEFORE and followed by AFTER bytes where available */
	struct stub_view view;
	size_t call_end; /* in the view, of the last one decoded: no earlier instruction is an argument's */
	uint8_t *buf;
};

void stub_scan_done(struct stub_scan *scan)
{
	if (scan->decoder)
		scan->machine->decoder_free(scan->decoder);
	free(scan->slots);
	hashmap_done(&scan->callees);
	hashmap_done(&scan->words);
	free(scan->lost.items);
	for (size_t i = 0; i < STUB_CALLEES; i++)
		free(scan->found[i].items);
}

bool stub_scan_over(struct stub_scan *scan)
{
	if (!scan->over)
		scan->over = scan->decoded >= DECODED_MAX || clock_thread_cpu_ns() > scan->cpu_end_ns;
	return scan->over;
}

int stub_scan_late(struct stub_scan *scan, int r)
{
	if (r != -ETIME)
		return r;
	scan->over = true;
	scan->skipped++;
	return 0;
}

static bool find_wanted(const char *name, enum stub_callee *ret_callee)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (STRV_EQ(name, wanted[i].name)) {
			*ret_callee = wanted[i].callee;
			return true;
		}
	return false;
}

static uint64_t filter_bit(uint64_t address)
{
	return UINT64_C(1) << ((address * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
}

static int add_target(struct stub_scan *scan, struct hashmap *targets, uint64_t address,
		      enum stub_callee callee)
{
	uint32_t known;

	if (targets->count == STUB_CALLEES_MAX) {
		scan->skipped++;
		return 0;
	}
	return hashmap_get(targets, address, &known) ? 0 : hashmap_put(targets, address, callee);
}

static int add_callee(struct stub_scan *scan, uint64_t address, enum stub_callee callee)
{
	scan->filter |= filter_bit(address);
	return add_target(scan, &scan->callees, address, callee);
}

int stub_scan_callee(struct stub_scan *scan, const char *name, uint64_t address)
{
	enum stub_callee callee;

	return find_wanted(name, &callee) ? add_callee(scan, address, callee) : 0;
}

static bool is_code(const struct stub_scan *scan, uint64_t address)
{
	struct elf_range range;

	return elf_range_of(scan->file, address, &range) && range.executable;
}

static bool is_variable(const struct stub_scan *scan, uint64_t address)
{
	struct elf_range range;

	return elf_range_of(scan->file, address, &range) && range.writable &&
	       range.memory_size - (address - range.address) >= sizeof(uint64_t);
}

/* Only slots that point to code, since only those are searched. */
static int add_slot(const struct elf_slot *slot, void *userdata)
{
	struct stub_scan *scan = userdata;
	enum stub_callee callee;

	if (slot->name && slot->constant && find_wanted(slot->name, &callee)) {
		int r = add_target(scan, &scan->words, slot->address, callee);

		if (r < 0)
			return r;
	}
	if (slot->imported || !slot->constant || !is_code(scan, slot->value))
		return 0;
	if (scan->slots_n == scan->slots_room) {
		size_t room = scan->slots_room ? 2 * scan->slots_room : 1024;
		struct stub_slot *slots;

		if (scan->slots_n == STUB_SLOTS_MAX) {
			scan->skipped++;
			return 0;
		}
		slots = reallocarray(scan->slots, room, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		scan->slots = slots;
		scan->slots_room = room;
	}
	scan->slots[scan->slots_n++] = (struct stub_slot){ slot->address, slot->value };
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct stub_slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

int stub_scan_slots(struct stub_scan *scan)
{
	int r = stub_scan_late(scan, elf_slots(scan->file, add_slot, scan));

	if (r == 0 && scan->slots_n > 0)
		qsort(scan->slots, scan->slots_n, sizeof(*scan->slots), by_address);
	return r;
}

static bool read_word(const void *of, uint64_t address, uint64_t *ret_value)
{
	const struct stub_scan *scan = of;
	const struct stub_slot key = { .address = address }, *slot;

	if (scan->slots_n == 0)
		return false;
	slot = bsearch(&key, scan->slots, scan->slots_n, sizeof(key), by_address);
	if (slot)
		*ret_value = slot->value;
	return slot != NULL;
}

/* Past one instruction. */
static size_t step(struct pass *pass, size_t at, struct stub_state *state)
{
	struct stub_scan *scan = pass->scan;
	struct stub_memory memory = { read_word, scan };
	size_t n;

	n = scan->machine->pass(scan->decoder, &pass->view, at, &memory, state);
	if (n == 0) {
		stub_forget(state, UINT32_MAX);
		n = scan->machine->align;
	}
	scan->decoded += n;
	return n;
}

/*
 * What is known at a call when code is run from @from on; false: it is not a call, since no instruction
 * begins there.
 */
static bool state_at_call(struct pass *pass, size_t from, const struct stub_sight *call,
			  struct stub_state *ret_state)
{
	*ret_state = (struct stub_state){ 0 };
	while (from < call->at && from + call->prefix != call->at)
		from += step(pass, from, ret_state);
	return from <= call->at;
}

static bool argument(const struct pass *pass, const struct stub_state *state, int n, uint64_t *ret_value)
{
	return stub_knows(state, pass->scan->machine->argument[n], ret_value);
}

/* Whether these arguments are plausible for the function; without a name more evidence is required. */
static bool accept(struct pass *pass, const struct stub_state *state, enum stub_callee callee, bool named,
		   struct stub_found *found)
{
	uint64_t again, threads;
	char name[16];

	if (!argument(pass, state, arguments[callee].host, &found->host) || !is_code(pass->scan, found->host))
		return false;
	if (arguments[callee].other >= 0 && !argument(pass, state, arguments[callee].other, &found->other))
		return false;
	switch (callee) {
	case STUB_REGISTER:
		if (stub_scan_name(pass->scan, found->other, name, sizeof(name)) == -ENOENT)
			return false;
		return named || (argument(pass, state, 2, &again) && again == found->other &&
				 argument(pass, state, 4, &threads) && (uint32_t)threads == UINT32_MAX);
	case STUB_GET_KERNEL:
		return is_variable(pass->scan, found->other) &&
		       (named || hashmap_get(pass->hosts, found->host, &(uint32_t){ 0 }));
	default:
		return true;
	}
}

static int list_add_found(struct stub_list *list, struct stub_scan *scan, const struct stub_found *found)
{
	if (list->n == STUB_FOUND_MAX) {
		scan->skipped++;
		return 0;
	}
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct stub_found *items = reallocarray(list->items, room, sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->room = room;
	}
	list->items[list->n++] = *found;
	return 0;
}

/* Where to begin decoding: @n distributed positions, then each one; false: no more. */
static bool start_of(const struct pass *pass, const struct stub_sight *call, size_t first, size_t i, size_t n,
		     bool every, size_t *ret_start)
{
	uint8_t align = pass->scan->machine->align;
	size_t places = (call->at - first) / align + 1;

	if (i < n)
		*ret_start = first + i * places / n * align;
	else if (every && i - n < places)
		*ret_start = first + (i - n) * align;
	else
		return false;
	return true;
}

/* The first place that arguments of a call may be at. */
static size_t first_start(const struct pass *pass, const struct stub_sight *call)
{
	size_t first = call->at > BEFORE ? call->at - BEFORE : 0;

	if (pass->call_end <= call->at)
		first = MAX(first, pass->call_end);
	return first + (size_t)(-(pass->view.address + first) & (pass->scan->machine->align - 1U));
}

static int give_up(struct pass *pass, const struct stub_state *state, enum stub_callee callee,
		   struct stub_found *found)
{
	struct stub_scan *scan = pass->scan;

	if (callee == STUB_REGISTER)
		scan->skipped++;
	/* A handle variable with an unknown host function: another call may have it. */
	if (callee == STUB_GET_KERNEL && argument(pass, state, 0, &found->other) &&
	    is_variable(scan, found->other))
		return list_add_found(&scan->lost, scan, found);
	return 0;
}

static int take_call(struct pass *pass, const struct stub_sight *call, enum stub_callee callee, bool named)
{
	struct stub_scan *scan = pass->scan;
	struct stub_found found = { .site = pass->view.address + call->at, .callee = call->value };
	bool launch = callee != STUB_REGISTER && callee != STUB_GET_KERNEL;
	size_t first = first_start(pass, call), start;
	struct stub_state state, landed = { 0 };

	if (stub_scan_over(scan) || first > call->at) {
		scan->skipped++;
		return 0;
	}
	for (size_t i = 0;
	     start_of(pass, call, first, i, launch ? LAUNCH_STARTS : STARTS, named && !launch, &start); i++) {
		if (!state_at_call(pass, start, call, &state))
			continue;
		landed = state;
		if (accept(pass, &state, callee, named, &found)) {
			pass->call_end = call->at + call->n;
			return list_add_found(&scan->found[callee], scan, &found);
		}
	}
	return named ? give_up(pass, &landed, callee, &found) : 0;
}

/* Reads all code in chunks that overlap. */
static int read_chunk(struct pass *pass, const struct elf_range *range, uint64_t at, size_t *ret_from)
{
	uint64_t before = MIN(at, (uint64_t)BEFORE);
	int r = elf_data(pass->scan->file, range->address + (at - before), pass->buf,
			 (size_t)MIN(before + CHUNK + AFTER, range->size - (at - before)), &pass->view.n);

	if (r < 0)
		return r;
	pass->view.code = pass->buf;
	pass->view.address = range->address + (at - before);
	*ret_from = (size_t)before;
	return 0;
}

static int pass_range(struct pass *pass, const struct elf_range *range)
{
	for (uint64_t at = 0; at < range->size; at += CHUNK) {
		struct stub_sight sight;
		size_t from, to;
		int r;

		if (pass->scan->scanned >= pass->scan->scanned_max) {
			pass->scan->skipped++;
			return 0;
		}
		r = read_chunk(pass, range, at, &from);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		to = MIN(pass->view.n, from + CHUNK);
		pass->scan->scanned += to - MIN(to, from);
		pass->call_end = 0;
		while (from < to && pass->scan->machine->see(&pass->view, pass->aim, from, to, &sight)) {
			from = sight.seen + 1;
			r = pass->fn(pass, &sight);
			if (r < 0)
				return r;
		}
		if (pass->view.n < CHUNK) /* the file ends here */
			break;
	}
	return 0;
}

static int run_pass(struct stub_scan *scan, enum stub_aim aim, sight_fn *fn, const struct hashmap *hosts)
{
	_cleanup_free_ uint8_t *buf = malloc(BEFORE + CHUNK + AFTER);
	struct pass pass = { .scan = scan, .aim = aim, .fn = fn, .hosts = hosts, .buf = buf };
	struct elf_range ranges[RANGES_MAX];
	size_t n;
	int r = elf_code_ranges(scan->file, ranges, ARRAY_SIZE(ranges), &n);

	if (!buf)
		return -ENOMEM;
	scan->scanned = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = pass_range(&pass, &ranges[i]);
	return r;
}

static int see_thunk(struct pass *pass, const struct stub_sight *sight)
{
	struct stub_scan *scan = pass->scan;
	uint64_t address = pass->view.address + sight->at;
	uint32_t callee;
	int r;

	if (sight->kind != STUB_JUMP_SLOT || !hashmap_get(&scan->words, sight->value, &callee))
		return 0;
	r = add_callee(scan, address, callee);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sight->starts) && sight->starts[i] != 0; i++)
		r = add_callee(scan, address - sight->starts[i], callee);
	return r;
}

int stub_scan_thunks(struct stub_scan *scan)
{
	return scan->words.count > 0 ? run_pass(scan, STUB_AIM_THUNKS, see_thunk, NULL) : 0;
}

static int see_call(struct pass *pass, const struct stub_sight *sight)
{
	const struct stub_scan *scan = pass->scan;
	uint32_t callee;

	if (sight->kind == STUB_CALL ?
		    scan->filter & filter_bit(sight->value) &&
			    hashmap_get(&scan->callees, sight->value, &callee) :
		    sight->kind == STUB_CALL_SLOT && hashmap_get(&scan->words, sight->value, &callee))
		return scan->only != STUB_CALLEES && scan->only != callee ?
			       0 :
			       take_call(pass, sight, callee, true);
	return 0;
}

int stub_scan_calls(struct stub_scan *scan)
{
	return scan->callees.count + scan->words.count > 0 ? run_pass(scan, STUB_AIM_CALLS, see_call, NULL) :
							     0;
}

/* The first call after an instruction. */
static bool next_call(struct pass *pass, size_t at, struct stub_sight *ret_call)
{
	size_t end = MIN(pass->view.n, at + AFTER);
	struct stub_state state = { 0 };

	if (stub_scan_over(pass->scan)) {
		pass->scan->skipped++;
		return false;
	}
	while (at < end) {
		struct stub_sight sight;
		size_t n;

		if (pass->scan->machine->see(&pass->view, STUB_AIM_CALLS, at, MIN(at + 2, end), &sight) &&
		    sight.at - sight.prefix == at && sight.kind == STUB_CALL) {
			*ret_call = sight;
			return true;
		}
		n = step(pass, at, &state);
		at += n;
	}
	return false;
}

static int see_minus_one(struct pass *pass, const struct stub_sight *sight)
{
	struct stub_sight call;

	if (sight->kind != STUB_MINUS_ONE || !next_call(pass, sight->at, &call))
		return 0;
	return take_call(pass, &call, STUB_REGISTER, false);
}

static int see_host(struct pass *pass, const struct stub_sight *sight)
{
	uint64_t host = sight->value;
	struct stub_sight call;

	if (sight->kind == STUB_CONSTANT_SLOT && !read_word(pass->scan, sight->value, &host))
		return 0;
	if (sight->kind != STUB_CONSTANT && sight->kind != STUB_CONSTANT_SLOT)
		return 0;
	if (!hashmap_get(pass->hosts, host, &(uint32_t){ 0 }) || !next_call(pass, sight->at, &call) ||
	    hashmap_get(&pass->scan->callees, call.value, &(uint32_t){ 0 }))
		return 0;
	return take_call(pass, &call, STUB_GET_KERNEL, false);
}

static int by_callee(const void *a, const void *b)
{
	const struct stub_found *x = a, *y = b;

	return x->callee != y->callee ? (x->callee > y->callee) - (x->callee < y->callee) :
					(x->site > y->site) - (x->site < y->site);
}

/* Keeps only calls of the most frequent callee; if two are equally frequent, none. */
static bool elect(struct stub_scan *scan, struct stub_list *list)
{
	size_t best = 0, best_n = 0;
	bool tie = false;

	if (list->n == 0)
		return false;
	qsort(list->items, list->n, sizeof(*list->items), by_callee);
	for (size_t i = 0, n; i < list->n; i += n) {
		for (n = 1; i + n < list->n && list->items[i + n].callee == list->items[i].callee;)
			n++;
		tie = n == best_n || (tie && n < best_n);
		if (n > best_n) {
			best = i;
			best_n = n;
		}
	}
	if (tie) {
		scan->skipped += list->n;
		best_n = 0;
	}
	memmove(list->items, list->items + best, best_n * sizeof(*list->items));
	list->n = best_n;
	return best_n > 0;
}

/* Once the function's address is known, calls with less evidence are accepted, too. */
static int calls_of_elected(struct stub_scan *scan, enum stub_callee callee)
{
	struct stub_list *list = &scan->found[callee];
	int r;

	if (!elect(scan, list))
		return 0;
	r = add_callee(scan, list->items[0].callee, callee);
	list->n = 0;
	scan->only = callee;
	if (r == 0)
		r = stub_scan_calls(scan);
	scan->only = STUB_CALLEES;
	return r;
}

int stub_scan_unnamed_register(struct stub_scan *scan)
{
	int r = run_pass(scan, STUB_AIM_MINUS_ONE, see_minus_one, NULL);

	return r < 0 ? r : calls_of_elected(scan, STUB_REGISTER);
}

int stub_scan_unnamed_get_kernel(struct stub_scan *scan, const struct hashmap *hosts)
{
	int r = run_pass(scan, STUB_AIM_CONSTANTS, see_host, hosts);

	return r < 0 ? r : calls_of_elected(scan, STUB_GET_KERNEL);
}

/* Mangled names, and what compilers make of static ones; in no language of the user's. */
static bool is_name(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$' ||
	       (!first && ((c >= '0' && c <= '9') || c == '.'));
}

int stub_scan_name(struct stub_scan *scan, uint64_t address, char *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t n = MIN(size - done, (size_t)NAME_PART);
		int r = elf_data(scan->file, address + done, buf + done, n, &n);

		if (r < 0)
			return r;
		if (n == 0)
			return -ENOENT;
		for (size_t i = done; i < done + n; i++) {
			if (buf[i] == '\0' && i > 0)
				return 0;
			if (!is_name(buf[i], i == 0))
				return -ENOENT;
		}
		done += n;
	}
	return -E2BIG;
}
