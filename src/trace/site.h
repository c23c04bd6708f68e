// SPDX-License-Identifier: Apache-2.0
/*
 * Where in a function a probe goes. The first byte is where every tool puts it, and in NVIDIA's driver it is
 * the dearest place there is: single-stepped, 17 to 33 times the cost of an instruction that the kernel
 * emulates. So: the first instruction of the prologue that the running kernel emulates or optimises, if every
 * path passes it and what stands before it provably leaves the argument registers alone and the stack offset
 * known.
 *
 * Pure: bytes in, a decision out. What this kernel does with each kind of instruction is given
 * (trace/kernel_sites.h finds out).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum site_class {
	SITE_EMULATED,
	SITE_OPTIMISED, /* rewritten into a call by the kernel: cheapest */
	SITE_SINGLE_STEP,
	SITE_REFUSED, /* the kernel takes no probe here, or one would do harm */
	SITE_CLASSES,
};

/* Instructions, by what kernels make of them. Each has a specimen that is tried at start. */
enum site_kind {
	SITE_KIND_PUSH, /* push reg (x86-64) */
	SITE_KIND_PUSH_EXTENDED, /* push r8..r15, with a prefix */
	SITE_KIND_JUMP, /* jmp rel; b (arm64) */
	SITE_KIND_BRANCH, /* jcc; b.cond, cbz, tbz (arm64) */
	SITE_KIND_CALL, /* call rel; bl */
	SITE_KIND_NOP1,
	SITE_KIND_NOP5,
	SITE_KIND_NOP10, /* 66 2e 0f 1f 84 ... */
	SITE_KIND_ADDRESS, /* adr, adrp (arm64) */
	SITE_KIND_OTHER, /* everything else: out of line */
	SITE_KINDS,
};

struct site_rules {
	enum site_class by_kind[SITE_KINDS]; /* at a function's first byte */
	/*
	 * nops may be rewritten into a call: refused in mid-function, where data may lie below the stack
	 * pointer
	 */
	bool nop_rewritten;
	/* trace.allow_single_step; without meaning on arm64, where refusal is absolute */
	bool allow_single_step;
	uint32_t entry_ns[SITE_CLASSES]; /* measured cost of a hit; 0 not known */
	uint32_t return_ns[SITE_CLASSES]; /* entry and return */
};

struct site {
	uint32_t offset; /* from the function's first byte */
	enum site_kind kind;
	enum site_class class;
	bool chosen;
	bool may_return; /* the return address is where the kernel looks for it: a return probe works */
	int32_t stack; /* bytes that the stack pointer lies below where it was at entry */
	uint8_t length; /* of the instruction */
	char instruction[64];
	char reason[160]; /* why it was chosen or refused */
};

/*
 * @code: the function's bytes from its first one on, not beyond its size; @address as linked. A site lies
 * within the first SITE_SCAN_MAX; all of them, up to SITE_CODE_MAX, are searched for jumps back to it or
 * before it, with which a call would hit it twice, and for reads of its bytes, which a probe changes. Whether
 * that was all of the function is for the caller to see; where its size is not known give all up to the next
 * one. @machine: EM_X86_64 or EM_AARCH64. Always gives a site: one that is refused says why. -EOPNOTSUPP:
 * another machine.
 *
 * A refused site has the class of the function's first byte: SITE_SINGLE_STEP where allow_single_step would
 * choose it, else SITE_REFUSED.
 */
enum { SITE_SCAN_MAX = 128, SITE_CODE_MAX = 16 << 10 };
int site_choose(uint16_t machine, const uint8_t *code, size_t size, uint64_t address,
		const struct site_rules *rules, struct site *ret_site);

/*
 * Whether code that begins at @code comes to its byte @at at an instruction's start, going straight on. What
 * cannot be followed does not. SITE_INSTRUCTION_MAX: so long is an instruction at most.
 */
enum { SITE_INSTRUCTION_MAX = 15 };
bool site_is_boundary(uint16_t machine, const uint8_t *code, size_t size, size_t at);

/* emulated, optimised, single_step, refused: as JSON has them */
const char *site_class_name(enum site_class class);
/* What is known of kernels in general, for where nothing can be tried (not root, another machine's file). */
void site_rules_default(uint16_t machine, struct site_rules *ret_rules);
