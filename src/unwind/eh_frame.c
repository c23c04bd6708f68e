// SPDX-License-Identifier: Apache-2.0
#include "unwind/eh_frame.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/macro.h"

/* Encodings of pointers (DW_EH_PE_*), and what a pointer is relative to. */
enum {
	PE_ABSOLUTE = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_RELATIVE_TO = 0x70,
	PE_PC = 0x10,
	PE_INDIRECT = 0x80,
};

/* Call frame instructions (DW_CFA_*). */
enum {
	CFA_ADVANCE = 0x40, /* the upper two bits; the lower ones are the operand */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_SF = 0x11,
	CFA_DEF_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE = 0x2d, /* arm64: the return address is signed; GNU's window_save elsewhere */
	CFA_ARGS_SIZE = 0x2e,
	CFA_NEGATIVE_OFFSET = 0x2f,
};

/* Operations of expressions (DW_OP_*). */
enum { OP_DEREF = 0x06, OP_BREG0 = 0x70, OP_LIT0 = 0x30 };

enum {
	REMEMBERED = 8,
	INSTRUCTIONS_MAX = 1 << 16,
	LETTERS_MAX = 8, /* of an augmentation: six are known, and each stands once */
};

/* DWARF's numbers of registers. */
struct registers {
	uint8_t sp, fp, ra;
};

static const struct registers registers_x86 = { .sp = 7, .fp = 6, .ra = 16 };
static const struct registers registers_arm64 = { .sp = 31, .fp = 29, .ra = 30 };

/* What is read. After a read beyond its end it is @bad, and all that is read is 0. */
struct reader {
	const uint8_t *data;
	size_t at, end;
	bool bad;
};

static const uint8_t *take_bytes(struct reader *r, size_t n)
{
	if (r->bad || n > r->end - r->at) {
		r->bad = true;
		return NULL;
	}
	r->at += n;
	return r->data + r->at - n;
}

static uint64_t take_unsigned(struct reader *r, size_t n)
{
	const uint8_t *p = take_bytes(r, n);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, n); /* little-endian, as both machines are */
	return value;
}

static uint64_t take_uleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = take_unsigned(r, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->bad = true;
	return 0;
}

static int64_t take_sleb(struct reader *r)
{
	uint64_t value = 0, byte = 0;
	unsigned shift = 0;

	do {
		byte = take_unsigned(r, 1);
		value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	if (byte & 0x80)
		r->bad = true;
	if (byte & 0x40 && shift < 64)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static uint64_t take_value(struct reader *r, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSOLUTE:
	case PE_UDATA8:
	case PE_SDATA8:
		return take_unsigned(r, 8);
	case PE_UDATA4:
		return take_unsigned(r, 4);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)take_unsigned(r, 4);
	case PE_UDATA2:
		return take_unsigned(r, 2);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)take_unsigned(r, 2);
	}
	r->bad = true;
	return 0;
}

static uint64_t take_pointer(const struct eh_frame *frame, struct reader *r, uint8_t encoding)
{
	uint64_t here = frame->address + r->at, value = take_value(r, encoding);

	if (encoding & PE_INDIRECT || ((encoding & PE_RELATIVE_TO) && (encoding & PE_RELATIVE_TO) != PE_PC))
		r->bad = true;
	return (encoding & PE_RELATIVE_TO) == PE_PC ? here + value : value;
}

/* What functions have in common. */
struct cie {
	struct reader instructions;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* of functions' addresses */
	bool augmented; /* functions have augmentation data */
	bool signal;
};

/* An entry's bytes: behind its length and the word that follows, *ret_id. */
static int entry_at(const struct eh_frame *frame, uint32_t at, struct reader *ret_entry, uint32_t *ret_id)
{
	struct reader r = { .data = frame->data, .at = at, .end = frame->n };
	uint64_t length = take_unsigned(&r, 4);

	if (r.bad || length == 0)
		return -ENODATA;
	/* UINT32_MAX: 64 bits follow, for sections that are larger than is read. */
	if (length < 4 || length > r.end - r.at)
		return -EBADMSG;
	r.end = r.at + length;
	*ret_id = (uint32_t)take_unsigned(&r, 4);
	*ret_entry = r;
	return 0;
}

/* Augmentation data, by the letters that say what there is. */
static void read_augmentation(const char *letters, struct reader *r, struct cie *cie)
{
	uint64_t n = take_uleb(r);
	size_t end = r->at + n;

	if (n > r->end - r->at) {
		r->bad = true;
		return;
	}
	cie->augmented = true;
	for (; *letters; letters++) {
		switch (*letters) {
		case 'L':
			take_bytes(r, 1);
			break;
		case 'R':
			cie->encoding = (uint8_t)take_unsigned(r, 1);
			break;
		case 'P':
			take_value(r, (uint8_t)take_unsigned(r, 1));
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* signed with the other key */
			break;
		default:
			r->bad = true;
		}
	}
	if (!r->bad && r->at <= end)
		r->at = end;
	else
		r->bad = true;
}

static int cie_read(const struct eh_frame *frame, uint32_t at, const struct registers *registers,
		    struct cie *ret_cie)
{
	struct cie cie = { .encoding = PE_ABSOLUTE };
	const char *letters;
	const uint8_t *end;
	struct reader r;
	uint32_t id;
	uint64_t version, ra;
	int error = entry_at(frame, at, &r, &id);

	if (error < 0 || id != 0)
		return -EBADMSG;
	version = take_unsigned(&r, 1);
	letters = (const char *)r.data + r.at;
	end = memchr(letters, 0, MIN(r.end - r.at, (size_t)LETTERS_MAX + 1));
	if (r.bad || !end || (version != 1 && version != 3))
		return -EBADMSG;
	take_bytes(&r, (size_t)(end - (const uint8_t *)letters) + 1);
	cie.code_factor = take_uleb(&r);
	cie.data_factor = take_sleb(&r);
	ra = version == 1 ? take_unsigned(&r, 1) : take_uleb(&r);
	if (*letters == 'z')
		read_augmentation(letters + 1, &r, &cie);
	else if (*letters)
		return -EBADMSG;
	if (r.bad || ra != registers->ra)
		return -EBADMSG;
	cie.instructions = r;
	*ret_cie = cie;
	return 0;
}

static const struct registers *registers_of(const struct eh_frame *frame)
{
	return frame->machine == EM_AARCH64 ? &registers_arm64 : &registers_x86;
}

/* The function at @at: what it has in common with others, its addresses, and its instructions. */
static int fde_read(const struct eh_frame *frame, uint32_t at, struct cie *ret_cie,
		    struct eh_function *ret_function, struct reader *ret_instructions)
{
	struct reader r;
	uint64_t start, n;
	uint32_t id;
	int error = entry_at(frame, at, &r, &id);

	if (error < 0)
		return error;
	if (id == 0 || id > r.at - 4)
		return -EBADMSG;
	error = cie_read(frame, (uint32_t)(r.at - 4 - id), registers_of(frame), ret_cie);
	if (error < 0)
		return error;
	start = take_pointer(frame, &r, ret_cie->encoding);
	n = take_value(&r, ret_cie->encoding);
	if (ret_cie->augmented)
		take_bytes(&r, take_uleb(&r));
	if (r.bad || n == 0 || start + n < start)
		return -EBADMSG;
	*ret_function = (struct eh_function){ .start = start, .end = start + n, .entry = at };
	*ret_instructions = r;
	return 0;
}

int eh_frame_next(const struct eh_frame *frame, uint32_t *at, struct eh_function *ret_function)
{
	struct reader instructions, entry;
	struct cie cie;
	uint32_t id, here = *at;

	if (entry_at(frame, here, &entry, &id) < 0)
		return -ENODATA;
	*at = (uint32_t)entry.end;
	return id != 0 && fde_read(frame, here, &cie, ret_function, &instructions) == 0;
}

/* ---- rows ---- */

struct state {
	struct unwind_rule rule;
	bool lost; /* a form that is not followed */
	uint64_t cfa_register;
	int64_t cfa;
	bool fp_lost, ra_lost;
	bool end; /* the return address is undefined: nothing called it */
};

struct run {
	const struct registers *registers;
	const struct cie *cie;
	struct state now, first, remembered[REMEMBERED];
	unsigned remembered_n;
	uint64_t pc, end;
	unsigned left; /* instructions that may still be run */
	unsigned rows_n;
	eh_row_fn *fn;
	void *userdata;
};

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/* In unsigned arithmetic: what is hostile may overflow. */
static int64_t scaled(const struct run *run, uint64_t value)
{
	return (int64_t)(value * (uint64_t)run->cie->data_factor);
}

/* @register is saved at the CFA + @offset. */
static void save_at(struct run *run, uint64_t reg, int64_t offset)
{
	if (reg == run->registers->fp) {
		run->now.rule.fp_saved = UNWIND_AT_CFA;
		run->now.rule.fp = (int32_t)offset;
		run->now.fp_lost = !fits(offset);
	} else if (reg == run->registers->ra) {
		run->now.rule.ra_saved = UNWIND_AT_CFA;
		run->now.rule.ra = (int32_t)offset;
		run->now.ra_lost = !fits(offset);
		run->now.end = false;
	}
}

static void restore(struct run *run, uint64_t reg)
{
	if (reg == run->registers->fp) {
		run->now.rule.fp_saved = run->first.rule.fp_saved;
		run->now.rule.fp = run->first.rule.fp;
		run->now.fp_lost = run->first.fp_lost;
	} else if (reg == run->registers->ra) {
		run->now.rule.ra_saved = run->first.rule.ra_saved;
		run->now.rule.ra = run->first.rule.ra;
		run->now.ra_lost = run->first.ra_lost;
		run->now.end = run->first.end;
	}
}

static void same_value(struct run *run, uint64_t reg)
{
	if (reg == run->registers->fp) {
		run->now.rule.fp_saved = UNWIND_SAME;
		run->now.fp_lost = false;
	} else if (reg == run->registers->ra) {
		run->now.rule.ra_saved = UNWIND_SAME;
		run->now.ra_lost = false;
		run->now.end = false;
	}
}

/* A caller's frame pointer that is undefined is used by none of its rules. */
static void undefined(struct run *run, uint64_t reg)
{
	if (reg == run->registers->ra)
		run->now.end = true;
	else
		same_value(run, reg);
}

static void lose(struct run *run, uint64_t reg)
{
	if (reg == run->registers->fp)
		run->now.fp_lost = true;
	else if (reg == run->registers->ra) {
		run->now.ra_lost = true;
		run->now.end = false;
	}
}

static void define_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	run->now.cfa_register = reg;
	run->now.cfa = offset;
	run->now.lost = (reg != run->registers->sp && reg != run->registers->fp) || !fits(offset);
	run->now.rule.kind = reg == run->registers->sp ? UNWIND_SP : UNWIND_FP;
	run->now.rule.cfa = (int32_t)offset;
}

static struct reader take_block(struct reader *r)
{
	uint64_t n = take_uleb(r);
	struct reader block = *r;

	block.bad = !take_bytes(r, n);
	block.end = block.at + (block.bad ? 0 : n);
	return block;
}

/* A register and an offset, if that is how it begins. False: it begins otherwise. */
static bool take_base(const struct run *run, struct reader *block, bool *ret_sp, int64_t *ret_offset)
{
	uint64_t op = take_unsigned(block, 1);

	*ret_sp = op == (uint64_t)OP_BREG0 + run->registers->sp;
	if (!*ret_sp && op != (uint64_t)OP_BREG0 + run->registers->fp)
		return false;
	*ret_offset = take_sleb(block);
	return !block->bad && fits(*ret_offset);
}

/* What ld writes for .plt: rsp + 8 + ((rip & 15) >= N) * 8. */
static bool is_plt(const struct run *run, struct reader block, int32_t *ret_from)
{
	static const uint8_t before[] = { 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a },
			     after[] = { 0x2a, 0x33, 0x24, 0x22 };
	const uint8_t *p = block.data + block.at;

	if (run->registers != &registers_x86 || block.end - block.at != sizeof(before) + 1 + sizeof(after) ||
	    memcmp(p, before, sizeof(before)) != 0 ||
	    memcmp(p + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	*ret_from = p[sizeof(before)] - OP_LIT0;
	return *ret_from >= 0 && *ret_from < 16;
}

static void define_by_expression(struct run *run, struct reader block)
{
	struct state *now = &run->now;
	int64_t offset;
	int32_t from;
	bool sp;

	now->lost = true;
	if (block.bad)
		return;
	if (is_plt(run, block, &from)) {
		now->rule.kind = UNWIND_PLT;
		now->rule.cfa = from;
		now->lost = false;
	} else if (take_base(run, &block, &sp, &offset) && take_unsigned(&block, 1) == OP_DEREF &&
		   block.at == block.end && !block.bad) {
		now->rule.kind = sp ? UNWIND_SP_AT : UNWIND_FP_AT;
		now->rule.cfa = (int32_t)offset;
		now->lost = false;
	}
}

/* A register is saved where an expression says. */
static void save_by_expression(struct run *run, uint64_t reg, struct reader block)
{
	int64_t offset;
	bool sp;

	lose(run, reg);
	if (reg != run->registers->fp || block.bad || !take_base(run, &block, &sp, &offset) || sp ||
	    block.at != block.end)
		return;
	run->now.rule.fp_saved = UNWIND_AT_FP;
	run->now.rule.fp = (int32_t)offset;
	run->now.fp_lost = false;
}

static int emit(struct run *run)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE }, end = { .kind = UNWIND_END },
					signal = { .kind = UNWIND_SIGNAL };
	const struct state *now = &run->now;

	if (++run->rows_n > EH_ROWS_MAX)
		return run->fn(run->pc, &none, run->userdata);
	if (run->cie->signal)
		return run->fn(run->pc, &signal, run->userdata);
	if (now->end)
		return run->fn(run->pc, &end, run->userdata);
	if (now->lost || now->fp_lost || now->ra_lost)
		return run->fn(run->pc, &none, run->userdata);
	return run->fn(run->pc, &now->rule, run->userdata);
}

/* The row so far ends; the next one begins @by units of code later. */
static int advance(struct run *run, uint64_t by)
{
	int r = 0;

	if (by > (run->end - run->pc) / MAX(run->cie->code_factor, UINT64_C(1)))
		return -EBADMSG;
	if (by > 0)
		r = emit(run);
	run->pc += by * run->cie->code_factor;
	return r;
}

/* Instructions about the CFA and rows. 1: it is none of them. */
static int run_cfa(struct run *run, struct reader *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE:
		return 0;
	case CFA_ADVANCE1:
		return advance(run, take_unsigned(r, 1));
	case CFA_ADVANCE2:
		return advance(run, take_unsigned(r, 2));
	case CFA_ADVANCE4:
		return advance(run, take_unsigned(r, 4));
	case CFA_REMEMBER:
		if (run->remembered_n == REMEMBERED)
			return -EBADMSG;
		run->remembered[run->remembered_n++] = run->now;
		return 0;
	case CFA_RESTORE_STATE:
		if (run->remembered_n == 0)
			return -EBADMSG;
		run->now = run->remembered[--run->remembered_n];
		return 0;
	case CFA_DEF:
		reg = take_uleb(r);
		define_cfa(run, reg, (int64_t)take_uleb(r));
		return 0;
	case CFA_DEF_SF:
		reg = take_uleb(r);
		define_cfa(run, reg, scaled(run, (uint64_t)take_sleb(r)));
		return 0;
	case CFA_DEF_REGISTER:
		define_cfa(run, take_uleb(r), run->now.cfa);
		return 0;
	case CFA_DEF_OFFSET:
		define_cfa(run, run->now.cfa_register, (int64_t)take_uleb(r));
		return 0;
	case CFA_DEF_OFFSET_SF:
		define_cfa(run, run->now.cfa_register, scaled(run, (uint64_t)take_sleb(r)));
		return 0;
	case CFA_DEF_EXPRESSION:
		define_by_expression(run, take_block(r));
		return 0;
	case CFA_ARGS_SIZE:
		take_uleb(r);
		return 0;
	}
	return 1;
}

/* Instructions about a register. */
static int run_register(struct run *run, struct reader *r, uint8_t op)
{
	uint64_t reg = take_uleb(r);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		save_at(run, reg, scaled(run, take_uleb(r)));
		return 0;
	case CFA_OFFSET_SF:
		save_at(run, reg, scaled(run, (uint64_t)take_sleb(r)));
		return 0;
	case CFA_NEGATIVE_OFFSET:
		save_at(run, reg, scaled(run, -take_uleb(r)));
		return 0;
	case CFA_RESTORE_EXTENDED:
		restore(run, reg);
		return 0;
	case CFA_UNDEFINED:
		undefined(run, reg);
		return 0;
	case CFA_SAME_VALUE:
		same_value(run, reg);
		return 0;
	case CFA_EXPRESSION:
		save_by_expression(run, reg, take_block(r));
		return 0;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		take_uleb(r); /* or signed: as long */
		lose(run, reg);
		return 0;
	case CFA_VAL_EXPRESSION:
		take_block(r);
		lose(run, reg);
		return 0;
	}
	return -EBADMSG; /* how long it is is not known */
}

static int run_all(struct run *run, struct reader r)
{
	while (r.at < r.end && !r.bad) {
		uint8_t op = (uint8_t)take_unsigned(&r, 1), low = op & 0x3f;
		int error = 0;

		if (run->left-- == 0)
			return -EBADMSG;
		switch (op & 0xc0) {
		case CFA_ADVANCE:
			error = advance(run, low);
			break;
		case CFA_OFFSET:
			save_at(run, low, scaled(run, take_uleb(&r)));
			break;
		case CFA_RESTORE:
			restore(run, low);
			break;
		default:
			error = run_cfa(run, &r, op);
			if (error == 1 && op != CFA_SET_LOC)
				error = run_register(run, &r, op);
			else if (error == 1)
				error = -EBADMSG;
		}
		if (error != 0)
			return error;
	}
	return r.bad ? -EBADMSG : 0;
}

int eh_rows(const struct eh_frame *frame, const struct eh_function *function, eh_row_fn *fn, void *userdata)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	struct run run = {
		.registers = registers_of(frame),
		.pc = function->start,
		.end = function->end,
		.left = INSTRUCTIONS_MAX,
		.fn = fn,
		.userdata = userdata,
		.now = { .lost = true },
	};
	struct eh_function again;
	struct reader instructions;
	struct cie cie;
	int r = fde_read(frame, function->entry, &cie, &again, &instructions);

	run.cie = &cie;
	if (r == 0) {
		run.end = function->start; /* the common instructions have no rows */
		r = run_all(&run, cie.instructions);
	}
	run.end = function->end;
	run.first = run.now;
	if (r == 0)
		r = run_all(&run, instructions);
	if (r == 0)
		return run.pc < run.end ? emit(&run) : 0;
	return r == -EBADMSG ? fn(run.pc, &none, userdata) : r;
}
