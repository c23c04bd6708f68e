// SPDX-License-Identifier: Apache-2.0
/*
 * arm64: instructions have a fixed size and are decoded by the masks of the architecture manual (DDI 0487,
 * C4.1).
 */
#include <elf.h>

#include "base/macro.h"
#include "cubin/stub_code.h"

enum { RD = 0x1f, LINK = 30, NONE = 31 };

#define CALLER_SAVED (UINT32_C(0x7ffff) | UINT32_C(1) << LINK)

static uint32_t word(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The @n bits from @from on as a signed number. */
static uint64_t field(uint32_t instruction, unsigned from, unsigned n)
{
	return (uint64_t)((int64_t)((uint64_t)instruction << (64 - from - n)) >> (64 - n));
}

static bool is_page(uint32_t instruction)
{
	return (instruction & 0x9f000000) == 0x90000000; /* adrp */
}

static uint64_t page(uint32_t instruction, uint64_t address)
{
	uint64_t pages = field(instruction, 5, 19) << 2 | (instruction >> 29 & 3);

	return (address & ~UINT64_C(0xfff)) + (pages << 12);
}

static bool is_add(uint32_t instruction)
{
	return (instruction & 0xff800000) == 0x91000000; /* add of 64 bits, a constant */
}

static uint64_t addend(uint32_t instruction)
{
	uint64_t n = instruction >> 10 & 0xfff;

	return instruction & 1 << 22 ? n << 12 : n;
}

static bool is_load(uint32_t instruction)
{
	return (instruction & 0xffc00000) == 0xf9400000; /* ldr of 64 bits, at a positive distance */
}

static uint64_t load_offset(uint32_t instruction)
{
	return (uint64_t)(instruction >> 10 & 0xfff) * 8;
}

/*
 * An address takes two instructions, with others between them: the second is the first one nearby that uses
 * the first one's register.
 */
static bool see_page(const struct stub_view *view, size_t at, uint32_t first, struct stub_sight *sight)
{
	enum { REACH = 8 };
	uint64_t base = page(first, view->address + at);
	unsigned reg = first & RD;

	for (size_t i = 1; i <= REACH && view->n - at >= (i + 1) * 4; i++) {
		uint32_t next = word(view->code + at + i * 4);

		if (is_page(next) && (next & RD) == reg)
			break;
		if ((is_add(next) || is_load(next)) && (next >> 5 & RD) == reg) {
			bool load = is_load(next);
			uint64_t value = base + (load ? load_offset(next) : addend(next));
			/* x16 and x17 are the linker's. */
			bool thunk = load && reg == 16 && (next & RD) == 17;

			*sight = (struct stub_sight){ .kind = thunk ? STUB_JUMP_SLOT :
							      load  ? STUB_CONSTANT_SLOT :
								      STUB_CONSTANT,
						      .at = at,
						      .n = 4,
						      .value = value,
						      .starts = { 4, 0 } };
			return true;
		}
	}
	return false;
}

static bool see_at(const struct stub_view *view, size_t at, struct stub_sight *sight)
{
	uint32_t instruction = word(view->code + at);

	if (is_page(instruction))
		return see_page(view, at, instruction, sight);
	if ((instruction & 0xfc000000) == 0x94000000) /* bl */
		*sight =
			(struct stub_sight){ .kind = STUB_CALL,
					     .at = at,
					     .n = 4,
					     .value = view->address + at + (field(instruction, 0, 26) << 2) };
	else if (instruction == 0x12800004) /* mov w4, #-1 */
		*sight = (struct stub_sight){ .kind = STUB_MINUS_ONE, .at = at, .n = 4 };
	else
		return false;
	return true;
}

static bool see(const struct stub_view *view, _unused_ enum stub_aim aim, size_t from, size_t to,
		struct stub_sight *ret_sight)
{
	size_t at = from + (size_t)(-(view->address + from) & 3);

	for (; at < to && view->n - at >= 4; at += 4)
		if (see_at(view, at, ret_sight)) {
			ret_sight->seen = at;
			return true;
		}
	return false;
}

static void learn(struct stub_state *state, unsigned reg, uint64_t value)
{
	if (reg != NONE)
		stub_learn(state, reg, value);
}

static void register_forget(struct stub_state *state, unsigned reg)
{
	if (reg != NONE)
		stub_forget(state, UINT32_C(1) << reg);
}

/* Loads and stores at unknown addresses invalidate what they may write. */
static void forget_memory(uint32_t instruction, struct stub_state *state)
{
	unsigned target = instruction & RD, base = instruction >> 5 & RD, second = instruction >> 10 & RD;
	unsigned form = instruction >> 10 & 3;
	bool atomic;

	if ((instruction & 0x3a000000) == 0x28000000) { /* pairs */
		if (instruction & 1 << 22) {
			register_forget(state, target);
			register_forget(state, second);
		}
		if (instruction & 1 << 23) /* before or after, the base changes */
			register_forget(state, base);
		return;
	}
	atomic = (instruction & 0x3b200000) == 0x38200000 && form != 2;
	/* exclusive ones, and others that are rare */
	if ((instruction & 0x3a000000) != 0x38000000 || atomic) {
		register_forget(state, target);
		register_forget(state, base);
		register_forget(state, second);
		register_forget(state, instruction >> 16 & RD);
		return;
	}
	if (instruction >> 22 & 3)
		register_forget(state, target);
	if ((instruction & 0x3b200000) == 0x38000000 && (form & 1))
		register_forget(state, base);
}

/* Instructions with a known result; false: any other instruction. */
static bool follow_arm64(uint32_t instruction, uint64_t address, const struct stub_memory *memory,
			 struct stub_state *state)
{
	unsigned reg = instruction & RD, from = instruction >> 5 & RD;
	uint64_t value = 0;
	bool known = false;

	if (is_page(instruction)) {
		value = page(instruction, address);
		known = true;
	} else if ((instruction & 0x9f000000) == 0x10000000) { /* adr */
		value = address + (field(instruction, 5, 19) << 2 | (instruction >> 29 & 3));
		known = true;
	} else if (is_add(instruction)) {
		known = from != NONE && stub_knows(state, from, &value);
		value += addend(instruction);
	} else if (is_load(instruction)) {
		known = from != NONE && stub_knows(state, from, &value) &&
			memory->word(memory->of, value + load_offset(instruction), &value);
	} else if ((instruction & 0x7fe0ffe0) == 0x2a0003e0) { /* mov of a register */
		from = instruction >> 16 & RD;
		known = from == NONE || stub_knows(state, from, &value);
		value = instruction >> 31 ? value : (uint32_t)value;
		/* movn, movz */
	} else if ((instruction & 0x1f800000) == 0x12800000 && (instruction >> 29 & 1) == 0) {
		value = (uint64_t)(instruction >> 5 & 0xffff) << (instruction >> 21 & 3) * 16;
		value = instruction >> 30 & 1 ? value : ~value;
		value = instruction >> 31 ? value : (uint32_t)value;
		known = true;
	} else {
		return false;
	}
	register_forget(state, reg);
	if (known)
		learn(state, reg, value);
	return true;
}

static size_t pass_arm64(_unused_ void *decoder, const struct stub_view *view, size_t at,
			 const struct stub_memory *memory, struct stub_state *state)
{
	uint64_t address = view->address + at;
	uint32_t instruction;

	if (view->n - at < 4)
		return 0;
	instruction = word(view->code + at);
	/* bl, blr */
	if ((instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfe600000) == 0xd6200000)
		stub_forget(state, CALLER_SAVED);
	else if ((instruction & 0xfc000000) == 0x14000000 ||
		 (instruction & 0xfe000000) == 0xd6000000) /* b, br, ret */
		stub_forget(state, UINT32_MAX);
	else if ((instruction & 0xff000010) == 0x54000000 ||
		 (instruction & 0x7c000000) == 0x34000000) /* b.cond; cbz, tbz and similar */
		;
	else if (follow_arm64(instruction, address, memory, state))
		;
	else if ((instruction & 0x0a000000) == 0x08000000)
		forget_memory(instruction, state);
	else
		register_forget(state, instruction & RD);
	return 4;
}

const struct stub_machine stub_arm64 = {
	.elf_machine = EM_AARCH64,
	.align = 4,
	.argument = { 0, 1, 2, 3, 4 },
	.see = see,
	.pass = pass_arm64,
};
