// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "trace/site_scan.h"

#define NOP UINT32_C(0xd503201f)
#define HINT_MASK UINT32_C(0xfffff01f) /* of a hint (nop, bti, paciasp, ...), all bits but its number */
#define HINT NOP

/* Instructions are little-endian, whatever the byte order of data. */
static uint32_t word(const uint8_t *code)
{
	return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

/* The instructions that arch/arm64/kernel/probes/decode-insn.c simulates. */
static const struct form {
	uint32_t mask, value;
	enum site_kind kind;
	unsigned shift, bits; /* of the jump distance, in instructions; bits 0: not a jump */
} forms[] = {
	{ 0xfc000000, 0x14000000, SITE_KIND_JUMP, 0, 26 }, /* b */
	{ 0xfc000000, 0x94000000, SITE_KIND_CALL, 0, 26 }, /* bl */
	{ 0xff000010, 0x54000000, SITE_KIND_BRANCH, 5, 19 }, /* b.cond */
	{ 0x7e000000, 0x34000000, SITE_KIND_BRANCH, 5, 19 }, /* cbz, cbnz */
	{ 0x7e000000, 0x36000000, SITE_KIND_BRANCH, 5, 14 }, /* tbz, tbnz */
	{ 0x1f000000, 0x10000000, SITE_KIND_ADDRESS, 0, 0 }, /* adr, adrp */
	{ 0xffffffff, NOP, SITE_KIND_NOP1, 0, 0 },
};

static const struct form *form_of(uint32_t instruction)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if ((instruction & forms[i].mask) == forms[i].value)
			return &forms[i];
	return NULL;
}

static enum site_kind kind(const uint8_t *code, _unused_ size_t length)
{
	const struct form *form = form_of(word(code));

	return form ? form->kind : SITE_KIND_OTHER;
}

/* Single-stepped sites are never used on arm64, so it does not matter which ones the kernel would refuse. */
static bool refuses(_unused_ const cs_insn *insn)
{
	return false;
}

/*
 * The number of a general register; -1 for the stack pointer, the zero register and other registers.
 * @ret_bytes: size of its value.
 */
static int number(csh handle, unsigned reg, int *ret_bytes)
{
	/* capstone 5 names these two fp and lr */
	const char *name = reg == ARM64_REG_X29 ? "x29" :
			   reg == ARM64_REG_X30 ? "x30" :
						  cs_reg_name(handle, reg);
	unsigned n;
	char size, more;

	*ret_bytes = 0;
	if (!name || sscanf(name, "%c%u%c", &size, &n, &more) != 2)
		return -1;
	*ret_bytes = size == 'q' ? 16 : size == 'x' || size == 'd' ? 8 : size == 'w' || size == 's' ? 4 : 0;
	return size == 'x' || size == 'w' ? (int)n : -1;
}

/* Checks an operand that the instruction writes. */
static const char *check_register(struct site_scan *scan, csh handle, const cs_arm64_op *op)
{
	int bytes, n;

	if (op->type != ARM64_OP_REG)
		return "an instruction that is not analysed comes first";
	if (op->reg == ARM64_REG_SP || op->reg == ARM64_REG_WSP)
		return "the stack pointer moves in a way that is not analysed";
	n = number(handle, op->reg, &bytes);
	if (n >= 0 && n <= 7)
		return "an argument is overwritten first";
	if (n == 30)
		scan->link_intact = false;
	return NULL;
}

static const char *check_load(struct site_scan *scan, csh handle, const cs_insn *insn, unsigned registers)
{
	const cs_arm64 *a = &insn->detail->arm64;

	if (a->writeback)
		return "a load with writeback comes first, which is not analysed";
	for (unsigned i = 0; i < registers; i++) {
		const char *why = i < a->op_count ? check_register(scan, handle, &a->operands[i]) : NULL;

		if (why)
			return why;
	}
	return NULL;
}

/* Allows stores only to below the stack pointer's value at entry; [sp, #-N]! moves it first. */
static const char *check_store(struct site_scan *scan, csh handle, const cs_insn *insn, unsigned registers)
{
	static const char *const unknown = "memory that may be an argument is written first";
	const cs_arm64 *a = &insn->detail->arm64;
	const cs_arm64_op *mem = &a->operands[registers];
	int bytes = 0, all = 0;

	if (a->op_count != registers + 1 || mem->type != ARM64_OP_MEM || mem->mem.base != ARM64_REG_SP ||
	    mem->mem.index != ARM64_REG_INVALID || mem->mem.disp < -SITE_STACK_MAX ||
	    mem->mem.disp > SITE_STACK_MAX)
		return unknown;
	for (unsigned i = 0; i < registers; i++) {
		if (a->operands[i].reg == ARM64_REG_XZR || a->operands[i].reg == ARM64_REG_WZR)
			bytes = a->operands[i].reg == ARM64_REG_XZR ? 8 : 4;
		else if (number(handle, a->operands[i].reg, &bytes) == 30)
			scan->link_intact = false;
		if (bytes == 0)
			return unknown;
		all += bytes;
	}
	if (mem->mem.disp + all > scan->stack)
		return unknown;
	if (!a->writeback)
		return NULL;
	if (mem->mem.disp >= 0 || -mem->mem.disp > SITE_STACK_MAX - scan->stack)
		return "the stack pointer moves in a way that is not analysed";
	scan->stack -= mem->mem.disp;
	return NULL;
}

/* Checks an instruction that writes its first operand; applies sub sp, sp, #N. */
static const char *check_target(struct site_scan *scan, csh handle, const cs_insn *insn)
{
	const cs_arm64 *a = &insn->detail->arm64;

	if (a->op_count == 0)
		return "an instruction that is not analysed comes first";
	if (insn->id == ARM64_INS_SUB && a->op_count == 3 && a->operands[0].reg == ARM64_REG_SP &&
	    a->operands[1].reg == ARM64_REG_SP && a->operands[2].type == ARM64_OP_IMM &&
	    a->operands[2].shift.type == ARM64_SFT_INVALID && a->operands[2].imm > 0 &&
	    a->operands[2].imm <= SITE_STACK_MAX - scan->stack) {
		scan->stack += (int32_t)a->operands[2].imm;
		return NULL;
	}
	return check_register(scan, handle, &a->operands[0]);
}

/*
 * bti marks where calls may land. paciasp and pacibsp sign the link register, which then no longer holds a
 * plain return address.
 */
static const char *pass_hint(struct site_scan *scan, uint32_t instruction)
{
	unsigned hint = instruction >> 5 & 0x7f;

	if (hint == 0 || (hint & ~6U) == 32) /* nop; bti, with c, j or both */
		return NULL;
	if (hint == 25 || hint == 27) { /* paciasp, pacibsp */
		scan->link_intact = false;
		return NULL;
	}
	return "an instruction that is not analysed comes first";
}

static const char *pass(struct site_scan *scan, csh handle, const cs_insn *insn)
{
	uint32_t instruction = word(insn->bytes);

	if ((instruction & HINT_MASK) == HINT)
		return pass_hint(scan, instruction);
	switch (insn->id) {
	case ARM64_INS_CMP:
	case ARM64_INS_CMN:
	case ARM64_INS_TST:
	case ARM64_INS_CCMP:
		return NULL;
	case ARM64_INS_ADR:
	case ARM64_INS_ADRP:
	case ARM64_INS_MOV:
	case ARM64_INS_MOVZ:
	case ARM64_INS_MOVN:
	case ARM64_INS_MOVK:
	case ARM64_INS_ADD:
	case ARM64_INS_SUB:
	case ARM64_INS_AND:
	case ARM64_INS_ORR:
	case ARM64_INS_EOR:
	case ARM64_INS_LSL:
	case ARM64_INS_LSR:
	case ARM64_INS_UXTW:
	case ARM64_INS_SXTW:
	case ARM64_INS_MRS:
	case ARM64_INS_FMOV:
		return check_target(scan, handle, insn);
	case ARM64_INS_LDR:
	case ARM64_INS_LDUR:
	case ARM64_INS_LDRB:
	case ARM64_INS_LDRH:
	case ARM64_INS_LDRSW:
		return check_load(scan, handle, insn, 1);
	case ARM64_INS_LDP:
		return check_load(scan, handle, insn, 2);
	case ARM64_INS_STR:
	case ARM64_INS_STUR:
		return check_store(scan, handle, insn, 1);
	case ARM64_INS_STP:
		return check_store(scan, handle, insn, 2);
	case ARM64_INS_B:
	case ARM64_INS_BL:
	case ARM64_INS_BR:
	case ARM64_INS_BLR:
	case ARM64_INS_RET:
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
		return "control leaves before an instruction that the kernel emulates";
	}
	return "an instruction that is not analysed comes first";
}

/* The kernel replaces the return address in the link register, which a call would overwrite. */
static bool may_return(const struct site_scan *scan, enum site_kind kind_)
{
	return scan->link_intact && kind_ != SITE_KIND_CALL;
}

static bool jumped_to(const struct site_scan *scan, _unused_ csh handle)
{
	for (size_t at = 0; at + 4 <= scan->size; at += 4) {
		uint32_t instruction = word(scan->code + at);
		const struct form *form = form_of(instruction);

		if (!form || form->bits == 0)
			continue;
		/* the distance, sign-extended */
		int32_t distance =
			(int32_t)(instruction >> form->shift << (32 - form->bits)) >> (32 - form->bits);
		int64_t to = (int64_t)at + distance * INT64_C(4);

		/* a call to the first byte is recursion, which counts as a call */
		if (form->kind == SITE_KIND_CALL && to == 0)
			continue;
		if (to >= 0 && to <= (int64_t)scan->at && scan->starts[to])
			return true;
	}
	return false;
}

/*
 * Bytes read by ldr or ldrsw of a literal, into general or vector registers, from opc and V; 0 for others.
 * prfm reads nothing.
 */
static unsigned literal_bytes(uint32_t instruction)
{
	static const uint8_t bytes[] = { 4, 8, 4, 0, 4, 8, 16, 0 };

	return (instruction & 0x3b000000) == 0x18000000 ? bytes[(instruction >> 24 & 4) | instruction >> 30] :
							  0;
}

static bool reads_site(const struct site_scan *scan, _unused_ csh handle, _unused_ enum site_kind kind_)
{
	for (size_t at = 0; at + 4 <= scan->size; at += 4) {
		uint32_t instruction = word(scan->code + at);
		int64_t to = (int64_t)at + ((int32_t)(instruction << 8) >> 13) * INT64_C(4);

		if (to < (int64_t)scan->at + 4 && to + literal_bytes(instruction) > (int64_t)scan->at)
			return true;
	}
	return false;
}

static bool is_br(uint32_t instruction)
{
	return (instruction & 0xfffffc1f) == 0xd61f0000;
}

/* br, braa, ..., and ret through a register other than the link register. */
static bool is_indirect_jump(uint32_t instruction)
{
	bool returns = (instruction & 0xfffffc1f) == 0xd65f0000;

	return is_br(instruction) || (instruction & 0xfefff800) == 0xd61f0800 ||
	       (returns && instruction != 0xd65f03c0);
}

/* ldr, ldrb, ldrh, ldrsw, ... [register, register] */
static bool is_indexed_load(uint32_t instruction)
{
	return (instruction & 0x3b200c00) == 0x38200800;
}

/*
 * Whether the br at @at jumps through a slot at a fixed address: after adrp xM, page; ldr xN, [xM, #offset],
 * or after ldr xN, literal. NVIDIA's drivers since 535 have mov xK, xN in between.
 */
static bool is_through_slot(const uint8_t *code, size_t at)
{
	uint32_t jump = word(code + at), before = at >= 4 ? word(code + at - 4) : 0;
	unsigned to = jump >> 5 & 31;

	if (!is_br(jump))
		return false;
	if (at >= 4 && (before & 0xffe0ffff) == (0xaa0003e0 | to)) {
		to = before >> 16 & 31;
		at -= 4;
		before = at >= 4 ? word(code + at - 4) : 0;
	}
	if ((before & 31) != to)
		return false;
	if ((before & 0xff000000) == 0x58000000)
		return true;
	return (before & 0xffc00000) == 0xf9400000 && at >= 8 &&
	       (word(code + at - 8) & 0x9f00001f) == (0x90000000 | (before >> 5 & 31));
}

/* As on x86-64: any indirect jump but through a slot, and that too where a table is read. */
static bool jumps_by_table(const struct site_scan *scan, _unused_ csh handle)
{
	bool jump = false, load = false;

	for (size_t at = 0; at + 4 <= scan->size; at += 4) {
		if (is_indirect_jump(word(scan->code + at))) {
			if (!is_through_slot(scan->code, at))
				return true;
			jump = true;
		}
		load |= is_indexed_load(word(scan->code + at));
	}
	return jump && load;
}

/* No instruction that the kernel emulates does. */
static bool moves_stack(_unused_ enum site_kind kind_)
{
	return false;
}

const struct site_machine site_arm64 = {
	.elf_machine = EM_AARCH64,
	.arch = CS_ARCH_ARM64,
	.mode = CS_MODE_ARM,
	.single_step = false,
	.zeros = 4,
	.kind = kind,
	.refuses = refuses,
	.pass = pass,
	.may_return = may_return,
	.jumped_to = jumped_to,
	.reads_site = reads_site,
	.moves_stack = moves_stack,
	.jumps_by_table = jumps_by_table,
};
