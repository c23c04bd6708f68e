// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: what a walk of native frames looks up: the tables (bpf/unwind.h), and the return
 * addresses that probes have replaced. The functions that are not static: as in shares.h.
 */
#pragma once

#include "bpf/stack_maps.h"
#include "bpf/unwind.h"

enum { RETURN_INSTANCES = 64 /* MAX_URETPROBE_DEPTH in kernel/events/uprobes.c */ };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tgid */
	__type(value, struct unwind_space);
} spaces SEC(".maps");

/* User space writes these three; it sets their sizes, 1 where no native frames are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_area);
} areas SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} rules SEC(".maps");

/* Of @n areas, sorted, from @first on: the first one that ends above @address, or @first + @n. */
static __always_inline __u32 area_search(__u32 first, __u32 n, __u64 address)
{
	__u32 low = first, high = first + n;

	for (__u32 i = 0; i < UNWIND_AREA_STEPS; i++) {
		__u32 middle = low + (high - low) / 2;
		const struct unwind_area *area;

		if (low >= high)
			break;
		area = bpf_map_lookup_elem(&areas, &middle);
		if (!area)
			break;
		if (area->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of @n rows, sorted, from @first on: the rule of the last one that is not above @pc. */
__noinline __u32 row_search(__u32 first, __u32 n, __u32 pc)
{
	__u32 low = first, high = first + n, rule = 0;

	for (__u32 i = 0; i < UNWIND_ROW_STEPS; i++) {
		__u32 middle = low + (high - low) / 2;
		const struct unwind_row *row;

		if (low >= high)
			break;
		row = bpf_map_lookup_elem(&rows, &middle);
		if (!row)
			break;
		if (row->pc <= pc) {
			rule = row->rule;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return rule;
}

/* Finds the area of @pc in the process of @id, into its walk. False: there is none. */
__noinline int native_area(__u64 id, __u64 pc)
{
	__u32 tgid = id >> 32, at;
	const struct unwind_space *space = bpf_map_lookup_elem(&spaces, &tgid);
	const struct unwind_area *area;
	struct walk *walk;

	if (!space)
		return 0;
	at = area_search(space->first, space->n, pc);
	/* Looked up again, since what is kept during the search is a part of the stacks' 512 bytes. */
	tgid = id >> 32;
	space = bpf_map_lookup_elem(&spaces, &tgid);
	walk = bpf_map_lookup_elem(&walks, &id);
	if (!space || !walk || at - space->first >= space->n)
		return 0;
	area = bpf_map_lookup_elem(&areas, &at);
	if (!area || area->space != space->space || pc < area->start || pc >= area->end)
		return 0;
	walk->native.area = *area;
	return 1;
}

/* The number of the list of mappings of the process of @id; 0: it has none that is in use. */
__noinline __u32 native_space(__u64 id)
{
	__u32 tgid = id >> 32;
	const struct unwind_space *space = bpf_map_lookup_elem(&spaces, &tgid);
	const struct unwind_area *area;
	__u32 first, number;

	if (!space)
		return 0;
	first = space->first;
	number = space->space;
	area = bpf_map_lookup_elem(&areas, &first);
	return area && area->space == number ? number : 0;
}

/*
 * Where a return probe of anybody has replaced the return address at @slot (x86-64) or of the function whose
 * stack pointer was @slot (arm64): the address that it was; else @address.
 */
__noinline __u64 native_returned(__u64 id, __u64 slot, __u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct return_instance *instance;

	if (!walk)
		return address;
	instance = (void *)walk->native.returns;
	for (__u32 i = 0; i < RETURN_INSTANCES; i++) {
		__u64 stack;

		if (!instance)
			break;
		stack = BPF_CORE_READ(instance, stack);
		if (stack == slot) {
			address = BPF_CORE_READ(instance, orig_ret_vaddr);
			break;
		}
		if (stack > slot)
			break;
		instance = BPF_CORE_READ(instance, next);
	}
	walk->native.returns = (__u64)instance;
	return address;
}
