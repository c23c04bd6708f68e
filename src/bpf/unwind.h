// SPDX-License-Identifier: Apache-2.0
/*
 * How native frames are unwound, shared by the kernel side and user space, which writes these maps:
 *
 *   spaces   hash by tgid: a process's areas
 *   areas    array: what is executable in a process's memory, by address; the rows of its file
 *   rows     array: from this instruction on, this rule; by address, each file once for all processes
 *   rules    array: where a caller's registers are; rows with equal ones share them
 *
 * The rules are those of .eh_frame, as far as compilers use them: the canonical frame address (CFA, the stack
 * pointer before the call) from the stack or the frame pointer, the return address and the caller's frame
 * pointer saved at a distance from it.
 */
#pragma once

#include "bpf/stack.h"

enum {
	UNWIND_SPACES = 4096,
	UNWIND_AREAS = 1 << 16,
	UNWIND_AREAS_OF_PROCESS = 4096,
	UNWIND_ROWS = 8 << 20, /* 64 MiB */
	UNWIND_RULES = 1 << 16,
	UNWIND_AREA_STEPS = 13, /* of a search in UNWIND_AREAS_OF_PROCESS, and in UNWIND_ROWS */
	UNWIND_ROW_STEPS = 24,
};

enum unwind_kind {
	UNWIND_NONE, /* no rule is known */
	UNWIND_END, /* nothing called it */
	UNWIND_SP, /* CFA = sp + cfa */
	UNWIND_FP, /* CFA = fp + cfa */
	UNWIND_SP_AT, /* CFA = what lies at sp + cfa */
	UNWIND_FP_AT, /* CFA = what lies at fp + cfa */
	UNWIND_PLT, /* x86-64: CFA = sp + 8, or + 16 from byte cfa of each 16 bytes of code on */
	UNWIND_SIGNAL, /* what a signal has interrupted; the kernel's layout */
};

enum unwind_saved {
	UNWIND_SAME, /* still in its register */
	UNWIND_AT_CFA, /* at the CFA + the offset */
	UNWIND_AT_FP, /* at the frame pointer + the offset */
};

struct unwind_rule {
	__s32 cfa, fp, ra;
	__u8 kind; /* enum unwind_kind */
	__u8 fp_saved, ra_saved; /* enum unwind_saved */
	__u8 pad;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "both sides must agree");

struct unwind_row {
	__u32 pc; /* from the base on */
	__u32 rule; /* index in `rules`; rule 0: UNWIND_NONE */
};

struct unwind_area {
	__u64 start, end;
	__u64 base; /* of the rows' addresses */
	__u32 first, rows; /* rows 0: there are none, see @none */
	__u32 space; /* as in struct unwind_space; of another one: it is used again */
	__u32 none; /* enum trace_native_stop */
};
_Static_assert(sizeof(struct unwind_area) == 40, "both sides must agree");

struct unwind_space {
	__u32 first, n; /* areas */
	__u32 space; /* its number */
	__u32 pad;
};
