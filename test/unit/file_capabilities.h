// SPDX-License-Identifier: Apache-2.0
/*
 * A test's own program, run by a user with a capability of its file: a copy of it, which main() finds out by
 * its argument.
 */
#pragma once

#include "needs.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* What the copy ends with where its file's capabilities do not count (AT_SECURE is not set). */
enum { FILE_CAPABILITIES_NONE = 77, FILE_CAPABILITIES_USER = 64125 };

static inline unsigned effective_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, sets), 0);
	return sets[0].effective;
}

static inline void copy_self(const char *path, unsigned capability)
{
	struct vfs_cap_data capabilities = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1U << capability,
	};
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	assert_int_equal(fstat(from, &st), 0);
	for (off_t at = 0; at < st.st_size;)
		assert_true(sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0);
	assert_int_equal(fchmod(to, 0755), 0);
	if (fsetxattr(to, "security.capability", &capabilities, sizeof(capabilities), 0) < 0)
		print_message("# file capabilities: %s\n", strerror(errno));
	close(from);
	close(to);
}

static inline void need_file_capabilities(void)
{
	if (geteuid() != 0)
		need_unmet("only root gives capabilities to a file");
	need_programs();
}

/* What the copy, called with @argument, ends with; after need_file_capabilities(). May skip. */
static inline int run_with_file_capability(unsigned capability, const char *argument)
{
	char folder[] = "/tmp/gpusonde-test-XXXXXX", program[64];
	int status;
	pid_t pid;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(program, sizeof(program), "%s/program", folder);
	copy_self(program, capability);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(0, NULL) == 0 && setgid(FILE_CAPABILITIES_USER) == 0 &&
		    setuid(FILE_CAPABILITIES_USER) == 0)
			execl(program, program, argument, (char *)NULL);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(program);
	rmdir(folder);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == FILE_CAPABILITIES_NONE)
		need_unmet("/tmp takes no file capabilities");
	return WEXITSTATUS(status);
}
