// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/as_user.h"
#include "base/fd.h"

/* How it is with file capabilities: test/e2e/capabilities.py. */
static void opens_like_open(_unused_ void **state)
{
	char path[] = "/tmp/gpusonde-test-XXXXXX";
	_cleanup_close_ int made = mkstemp(path);
	_cleanup_close_ int fd = open_as_user(path, O_RDONLY | O_CLOEXEC, 0);
	struct stat one, other;

	assert_true(made >= 0 && fd >= 0);
	assert_int_equal(fstat(made, &one) | fstat(fd, &other), 0);
	assert_int_equal(one.st_ino, other.st_ino);
	unlink(path);
	errno = 0;
	assert_int_equal(open_as_user(path, O_RDONLY | O_CLOEXEC, 0), -1);
	assert_int_equal(errno, ENOENT);
}

static void end_restores_only_what_begin_has_lowered(_unused_ void **state)
{
	struct as_user as_user;

	assert_int_equal(as_user_begin(&as_user), 0);
	assert_false(as_user.lowered);
	errno = E2BIG;
	as_user_end(&as_user);
	assert_int_equal(errno, E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_like_open),
		cmocka_unit_test(end_restores_only_what_begin_has_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
