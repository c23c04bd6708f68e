// SPDX-License-Identifier: Apache-2.0
/*
 * Source of the semantics: the kernel's Documentation/bpf/standardization/instruction-set.rst.
 *
 * What the kernel gives back is what it runs, not what was loaded: calls of helpers are addresses within
 * the kernel, maps are numbers, and, if net.core.bpf_jit_harden is 2, constants are hidden by a register
 * that no loaded program may use. Such a program is unusable. Those of systemd, runc, crun, LXC and
 * libnvidia-container have none of it: they load three numbers and compare.
 */
#include "devcgroup/program.h"

#include <errno.h>
#include <string.h>

#define CTX_BASE (UINT64_C(1) << 40)
#define STACK_TOP (UINT64_C(1) << 41)
enum { STACK = 512, REGISTERS = 11 };

struct machine {
	uint64_t r[REGISTERS];
	uint8_t stack[STACK];
	uint8_t ctx[sizeof(struct bpf_cgroup_dev_ctx)];
};

const char *program_unusable(const struct bpf_insn *insns, unsigned n)
{
	if (n == 0)
		return "its instructions are hidden";
	for (unsigned i = 0; i < n; i++) {
		const struct bpf_insn *insn = &insns[i];
		unsigned class = BPF_CLASS(insn->code);

		if (insn->dst_reg >= REGISTERS || insn->src_reg >= REGISTERS)
			return "its constants are hidden (net.core.bpf_jit_harden is 2)";
		if ((class == BPF_JMP || class == BPF_JMP32) && BPF_OP(insn->code) == BPF_CALL)
			return "it calls functions of the kernel";
		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (insn->src_reg != 0)
				return "it uses maps";
			if (i + 1 == n || insns[i + 1].code != 0)
				return "it is damaged";
			i++;
		} else if (class == BPF_LD) {
			return "it has an instruction that is not known";
		}
	}
	return NULL;
}

/* ---- interpreter ---- */

static unsigned access_bytes(uint8_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	default:
		return 8;
	}
}

/* NULL: outside of the context and the stack. */
static uint8_t *memory_at(struct machine *m, uint64_t address, unsigned n, bool write)
{
	if (!write && address >= CTX_BASE && address - CTX_BASE <= sizeof(m->ctx) - n)
		return m->ctx + (address - CTX_BASE);
	if (address <= STACK_TOP - n && address >= STACK_TOP - STACK)
		return m->stack + (address - (STACK_TOP - STACK));
	return NULL;
}

static int run_load(struct machine *m, const struct bpf_insn *insn)
{
	unsigned n = access_bytes(insn->code);
	const uint8_t *at = memory_at(m, m->r[insn->src_reg] + (uint64_t)insn->off, n, false);
	uint64_t value = 0;

	if (BPF_MODE(insn->code) != BPF_MEM)
		return -ENOTSUP;
	if (!at)
		return -EFAULT;
	/* Both machines that gpusonde runs on are little-endian. */
	memcpy(&value, at, n);
	m->r[insn->dst_reg] = value;
	return 0;
}

static int run_store(struct machine *m, const struct bpf_insn *insn)
{
	unsigned n = access_bytes(insn->code);
	uint8_t *at = memory_at(m, m->r[insn->dst_reg] + (uint64_t)insn->off, n, true);
	uint64_t value = BPF_CLASS(insn->code) == BPF_ST ? (uint64_t)insn->imm : m->r[insn->src_reg];

	if (BPF_MODE(insn->code) != BPF_MEM)
		return -ENOTSUP;
	if (!at)
		return -EFAULT;
	memcpy(at, &value, n);
	return 0;
}

/* Both of 64 bits, or both of 32, zero-extended. */
static int calculate(uint8_t op, bool wide, uint64_t a, uint64_t b, uint64_t *ret_value)
{
	unsigned shift = (unsigned)(b & (wide ? 63 : 31));

	switch (op) {
	case BPF_ADD:
		*ret_value = a + b;
		return 0;
	case BPF_SUB:
		*ret_value = a - b;
		return 0;
	case BPF_MUL:
		*ret_value = a * b;
		return 0;
	case BPF_DIV:
		*ret_value = b ? a / b : 0;
		return 0;
	case BPF_MOD:
		*ret_value = b ? a % b : a;
		return 0;
	case BPF_OR:
		*ret_value = a | b;
		return 0;
	case BPF_AND:
		*ret_value = a & b;
		return 0;
	case BPF_XOR:
		*ret_value = a ^ b;
		return 0;
	case BPF_MOV:
		*ret_value = b;
		return 0;
	case BPF_LSH:
		*ret_value = a << shift;
		return 0;
	case BPF_RSH:
		*ret_value = a >> shift;
		return 0;
	case BPF_ARSH:
		*ret_value = wide ? (uint64_t)((int64_t)a >> shift) :
				    (uint64_t)(uint32_t)((int32_t)(uint32_t)a >> shift);
		return 0;
	case BPF_NEG:
		*ret_value = -a;
		return 0;
	default:
		return -ENOTSUP;
	}
}

/* The second operand, sign-extended if it is an immediate, cut to the width. */
static uint64_t operand(const struct machine *m, const struct bpf_insn *insn, bool wide)
{
	uint64_t value = BPF_SRC(insn->code) == BPF_X ? m->r[insn->src_reg] : (uint64_t)insn->imm;

	return wide ? value : (uint32_t)value;
}

static int run_alu(struct machine *m, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	uint64_t a = wide ? m->r[insn->dst_reg] : (uint32_t)m->r[insn->dst_reg], value;
	int r;

	if (insn->off != 0) /* signed division and sign-extending moves, of newer compilers */
		return -ENOTSUP;
	r = calculate(BPF_OP(insn->code), wide, a, operand(m, insn, wide), &value);
	if (r == 0)
		m->r[insn->dst_reg] = wide ? value : (uint32_t)value;
	return r;
}

static int holds(uint8_t op, uint64_t a, uint64_t b, int64_t sa, int64_t sb)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return (a & b) != 0;
	case BPF_JSGT:
		return sa > sb;
	case BPF_JSGE:
		return sa >= sb;
	case BPF_JSLT:
		return sa < sb;
	case BPF_JSLE:
		return sa <= sb;
	default:
		return -ENOTSUP;
	}
}

/* Whether it jumps, 0 or 1. */
static int run_jump(const struct machine *m, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_JMP;
	uint64_t a = wide ? m->r[insn->dst_reg] : (uint32_t)m->r[insn->dst_reg], b = operand(m, insn, wide);

	if (BPF_OP(insn->code) == BPF_JA)
		return wide ? 1 : -ENOTSUP;
	if (wide)
		return holds(BPF_OP(insn->code), a, b, (int64_t)a, (int64_t)b);
	return holds(BPF_OP(insn->code), a, b, (int32_t)(uint32_t)a, (int32_t)(uint32_t)b);
}

static int run_one(struct machine *m, const struct bpf_insn *insn, int64_t *at)
{
	int r;

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD: /* of 64 bits; program_unusable() has seen both parts */
		m->r[insn->dst_reg] = (uint32_t)insn[0].imm | (uint64_t)(uint32_t)insn[1].imm << 32;
		++*at;
		return 0;
	case BPF_LDX:
		return run_load(m, insn);
	case BPF_ST:
	case BPF_STX:
		return run_store(m, insn);
	case BPF_JMP:
	case BPF_JMP32:
		r = run_jump(m, insn);
		if (r == 1)
			*at += insn->off;
		return r < 0 ? r : 0;
	default:
		return run_alu(m, insn);
	}
}

int program_ask(const struct bpf_insn *insns, unsigned n, const struct bpf_cgroup_dev_ctx *ctx)
{
	struct machine m = { .r = { [1] = CTX_BASE, [10] = STACK_TOP } };
	int64_t at = 0;

	if (program_unusable(insns, n))
		return -ENOTSUP;
	memcpy(m.ctx, ctx, sizeof(m.ctx));
	for (unsigned steps = 0; steps < PROGRAM_STEPS; steps++) {
		const struct bpf_insn *insn;
		int r;

		if (at < 0 || at >= (int64_t)n)
			return -EFAULT;
		insn = &insns[at++];
		if (insn->code == (BPF_JMP | BPF_EXIT))
			return (uint32_t)m.r[0] != 0;
		r = run_one(&m, insn, &at);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

/* ---- our rules ---- */

#define INSN(code_, dst_, src_, off_, imm_)                                                                  \
	(struct bpf_insn)                                                                                    \
	{                                                                                                    \
		.code = (code_), .dst_reg = (dst_), .src_reg = (src_), .off = (int16_t)(off_), .imm = (imm_) \
	}
#define MOVE(dst_, imm_) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst_, 0, 0, imm_)
#define LOAD(dst_, member_) \
	INSN(BPF_LDX | BPF_MEM | BPF_W, dst_, 1, offsetof(struct bpf_cgroup_dev_ctx, member_), 0)

unsigned program_rules(const struct rules_said *said, struct bpf_insn ret_insns[static PROGRAM_RULES_MAX])
{
	const unsigned n = said->n, all = PROGRAM_FRAME + 2 * n, allow = all - 2;
	unsigned at = 0;

	ret_insns[at++] = MOVE(0, PROGRAM_MARK);
	ret_insns[at++] = MOVE(0, (int32_t)all);
	for (unsigned i = 0; i < sizeof(said->name); i += 4) {
		int32_t word;

		memcpy(&word, said->name + i, sizeof(word));
		ret_insns[at++] = MOVE(0, word);
	}
	ret_insns[at++] = MOVE(0, (int32_t)said->id);
	ret_insns[at++] = LOAD(2, access_type);
	ret_insns[at] = INSN(BPF_JMP | BPF_JSET | BPF_K, 2, 0, all - at - 1, ACCESS_MKNOD << 16);
	at++;
	ret_insns[at++] = INSN(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff);
	ret_insns[at] = INSN(BPF_JMP | BPF_JNE | BPF_K, 2, 0, all - at - 1, BPF_DEVCG_DEV_CHAR);
	at++;
	ret_insns[at++] = LOAD(3, major);
	ret_insns[at++] = LOAD(4, minor);
	for (unsigned i = 0; i < n; i++) {
		const struct wanted_device *d = &said->devices[i];

		ret_insns[at++] = INSN(BPF_JMP | BPF_JNE | BPF_K, 3, 0, 1, (int32_t)d->major);
		ret_insns[at] = d->minor == UINT32_MAX ? INSN(BPF_JMP | BPF_JA, 0, 0, allow - at - 1, 0) :
							 INSN(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, allow - at - 1,
							      (int32_t)d->minor);
		at++;
	}
	ret_insns[at++] = INSN(BPF_JMP | BPF_JA, 0, 0, 2, 0);
	ret_insns[at++] = MOVE(0, 1);
	ret_insns[at++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return at;
}

unsigned program_ours(const struct bpf_insn *insns, unsigned n, struct rules_said *ret_said)
{
	struct bpf_insn rules[PROGRAM_RULES_MAX];
	struct rules_said said = { 0 };
	unsigned all;

	if (n < PROGRAM_FRAME || insns[0].imm != PROGRAM_MARK)
		return 0;
	all = (unsigned)insns[1].imm;
	if (all < PROGRAM_FRAME || all > PROGRAM_RULES_MAX || all >= n || (all - PROGRAM_FRAME) % 2)
		return 0;
	for (unsigned i = 0; i < sizeof(said.name); i += 4)
		memcpy(said.name + i, &insns[PROGRAM_NAME_AT + i / 4].imm, 4);
	said.id = (uint32_t)insns[PROGRAM_ID_AT].imm;
	said.n = (all - PROGRAM_FRAME) / 2;
	for (unsigned i = 0; i < said.n; i++) {
		const struct bpf_insn *insn = &insns[PROGRAM_DEVICES_AT + 2 * i];

		said.devices[i].major = (uint32_t)insn[0].imm;
		said.devices[i].minor =
			insn[1].code == (BPF_JMP | BPF_JA) ? UINT32_MAX : (uint32_t)insn[1].imm;
	}
	program_rules(&said, rules);
	if (memcmp(rules, insns, all * sizeof(rules[0])) != 0)
		return 0;
	*ret_said = said;
	return all;
}
