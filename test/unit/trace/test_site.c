// SPDX-License-Identifier: Apache-2.0
/* Where probes go: functions' first bytes, and what must come out. The bytes are an assembler's. */
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "trace/site.h"

enum rules {
	DEFAULT, /* what is known of all kernels */
	STEP, /* single steps allowed */
	K6_12, /* nops single-stepped, nothing is rewritten */
	K6_16, /* 5-byte nops emulated, nothing is rewritten */
	K6_18, /* 5-byte nops rewritten */
	K7_2, /* 5-byte nops emulated, 10-byte ones rewritten */
};

static void make_rules(uint16_t machine, enum rules which, struct site_rules *rules)
{
	site_rules_default(machine, rules);
	rules->allow_single_step = which == STEP;
	if (which >= K6_12)
		rules->nop_rewritten = which >= K6_18;
	if (which == K6_16 || which == K7_2)
		rules->by_kind[SITE_KIND_NOP5] = SITE_EMULATED;
	if (which == K6_18)
		rules->by_kind[SITE_KIND_NOP5] = SITE_OPTIMISED;
	if (which == K7_2)
		rules->by_kind[SITE_KIND_NOP10] = SITE_OPTIMISED;
}

/* class E: emulated, O: optimised, S: single-stepped, R: refused; small letters: not chosen. */
struct golden {
	const char *code; /* hexadecimal */
	enum rules rules;
	char class;
	unsigned offset;
	bool may_return;
	int stack;
	const char *instruction; /* begins so */
	const char *reason; /* is in it */
};

static size_t from_hex(const char *hex, uint8_t *code, size_t cap)
{
	size_t n = 0;
	unsigned byte;
	int used;

	while (sscanf(hex, " %2x%n", &byte, &used) == 1) {
		assert_true(n < cap);
		code[n++] = (uint8_t)byte;
		hex += used;
	}
	return n;
}

static char class_letter(const struct site *site)
{
	char letter = "EOSR"[site->class];

	return site->chosen ? letter : (char)(letter - 'A' + 'a');
}

static void check(uint16_t machine, const struct golden *g)
{
	uint8_t code[256];
	size_t n = from_hex(g->code, code, sizeof(code));
	/* On the heap and no longer than it is: a sanitizer sees what is read behind it. */
	uint8_t *exact = test_malloc(n + 1);
	struct site_rules rules;
	struct site site;

	memcpy(exact + 1, code, n);
	make_rules(machine, g->rules, &rules);
	assert_int_equal(site_choose(machine, exact + 1, n, 0x1000, &rules, &site), 0);
	test_free(exact);
	if (class_letter(&site) != g->class || site.offset != g->offset || site.may_return != g->may_return ||
	    site.stack != g->stack ||
	    strncmp(site.instruction, g->instruction, strlen(g->instruction)) != 0 ||
	    !strstr(site.reason, g->reason))
		fail_msg("%s (rules %d): %c at %u, return %d, stack %d, \"%s\", \"%s\"", g->code, g->rules,
			 class_letter(&site), site.offset, site.may_return, site.stack, site.instruction,
			 site.reason);
}

#define FIRST "the function's first instruction"
#define LATER "leave the arguments unchanged"
#define ARGUMENT "an argument is overwritten"
#define MEMORY "memory that may be an argument is written"
#define MOVES "stack pointer moves"
#define LEAVES "control leaves"
#define UNKNOWN "not analysed comes first"
#define BACK "jumps back"
#define READ "reads the instruction"
#define TABLE "through a table"

static const struct golden x86[] = {
	/* libcuda: cmpl $0x321cba00, N(%rip); je; jmp *N(%rip) */
	{ "81 3d 00 10 00 00 00 ba 1c 32 74 06 ff 25 00 01 00 00 90 90", DEFAULT, 'E', 10, true, 0, "je",
	  LATER },
	{ "81 3d 00 10 00 00 00 ba 1c 32 74 06 ff 25 00 01 00 00 90 90", STEP, 'E', 10, true, 0, "je",
	  LATER },
	/* cut off within the je */
	{ "81 3d 00 10 00 00 00 ba 1c 32 74", DEFAULT, 'r', 0, false, 0, "cmp", "no instruction" },
	{ "55 48 89 e5", DEFAULT, 'E', 0, true, 0, "push rbp", FIRST },
	{ "41 57", DEFAULT, 'E', 0, true, 0, "push r15", FIRST },
	/* the same push with an idle prefix is another matter to the kernel, and lowers the stack pointer */
	{ "48 55 55", DEFAULT, 'E', 2, false, 8, "push rbp", LATER },
	{ "74 02 90 90", DEFAULT, 'E', 0, true, 0, "je", FIRST },
	{ "0f 84 00 01 00 00", DEFAULT, 'E', 0, true, 0, "je", FIRST },
	{ "e9 00 01 00 00", DEFAULT, 'E', 0, true, 0, "jmp", FIRST },
	{ "eb 7f", DEFAULT, 'E', 0, true, 0, "jmp", FIRST },
	{ "e8 00 01 00 00", DEFAULT, 'E', 0, true, 0, "call", FIRST },
	/* prefixed branches are refused by kernels or single-stepped, and control leaves there */
	{ "2e 74 02", DEFAULT, 'r', 0, false, 0, "je", LEAVES },
	{ "f2 e9 00 01 00 00", DEFAULT, 's', 0, false, 0, "bnd jmp", LEAVES },
	{ "3e ff e0", DEFAULT, 'r', 0, false, 0, "", TABLE },

	{ "f3 0f 1e fa 55", DEFAULT, 'E', 4, true, 0, "push rbp", LATER },
	{ "f3 0f 1e fa 89 f8 c3", DEFAULT, 's', 0, false, 0, "endbr64", LEAVES },
	{ "f3 0f 1e fa 89 f8 c3", STEP, 'S', 0, true, 0, "endbr64", "allows" },
	{ "83 3d 00 10 00 00 00 55", DEFAULT, 'E', 7, true, 0, "push rbp", LATER },
	{ "48 89 fb 41 54", DEFAULT, 'E', 3, true, 0, "push r12", LATER },
	{ "64 48 8b 04 25 28 00 00 00 55", DEFAULT, 'E', 9, true, 0, "push", LATER },
	{ "49 ba 88 77 66 55 44 33 22 11 55", DEFAULT, 'E', 10, true, 0, "push", LATER },
	{ "4c 8d 54 24 08 55", DEFAULT, 'E', 5, true, 0, "push", LATER },
	{ "40 0f b6 c7 55", DEFAULT, 'E', 4, true, 0, "push", LATER },

	/* arguments */
	{ "31 ff 55", DEFAULT, 's', 0, false, 0, "xor", ARGUMENT },
	{ "b1 01 55", DEFAULT, 's', 0, false, 0, "mov", ARGUMENT },
	{ "48 97 55", DEFAULT, 's', 0, false, 0, "xchg", UNKNOWN },
	{ "ff c0 55", DEFAULT, 's', 0, false, 0, "inc", UNKNOWN },
	{ "f3 a4 55", DEFAULT, 's', 0, false, 0, "rep movsb", UNKNOWN },
	{ "31 ff 55", STEP, 'S', 0, true, 0, "xor", ARGUMENT },

	/* the stack: sub $0x18, %rsp; mov %rdi, 8(%rsp); mov $1, %eax; jmp */
	{ "48 83 ec 18 48 89 7c 24 08 b8 01 00 00 00 eb 20", DEFAULT, 'E', 14, false, 0x18, "jmp", LATER },
	{ "48 8d a4 24 78 ff ff ff 55", DEFAULT, 'E', 8, false, 0x88, "push", LATER },
	{ "48 83 c4 80 55", DEFAULT, 'E', 4, false, 0x80, "push", LATER },
	{ "6a 01 55", DEFAULT, 'E', 2, false, 8, "push", LATER },
	{ "66 6a 01 55", DEFAULT, 's', 0, false, 0, "push", MOVES },
	{ "48 83 c4 08 55", DEFAULT, 's', 0, false, 0, "add", MOVES },
	{ "48 83 e4 f0 55", DEFAULT, 's', 0, false, 0, "and", MOVES },
	{ "48 81 ec 00 00 10 00 55", DEFAULT, 's', 0, false, 0, "sub", MOVES },
	/* over the return address, over the first stack argument, just below */
	{ "48 89 3c 24 55", DEFAULT, 's', 0, false, 0, "mov", MEMORY },
	{ "48 89 7c 24 18 55", DEFAULT, 's', 0, false, 0, "mov", MEMORY },
	{ "48 89 7c 24 f8 55", DEFAULT, 'E', 5, true, 0, "push", LATER },
	{ "0f 11 44 24 f0 55", DEFAULT, 'E', 5, true, 0, "push", LATER },
	{ "0f 11 44 24 f8 55", DEFAULT, 's', 0, false, 0, "movups", MEMORY },
	{ "48 89 07 55", DEFAULT, 's', 0, false, 0, "mov", MEMORY },
	{ "48 83 ec 08 48 89 7c 24 08 55", DEFAULT, 's', 0, false, 0, "sub", MEMORY },

	/* nops, by kernel: first byte, then in mid-function */
	{ "90 c3", DEFAULT, 'E', 0, true, 0, "nop", FIRST },
	{ "0f 1f 44 00 00 c3", DEFAULT, 's', 0, false, 0, "nop", LEAVES },
	{ "0f 1f 44 00 00 c3", K6_16, 'E', 0, true, 0, "nop", FIRST },
	{ "0f 1f 44 00 00 c3", K6_18, 'O', 0, true, 0, "nop", "turns into a call" },
	{ "89 f8 0f 1f 44 00 00 55", K6_16, 'E', 2, true, 0, "nop", LATER },
	{ "89 f8 0f 1f 44 00 00 55", K6_18, 'E', 7, true, 0, "push", LATER },
	{ "89 f8 0f 1f 44 00 00 55", K7_2, 'E', 7, true, 0, "push", LATER },
	{ "89 f8 0f 1f 44 00 00 c3", K6_18, 's', 0, false, 0, "mov", LEAVES },
	{ "89 f8 90 c3", K6_12, 'E', 2, true, 0, "nop", LATER },
	{ "66 2e 0f 1f 84 00 00 00 00 00 55", K6_12, 'E', 10, true, 0, "push", LATER },
	{ "66 2e 0f 1f 84 00 00 00 00 00 c3", K6_12, 'r', 0, false, 0, "nop", "accepts no probe" },
	{ "66 2e 0f 1f 84 00 00 00 00 00 c3", K7_2, 'O', 0, true, 0, "nop", FIRST },
	{ "89 f8 66 2e 0f 1f 84 00 00 00 00 00 55", K7_2, 'E', 12, true, 0, "push", LATER },

	/*
	 * jumps back: to the entry, to the instruction before the site, to the site, to nothing that matters
	 */
	{ "83 ff 00 74 fb 90 c3", DEFAULT, 'r', 0, false, 0, "cmp", BACK },
	{ "48 89 fb 83 ff 00 74 fb c3", DEFAULT, 'r', 0, false, 0, "mov", BACK },
	{ "55 48 ff cf 5d 75 f9 c3", DEFAULT, 'r', 0, false, 0, "push", BACK },
	{ "55 48 ff cf 75 fb 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	{ "55 5d e9 f9 ff ff ff", DEFAULT, 'r', 0, false, 0, "push", BACK },
	{ "55 5d 0f 85 f8 ff ff ff", DEFAULT, 'r', 0, false, 0, "push", BACK },
	{ "55 e2 fd", DEFAULT, 'r', 0, false, 0, "push", BACK },
	/* a constant that looks like one: mov $0x90fbeb90, %eax */
	{ "55 b8 90 eb fb 90 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	/* recursion is a call, and counts */
	{ "55 e8 fa ff ff ff 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	{ "31 ff 74 fc", STEP, 'r', 0, false, 0, "xor", BACK },

	/* endbr64; push %rbx; mov SITE(%rip), %eax; from 3 bytes before it on; up to it; from behind it on */
	{ "f3 0f 1e fa 53 8b 05 f9 ff ff ff 5b c3", DEFAULT, 'r', 0, false, 0, "endbr64", READ },
	{ "f3 0f 1e fa 53 8b 05 f6 ff ff ff 5b c3", DEFAULT, 'r', 0, false, 0, "endbr64", READ },
	{ "f3 0f 1e fa 53 8b 05 f5 ff ff ff 5b c3", DEFAULT, 'E', 4, true, 0, "push", LATER },
	{ "f3 0f 1e fa 53 8b 05 fa ff ff ff 5b c3", DEFAULT, 'E', 4, true, 0, "push", LATER },
	/* cmpb, cmpl $0, SITE(%rip); lea; a constant that looks like one; the first byte */
	{ "55 80 3d f8 ff ff ff 00 5d c3", DEFAULT, 'r', 0, false, 0, "push", READ },
	{ "55 81 3d f5 ff ff ff 00 00 00 00 5d c3", DEFAULT, 'r', 0, false, 0, "push", READ },
	{ "55 48 8d 05 f8 ff ff ff 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	{ "55 48 b8 8b 05 f7 ff ff ff 90 90 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	{ "8b 05 fa ff ff ff c3", STEP, 'r', 0, false, 0, "mov", READ },
	/* a call instead of a nop: mov LAST(%rip), %al; and behind it */
	{ "0f 1f 44 00 00 8a 05 f9 ff ff ff c3", K6_18, 'r', 0, false, 0, "nop", READ },
	{ "0f 1f 44 00 00 8a 05 fa ff ff ff c3", K6_18, 'O', 0, true, 0, "nop", "turns into a call" },

	/* what is no function */
	{ "", DEFAULT, 'r', 0, false, 0, "", "in the file" },
	{ "00 00 00 00", DEFAULT, 'r', 0, false, 0, "", "zero bytes" },
	{ "00 00 00 00", STEP, 'r', 0, false, 0, "", "zero bytes" },
	{ "89 f8 00 00 00 00", STEP, 'r', 0, false, 0, "mov", "zero bytes" },
	{ "06 06", STEP, 'r', 0, false, 0, "", "no instruction" },
	{ "89 f8 06", STEP, 'r', 0, false, 0, "mov", "no instruction" },
	{ "c3", DEFAULT, 's', 0, false, 0, "ret", LEAVES },
	{ "c3", STEP, 'S', 0, true, 0, "ret", LEAVES },
	{ "ff 25 00 01 00 00", DEFAULT, 's', 0, false, 0, "jmp", LEAVES },
	{ "89 f8", DEFAULT, 's', 0, false, 0, "mov", "no better" },
	{ "f4", STEP, 'r', 0, false, 0, "hlt", "accepts no probe" },
	{ "cc", STEP, 'r', 0, false, 0, "int3", "accepts no probe" },
	{ "f0 ff 05 10 00 00 00", STEP, 'r', 0, false, 0, "lock inc", "accepts no probe" },

	/* thunks of other shapes: marked by endbr64, or through a register */
	{ "f3 0f 1e fa 81 3d 00 10 00 00 00 ba 1c 32 74 06 ff 25 00 01 00 00", DEFAULT, 'E', 14, true, 0,
	  "je", LATER },
	{ "48 8b 05 00 10 00 00 ff e0", DEFAULT, 's', 0, false, 0, "mov", LEAVES },
	{ "83 3d 00 10 00 00 00 74 09 48 8b 05 00 10 00 00 ff e0 c3", DEFAULT, 'E', 7, true, 0, "je", LATER },
	/* as the linker's own: push of a number, then the jump; the return address is 8 bytes up */
	{ "68 01 00 00 00 83 3d 00 10 00 00 00 74 02 90 90", DEFAULT, 'E', 12, false, 8, "je", LATER },
	/* comparisons that write */
	{ "f0 48 0f b1 3d 00 10 00 00 74 02 90 90", DEFAULT, 'r', 0, false, 0, "lock", UNKNOWN },
	{ "89 f8 0f c1 3d 00 10 00 00 74 02 90 90", DEFAULT, 's', 0, false, 0, "mov", UNKNOWN },
	/* test %rdi, %rdi; jrcxz; je: not every call comes to the je */
	{ "48 85 ff e3 05 74 03 90 90 90 c3", DEFAULT, 's', 0, false, 0, "test", LEAVES },
	/* jumps back with prefixes, into the middle, and a call to there */
	{ "83 ff 00 74 03 f2 75 f8 c3", DEFAULT, 'r', 0, false, 0, "cmp", BACK },
	{ "83 ff 00 74 03 3e 75 f8 c3", DEFAULT, 'r', 0, false, 0, "cmp", BACK },
	{ "83 ff 00 74 03 3e 75 fb c3", DEFAULT, 'r', 0, false, 0, "cmp", BACK },
	{ "83 ff 00 74 05 e8 f9 ff ff ff c3", DEFAULT, 'r', 0, false, 0, "cmp", BACK },
	{ "83 ff 00 74 05 e8 f6 ff ff ff c3", DEFAULT, 'E', 3, true, 0, "je", LATER },
	/* tables: jmp *0x1000(,%rdi,8); movslq (%rdx,%rdi,4), %rax, jmp *%rax */
	{ "83 ff 05 77 07 ff 24 fd 00 10 00 00 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 11 48 8d 15 00 10 00 00 48 63 04 ba 48 01 d0 3e ff e0 c3", DEFAULT, 'r', 0, false, 0,
	  "cmp", TABLE },
	{ "83 ff 05 77 11 48 8d 15 00 10 00 00 48 63 04 ba 48 01 d0 3e ff e0 c3", STEP, 'r', 0, false, 0,
	  "cmp", TABLE },
	/* nothing leads back to a push; to what stands behind it, or behind sub $8, %rsp, all the same */
	{ "55 83 ff 05 77 07 ff 24 fd 00 10 00 00 5d c3", DEFAULT, 'E', 0, true, 0, "push", FIRST },
	{ "6a 01 83 ff 05 77 07 ff 24 fd 00 10 00 00 5d c3", DEFAULT, 'r', 0, false, 0, "push", TABLE },
	{ "48 83 ec 08 85 c0 74 07 ff 24 c5 00 10 00 00 48 83 c4 08 c3", DEFAULT, 'r', 0, false, 0, "sub",
	  TABLE },
	{ "48 83 ec 08 55 85 c0 74 07 ff 24 c5 00 10 00 00 48 83 c4 08 c3", DEFAULT, 'E', 4, false, 8, "push",
	  LATER },
	/*
	 * addresses that are computed: lea (%rax,%rdi,8), %rax; mov (%rax), %rax; jmp *8(%rax); ljmp *(%rax);
	 * jmp *%fs:(%rip)
	 */
	{ "83 ff 05 77 06 48 8d 04 f8 ff e0 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 05 48 8b 00 ff e0 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 05 48 8b 00 ff e0 c3", STEP, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 03 ff 60 08 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 02 ff 28 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	{ "83 ff 05 77 07 64 ff 25 00 01 00 00 c3", DEFAULT, 'r', 0, false, 0, "cmp", TABLE },
	/*
	 * a slot, and something between, another register, half of it; then a slot, and elsewhere an index
	 * that may meet its jump
	 */
	{ "74 0a 48 8b 05 00 10 00 00 90 ff e0 c3", DEFAULT, 'r', 0, false, 0, "je", TABLE },
	{ "74 09 48 8b 05 00 10 00 00 ff e1 c3", DEFAULT, 'r', 0, false, 0, "je", TABLE },
	{ "74 08 8b 05 00 10 00 00 ff e0 c3", DEFAULT, 'r', 0, false, 0, "je", TABLE },
	{ "74 09 48 8b 05 00 10 00 00 ff e0 48 8b 04 f8 eb f7", DEFAULT, 'r', 0, false, 0, "je", TABLE },
	{ "74 09 4c 8b 05 00 10 00 00 41 ff e0 c3", DEFAULT, 'E', 0, true, 0, "je", FIRST },
	/* behind what is no instruction there may be one */
	{ "74 02 06 90 ff e0", DEFAULT, 'r', 0, false, 0, "je", TABLE },
	/* made to be patched */
	{ "66 90 55", DEFAULT, 'E', 2, true, 0, "push", LATER },
	{ "8b ff 55", DEFAULT, 's', 0, false, 0, "mov", ARGUMENT },
	/* thread-local variables: data16 lea, data16 call; lea, call *(%rax) */
	{ "66 48 8d 3d 00 10 00 00 66 66 48 e8 00 00 00 00", DEFAULT, 's', 0, false, 0, "lea", ARGUMENT },
	{ "48 8d 05 00 10 00 00 ff 10 55", DEFAULT, 's', 0, false, 0, "lea", LEAVES },
};

/*
 * APX (jmpabs, REX2, push2, EVEX add) and AVX10: what the decoder does not know is not passed, whatever it
 * makes of it.
 */
static const char *const x86_unknown[] = {
	"d5 00 a1 00 10 00 00 00 00 00 00",
	"d5 10 50",
	"d5 18 89 c7",
	"d5 48 89 c7",
	"62 f4 44 18 ff f3",
	"62 f4 fc 18 01 c7",
	"62 f4 fc 08 01 c7",
	"62 f5 7c 48 58 c1",
	"62 f6 7d 48 98 c1",
	"c4 e2 78 49 c0",
	"0f 3a c0",
	"f3 0f 01 e8",
};

static const struct golden arm64[] = {
	/* libcuda: adrp x16; mov w17; movk w17; ldr w16, [x16, #8]; cmp w16, w17; b.eq */
	{ "70 00 00 b0 11 00 80 52 91 43 a6 72 10 0a 40 b9 1f 02 11 6b 40 00 00 54", DEFAULT, 'E', 0, true, 0,
	  "adrp x16", FIRST },
	/* the same behind another first instruction: the branch */
	{ "11 00 80 52 91 43 a6 72 10 0a 40 b9 1f 02 11 6b 40 00 00 54", DEFAULT, 'E', 16, true, 0, "b.eq",
	  LATER },
	{ "00 00 00 90", DEFAULT, 'E', 0, true, 0, "adrp x0", FIRST },
	{ "10 00 00 14", DEFAULT, 'E', 0, true, 0, "b ", FIRST },
	{ "10 00 00 94", DEFAULT, 'E', 0, false, 0, "bl ", FIRST },
	/* stp x29, x30, [sp, #-32]!; mov x29, sp; ...: bl is reached, but the link register is saved */
	{ "fd 7b be a9 fd 03 00 91 f3 0b 00 f9 10 00 00 94", DEFAULT, 'E', 12, false, 32, "bl", LATER },
	{ "fd 7b be a9 fd 03 00 91 01 00 00 90 10 00 00 94", DEFAULT, 'E', 8, false, 32, "adrp x1", LATER },
	{ "fd 7b be a9 e0 03 01 aa 10 00 00 94", DEFAULT, 's', 0, false, 0, "stp", ARGUMENT },
	{ "fd 7b be a9 e0 03 01 aa 10 00 00 94", STEP, 's', 0, false, 0, "stp", "harms" },
	{ "ff c3 00 d1 e0 07 00 f9 fd 7b 02 a9 fd 83 00 91 10 00 00 94", DEFAULT, 'E', 16, false, 48, "bl",
	  LATER },
	{ "5f 24 03 d5 09 00 00 90", DEFAULT, 'E', 4, true, 0, "adrp x9", LATER },
	{ "7f 23 03 d5 09 00 00 90", DEFAULT, 'E', 4, false, 0, "adrp x9", LATER },
	{ "3f 23 03 d5 fd 7b bf a9 10 00 00 94", DEFAULT, 'E', 8, false, 16, "bl", LATER },
	{ "e9 03 00 aa 40 00 00 b4", DEFAULT, 'E', 4, true, 0, "cbz", LATER },
	{ "e9 03 00 aa 40 00 18 36", DEFAULT, 'E', 4, true, 0, "tbz", LATER },
	{ "28 00 80 d2 02 00 00 14", DEFAULT, 'E', 4, true, 0, "b ", LATER },
	{ "1f 20 03 d5 10 00 00 14", DEFAULT, 'E', 4, true, 0, "b ", LATER },
	{ "fe 03 09 aa 02 00 00 14", DEFAULT, 'E', 4, false, 0, "b ", LATER },
	{ "e0 07 bf ad 02 00 00 14", DEFAULT, 'E', 4, true, 32, "b ", LATER },
	{ "ff 27 be 29 02 00 00 14", DEFAULT, 'E', 4, true, 16, "b ", LATER },

	{ "c8 00 67 9e 02 00 00 14", DEFAULT, 'E', 4, true, 0, "b ", LATER }, /* fmov d8, x6 */

	{ "01 00 00 f9 10 00 00 14", DEFAULT, 's', 0, false, 0, "str", MEMORY },
	{ "e9 03 00 f9 10 00 00 14", DEFAULT, 's', 0, false, 0, "str", MEMORY },
	{ "fd 7b 81 a8 02 00 00 14", DEFAULT, 's', 0, false, 0, "stp", MEMORY },
	{ "09 84 40 f8 02 00 00 14", DEFAULT, 's', 0, false, 0, "ldr", "a load with writeback" },
	{ "e9 0f 40 a9 02 00 00 14", DEFAULT, 's', 0, false, 0, "ldp", ARGUMENT },
	{ "ff 07 40 d1 02 00 00 14", DEFAULT, 's', 0, false, 0, "sub", MOVES },
	{ "09 fc 5f c8 02 00 00 14", DEFAULT, 's', 0, false, 0, "ldaxr", UNKNOWN },
	{ "01 00 00 d4 02 00 00 14", DEFAULT, 's', 0, false, 0, "svc", UNKNOWN },
	{ "c0 03 5f d6", DEFAULT, 's', 0, false, 0, "ret", LEAVES },
	{ "e9 03 00 aa e0 ff ff b4", DEFAULT, 'r', 0, false, 0, "mov", BACK },
	{ "10 00 00 90 1f 20 03 d5 fe ff ff 17", DEFAULT, 'r', 0, false, 0, "adrp", BACK },
	{ "10 00 00 90 1f 20 03 d5 ff ff ff 17", DEFAULT, 'E', 0, true, 0, "adrp", FIRST },
	{ "00 00 00 00", DEFAULT, 'r', 0, false, 0, "", "zero bytes" },
	{ "e9 03 00 aa ff ff ff ff", DEFAULT, 'r', 0, false, 0, "mov", "no instruction" },
	{ "e9 03 00", DEFAULT, 'r', 0, false, 0, "", "no instruction" },

	/* bti c; libcuda's: adrp; adrp, ldr, br without a comparison; ldr x16, =literal; br x16 */
	{ "5f 24 03 d5 70 00 00 b0 11 00 80 52 40 00 00 54", DEFAULT, 'E', 4, true, 0, "adrp x16", LATER },
	{ "70 00 00 b0 11 0a 40 f9 20 02 1f d6", DEFAULT, 'E', 0, true, 0, "adrp", FIRST },
	{ "50 00 00 58 00 02 1f d6", DEFAULT, 's', 0, false, 0, "ldr", LEAVES },
	/* jumps by a table: ldr w17, [x16, w0, uxtw #2], br; with braa; behind stp x29, x30, [sp, #-32]! */
	{ "10 00 00 90 11 5a 60 b8 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "10 00 00 90 11 5a 60 b8 30 0a 1f d7", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "fd 7b be a9 10 00 00 90 11 5a 60 b8 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "stp", TABLE },
	{ "fd 7b be a9 80 00 00 b4 11 5a 60 b8 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "stp", TABLE },
	/* computed: adr x9; add x9, x9, x0, lsl #2; br x9. ldr x9, [x9]; br x9. ret x9 */
	{ "89 00 00 10 29 09 00 8b 20 01 1f d6", DEFAULT, 'r', 0, false, 0, "adr", TABLE },
	{ "09 00 00 90 1f 20 03 d5 29 01 40 f9 20 01 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "09 00 00 90 20 01 5f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	/*
	 * adrp x16; ldr x17, [x16, #16]: br x16; of another page; a half; nothing before; then an index
	 * elsewhere
	 */
	{ "70 00 00 b0 11 0a 40 f9 00 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "6f 00 00 b0 11 0a 40 f9 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "70 00 00 b0 11 0a 40 b9 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "11 0a 40 f9 20 02 1f d6", DEFAULT, 'r', 0, false, 0, "ldr", TABLE },
	{ "20 02 1f d6", DEFAULT, 'r', 0, false, 0, "br", TABLE },
	{ "70 00 00 b0 11 0a 40 f9 20 02 1f d6 11 5a 60 b8", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "10 00 00 90 51 00 00 58 20 02 1f d6", DEFAULT, 'E', 0, true, 0, "adrp", FIRST },
	/*
	 * adrp x2; ldr x2, [x2, #16]; mov x16, x2; br x16: libcuda's since 535; mov x16, x3; mov w16, w2;
	 * nothing but the mov
	 */
	{ "62 00 00 b0 42 08 40 f9 f0 03 02 aa 00 02 1f d6", DEFAULT, 'E', 0, true, 0, "adrp", FIRST },
	{ "62 00 00 b0 42 08 40 f9 f0 03 03 aa 00 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "62 00 00 b0 42 08 40 f9 f0 03 02 2a 00 02 1f d6", DEFAULT, 'r', 0, false, 0, "adrp", TABLE },
	{ "f0 03 02 aa 00 02 1f d6", DEFAULT, 'r', 0, false, 0, "mov", TABLE },
	/* bti c; adrp; ldr w9, SITE; ldr w9, ldr x9, ldr q1 before it; prfm SITE */
	{ "5f 24 03 d5 70 00 00 b0 e9 ff ff 18", DEFAULT, 'r', 0, false, 0, "", READ },
	{ "5f 24 03 d5 70 00 00 b0 c9 ff ff 18", DEFAULT, 'E', 4, true, 0, "adrp x16", LATER },
	{ "5f 24 03 d5 70 00 00 b0 c9 ff ff 58", DEFAULT, 'r', 0, false, 0, "", READ },
	{ "5f 24 03 d5 70 00 00 b0 c1 ff ff 9c", DEFAULT, 'r', 0, false, 0, "", READ },
	{ "5f 24 03 d5 70 00 00 b0 e0 ff ff d8", DEFAULT, 'E', 4, true, 0, "adrp x16", LATER },
	/* a call into the middle, and recursion */
	{ "e9 03 00 aa 40 00 00 b4 ff ff ff 97", DEFAULT, 'r', 0, false, 0, "mov", BACK },
	{ "10 00 00 90 ff ff ff 97", DEFAULT, 'E', 0, true, 0, "adrp", FIRST },
};

/*
 * retaa; braa, blraa, braaz; autiasp; chkfeat; paciasppc; ldraa x9, [x0]: pointer authentication and shadow
 * stacks.
 */
static const char *const arm64_unknown[] = {
	"ff 0b 5f d6", "30 0a 1f d7", "30 0a 3f d7", "1f 0a 1f d6", "bf 23 03 d5",
	"1f 25 03 d5", "fe a3 c1 da", "09 04 20 f8", "00 00 00 01",
};

static void x86_sites_are_as_they_should(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(x86); i++)
		check(EM_X86_64, &x86[i]);
}

static void arm64_sites_are_as_they_should(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(arm64); i++)
		check(EM_AARCH64, &arm64[i]);
}

static void passes_nothing_unknown(uint16_t machine, const char *mark, const char *unknown, const char *site)
{
	for (int marked = 0; marked < 2; marked++) {
		struct site_rules rules;
		struct site found;
		uint8_t code[64];
		char hex[192];
		size_t n;

		snprintf(hex, sizeof(hex), "%s %s %s", marked ? mark : "", unknown, site);
		n = from_hex(hex, code, sizeof(code));
		make_rules(machine, DEFAULT, &rules);
		assert_int_equal(site_choose(machine, code, n, 0x1000, &rules, &found), 0);
		if (found.chosen)
			fail_msg("%s: chosen at %u, \"%s\"", hex, found.offset, found.instruction);
	}
}

static void passes_no_unknown_instruction(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(x86_unknown); i++)
		passes_nothing_unknown(EM_X86_64, "f3 0f 1e fa", x86_unknown[i], "55");
	for (size_t i = 0; i < ARRAY_SIZE(arm64_unknown); i++)
		passes_nothing_unknown(EM_AARCH64, "5f 24 03 d5", arm64_unknown[i], "02 00 00 14");
}

/* Each argument register by each of its names, and the registers beside them, which are nobody's. */
static void knows_every_argument_register(_unused_ void **state)
{
	static const char *const arguments[] = {
		"bf 01 00 00 00",
		"be 01 00 00 00",
		"ba 01 00 00 00",
		"b9 01 00 00 00",
		"41 b8 01 00 00 00",
		"41 b9 01 00 00 00",
		"66 bf 01 00",
		"66 be 01 00",
		"66 ba 01 00",
		"66 b9 01 00",
		"66 41 b8 01 00",
		"66 41 b9 01 00",
		"40 b7 01",
		"40 b6 01",
		"b2 01",
		"b1 01",
		"b6 01",
		"b5 01",
		"41 b0 01",
		"41 b1 01",
		"48 89 c7",
		"48 89 c6",
		"48 89 c2",
		"48 89 c1",
		"49 89 c0",
		"49 89 c1",
	};
	static const char *const others[] = {
		"b8 01 00 00 00",
		"bb 01 00 00 00",
		"bd 01 00 00 00",
		"41 ba 01 00 00 00",
		"41 bb 01 00 00 00",
		"41 bf 01 00 00 00",
		"b0 01",
		"b4 01",
		"b3 01",
		"b7 01",
		"40 b5 01",
		"41 b2 01",
	};
	char code[64];

	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++) {
		snprintf(code, sizeof(code), "%s 55", arguments[i]);
		check(EM_X86_64, &(struct golden){ code, DEFAULT, 's', 0, false, 0, "mov", ARGUMENT });
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		snprintf(code, sizeof(code), "%s 55", others[i]);
		check(EM_X86_64, &(struct golden){ code, DEFAULT, 'E', (unsigned)(strlen(others[i]) + 1) / 3,
						   true, 0, "push", LATER });
	}
	for (unsigned reg = 0; reg < 16; reg++) { /* mov xN, x9; b */
		snprintf(code, sizeof(code), "%02x 03 09 aa 02 00 00 14", 0xe0 + reg);
		if (reg <= 7)
			check(EM_AARCH64,
			      &(struct golden){ code, DEFAULT, 's', 0, false, 0, "mov", ARGUMENT });
		else
			check(EM_AARCH64, &(struct golden){ code, DEFAULT, 'E', 4, true, 0, "b ", LATER });
	}
}

/* Behind the window nothing is chosen; a jump back from far behind it is seen. */
static void looks_as_far_as_it_says(_unused_ void **state)
{
	static uint8_t code[SITE_CODE_MAX + 16];
	struct site_rules rules;
	struct site site;
	int32_t back;

	site_rules_default(EM_X86_64, &rules);
	for (size_t i = 0; i < sizeof(code); i += 2) { /* mov %edi, %eax */
		code[i] = 0x89;
		code[i + 1] = 0xf8;
	}
	code[SITE_SCAN_MAX] = 0x55;
	assert_int_equal(site_choose(EM_X86_64, code, sizeof(code), 0, &rules, &site), 0);
	assert_false(site.chosen);
	code[SITE_SCAN_MAX - 2] = 0x55;
	assert_int_equal(site_choose(EM_X86_64, code, sizeof(code), 0, &rules, &site), 0);
	assert_true(site.chosen);
	assert_int_equal(site.offset, SITE_SCAN_MAX - 2);

	code[SITE_SCAN_MAX - 1] = 0x90; /* the odd one, so that instructions begin where jumps do */
	code[SITE_SCAN_MAX] = 0x89;
	code[SITE_CODE_MAX - 6] = 0xe9;
	back = -(SITE_CODE_MAX - 1);
	memcpy(code + SITE_CODE_MAX - 5, &back, sizeof(back));
	assert_int_equal(site_choose(EM_X86_64, code, sizeof(code), 0, &rules, &site), 0);
	assert_false(site.chosen);
	assert_non_null(strstr(site.reason, BACK));
}

static void refuses_other_machines(_unused_ void **state)
{
	static const uint8_t push[] = { 0x55 };
	struct site_rules rules;
	struct site site = { .offset = 77 };

	site_rules_default(EM_RISCV, &rules);
	assert_int_equal(site_choose(EM_RISCV, push, sizeof(push), 0, &rules, &site), -EOPNOTSUPP);
	assert_int_equal(site.offset, 77);
}

static void classes_have_names(_unused_ void **state)
{
	assert_string_equal(site_class_name(SITE_EMULATED), "emulated");
	assert_string_equal(site_class_name(SITE_OPTIMISED), "optimised");
	assert_string_equal(site_class_name(SITE_SINGLE_STEP), "single_step");
	assert_string_equal(site_class_name(SITE_REFUSED), "refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_sites_are_as_they_should),
		cmocka_unit_test(arm64_sites_are_as_they_should),
		cmocka_unit_test(passes_no_unknown_instruction),
		cmocka_unit_test(knows_every_argument_register),
		cmocka_unit_test(looks_as_far_as_it_says),
		cmocka_unit_test(refuses_other_machines),
		cmocka_unit_test(classes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
