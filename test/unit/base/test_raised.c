// SPDX-License-Identifier: Apache-2.0
#include "../file_capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"

static bool reads_roots_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

static bool reads_it_raised(const char *path)
{
	WITH_CAPABILITIES;

	return reads_roots_file(path);
}

static bool nested(const char *path)
{
	WITH_CAPABILITIES;

	return reads_it_raised(path) && reads_roots_file(path); /* still raised */
}

/* Within what is raised: the user's own, and then raised again. */
static bool lowered_within(const char *path)
{
	WITH_CAPABILITIES;
	bool read;

	{
		WITH_RIGHTS_OF_USER;

		read = reads_roots_file(path);
	}
	return !read && reads_roots_file(path);
}

/* Of a copy of this program whose file has CAP_DAC_READ_SEARCH, run by a user. */
static int with_file_capabilities(const char *path)
{
	if (!getauxval(AT_SECURE))
		return FILE_CAPABILITIES_NONE;
	if (!reads_roots_file(path))
		return 2;
	if (capabilities_lower() < 0 || !capabilities_lowered() || effective_capabilities() != 0 ||
	    reads_roots_file(path))
		return 3;
	if (!reads_it_raised(path) || !nested(path) || effective_capabilities() != 0 ||
	    reads_roots_file(path))
		return 4;
	return lowered_within(path) && effective_capabilities() == 0 ? 0 : 5;
}

static void file_capabilities_are_lowered_but_where_they_are_raised(_unused_ void **state)
{
	char secret[] = "/tmp/gpusonde-test-XXXXXX";
	int fd, status;

	need_file_capabilities();
	fd = mkstemp(secret);
	assert_true(fd >= 0);
	close(fd);
	status = run_with_file_capability(CAP_DAC_READ_SEARCH, secret);
	unlink(secret);
	assert_int_equal(status, 0);
}

static void other_capabilities_stay(_unused_ void **state)
{
	unsigned before = effective_capabilities();

	assert_int_equal(capabilities_lower(), 0);
	assert_false(capabilities_lowered());
	errno = E2BIG;
	{
		WITH_CAPABILITIES;

		assert_int_equal(effective_capabilities(), before);
	}
	assert_int_equal(effective_capabilities(), before);
	assert_int_equal(errno, E2BIG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_capabilities_are_lowered_but_where_they_are_raised),
		cmocka_unit_test(other_capabilities_stay),
	};

	return argc > 1 ? with_file_capabilities(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
