// SPDX-License-Identifier: Apache-2.0
/* The rows of this program's own file: they are sorted, and a function that is running has one. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "unwind/private.h"

static int on_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
	(void)size;
	*(uint64_t *)userdata = info->dlpi_addr; /* the program is the first one */
	return 1;
}

static const struct unwind_rule *rule_at(const struct making *making, uint64_t pc)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < making->rows_n && making->base + making->rows[i].pc <= pc; i++)
		found = making->rows[i].rule;
	return &making->rules[found];
}

static void test_own_file(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct unwind_rule *rule;
	struct making making;
	uint64_t bias = 0;
	int r;

	(void)state;
	assert_int_equal(making_begin(&making, fd), 0);
	while ((r = making_step(&making)) > 0)
		;
	assert_int_equal(r, 0);
	assert_true(making.rows_n > 10);
	for (uint32_t i = 1; i < making.rows_n; i++) {
		assert_true(making.rows[i].pc > making.rows[i - 1].pc);
		assert_true(making.rows[i].rule != making.rows[i - 1].rule);
	}
	assert_int_equal(making.rules[0].kind, UNWIND_NONE);
	assert_int_equal(making.rows[making.rows_n - 1].rule, 0);
	dl_iterate_phdr(on_object, &bias);
	rule = rule_at(&making, (uint64_t)(uintptr_t)test_own_file - bias);
	assert_int_equal(rule->kind, UNWIND_SP);
#ifdef __x86_64__
	assert_int_equal(rule->cfa, 8);
#else
	assert_int_equal(rule->cfa, 0);
#endif
	making_done(&making);
}

/* No file may take longer than that, whatever it says. */
static void test_takes_too_long(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct making making;

	(void)state;
	assert_int_equal(making_begin(&making, fd), 0);
	assert_int_equal(making_step(&making), 1);
	assert_true(making.cpu_ns > 0);
	assert_true(making.at > 0 && making.functions_n <= 64); /* the clock is looked at often */
	making.cpu_ns = MAKING_CPU_NS;
	assert_int_equal(making_step(&making), -ETIME);
	making_done(&making);
}

static void test_no_file_of_ours(void **state)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct making making;

	(void)state;
	assert_true(making_begin(&making, fd) < 0);
}

/*
 * Three functions of this file: between the first two lie bytes of code without rules, fewer than 16, between
 * the last two as many that only fill.
 */
__asm__(".text\n"
	".balign 16\n"
	"gap_first: .cfi_startproc\nret\n.cfi_endproc\n"
	"gap_code: ret\n"
	".balign 16\n"
	"gap_second: .cfi_startproc\nret\n.cfi_endproc\n"
	".balign 16\n"
	"gap_third: .cfi_startproc\nret\n.cfi_endproc\n");
extern const char gap_first[], gap_code[], gap_second[], gap_third[];

static void test_gaps(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct making making;
	uint64_t bias = 0;

	(void)state;
	assert_int_equal(making_begin(&making, fd), 0);
	while (making_step(&making) > 0)
		;
	dl_iterate_phdr(on_object, &bias);
	assert_int_equal(rule_at(&making, (uintptr_t)gap_first - bias)->kind, UNWIND_SP);
	assert_int_equal(rule_at(&making, (uintptr_t)gap_code - bias)->kind, UNWIND_NONE);
	assert_int_equal(rule_at(&making, (uintptr_t)gap_second - bias)->kind, UNWIND_SP);
	assert_int_equal(rule_at(&making, (uintptr_t)gap_third - 1 - bias)->kind, UNWIND_SP);
	assert_int_equal(rule_at(&making, (uintptr_t)gap_third - bias)->kind, UNWIND_SP);
	making_done(&making);
}

/* What compilers and assemblers fill with; and what looks like it, but is code. */
static void test_padding(void **state)
{
	static const uint8_t nops[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0,    0,    0, 0,    0,    0x0f, 0x1f,
					0x44, 0,    0,    0x66, 0x90, 0x90, 0xcc, 0, 0x0f, 0x1f, 0 };
	static const uint8_t ret[] = { 0x90, 0xc3 }, read[] = { 0x0f, 0x1e, 0xfa },
			     cut[] = { 0x0f, 0x1f, 0x44 };
	static const uint8_t nop_arm64[] = { 0x1f, 0x20, 0x03, 0xd5, 0, 0, 0, 0 },
			     ret_arm64[] = { 0xc0, 0x03, 0x5f, 0xd6 };

	(void)state;
	assert_true(is_padding(EM_X86_64, nops, sizeof(nops)));
	assert_false(is_padding(EM_X86_64, ret, sizeof(ret)));
	assert_false(is_padding(EM_X86_64, read, sizeof(read)));
	assert_false(is_padding(EM_X86_64, cut, sizeof(cut)));
	assert_true(is_padding(EM_AARCH64, nop_arm64, sizeof(nop_arm64)));
	assert_false(is_padding(EM_AARCH64, ret_arm64, sizeof(ret_arm64)));
	assert_false(is_padding(EM_AARCH64, nops, sizeof(nops)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_file),        cmocka_unit_test(test_takes_too_long),
		cmocka_unit_test(test_no_file_of_ours), cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_padding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
