// SPDX-License-Identifier: Apache-2.0
#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "cubin/stub_code.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

#define BIT(reg) (UINT32_C(1) << (reg))
#define CALLER_SAVED \
	(BIT(RAX) | BIT(RCX) | BIT(RDX) | BIT(RSI) | BIT(RDI) | BIT(R8) | BIT(R9) | BIT(R10) | BIT(R11))

struct decoder {
	csh handle;
	cs_insn *insn;
};

static uint32_t word(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* First or second bytes of relevant instructions, to skip other code quickly. */
static const bool interesting[STUB_AIMS][256] = {
	[STUB_AIM_CALLS] = { [0xe8] = true, [0xff] = true },
	[STUB_AIM_CONSTANTS] = { [0x8d] = true, [0x8b] = true, [0xb8 ... 0xbf] = true },
};
/* Where there is only one of them. */
static const uint8_t only[STUB_AIMS] = { [STUB_AIM_THUNKS] = 0xff, [STUB_AIM_MINUS_ONE] = 0x41 };

/* A constant that an instruction at @at has in its four bytes, counted from the next instruction. */
static uint64_t relative(const struct stub_view *view, size_t at, size_t n)
{
	return view->address + at + n + (uint64_t)(int64_t)(int32_t)word(view->code + at + n - 4);
}

static bool see_slot(const struct stub_view *view, size_t at, struct stub_sight *sight)
{
	uint8_t form = view->n - at >= 6 ? view->code[at + 1] : 0;

	if (form != 0x15 && form != 0x25)
		return false;
	/* With endbr64 or a bnd before it, or both, and without. */
	*sight = (struct stub_sight){ .kind = form == 0x15 ? STUB_CALL_SLOT : STUB_JUMP_SLOT,
				      .at = at,
				      .n = 6,
				      .value = relative(view, at, 6),
				      .starts = { 1, 4, 5, 0 } };
	return true;
}

/*
 * lea and mov from an address relative to the next instruction's, which compilers always give a 64-bit
 * register.
 */
static bool see_address(const struct stub_view *view, size_t at, struct stub_sight *sight)
{
	if (at == 0 || view->n - at < 6 || (view->code[at - 1] & 0xfb) != 0x48 ||
	    (view->code[at + 1] & 0xc7) != 0x05)
		return false;
	*sight = (struct stub_sight){ .kind = view->code[at] == 0x8d ? STUB_CONSTANT : STUB_CONSTANT_SLOT,
				      .at = at - 1,
				      .n = 7,
				      .value = relative(view, at - 1, 7) };
	return true;
}

/* mov $-1, %r8d or or $-1, %r8d. */
static bool see_minus_one(const struct stub_view *view, size_t at, struct stub_sight *sight)
{
	static const uint8_t mov[] = { 0x41, 0xb8, 0xff, 0xff, 0xff, 0xff },
			     or_[] = { 0x41, 0x83, 0xc8, 0xff };
	const uint8_t *code = view->code + at;
	size_t left = view->n - at;

	if (left >= sizeof(mov) && memcmp(code, mov, sizeof(mov)) == 0)
		*sight = (struct stub_sight){ .kind = STUB_MINUS_ONE, .at = at, .n = sizeof(mov) };
	else if (left >= sizeof(or_) && memcmp(code, or_, sizeof(or_)) == 0)
		*sight = (struct stub_sight){ .kind = STUB_MINUS_ONE, .at = at, .n = sizeof(or_) };
	else
		return false;
	return true;
}

static bool see_at(const struct stub_view *view, size_t at, struct stub_sight *sight)
{
	uint8_t opcode = view->code[at];

	if (opcode == 0xff)
		return see_slot(view, at, sight);
	if (opcode == 0x41)
		return see_minus_one(view, at, sight);
	if (opcode == 0x8d || opcode == 0x8b)
		return see_address(view, at, sight);
	if (view->n - at < 5)
		return false;
	/* Linkers put a prefix before a call that replaces a longer one through memory. */
	if (opcode == 0xe8)
		*sight = (struct stub_sight){ .kind = STUB_CALL,
					      .at = at,
					      .prefix = at > 0 && view->code[at - 1] == 0x67,
					      .n = 5,
					      .value = relative(view, at, 5) };
	else
		*sight = (struct stub_sight){
			.kind = STUB_CONSTANT, .at = at, .n = 5, .value = word(view->code + at + 1)
		};
	return true;
}

static size_t next(const struct stub_view *view, enum stub_aim aim, size_t from, size_t to)
{
	const uint8_t *found;

	if (only[aim] == 0) {
		while (from < to && !interesting[aim][view->code[from]])
			from++;
		return from;
	}
	found = memchr(view->code + from, only[aim], to - from);
	return found ? (size_t)(found - view->code) : to;
}

static bool see(const struct stub_view *view, enum stub_aim aim, size_t from, size_t to,
		struct stub_sight *ret_sight)
{
	for (size_t at = from; at < to; at++) {
		at = next(view, aim, at, to);
		if (at < to && see_at(view, at, ret_sight)) {
			ret_sight->seen = at;
			return true;
		}
	}
	return false;
}

/* Number and bytes of general registers. */
static int number(unsigned reg, unsigned *ret_bytes)
{
#define REGISTER(n, r64, r32, r16, r8)                                                                  \
	[X86_REG_##r64] = { n + 1, 8 }, [X86_REG_##r32] = { n + 1, 4 }, [X86_REG_##r16] = { n + 1, 2 }, \
	[X86_REG_##r8] = {                                                                              \
		n + 1,                                                                                  \
		1                                                                                       \
	}
	static const struct {
		uint8_t number, bytes;
	} registers[X86_REG_ENDING] = {
		REGISTER(0, RAX, EAX, AX, AL),
		REGISTER(1, RCX, ECX, CX, CL),
		REGISTER(2, RDX, EDX, DX, DL),
		REGISTER(3, RBX, EBX, BX, BL),
		REGISTER(4, RSP, ESP, SP, SPL),
		REGISTER(5, RBP, EBP, BP, BPL),
		REGISTER(6, RSI, ESI, SI, SIL),
		REGISTER(7, RDI, EDI, DI, DIL),
		REGISTER(8, R8, R8D, R8W, R8B),
		REGISTER(9, R9, R9D, R9W, R9B),
		REGISTER(10, R10, R10D, R10W, R10B),
		REGISTER(11, R11, R11D, R11W, R11B),
		REGISTER(12, R12, R12D, R12W, R12B),
		REGISTER(13, R13, R13D, R13W, R13B),
		REGISTER(14, R14, R14D, R14W, R14B),
		REGISTER(15, R15, R15D, R15W, R15B),
		[X86_REG_AH] = { 1, 1 },
		[X86_REG_CH] = { 2, 1 },
		[X86_REG_DH] = { 3, 1 },
		[X86_REG_BH] = { 4, 1 },
	};

	if (reg >= X86_REG_ENDING || registers[reg].number == 0)
		return -1;
	*ret_bytes = registers[reg].bytes;
	return registers[reg].number - 1;
}

/* The address that a memory operand is. */
static bool address_of(const struct stub_state *state, const cs_insn *insn, const x86_op_mem *mem,
		       uint64_t *ret_address)
{
	unsigned bytes;
	uint64_t base;
	int reg;

	if (mem->index != X86_REG_INVALID || mem->segment != X86_REG_INVALID)
		return false;
	if (mem->base == X86_REG_RIP) {
		base = insn->address + insn->size;
	} else if (mem->base == X86_REG_INVALID) {
		base = 0;
	} else {
		reg = number(mem->base, &bytes);
		if (reg < 0 || bytes != 8 || !stub_knows(state, (unsigned)reg, &base))
			return false;
	}
	*ret_address = base + (uint64_t)mem->disp;
	return true;
}

/* The value that is moved into a register. */
static bool value_of(const struct stub_state *state, const cs_insn *insn, const cs_x86_op *op,
		     const struct stub_memory *memory, uint64_t *ret_value)
{
	unsigned bytes;
	uint64_t address;
	int reg;

	switch (op->type) {
	case X86_OP_IMM:
		*ret_value = (uint64_t)op->imm;
		return true;
	case X86_OP_REG:
		reg = number(op->reg, &bytes);
		return reg >= 0 && stub_knows(state, (unsigned)reg, ret_value);
	case X86_OP_MEM:
		return op->size == 8 && address_of(state, insn, &op->mem, &address) &&
		       memory->word(memory->of, address, ret_value);
	default:
		return false;
	}
}

static bool result_of(const struct stub_state *state, const cs_insn *insn, const struct stub_memory *memory,
		      uint64_t *ret_value)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *from = &x86->operands[1];

	if (x86->op_count != 2)
		return false;
	switch (insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		return value_of(state, insn, from, memory, ret_value);
	case X86_INS_LEA:
		return from->type == X86_OP_MEM && address_of(state, insn, &from->mem, ret_value);
	case X86_INS_XOR:
	case X86_INS_SUB:
		*ret_value = 0;
		return from->type == X86_OP_REG && from->reg == x86->operands[0].reg;
	case X86_INS_OR:
		*ret_value = UINT64_MAX;
		return from->type == X86_OP_IMM && (uint32_t)from->imm == UINT32_MAX;
	default:
		return false;
	}
}

/* All registers that an instruction may change become unknown, except for a simple, known result. */
static void follow_x86(const cs_insn *insn, const struct stub_memory *memory, struct stub_state *state)
{
	const cs_detail *d = insn->detail;
	const cs_x86_op *to = &d->x86.operands[0];
	unsigned bytes = 0;
	uint64_t value = 0;
	int reg = d->x86.op_count > 0 && to->type == X86_OP_REG ? number(to->reg, &bytes) : -1;
	bool known = reg >= 0 && bytes >= 4 && result_of(state, insn, memory, &value);

	for (uint8_t i = 0; i < d->regs_write_count; i++) {
		unsigned n;
		int written = number(d->regs_write[i], &n);

		if (written >= 0)
			stub_forget(state, BIT(written));
	}
	for (uint8_t i = 0; i < d->x86.op_count; i++) {
		const cs_x86_op *op = &d->x86.operands[i];
		unsigned n;
		int written = op->type == X86_OP_REG && op->access != CS_AC_READ ? number(op->reg, &n) : -1;

		if (written >= 0)
			stub_forget(state, BIT(written));
	}
	if (known)
		stub_learn(state, (unsigned)reg, bytes == 4 ? (uint32_t)value : value);
}

static bool in_group(const cs_insn *insn, uint8_t group)
{
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

static size_t pass_x86(void *userdata, const struct stub_view *view, size_t at,
		       const struct stub_memory *memory, struct stub_state *state)
{
	struct decoder *decoder = userdata;
	const uint8_t *code = view->code + at;
	uint64_t address = view->address + at;
	size_t left = view->n - at;
	cs_insn *insn = decoder->insn;

	if (!cs_disasm_iter(decoder->handle, &code, &left, &address, insn))
		return 0;
	if (in_group(insn, X86_GRP_CALL)) {
		stub_forget(state, CALLER_SAVED);
	} else if (insn->id == X86_INS_JMP || insn->id == X86_INS_UD2 || insn->id == X86_INS_HLT ||
		   in_group(insn, X86_GRP_RET)) {
		stub_forget(state, UINT32_MAX);
	} else if (!in_group(insn, X86_GRP_JUMP)) {
		follow_x86(insn, memory, state);
	}
	return insn->size;
}

static void decoder_free(void *userdata)
{
	struct decoder *decoder = userdata;

	if (decoder->insn)
		cs_free(decoder->insn, 1);
	cs_close(&decoder->handle);
	free(decoder);
}

static int decoder_new(void **ret_decoder)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->handle) != CS_ERR_OK) {
		free(decoder);
		return -ENOTSUP;
	}
	cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON);
	decoder->insn = cs_malloc(decoder->handle);
	if (!decoder->insn) {
		decoder_free(decoder);
		return -ENOMEM;
	}
	*ret_decoder = decoder;
	return 0;
}

const struct stub_machine stub_x86 = {
	.elf_machine = EM_X86_64,
	.align = 1,
	.argument = { RDI, RSI, RDX, RCX, R8 },
	.see = see,
	.pass = pass_x86,
	.decoder_new = decoder_new,
	.decoder_free = decoder_free,
};
