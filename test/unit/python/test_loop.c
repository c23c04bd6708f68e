// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "python/loop.h"

/*
 * Functions of this program, as compilers and linkers make them: `split` has a part elsewhere, `whole` only
 * leaves for another function, and through a linkage table.
 */
#if defined(__x86_64__)
#define TO_PART "je split_rest+1"
#define TO_FUNCTION "jmp other"
#define TO_STUB "jmp strlen@plt"
#define NOP "nop"
#else
#define TO_PART "cbz x0, split_rest+4"
#define TO_FUNCTION "b other"
#define TO_STUB "b strlen"
#define NOP "nop"
#endif
#define FUNCTION(name, ...) \
	".globl " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n" __VA_ARGS__ \
	"\n.cfi_endproc\n.size " name ", . - " name "\n"

__asm__(".pushsection .text\n"
	FUNCTION("split", NOP "\n" TO_FUNCTION "\n" TO_PART "\n" TO_STUB)
	FUNCTION("whole", NOP "\n" TO_FUNCTION "\n" TO_STUB)
	".skip 256\n" /* so that no jump is a short one */
	FUNCTION("other", NOP "\n" NOP)
	FUNCTION("split_rest", NOP "\n" NOP "\n" NOP)
	".popsection");

static int find(const struct elf_symbol *symbol, void *userdata)
{
	struct elf_symbol *wanted = userdata;

	if (strcmp(symbol->name, wanted->name) != 0)
		return 0;
	*wanted = *symbol;
	return 1;
}

static struct elf_file *own(int *ret_fd)
{
	struct elf_file *elf;

	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_open(*ret_fd, &elf), 0);
	return elf;
}

static struct elf_symbol named(struct elf_file *elf, const char *name)
{
	struct elf_symbol symbol = { .name = name };

	assert_int_equal(elf_functions(elf, find, &symbol), 1);
	return symbol;
}

static void finds_what_lies_elsewhere(_unused_ void **state)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(elf_closep) struct elf_file *elf = own(&fd);
	struct elf_symbol split = named(elf, "split"), rest = named(elf, "split_rest");
	uint64_t part = 0, n = 0;

	assert_int_equal(python_loop_part(elf, split.address, split.size, &part, &n), 0);
	assert_int_equal(part, rest.address);
	assert_int_equal(n, rest.size);
}

static void takes_no_other_function_for_it(_unused_ void **state)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(elf_closep) struct elf_file *elf = own(&fd);
	struct elf_symbol whole = named(elf, "whole"), other = named(elf, "other");
	uint64_t part = 7, n = 8;

	assert_int_equal(python_loop_part(elf, whole.address, whole.size, &part, &n), -ENOENT);
	assert_int_equal(python_loop_part(elf, other.address, other.size, &part, &n), -ENOENT);
	assert_int_equal(python_loop_part(elf, 0, other.size, &part, &n), -ENOENT);
	assert_int_equal(part, 7);
	assert_int_equal(n, 8);
}

static void knows_where_parts_begin_and_end(_unused_ void **state)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(elf_closep) struct elf_file *elf = own(&fd);
	struct elf_symbol split = named(elf, "split"), whole = named(elf, "whole");
	uint64_t start = 7, end = 8;

	for (uint64_t at = split.address; at < split.address + split.size; at++) {
		assert_int_equal(elf_part(elf, at, &start, &end), 0);
		assert_int_equal(start, split.address);
		assert_int_equal(end, split.address + split.size);
	}
	assert_int_equal(elf_part(elf, 0, &start, &end), -ENOENT);
	assert_int_equal(elf_part(elf, UINT64_MAX, &start, &end), -ENOENT);
	assert_int_equal(elf_part(elf, whole.address + whole.size + 7, &start, &end), -ENOENT); /* a gap */
	assert_int_equal(start, split.address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_lies_elsewhere),
		cmocka_unit_test(takes_no_other_function_for_it),
		cmocka_unit_test(knows_where_parts_begin_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
