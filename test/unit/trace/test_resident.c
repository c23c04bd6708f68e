// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "trace/resident.h"

enum { PAGES = 64 };

static void pages_that_are_not_in_memory_are_noticed(_unused_ void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = PAGES * page - 8;
	char path[] = "/var/tmp/gpusonde-test-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	_cleanup_free_ char *data = calloc(1, size);
	_cleanup_free_ struct site_list *list = calloc(1, sizeof(*list) + 3 * sizeof(list->at[0]));

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, data, size), size);
	list->n = 3;
	list->at[0] =
		(struct site_entry){ .offset = page - 4, .flags = SITE_ENTRY_CHOSEN }; /* on two pages */
	list->at[1] = (struct site_entry){ .offset = size - 4, .flags = SITE_ENTRY_CHOSEN }; /* on the last */
	list->at[2] = (struct site_entry){ .offset = 32 * page };
	assert_true(sites_resident(fd, size, list));
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	if (sites_resident(fd, size, list)) {
		print_message("# SKIP the kernel does not tell pages in memory from others here\n");
		skip();
	}
	/* What is not chosen need not be; one of two pages is not enough. */
	list->n = 1;
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0); /* no more is read than asked for */
	assert_int_equal(pread(fd, data, 1, 0), 1);
	assert_false(sites_resident(fd, size, list));
	assert_int_equal(pread(fd, data, 1, (off_t)page), 1);
	assert_true(sites_resident(fd, size, list));
	list->at[0].offset = size;
	assert_false(sites_resident(fd, size, list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_that_are_not_in_memory_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
