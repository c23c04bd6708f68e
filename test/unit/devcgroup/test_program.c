// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devcgroup/program.h"

#define I(code_, dst_, src_, off_, imm_)                                                                 \
	{                                                                                                \
		.code = (code_), .dst_reg = (dst_), .src_reg = (src_), .off = (off_), .imm = (int)(imm_) \
	}
#define LOAD_WORD(dst_, off_) I(BPF_LDX | BPF_MEM | BPF_W, dst_, 1, off_, 0)
#define EXIT I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define RETURN(value_) I(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, value_), EXIT

static int ask(const struct bpf_insn *insns, unsigned n, uint32_t type, uint32_t access, uint32_t major,
	       uint32_t minor)
{
	const struct bpf_cgroup_dev_ctx ctx = { access << 16 | type, major, minor };

	return program_ask(insns, n, &ctx);
}

/* As runc 1.1 makes it: character devices 1:3 for reading and writing, 5:*; nothing else. */
static const struct bpf_insn runc[] = {
	LOAD_WORD(2, 0),
	I(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff),
	LOAD_WORD(3, 0),
	I(BPF_ALU | BPF_RSH | BPF_K, 3, 0, 0, 16),
	LOAD_WORD(4, 4),
	LOAD_WORD(5, 8),
	I(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 7, BPF_DEVCG_DEV_CHAR),
	I(BPF_ALU | BPF_MOV | BPF_X, 1, 3, 0, 0),
	I(BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, ACCESS_OPEN),
	I(BPF_JMP | BPF_JNE | BPF_X, 1, 3, 4, 0),
	I(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 3, 1),
	I(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 2, 3),
	RETURN(1),
	I(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 3, BPF_DEVCG_DEV_CHAR),
	I(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 2, 5),
	RETURN(1),
	RETURN(0),
};

static void a_programs_decision_is_found(void **state)
{
	(void)state;
	assert_null(program_unusable(runc, ARRAY_SIZE(runc)));
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_CHAR, ACCESS_OPEN, 1, 3), 1);
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_CHAR, ACCESS_MKNOD, 1, 3), 0);
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_CHAR, ACCESS_READ, 1, 4), 0);
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_BLOCK, ACCESS_READ, 1, 3), 0);
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_CHAR, ACCESS_MKNOD, 5, 77), 1);
	assert_int_equal(ask(runc, ARRAY_SIZE(runc), BPF_DEVCG_DEV_CHAR, ACCESS_OPEN, 195, 0), 0);
}

static void instructions_do_what_the_kernel_does(void **state)
{
	static const struct {
		const char *what;
		struct bpf_insn insns[6];
		unsigned n;
		int wanted;
	} cases[] = {
		{ "32-bit sums wrap",
		  { I(BPF_ALU | BPF_MOV | BPF_K, 0, 0, 0, -1), I(BPF_ALU | BPF_ADD | BPF_K, 0, 0, 0, 1),
		    EXIT },
		  3,
		  0 },
		{ "64-bit sums do not, and the result is 32 bits",
		  { I(BPF_ALU | BPF_MOV | BPF_K, 0, 0, 0, -1), I(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1),
		    EXIT },
		  3,
		  0 },
		{ "immediates are sign-extended",
		  { I(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, -1), I(BPF_JMP | BPF_JSLT | BPF_K, 2, 0, 1, 0),
		    RETURN(0), EXIT },
		  5,
		  0 },
		{ "division by zero is zero",
		  { I(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 7), I(BPF_ALU64 | BPF_DIV | BPF_K, 0, 0, 0, 0),
		    EXIT },
		  3,
		  0 },
		{ "a remainder by zero is the number",
		  { I(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 7), I(BPF_ALU64 | BPF_MOD | BPF_K, 0, 0, 0, 0),
		    EXIT },
		  3,
		  1 },
		{ "the stack keeps what is stored",
		  { I(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 5), I(BPF_LDX | BPF_MEM | BPF_B, 0, 10, -4, 0),
		    EXIT },
		  3,
		  1 },
		{ "below the stack is nothing",
		  { I(BPF_ST | BPF_MEM | BPF_W, 10, 0, -516, 5), RETURN(1) },
		  3,
		  -EFAULT },
		{ "above the stack is nothing",
		  { I(BPF_ST | BPF_MEM | BPF_W, 10, 0, -2, 5), RETURN(1) },
		  3,
		  -EFAULT },
		{ "the context ends", { I(BPF_LDX | BPF_MEM | BPF_DW, 0, 1, 8, 0), EXIT }, 2, -EFAULT },
		{ "the context is not written",
		  { I(BPF_ST | BPF_MEM | BPF_W, 1, 0, 0, 5), RETURN(1) },
		  3,
		  -EFAULT },
		{ "a jump leads out", { I(BPF_JMP | BPF_JA, 0, 0, 9, 0), EXIT }, 2, -EFAULT },
		{ "a jump leads before the beginning",
		  { I(BPF_JMP | BPF_JA, 0, 0, -2, 0), EXIT },
		  2,
		  -EFAULT },
		{ "no end", { I(BPF_JMP | BPF_JA, 0, 0, -1, 0), EXIT }, 2, -ELOOP },
		{ "signed division is not known",
		  { I(BPF_ALU64 | BPF_DIV | BPF_K, 0, 0, 1, 3), EXIT },
		  2,
		  -ENOTSUP },
		{ "a constant of 64 bits",
		  { I(BPF_LD | BPF_IMM | BPF_DW, 2, 0, 0, 0), I(0, 0, 0, 0, 1),
		    I(BPF_ALU64 | BPF_RSH | BPF_K, 2, 0, 0, 32), I(BPF_ALU64 | BPF_MOV | BPF_X, 0, 2, 0, 0),
		    EXIT },
		  5,
		  1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int got = ask(cases[i].insns, cases[i].n, BPF_DEVCG_DEV_CHAR, ACCESS_READ, 1, 3);

		if (got != cases[i].wanted)
			print_error("%s: %d, wanted %d\n", cases[i].what, got, cases[i].wanted);
		assert_int_equal(got, cases[i].wanted);
	}
}

static void what_cannot_be_interpreted_is_said(void **state)
{
	static const struct bpf_insn call[] = { I(BPF_JMP | BPF_CALL, 0, 0, 0, 7), EXIT };
	static const struct bpf_insn map[] = { I(BPF_LD | BPF_IMM | BPF_DW, 2, 1, 0, 7), I(0, 0, 0, 0, 0),
					       EXIT };
	static const struct bpf_insn cut[] = { I(BPF_LD | BPF_IMM | BPF_DW, 2, 0, 0, 7) };
	static const struct bpf_insn blinded[] = { I(BPF_ALU64 | BPF_MOV | BPF_K, 11, 0, 0, 7), EXIT };

	(void)state;
	assert_non_null(strstr(program_unusable(call, 2), "calls functions"));
	assert_non_null(strstr(program_unusable(map, 3), "maps"));
	assert_non_null(program_unusable(cut, 1));
	assert_non_null(strstr(program_unusable(blinded, 2), "hidden"));
	assert_non_null(program_unusable(NULL, 0));
	assert_int_equal(ask(call, 2, BPF_DEVCG_DEV_CHAR, ACCESS_READ, 1, 3), -ENOTSUP);
}

static void our_rules_allow_reading_and_writing_and_leave_the_rest(void **state)
{
	/* One minor of 195, two of 511, all of 520. */
	static const struct rules_said said = {
		.devices = { { 195, 3 }, { 511, 0 }, { 511, 1 }, { 520, UINT32_MAX } },
		.n = 4,
		.name = "sd_devices",
		.id = 42,
	};
	struct bpf_insn insns[PROGRAM_RULES_MAX + ARRAY_SIZE(runc)];
	unsigned rules = program_rules(&said, insns), n = rules + ARRAY_SIZE(runc);
	struct rules_said again;

	(void)state;
	assert_int_equal(rules, PROGRAM_FRAME + 2 * 4);
	memcpy(insns + rules, runc, sizeof(runc));
	for (uint32_t type = 0; type < 4; type++)
		for (uint32_t access = 0; access < 8; access++)
			for (uint32_t major = 0; major < 600; major++)
				for (uint32_t minor = 0; minor < 5; minor++) {
					bool named = (major == 195 && minor == 3) ||
						     (major == 511 && minor < 2) || major == 520;
					bool ours = named && type == BPF_DEVCG_DEV_CHAR &&
						    !(access & ACCESS_MKNOD);
					int wanted = ours ? 1 :
							    ask(runc, ARRAY_SIZE(runc), type, access, major,
								minor);

					assert_int_equal(ask(insns, n, type, access, major, minor), wanted);
				}
	assert_int_equal(program_ours(insns, n, &again), rules);
	assert_memory_equal(&again, &said, sizeof(said));
}

static void only_our_very_rules_are_ours(void **state)
{
	struct rules_said said = { .devices = { { 195, 1 }, { 511, UINT32_MAX } }, .n = 2, .name = "x" };
	struct bpf_insn insns[PROGRAM_RULES_MAX + 2];
	static const struct bpf_insn rest[] = { RETURN(0) };
	unsigned rules = program_rules(&said, insns), n = rules + 2;
	struct rules_said got;

	(void)state;
	memcpy(insns + rules, rest, sizeof(rest));
	assert_int_equal(program_ours(insns, n, &got), rules);
	assert_int_equal(program_ours(insns, rules, &got), 0); /* without an original */
	assert_int_equal(program_ours(runc, ARRAY_SIZE(runc), &got), 0);
	for (unsigned i = 0; i < rules; i++) {
		struct bpf_insn kept = insns[i];

		insns[i].off ^= 1;
		assert_int_equal(program_ours(insns, n, &got), 0);
		insns[i] = kept;
	}
	insns[1].imm = -1;
	assert_int_equal(program_ours(insns, n, &got), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_programs_decision_is_found),
		cmocka_unit_test(instructions_do_what_the_kernel_does),
		cmocka_unit_test(what_cannot_be_interpreted_is_said),
		cmocka_unit_test(our_rules_allow_reading_and_writing_and_leave_the_rest),
		cmocka_unit_test(only_our_very_rules_are_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
