// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the instruction of a function that a probe is placed on (its site). Other tools use the first byte,
 * which is expensive in NVIDIA's driver: the kernel single-steps the instruction there, at 17 to 33 times the
 * cost of one that it emulates. The site is instead the first instruction of the prologue that the running
 * kernel emulates or optimises. Every path through the function must pass it, and the instructions before it
 * must leave the argument registers unchanged and the stack offset known.
 *
 * This code has no state and does no I/O: it decides from the bytes and from the rules of the running kernel,
 * which trace/kernel_sites.h measures.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum site_class {
	SITE_EMULATED,
	SITE_OPTIMISED, /* rewritten into a call by the kernel: cheapest */
	SITE_SINGLE_STEP,
	SITE_REFUSED, /* the kernel accepts no probe here, or a probe would do harm */
	SITE_CLASSES,
};

/*
 * Instructions, grouped by how kernels treat a probe on them. Each kind has a specimen that is tried at
 * start.
 */
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
	SITE_KIND_OTHER, /* everything else: single-stepped out of line */
	SITE_KINDS,
};

/* Whether return probes may be used on this kernel (trace/kernel_sites_filter.h). */
enum site_returns {
	SITE_RETURNS_SAFE,
	SITE_RETURNS_KILL, /* processes under a seccomp filter */
	SITE_RETURNS_UNTRIED, /* the trial failed, so they may not be used */
};

struct site_rules {
	enum site_class by_kind[SITE_KINDS]; /* at a function's first byte */
	/*
	 * The kernel may rewrite nops into a call. They are then refused after a function's first byte, where
	 * data may lie below the stack pointer.
	 */
	bool nop_rewritten;
	enum site_returns returns;
	/* trace.allow_single_step; ignored on arm64, which always refuses single-stepped sites */
	bool allow_single_step;
	uint32_t entry_ns[SITE_CLASSES]; /* measured cost of a hit; 0: unknown */
	uint32_t return_ns[SITE_CLASSES]; /* entry and return */
};

struct site {
	uint32_t offset; /* from the function's first byte */
	enum site_kind kind;
	enum site_class class;
	bool chosen;
	bool may_return; /* the return address is where the kernel expects it: a return probe works */
	int32_t stack; /* bytes by which the stack pointer is below its value at entry */
	uint8_t length; /* of the instruction */
	uint32_t decoded; /* instructions, until it was chosen or refused; some of them several times */
	char instruction[64];
	char reason[160]; /* why it was chosen or refused */
};

/*
 * @code: the function's bytes from its first one on, not beyond its size; where the size is unknown, all
 * bytes up to the next function. @address: as linked. @machine: EM_X86_64 or EM_AARCH64; -EOPNOTSUPP for
 * another.
 *
 * A site lies within the first SITE_SCAN_MAX bytes. The first SITE_CODE_MAX bytes are searched for jumps to
 * it or before it, with which a call would hit it twice, and for reads of its bytes, which a probe changes.
 * The caller must check whether that covered the whole function.
 *
 * Always returns a site: a refused one has the reason. A refused site has the class of the function's first
 * byte: SITE_SINGLE_STEP where allow_single_step would choose it, else SITE_REFUSED.
 */
enum { SITE_SCAN_MAX = 128, SITE_CODE_MAX = 16 << 10 };
int site_choose(uint16_t machine, const uint8_t *code, size_t size, uint64_t address,
		const struct site_rules *rules, struct site *ret_site);

/*
 * Whether an instruction starts at byte @at of @code, decoded linearly from its first byte. False where
 * decoding fails before @at. SITE_INSTRUCTION_MAX: bytes of the longest instruction.
 */
enum { SITE_INSTRUCTION_MAX = 15 };
bool site_is_boundary(uint16_t machine, const uint8_t *code, size_t size, size_t at);

/* emulated, optimised, single_step, refused: the names in JSON */
const char *site_class_name(enum site_class class);
/* Rules that hold for all kernels, for where none can be measured (not root, a file of another machine). */
void site_rules_default(uint16_t machine, struct site_rules *ret_rules);
