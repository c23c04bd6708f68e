// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/record/record_folder.h"

static const uint64_t mebibyte = 1 << 20;

/* Room is made before a file is begun; then two may grow: a recording, and what is kept in memory. */
static void two_files_fit_beside_what_stays(_unused_ void **state)
{
	const uint64_t sizes[] = { 128 * mebibyte, 129 * mebibyte + 1, 1024 * mebibyte,
				   16384 * 1024 * mebibyte };
	struct timeline_files_config files;

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		record_files("/nowhere", sizes[i], "record", &files);
		assert_true(files.rotate_bytes > 0);
		assert_true(files.folder_bytes < sizes[i]);
		assert_true(files.folder_bytes + 2 * files.rotate_bytes <= sizes[i]);
	}
}

static void names_have_nothing_of_paths(_unused_ void **state)
{
	struct timeline_files_config files;

	record_files("/nowhere", 128 * mebibyte, "../x y/\n\xff", &files);
	assert_null(strchr(files.stem, '/'));
	assert_null(strchr(files.stem, ' '));
	assert_non_null(strstr(files.stem, files.prefix));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_files_fit_beside_what_stays),
		cmocka_unit_test(names_have_nothing_of_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
