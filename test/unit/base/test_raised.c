// SPDX-License-Identifier: Apache-2.0
#include "../needs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"

enum { NOBODY_IN_PARTICULAR = 64125, NO_CAPABILITIES_HERE = 77 };

static unsigned effective(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, sets), 0);
	return sets[0].effective;
}

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

/* Of a copy of this program whose file has CAP_DAC_READ_SEARCH, run by a user. */
static int with_file_capabilities(const char *path)
{
	if (!getauxval(AT_SECURE))
		return NO_CAPABILITIES_HERE;
	if (!reads_roots_file(path))
		return 2;
	if (capabilities_lower() < 0 || !capabilities_lowered() || effective() != 0 || reads_roots_file(path))
		return 3;
	if (!reads_it_raised(path) || !nested(path) || effective() != 0 || reads_roots_file(path))
		return 4;
	return 0;
}

static void copy_self(const char *path)
{
	struct vfs_cap_data capabilities = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1U << CAP_DAC_READ_SEARCH,
	};
	_cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	assert_int_equal(fstat(from, &st), 0);
	for (off_t at = 0; at < st.st_size;)
		assert_true(sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0);
	assert_int_equal(fchmod(to, 0755), 0);
	if (fsetxattr(to, "security.capability", &capabilities, sizeof(capabilities), 0) < 0)
		print_message("# file capabilities: %s\n", strerror(errno));
}

static void file_capabilities_are_lowered_but_where_they_are_raised(_unused_ void **state)
{
	char folder[] = "/tmp/gpusonde-test-XXXXXX", program[64], secret[64];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		need_unmet("only root gives capabilities to a file");
	need_programs();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(secret, sizeof(secret), "%s/secret", folder);
	close(open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	copy_self(program);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(0, NULL) == 0 && setgid(NOBODY_IN_PARTICULAR) == 0 &&
		    setuid(NOBODY_IN_PARTICULAR) == 0)
			execl(program, program, secret, (char *)NULL);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(program);
	unlink(secret);
	rmdir(folder);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_CAPABILITIES_HERE)
		need_unmet("/tmp takes no file capabilities");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void other_capabilities_stay(_unused_ void **state)
{
	unsigned before = effective();

	assert_int_equal(capabilities_lower(), 0);
	assert_false(capabilities_lowered());
	errno = E2BIG;
	{
		WITH_CAPABILITIES;

		assert_int_equal(effective(), before);
	}
	assert_int_equal(effective(), before);
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
