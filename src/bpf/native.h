// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: walks the native frames of the current thread, by the rules that user space has read
 * from .eh_frame (bpf/unwind.h), and by frame pointers where there are none. What a process has on its stack
 * is read with bounds, and can only make its own stacks wrong. Where the walk stops, and why, is told.
 *
 * The functions that are not static: as in shares.h.
 */
#pragma once

#include "bpf/native_tables.h"
#include "bpf/python_walk.h"

enum { UNWIND_FRAME_MAX = 1 << 20 /* bytes of a frame that a frame pointer may span */ };

/* The registers that a signal has interrupted, if @kind or the code at the frame's address says so. */
static __always_inline bool native_signal(struct native *native, __u8 kind)
{
	__u64 code = 0, sp = native->sp;

	if (kind != UNWIND_SIGNAL) {
		bpf_probe_read_user(&code, sizeof(code), (void *)native->ip);
		if (code != SIGNAL_RETURN_CODE)
			return false;
	}
	if (bpf_probe_read_user(&native->ip, sizeof(native->ip), (void *)(sp + SIGNAL_IP)) ||
	    bpf_probe_read_user(&native->sp, sizeof(native->sp), (void *)(sp + SIGNAL_SP)) ||
	    bpf_probe_read_user(&native->fp, sizeof(native->fp), (void *)(sp + SIGNAL_FP)))
		native->stop = TRACE_NATIVE_UNREAD;
	if (SIGNAL_LINK)
		bpf_probe_read_user(&native->link, sizeof(native->link), (void *)(sp + SIGNAL_LINK));
	native->called = 0;
	return true;
}

/*
 * A caller by frame pointers, if they lead up the stack to code: a guess, which is told. Else the stop that
 * @why says. What has rules that are not known here is not guessed: it may use the register for anything.
 */
static __always_inline void native_by_pointer(__u64 id, struct native *native, __u32 why)
{
	__u64 pair[2] = { 0, 0 }, fp = native->fp;

	native->stop = why;
	if (why == TRACE_NATIVE_PENDING || why == TRACE_NATIVE_FULL || why == TRACE_NATIVE_CROWDED)
		return;
	if (fp < native->sp || fp - native->sp > UNWIND_FRAME_MAX || fp & 7 ||
	    bpf_probe_read_user(pair, sizeof(pair), (void *)fp))
		return;
	if (native->returns)
		pair[1] = native_returned(id, fp + sizeof(pair) - RETURN_POPS, pair[1]);
	pair[1] = CODE_ADDRESS(pair[1]);
	if (!pair[1] || (pair[0] && pair[0] <= fp) || !native_area(id, pair[1] - 1))
		return;
	native->ip = pair[1];
	native->sp = fp + sizeof(pair);
	native->fp = pair[0];
	native->called = 1;
	native->stop = 0;
	if (!native->guessed)
		native->guessed = native->n;
}

/* The CFA of the frame by its rule; 0: it cannot be read. */
static __always_inline __u64 native_cfa(const struct native *native, const struct unwind_rule *rule)
{
	__u64 sp = native->sp, cfa = 0;

	switch (rule->kind) {
	case UNWIND_SP:
		return sp + (__s64)rule->cfa;
	case UNWIND_FP:
		return native->fp + (__s64)rule->cfa;
	case UNWIND_SP_AT:
		bpf_probe_read_user(&cfa, sizeof(cfa), (void *)(sp + (__s64)rule->cfa));
		return cfa;
	case UNWIND_FP_AT:
		bpf_probe_read_user(&cfa, sizeof(cfa), (void *)(native->fp + (__s64)rule->cfa));
		return cfa;
	case UNWIND_PLT:
		return sp + ((native->ip & 15) >= (__u32)rule->cfa ? 16 : 8);
	}
	return 0;
}

/* From a frame with this rule to its caller. */
static __always_inline void native_by_rule(__u64 id, struct native *native, const struct unwind_rule *rule)
{
	__u64 cfa = native_cfa(native, rule), address = native->link, fp = native->fp;

	/* In a function that has just begun, and has the return address in a register, it is the same. */
	if (cfa < native->sp || (cfa == native->sp && (native->called || RETURN_ON_STACK))) {
		native->stop = cfa ? TRACE_NATIVE_BROKEN : TRACE_NATIVE_UNREAD;
		return;
	}
	if (rule->ra_saved == UNWIND_AT_CFA) {
		if (bpf_probe_read_user(&address, sizeof(address), (void *)(cfa + (__s64)rule->ra)))
			native->stop = TRACE_NATIVE_UNREAD;
	} else if (native->called) {
		native->stop = TRACE_NATIVE_BROKEN; /* a call has overwritten the register */
	}
	if (rule->fp_saved != UNWIND_SAME) {
		__u64 from = (rule->fp_saved == UNWIND_AT_CFA ? cfa : fp) + (__s64)rule->fp;

		if (bpf_probe_read_user(&native->fp, sizeof(native->fp), (void *)from))
			native->stop = TRACE_NATIVE_UNREAD;
	}
	if (native->returns)
		address = native_returned(id, cfa - RETURN_POPS, address);
	native->ip = CODE_ADDRESS(address);
	native->sp = cfa;
	native->called = 1;
}

/* Adds the frame that the walk has reached, and goes on to its caller. False: the walk has ended. */
__noinline int native_step(__u64 id)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct native *native;
	struct native_met *met;
	const struct unwind_rule *rule = NULL;
	__u32 at = 0;
	__u64 pc, n, offset;

	if (!walk)
		return 0;
	native = &walk->native;
	if (!native->ip) {
		native->stop = TRACE_NATIVE_END;
		return 0;
	}
	n = native->n;
	SHOW_BOUND(n);
	if (n >= TRACE_STACK_MAX) {
		native->stop = TRACE_NATIVE_CUT;
		return 0;
	}
	pc = native->ip - (native->called ? 1 : 0);
	native->pcs[n] = pc;
	if (pc - native->loop < native->loop_n || pc - native->part < native->part_n)
		bit_set(native->loops, n);
	native->n = n + 1;
	native->hash = hash_mix(native->hash, pc);
	native->stop = 0;
	met = &native->met[(pc >> 1 ^ pc >> 8) & (NATIVE_MET - 1)];
	if (native->space && met->space == native->space && met->pc == pc) {
		at = met->rule;
		native->area.space = native->space;
	} else {
		if ((pc < native->area.start || pc >= native->area.end) && !native_area(id, pc)) {
			if (!native_signal(native, UNWIND_NONE))
				native->stop = TRACE_NATIVE_UNMAPPED;
			return !native->stop;
		}
		offset = pc - native->area.base;
		if (native->area.rows && offset <= (__u32)-1)
			at = row_search(native->area.first, native->area.rows, offset);
		met->pc = pc;
		met->space = at && native->area.space == native->space ? native->space : 0;
		met->rule = at;
	}
	rule = bpf_map_lookup_elem(&rules, &at);
	if (!rule)
		return 0;
	if (rule->kind == UNWIND_END) {
		native->stop = TRACE_NATIVE_END;
		return 0;
	}
	if (rule->kind == UNWIND_NONE || rule->kind == UNWIND_SIGNAL) {
		if (!native_signal(native, rule->kind))
			native_by_pointer(id, native,
					  native->area.rows ? TRACE_NATIVE_NO_RULE : native->area.none);
	} else {
		native_by_rule(id, native, rule);
	}
	return !native->stop;
}

/* From where the probe was hit to the function's caller, by its rule and no guess. False: none is known. */
static __always_inline int native_leave(__u64 id)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);

	if (!walk)
		return 0;
	walk->native.called = 0;
	if (!native_step(id) || walk->native.guessed)
		return 0;
	walk->native.n = 0;
	walk->native.hash = 0;
	walk->native.loops[0] = 0;
	return 1;
}

/* Walks from the function that has called the probed one. False: there is no walk. */
__noinline int native_walk(__u64 id)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	const struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	const struct registers *at;
	struct native *native;
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	__u64 address;

	if (!thread || !walk)
		return 0;
	at = &thread->registers;
	native = &walk->native;
	native->returns = (__u64)BPF_CORE_READ(task, utask, return_instances);
	native->ip = at->ip;
	native->sp = at->sp;
	native->fp = at->fp;
	native->link = at->link;
	native->called = 1;
	native->space = native_space(id);
	native->loop = python ? python->loop : 0;
	native->loop_n = python ? python->loop_n : 0;
	native->part = python ? python->part : 0;
	native->part_n = python ? python->part_n : 0;
	native->loops[0] = native->loops[1] = 0;
	native->hash = 0;
	native->n = 0;
	native->guessed = 0;
	native->area.start = native->area.end = 0;
	native->area.space = 0;
	/* A probe behind what has moved the stack pointer may be behind what has set the frame pointer. */
	if (at->entry_sp && (at->entry_sp == at->sp || !native_leave(id))) {
		native->returns = (__u64)BPF_CORE_READ(task, utask, return_instances);
		address = return_address(at->link, at->entry_sp);
		if (native->returns)
			address = native_returned(id, at->entry_sp, address);
		native->ip = CODE_ADDRESS(address);
		native->sp = at->entry_sp + RETURN_POPS;
		native->fp = at->fp;
		native->called = 1;
		native->hash = 0;
		native->n = 0;
		native->guessed = 0;
		native->loops[0] = 0;
	}
	for (__u32 i = 0; i <= TRACE_STACK_MAX; i++)
		if (!native_step(id))
			break;
	return 1;
}
