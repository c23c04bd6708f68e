// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/memory.h"

enum { TABLE_BYTES = 1 << 20 };

/* Constant data of this program, mapped from its file, and data that only memory has. */
static const unsigned char table[TABLE_BYTES] = { [0] = 1, [TABLE_BYTES - 1] = 2 };
static unsigned char changed[TABLE_BYTES] = { [0] = 3, [TABLE_BYTES - 1] = 4 };

static unsigned resident_pages(const unsigned char *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)p + page - 1) & ~(page - 1);
	unsigned resident = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	for (; begin + page <= (uintptr_t)p + n; begin += page) {
		uint64_t entry = 0;

		assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(begin / page * sizeof(entry))),
				 sizeof(entry));
		resident += entry >> 63; /* bit 63 of a pagemap entry: the page is present */
	}
	close(fd);
	return resident;
}

static void gives_back_what_the_file_has(_unused_ void **state)
{
	unsigned before, sum = 0;

	for (size_t i = 0; i < TABLE_BYTES; i += 512)
		sum += ((const volatile unsigned char *)table)[i];
	assert_int_equal(sum, 1);
	before = resident_pages(table, TABLE_BYTES);
	assert_true(before > 0);
	memory_give_back();
	/* The kernel brings neighbours of what is touched since: the program's own strings. */
	assert_true(resident_pages(table, TABLE_BYTES) < before / 4);
	assert_int_equal(((const volatile unsigned char *)table)[TABLE_BYTES - 1], 2);
}

static void keeps_what_only_memory_has(_unused_ void **state)
{
	memset(changed + 1, 0x5a, TABLE_BYTES - 2);
	memory_give_back();
	assert_int_equal(changed[0], 3);
	for (size_t i = 1; i < TABLE_BYTES - 1; i++)
		assert_int_equal(changed[i], 0x5a);
	assert_int_equal(changed[TABLE_BYTES - 1], 4);
}

/*
 * As a debugger's breakpoint or an inline hook does. Comes last: from here on this segment is one that stays.
 */
static void keeps_what_somebody_patched(_unused_ void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *middle =
		(unsigned char *)(((uintptr_t)table + TABLE_BYTES / 2) & ~(uintptr_t)(page - 1));

	assert_int_equal(mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
	*(volatile unsigned char *)middle = 0xcc;
	assert_int_equal(mprotect(middle, page, PROT_READ), 0);
	memory_give_back();
	assert_int_equal(*(volatile unsigned char *)middle, 0xcc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_what_the_file_has),
		cmocka_unit_test(keeps_what_only_memory_has),
		cmocka_unit_test(keeps_what_somebody_patched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
