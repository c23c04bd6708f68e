// SPDX-License-Identifier: Apache-2.0
/*
 * Machine-dependent part of stub.c: finds calls, and arguments that are constants. Nothing is executed, and
 * only simple instructions are followed: a register's value is known or unknown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STUB_REGISTERS = 32, STUB_ARGUMENTS = 5 };

/* What was recognised at a position of the code, by its bytes only: it may be inside another instruction. */
enum stub_sight_kind {
	STUB_CALL, /* of an address */
	STUB_CALL_SLOT, /* of what a word of memory has */
	STUB_JUMP_SLOT, /* a jump to it: a linker's thunk (PLT) for another file's function */
	STUB_CONSTANT, /* an address, into a register */
	STUB_CONSTANT_SLOT, /* what a word of memory has, into a register */
	STUB_MINUS_ONE, /* into the register of the fifth argument */
};

/* What a pass searches for. */
enum stub_aim {
	STUB_AIM_THUNKS, /* STUB_JUMP_SLOT */
	STUB_AIM_CALLS, /* STUB_CALL, STUB_CALL_SLOT */
	STUB_AIM_CONSTANTS, /* STUB_CONSTANT, STUB_CONSTANT_SLOT */
	STUB_AIM_MINUS_ONE,
	STUB_AIMS
};

struct stub_sight {
	enum stub_sight_kind kind;
	size_t seen; /* by the byte here; others may be seen behind it */
	size_t at; /* where the instruction begins, */
	uint8_t prefix; /* or so many bytes earlier */
	size_t n; /* its bytes */
	uint64_t value; /* the address, or that of the word */
	/* of a jump: how many bytes earlier it may be entered, from the nearest; ended by 0 */
	uint8_t starts[4];
};

/* Bytes of the program, in a straight line. */
struct stub_view {
	const uint8_t *code;
	size_t n;
	uint64_t address; /* of the first, as linked */
};

/* What a word of memory has when the program runs; false: it is not known, or may change. */
struct stub_memory {
	bool (*word)(const void *of, uint64_t address, uint64_t *ret_value);
	const void *of;
};

/* Follows code without its branches: arguments of a call that is reached by a branch are not seen. */
struct stub_state {
	uint32_t known; /* by register */
	uint64_t value[STUB_REGISTERS];
};

struct stub_machine {
	uint16_t elf_machine;
	uint8_t align; /* of instructions */
	uint8_t argument[STUB_ARGUMENTS]; /* the register of each */
	/*
	 * The next thing seen that lies in [@from, @to), of these kinds and sometimes others; false: none.
	 * What it looks at ends with the view.
	 */
	bool (*see)(const struct stub_view *view, enum stub_aim aim, size_t from, size_t to,
		    struct stub_sight *ret_sight);
	/* Processes the instruction at @at and returns its bytes; 0: not a valid one. */
	size_t (*pass)(void *decoder, const struct stub_view *view, size_t at,
		       const struct stub_memory *memory, struct stub_state *state);
	int (*decoder_new)(void **ret_decoder); /* NULL: it needs none */
	void (*decoder_free)(void *decoder);
};

extern const struct stub_machine stub_x86, stub_arm64;

static inline void stub_forget(struct stub_state *state, uint32_t registers)
{
	state->known &= ~registers;
}

static inline void stub_learn(struct stub_state *state, unsigned reg, uint64_t value)
{
	state->known |= UINT32_C(1) << reg;
	state->value[reg] = value;
}

static inline bool stub_knows(const struct stub_state *state, unsigned reg, uint64_t *ret_value)
{
	if (!(state->known & UINT32_C(1) << reg))
		return false;
	*ret_value = state->value[reg];
	return true;
}
