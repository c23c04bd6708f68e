// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <string.h>

#include "base/macro.h"
#include "trace/site_scan.h"

static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const uint8_t nop10[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 };

static bool is_short_branch(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70;
}

static bool is_near_branch(const uint8_t *code)
{
	return code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
}

/*
 * Compares bytes, not decoded instructions: kernels treat an instruction with a prefix differently
 * (push_setup_xol_ops, branch_setup_xol_ops).
 */
static enum site_kind kind(const uint8_t *code, size_t length)
{
	if (length == 1 && (code[0] & 0xf8) == 0x50)
		return SITE_KIND_PUSH;
	if (length == 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50)
		return SITE_KIND_PUSH_EXTENDED;
	if ((length == 2 && code[0] == 0xeb) || (length == 5 && code[0] == 0xe9))
		return SITE_KIND_JUMP;
	if ((length == 2 && is_short_branch(code[0])) || (length == 6 && is_near_branch(code)))
		return SITE_KIND_BRANCH;
	if (length == 5 && code[0] == 0xe8)
		return SITE_KIND_CALL;
	if (length == 1 && code[0] == 0x90)
		return SITE_KIND_NOP1;
	if (length == sizeof(nop5) && memcmp(code, nop5, sizeof(nop5)) == 0)
		return SITE_KIND_NOP5;
	if (length == sizeof(nop10) && memcmp(code, nop10, sizeof(nop10)) == 0)
		return SITE_KIND_NOP10;
	return SITE_KIND_OTHER;
}

/* is_prefix_bad() and the opcodes that the tables in arch/x86/kernel/uprobes.c do not allow. */
static bool refuses(const cs_insn *insn)
{
	const cs_detail *d = insn->detail;

	for (size_t i = 0; i < ARRAY_SIZE(d->x86.prefix); i++)
		switch (d->x86.prefix[i]) {
		case X86_PREFIX_LOCK:
		case X86_PREFIX_CS:
		case X86_PREFIX_DS:
		case X86_PREFIX_ES:
		case X86_PREFIX_SS:
			return true;
		}
	for (uint8_t i = 0; i < d->groups_count; i++)
		if (d->groups[i] == X86_GRP_INT || d->groups[i] == X86_GRP_IRET ||
		    d->groups[i] == X86_GRP_PRIVILEGE)
			return true;
	switch (insn->id) {
	case X86_INS_HLT:
	case X86_INS_IN:
	case X86_INS_OUT:
	case X86_INS_INT1:
	case X86_INS_UD2:
		return true;
	}
	return false;
}

static bool is_argument(unsigned reg)
{
	switch (reg) {
	case X86_REG_RDI:
	case X86_REG_EDI:
	case X86_REG_DI:
	case X86_REG_DIL:
	case X86_REG_RSI:
	case X86_REG_ESI:
	case X86_REG_SI:
	case X86_REG_SIL:
	case X86_REG_RDX:
	case X86_REG_EDX:
	case X86_REG_DX:
	case X86_REG_DL:
	case X86_REG_DH:
	case X86_REG_RCX:
	case X86_REG_ECX:
	case X86_REG_CX:
	case X86_REG_CL:
	case X86_REG_CH:
	case X86_REG_R8:
	case X86_REG_R8D:
	case X86_REG_R8W:
	case X86_REG_R8B:
	case X86_REG_R9:
	case X86_REG_R9D:
	case X86_REG_R9W:
	case X86_REG_R9B:
		return true;
	default:
		return false;
	}
}

static bool is_stack_pointer(unsigned reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

/* A memory operand below the return address, relative to the stack pointer, whose offset is known. */
static bool is_own_stack(const struct site_scan *scan, const cs_x86_op *op)
{
	return op->mem.base == X86_REG_RSP && op->mem.index == X86_REG_INVALID &&
	       op->mem.segment == X86_REG_INVALID && op->size > 0 && op->mem.disp >= -SITE_STACK_MAX &&
	       op->mem.disp + op->size <= scan->stack;
}

/* Bytes by which sub rsp, N; add rsp, -N; or lea rsp, [rsp - N] grows the stack; 0 for other instructions. */
static int64_t grows_stack(const cs_insn *insn)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];

	if (insn->detail->x86.op_count != 2 || to->type != X86_OP_REG || to->reg != X86_REG_RSP)
		return 0;
	if (insn->id == X86_INS_SUB && from->type == X86_OP_IMM)
		return from->imm;
	if (insn->id == X86_INS_ADD && from->type == X86_OP_IMM && from->imm >= -SITE_STACK_MAX)
		return -from->imm;
	if (insn->id == X86_INS_LEA && from->mem.base == X86_REG_RSP && from->mem.index == X86_REG_INVALID &&
	    from->mem.disp >= -SITE_STACK_MAX)
		return -from->mem.disp;
	return 0;
}

static const char *grow(struct site_scan *scan, int64_t bytes)
{
	if (bytes <= 0 || bytes > SITE_STACK_MAX - scan->stack)
		return "the stack pointer moves in a way that is not analysed";
	scan->stack += (int32_t)bytes;
	return NULL;
}

/* Checks an instruction that writes only its first operand and flags. */
static const char *check_target(struct site_scan *scan, const cs_insn *insn)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	int64_t bytes = grows_stack(insn);

	if (bytes != 0)
		return grow(scan, bytes);
	if (insn->detail->x86.op_count < 1)
		return "an instruction that is not analysed comes first";
	if (to->type == X86_OP_REG && is_argument(to->reg))
		return "an argument is overwritten first";
	if (to->type == X86_OP_REG && is_stack_pointer(to->reg))
		return "the stack pointer moves in a way that is not analysed";
	if (to->type == X86_OP_MEM && !is_own_stack(scan, to))
		return "memory that may be an argument is written first";
	return NULL;
}

static const char *pass(struct site_scan *scan, _unused_ csh handle, const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_ENDBR64:
	case X86_INS_NOP:
	case X86_INS_CMP:
	case X86_INS_TEST:
		return NULL;
	case X86_INS_PUSH: /* with a 16-bit operand it moves the stack pointer by 2 */
		if (insn->detail->x86.prefix[2] == X86_PREFIX_OPSIZE)
			return "the stack pointer moves in a way that is not analysed";
		return grow(scan, 8);
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA:
	case X86_INS_ADD:
	case X86_INS_SUB:
	case X86_INS_AND:
	case X86_INS_OR:
	case X86_INS_XOR:
	case X86_INS_SHL:
	case X86_INS_SHR:
	case X86_INS_SAR:
	case X86_INS_NOT:
	case X86_INS_NEG:
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVUPD:
	case X86_INS_MOVDQA:
	case X86_INS_MOVDQU:
	case X86_INS_MOVD:
	case X86_INS_MOVQ:
	case X86_INS_PXOR:
	case X86_INS_XORPS:
	case X86_INS_XORPD:
		return check_target(scan, insn);
	}
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		switch (insn->detail->groups[i]) {
		case X86_GRP_JUMP:
		case X86_GRP_CALL:
		case X86_GRP_RET:
			return "control leaves before an instruction that the kernel emulates";
		}
	return "an instruction that is not analysed comes first";
}

/* The kernel takes the return address from the top of the stack. */
static bool may_return(const struct site_scan *scan, _unused_ enum site_kind kind_)
{
	return scan->stack == 0;
}

/*
 * The destination of the jump or call at @at; -1 if there is none. -1 also for a call to the first byte,
 * which is recursion and counts as a call.
 */
static int64_t target(const uint8_t *code, size_t at, size_t size, size_t *ret_end)
{
	int32_t distance;
	size_t length = 0;

	if (at + 2 <= size && (code[at] == 0xeb || is_short_branch(code[at]) || (code[at] & 0xfc) == 0xe0)) {
		*ret_end = at + 2;
		return (int64_t)at + 2 + (int8_t)code[at + 1];
	}
	if (at + 5 <= size && (code[at] == 0xe9 || code[at] == 0xe8))
		length = 5;
	else if (at + 6 <= size && is_near_branch(code + at))
		length = 6;
	if (length == 0)
		return -1;
	memcpy(&distance, code + at + length - sizeof(distance), sizeof(distance));
	*ret_end = at + length;
	int64_t to = (int64_t)*ret_end + distance;

	return code[at] == 0xe8 && to == 0 ? -1 : to;
}

static bool is_in(const cs_insn *insn, uint8_t group)
{
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

/* The function's instructions, decoded linearly from the entry, each at most once. */
struct decoding {
	csh handle;
	uint32_t *decoded;
	const uint8_t *p;
	size_t left;
	uint64_t end; /* of the last one */
	cs_insn *insn; /* the last one; NULL: out of memory */
};

static void decoding_init(struct decoding *d, const struct site_scan *scan, csh handle)
{
	*d = (struct decoding){ handle, scan->decoded, scan->code, scan->size, 0, cs_malloc(handle) };
}

static void decoding_done(struct decoding *d)
{
	if (d->insn)
		cs_free(d->insn, 1);
}

static bool decode_next(struct decoding *d)
{
	++*d->decoded;
	return d->insn && cs_disasm_iter(d->handle, &d->p, &d->left, &d->end, d->insn);
}

/*
 * Whether a jump or call, possibly with prefixes, has its opcode at @at and ends at @end. True where decoding
 * fails. Successive calls have a rising @at.
 */
static bool is_jump(struct decoding *d, size_t at, size_t end)
{
	while (d->end <= at)
		if (!decode_next(d))
			return true;
	return d->end == end && (is_in(d->insn, X86_GRP_JUMP) || is_in(d->insn, X86_GRP_CALL) ||
				 is_in(d->insn, X86_GRP_BRANCH_RELATIVE));
}

/*
 * Tries every byte as a jump's opcode, which is fast and rarely matches, and decodes only up to the last
 * match. A hostile function matches everywhere: so one decoding serves all matches.
 */
static bool jumped_to(const struct site_scan *scan, csh handle)
{
	struct decoding d;
	bool jumps = false;

	decoding_init(&d, scan, handle);
	for (size_t at = 0; !jumps && at + 2 <= scan->size; at++) {
		size_t end = 0;
		int64_t to = target(scan->code, at, scan->size, &end);

		jumps = to >= 0 && to <= (int64_t)scan->at && scan->starts[to] && is_jump(&d, at, end);
	}
	decoding_done(&d);
	return jumps;
}

/* Assumed size of an operand that capstone gives no size: a 512-bit vector. */
enum { OPERAND_MAX = 64 };

/* Whether it accesses one of the @length bytes at @at. @end: where the instruction ends. */
static bool is_at_site(const cs_insn *insn, uint64_t end, uint32_t at, size_t length)
{
	const cs_x86 *x = &insn->detail->x86;

	if (insn->id == X86_INS_LEA || insn->id == X86_INS_NOP)
		return false;
	for (uint8_t i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];
		int64_t to = (int64_t)end + (op->type == X86_OP_MEM ? op->mem.disp : 0);

		if (op->type == X86_OP_MEM && (op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP) &&
		    to < (int64_t)(at + length) && to + (op->size ? op->size : OPERAND_MAX) > (int64_t)at)
			return true;
	}
	return false;
}

/* How many bytes a probe changes: one, or the whole nop that the kernel turns into a call. */
static size_t changed(enum site_kind kind_)
{
	return kind_ == SITE_KIND_NOP5 ? sizeof(nop5) : kind_ == SITE_KIND_NOP10 ? sizeof(nop10) : 1;
}

/*
 * The end of the last bytes that may be an operand relative to rip near the site, judged by a ModRM byte and
 * the distance after it; 0: there is none.
 */
static size_t operands_end(const struct site_scan *scan, size_t length)
{
	size_t end = 0;

	for (size_t at = 2; at + 4 <= scan->size; at++) {
		int32_t distance;

		memcpy(&distance, scan->code + at, sizeof(distance));
		/* up to 4 bytes of an immediate may follow the distance */
		int64_t to = (int64_t)at + 4 + distance;

		if ((scan->code[at - 1] & 0xc7) == 5 && to + 4 + OPERAND_MAX > (int64_t)scan->at &&
		    to < (int64_t)(scan->at + length))
			end = at + 4;
	}
	return end;
}

/*
 * Finds candidates by bytes, which is fast, and decodes up to the last one. True where decoding fails before
 * it.
 */
static bool reads_site(const struct site_scan *scan, csh handle, enum site_kind kind_)
{
	size_t length = changed(kind_), end = operands_end(scan, length);
	struct decoding d;
	bool reads = false;

	if (end == 0)
		return false;
	decoding_init(&d, scan, handle);
	while (!reads && d.end < end && decode_next(&d))
		reads = is_at_site(d.insn, d.end, scan->at, length);
	decoding_done(&d);
	return reads || d.end < end;
}

/* jmp *register, jmp *memory: ff /4; ljmp *memory: ff /5. */
static bool has_indirect_jump(const uint8_t *code, size_t size)
{
	for (size_t at = 0; at + 2 <= size; at++)
		if (code[at] == 0xff && (code[at + 1] >> 4 & 3) == 2)
			return true;
	return false;
}

static bool is_slot(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP && op->mem.index == X86_REG_INVALID &&
	       op->mem.segment == X86_REG_INVALID;
}

/* mov slot(%rip), %register: the register. */
static unsigned slot_loaded(const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	return insn->id == X86_INS_MOV && op[0].type == X86_OP_REG && is_slot(&op[1]) ? op[0].reg :
											X86_REG_INVALID;
}

/* It jumps to an unknown address. @loaded: the register that the previous instruction loaded from a slot. */
static bool jumps_anywhere(const cs_insn *insn, unsigned loaded)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	if (insn->id == X86_INS_LJMP)
		return true;
	if (insn->id != X86_INS_JMP || op->type == X86_OP_IMM || is_slot(op))
		return false;
	return op->type != X86_OP_REG || op->reg != loaded;
}

/*
 * Jumps through a slot at a fixed address, as in thunks, do not count. Where decoding fails, any indirect
 * jump counts. Where the function also loads by index, a jump by register counts: another path may load that
 * register from a table.
 */
static bool jumps_by_table(const struct site_scan *scan, csh handle)
{
	unsigned loaded = X86_REG_INVALID;
	bool by_register = false, by_index = false, anywhere = false;
	struct decoding d;

	if (!has_indirect_jump(scan->code, scan->size))
		return false;
	decoding_init(&d, scan, handle);
	while (!anywhere && decode_next(&d)) {
		const cs_x86 *x = &d.insn->detail->x86;

		anywhere = jumps_anywhere(d.insn, loaded);
		loaded = slot_loaded(d.insn);
		by_register |= d.insn->id == X86_INS_JMP && x->operands[0].type == X86_OP_REG;
		for (uint8_t i = 0; i < x->op_count; i++)
			by_index |= x->operands[i].type == X86_OP_MEM &&
				    x->operands[i].mem.index != X86_REG_INVALID &&
				    d.insn->id != X86_INS_LEA && d.insn->id != X86_INS_NOP;
	}
	decoding_done(&d);
	return anywhere || (by_register && by_index) || has_indirect_jump(d.p, d.left);
}

/*
 * Whether an earlier instruction moves the stack does not matter: a loop's head follows the prologue, where
 * the stack has the same depth each time.
 */
static bool moves_stack(enum site_kind kind_)
{
	return kind_ == SITE_KIND_PUSH || kind_ == SITE_KIND_PUSH_EXTENDED;
}

const struct site_machine site_x86 = {
	.elf_machine = EM_X86_64,
	.arch = CS_ARCH_X86,
	.mode = CS_MODE_64,
	.single_step = true,
	.zeros = 2,
	.kind = kind,
	.refuses = refuses,
	.pass = pass,
	.may_return = may_return,
	.jumped_to = jumped_to,
	.reads_site = reads_site,
	.moves_stack = moves_stack,
	.jumps_by_table = jumps_by_table,
};
