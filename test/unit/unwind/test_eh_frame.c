// SPDX-License-Identifier: Apache-2.0
/* Sections that are written by hand, as compilers and the linker write them, and some that lie. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/eh_frame.h"

enum { BASE = 0x10000, CODE = 0x4000, SIZE = 0x100, ROWS = 32 };

struct section {
	uint8_t bytes[1024];
	size_t n;
	uint16_t machine;
};

static void put(struct section *s, const void *p, size_t n)
{
	assert_true(s->n + n <= sizeof(s->bytes));
	if (n > 0)
		memcpy(s->bytes + s->n, p, n);
	s->n += n;
}

static void put_u32(struct section *s, uint32_t value)
{
	put(s, &value, sizeof(value));
}

/* An entry: its length is set by end_entry(). */
static size_t begin_entry(struct section *s, uint32_t id)
{
	put_u32(s, 0);
	put_u32(s, id);
	return s->n - 4;
}

static void end_entry(struct section *s, size_t at)
{
	uint32_t n = (uint32_t)(s->n - at);

	memcpy(s->bytes + at - 4, &n, sizeof(n));
}

/* x86-64's common one: pointers are relative, of 32 bits; CFA = rsp + 8; return address at CFA - 8. */
static void put_cie(struct section *s, const char *letters)
{
	static const uint8_t factors[] = { 1, 0x78, 16, 1, 0x1b }, rules[] = { 0x0c, 7, 8, 0x90, 1 };
	size_t at = begin_entry(s, 0);

	put(s, "\1", 1);
	put(s, letters, strlen(letters) + 1);
	put(s, factors, sizeof(factors));
	put(s, rules, sizeof(rules));
	end_entry(s, at);
}

static void put_function(struct section *s, uint32_t code, uint32_t size, const void *instructions, size_t n)
{
	size_t at = begin_entry(s, (uint32_t)s->n + 4); /* the common one is at 0 */

	put_u32(s, code - (uint32_t)(BASE + s->n));
	put_u32(s, size);
	put(s, "\0", 1);
	put(s, instructions, n);
	end_entry(s, at);
}

struct rows {
	uint64_t pc[ROWS];
	struct unwind_rule rule[ROWS];
	unsigned n;
};

static int on_row(uint64_t pc, const struct unwind_rule *rule, void *userdata)
{
	struct rows *rows = userdata;

	assert_true(rows->n < ROWS);
	assert_true(rows->n == 0 || pc >= rows->pc[rows->n - 1]);
	rows->pc[rows->n] = pc;
	rows->rule[rows->n++] = *rule;
	return 0;
}

/* The rows of the only function in the section. */
static struct rows rows_of(const struct section *s)
{
	const struct eh_frame frame = { s->bytes, s->n, BASE, s->machine ? s->machine : EM_X86_64 };
	struct eh_function function;
	struct rows rows = { .n = 0 };
	uint32_t at = 0;
	int r;

	while ((r = eh_frame_next(&frame, &at, &function)) == 0)
		;
	assert_int_equal(r, 1);
	assert_int_equal(function.start, CODE);
	assert_int_equal(function.end, CODE + SIZE);
	assert_int_equal(eh_rows(&frame, &function, on_row, &rows), 0);
	return rows;
}

static void assert_row(const struct rows *rows, unsigned i, uint64_t pc, unsigned kind, int cfa)
{
	assert_true(i < rows->n);
	assert_int_equal(rows->pc[i], CODE + pc);
	assert_int_equal(rows->rule[i].kind, kind);
	if (kind != UNWIND_NONE && kind != UNWIND_END && kind != UNWIND_SIGNAL)
		assert_int_equal(rows->rule[i].cfa, cfa);
}

/* push %rbp; mov %rsp, %rbp; ...; leave; ret */
static void test_frame_pointer(void **state)
{
	static const uint8_t code[] = {
		0x41, 0x0e, 16,   0x86, 2, /* after 1 byte: CFA = rsp + 16, rbp at CFA - 16 */
		0x43, 0x0d, 6, /* after 3: CFA = rbp + 16 */
		0x0a, 0x02, 0x20, 0xc6, 0x0c, 7, 8, /* remembered; after 32: as at the entry */
		0x41, 0x0b, /* after 1: as remembered */
	};
	struct section s = { .n = 0 };
	struct rows rows;

	(void)state;
	put_cie(&s, "zR");
	put_function(&s, CODE, SIZE, code, sizeof(code));
	rows = rows_of(&s);
	assert_int_equal(rows.n, 5);
	assert_row(&rows, 0, 0, UNWIND_SP, 8);
	assert_int_equal(rows.rule[0].ra_saved, UNWIND_AT_CFA);
	assert_int_equal(rows.rule[0].ra, -8);
	assert_int_equal(rows.rule[0].fp_saved, UNWIND_SAME);
	assert_row(&rows, 1, 1, UNWIND_SP, 16);
	assert_int_equal(rows.rule[1].fp_saved, UNWIND_AT_CFA);
	assert_int_equal(rows.rule[1].fp, -16);
	assert_row(&rows, 2, 4, UNWIND_FP, 16);
	assert_row(&rows, 3, 0x24, UNWIND_SP, 8);
	assert_int_equal(rows.rule[3].fp_saved, UNWIND_SAME);
	assert_row(&rows, 4, 0x25, UNWIND_FP, 16);
}

static void test_expressions(void **state)
{
	static const uint8_t code[] = {
		0x0f, 11,   0x77, 8,    0x80, 0,    0x3f, 0x1a, 0x3b,
		0x2a, 0x33, 0x24, 0x22, /* as ld writes it */
		0x41, 0x0f, 3,    0x76, 0x58, 0x06, /* what lies at rbp - 40 */
		0x41, 0x0f, 2,    0x77, 8, /* rsp + 8, without an end that is known */
		0x41, 0x0c, 7,    8,    0x10, 6,    2,    0x76, 0, /* rbp is at rbp + 0 */
		0x41, 0x0c, 3,    8, /* rbx + 8 */
		0x41, 0x0c, 7,    8,    0x10, 16,   2,    0x76, 0, /* the return address by an expression */
	};
	struct section s = { .n = 0 };
	struct rows rows;

	(void)state;
	put_cie(&s, "zR");
	put_function(&s, CODE, SIZE, code, sizeof(code));
	rows = rows_of(&s);
	assert_row(&rows, 0, 0, UNWIND_PLT, 11);
	assert_row(&rows, 1, 1, UNWIND_FP_AT, -40);
	assert_row(&rows, 2, 2, UNWIND_NONE, 0);
	assert_row(&rows, 3, 3, UNWIND_SP, 8);
	assert_int_equal(rows.rule[3].fp_saved, UNWIND_AT_FP);
	assert_row(&rows, 4, 4, UNWIND_NONE, 0);
	assert_row(&rows, 5, 5, UNWIND_NONE, 0);
}

static void test_end_and_signal(void **state)
{
	static const uint8_t end[] = { 0x07, 16 };
	struct section s = { .n = 0 };
	struct rows rows;

	(void)state;
	put_cie(&s, "zR");
	put_function(&s, CODE, SIZE, end, sizeof(end));
	rows = rows_of(&s);
	assert_row(&rows, 0, 0, UNWIND_END, 0);
	s.n = 0;
	put_cie(&s, "zRS");
	put_function(&s, CODE, SIZE, NULL, 0);
	rows = rows_of(&s);
	assert_row(&rows, 0, 0, UNWIND_SIGNAL, 0);
}

/* What is undefined in a part of a function is known again in the next one; a new CFA does not change it. */
static void test_end_of_a_part(void **state)
{
	static const uint8_t
		code[] = {
			0x07, 16,   0x41,
			0x0e, 32, /* the return address is undefined; after 1 byte: CFA = rsp + 32 */
			0x41, 0x90, 1, /* after 1: it is saved at CFA - 8 */
			0x41, 0x0a, 0x07,
			16,   0x41, 0x0b, /* remembered, undefined; after 1: as remembered */
			0x41, 0x07, 16,
			0x41, 0xd0, /* undefined; after 1: as at the function's entry */
			0x41, 0x07, 16,
			0x41, 0x08, 16, /* undefined; after 1: still in its register */
			0x41, 0x07, 6, /* of the frame pointer, nothing follows */
		};
	struct section s = { .n = 0 };
	struct rows rows;

	(void)state;
	put_cie(&s, "zR");
	put_function(&s, CODE, SIZE, code, sizeof(code));
	rows = rows_of(&s);
	assert_row(&rows, 0, 0, UNWIND_END, 0);
	assert_row(&rows, 1, 1, UNWIND_END, 0);
	assert_row(&rows, 2, 2, UNWIND_SP, 32);
	assert_row(&rows, 3, 3, UNWIND_END, 0);
	assert_row(&rows, 4, 4, UNWIND_SP, 32);
	assert_row(&rows, 5, 5, UNWIND_END, 0);
	assert_row(&rows, 6, 6, UNWIND_SP, 32);
	assert_int_equal(rows.rule[6].ra_saved, UNWIND_AT_CFA);
	assert_row(&rows, 7, 7, UNWIND_END, 0);
	assert_row(&rows, 8, 8, UNWIND_SP, 32);
	assert_int_equal(rows.rule[8].ra_saved, UNWIND_SAME);
	assert_row(&rows, 9, 9, UNWIND_SP, 32);
	assert_int_equal(rows.rule[9].fp_saved, UNWIND_SAME);
}

/* stp x29, x30, [sp, #-32]!; mov x29, sp */
static void test_arm64(void **state)
{
	static const uint8_t factors[] = { 4, 0x78, 30, 1, 0x1b }, rules[] = { 0x0c, 31, 0 },
			     code[] = { 0x41, 0x2d, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29 };
	struct section s = { .machine = EM_AARCH64 };
	struct rows rows;
	size_t at;

	(void)state;
	at = begin_entry(&s, 0);
	put(&s, "\1zR", 4);
	put(&s, factors, sizeof(factors));
	put(&s, rules, sizeof(rules));
	end_entry(&s, at);
	put_function(&s, CODE, SIZE, code, sizeof(code));
	rows = rows_of(&s);
	assert_row(&rows, 0, 0, UNWIND_SP, 0);
	assert_int_equal(rows.rule[0].ra_saved, UNWIND_SAME);
	assert_row(&rows, 1, 4, UNWIND_SP, 32);
	assert_int_equal(rows.rule[1].fp, -32);
	assert_int_equal(rows.rule[1].ra, -24);
	assert_row(&rows, 2, 8, UNWIND_FP, 32);
}

/* What is not understood is no rule from there on; what comes before stays. */
static void test_lies(void **state)
{
	static const struct {
		uint8_t code[6];
		size_t n;
	} lies[] = {
		{ { 0x41, 0x3f }, 2 }, /* no instruction of ours */
		{ { 0x41, 0x0b }, 2 }, /* nothing is remembered */
		{ { 0x41, 0x04, 0xff, 0xff, 0xff, 0xff }, 6 }, /* beyond the function's end */
		{ { 0x41, 0x0f, 0xff, 0x7f }, 4 }, /* beyond the section's end */
		{ { 0x41, 0x0e, 0x80 }, 3 }, /* a number that does not end */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct section s = { .n = 0 };
		struct rows rows;

		put_cie(&s, "zR");
		put_function(&s, CODE, SIZE, lies[i].code, lies[i].n);
		rows = rows_of(&s);
		assert_int_equal(rows.n, 2);
		assert_row(&rows, 0, 0, UNWIND_SP, 8);
		assert_row(&rows, 1, 1, UNWIND_NONE, 0);
	}
}

static void test_entries_that_lie(void **state)
{
	struct eh_frame frame = { .address = BASE, .machine = EM_X86_64 };
	struct section s = { .n = 0 };
	struct eh_function function;
	uint32_t at = 0, id = 0x7fffffff;

	(void)state;
	put_cie(&s, "eh");
	put_function(&s, CODE, SIZE, NULL, 0);
	frame.data = s.bytes;
	frame.n = s.n;
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0);
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0); /* of a kind that is not known */
	assert_int_equal(eh_frame_next(&frame, &at, &function), -ENODATA);
	/* An augmentation of more letters than there are. */
	s.n = 0;
	at = 0;
	put_cie(&s, "zRSSSSSSS");
	put_function(&s, CODE, SIZE, NULL, 0);
	frame.n = s.n;
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0);
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0);
	assert_int_equal(eh_frame_next(&frame, &at, &function), -ENODATA);
	/* Its common one lies before the section. */
	s.n = 0;
	put_cie(&s, "zR");
	at = (uint32_t)s.n;
	put_function(&s, CODE, SIZE, NULL, 0);
	memcpy(s.bytes + at + 4, &id, sizeof(id));
	frame.n = s.n;
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0);
	/* It is longer than what there is. */
	frame.n = s.n - 1;
	at = 0;
	assert_int_equal(eh_frame_next(&frame, &at, &function), 0);
	assert_int_equal(eh_frame_next(&frame, &at, &function), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_end_and_signal),
		cmocka_unit_test(test_end_of_a_part),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_entries_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
