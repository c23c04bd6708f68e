// SPDX-License-Identifier: Apache-2.0
/* A forked process confines itself and tries what it must not be able to do. */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "helper/confine.h"

static pid_t tester;
static char byte;
static char path_of_all[] = "/tmp/gpusonde-test-confine-XXXXXX"; /* everyone may write to it */

/* Each returns 0 if it was refused. */
static int try_open(void)
{
	return open("/etc/hostname", O_RDONLY) >= 0;
}

static int try_write(void)
{
	return open("/tmp/confined", O_WRONLY | O_CREAT, 0600) >= 0;
}

static int try_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static int try_unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

/* Nothing that it opens may be written to, since it has write(). */
static int try_openat2(void)
{
	const uint64_t how[3] = { O_RDWR };

	return syscall(SYS_openat2, AT_FDCWD, path_of_all, how, sizeof(how)) >= 0;
}

/* 1: it may open what is below its folder, and nothing else. */
static int try_folder(void)
{
	return open("/etc/hostname", O_RDONLY) < 0 && open(path_of_all, O_RDONLY) >= 0;
}

static int try_exec(void)
{
	execl("/bin/false", "false", (char *)NULL);
	return 0; /* false(1) ends with 1 */
}

static int try_fork(void)
{
	return fork() >= 0;
}

static int try_signal(void)
{
	return kill(tester, 0) == 0;
}

static int try_ptrace(void)
{
	return ptrace(PTRACE_ATTACH, tester, 0, 0) == 0;
}

static int try_read_memory(void)
{
	char here;

	return process_vm_readv(tester, &(struct iovec){ &here, 1 }, 1, &(struct iovec){ &byte, 1 }, 1, 0) ==
	       1;
}

static int try_root(void)
{
	return setuid(0) == 0 || geteuid() == 0;
}

static int try_dump(void)
{
	return prctl(PR_GET_DUMPABLE) != 0;
}

/* The filter cannot see what openat2() is asked, so a file may be open for writing. */
static int try_write_by_mapping(void)
{
	const uint64_t how[3] = { O_RDWR };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path_of_all, how, sizeof(how));

	if (fd < 0)
		_exit(98);
	return mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED || write(fd, "x", 1) == 1 ||
	       mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED;
}

static int try_ioctl(void)
{
	int n, fd = open(path_of_all, O_RDONLY);

	if (fd < 0)
		_exit(98);
	return ioctl(fd, FIONREAD, &n) == 0;
}

static int ends_with(const struct confinement *confinement, int (*attempt)(void))
{
	int status;
	pid_t owner = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (confine(confinement, owner) < 0)
			_exit(99);
		_exit(attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const struct confinement nothing = { .name = "confined" };

static void needs_filter(void)
{
	if (SANITIZED)
		need_unmet("a build with sanitizers does not filter system calls");
}

static void may_do_nothing_else(void **state)
{
	(void)state;
	needs_filter();
	tester = getpid();
	assert_int_equal(ends_with(&nothing, try_open), 0);
	assert_int_equal(ends_with(&nothing, try_write), 0);
	assert_int_equal(ends_with(&nothing, try_socket), 0);
	assert_int_equal(ends_with(&nothing, try_exec), 0);
	assert_int_equal(ends_with(&nothing, try_fork), 0);
	assert_int_equal(ends_with(&nothing, try_signal), 0);
	assert_int_equal(ends_with(&nothing, try_ptrace), 0);
	assert_int_equal(ends_with(&nothing, try_read_memory), 0);
}

static void leaves_root_and_dumps_nothing(void **state)
{
	(void)state;
	if (geteuid() != 0)
		need_unmet("not root");
	assert_int_equal(ends_with(&nothing, try_root), 0);
	needs_filter();
	/* The filter refuses prctl(), so this says that it was refused, not what it is. */
	assert_int_equal(ends_with(&nothing, try_dump), 1);
}

static void may_do_what_its_role_needs(void **state)
{
	struct confinement role = { .name = "confined", .opens = true };

	(void)state;
	tester = getpid();
	assert_int_equal(ends_with(&role, try_open), 1);
	if (!SANITIZED) /* then nothing is filtered */
		assert_int_equal(ends_with(&role, try_write), 0);
	if (geteuid() != 0)
		need_unmet("not root: no capability to keep");
	role.reads_memory = true;
	role.capabilities = CONFINE_CAPABILITY(SYS_PTRACE);
	assert_int_equal(ends_with(&role, try_read_memory), 1);
	role.capabilities = 0;
	assert_int_equal(ends_with(&role, try_read_memory), 0);
}

static void writes_to_nothing_that_it_opens(void **state)
{
	const struct confinement role = { .name = "confined", .opens = true };
	int fd = mkstemp(path_of_all);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
	if (!SANITIZED) {
		assert_int_equal(ends_with(&role, try_write_by_mapping), 0);
		assert_int_equal(ends_with(&role, try_ioctl), 0);
	}
	unlink(path_of_all);
	needs_filter();
}

static void connects_by_tcp_alone(void **state)
{
	const struct confinement role = { .name = "confined", .opens = true, .connects = true };
	int fd;

	(void)state;
	needs_filter();
	strcpy(path_of_all, "/tmp/gpusonde-test-confine-XXXXXX");
	fd = mkstemp(path_of_all);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
	assert_int_equal(ends_with(&role, try_socket), 1);
	assert_int_equal(ends_with(&role, try_unix_socket), 0);
	assert_int_equal(ends_with(&role, try_openat2), 0);
	assert_int_equal(ends_with(&role, try_write), 0);
	assert_int_equal(ends_with(&role, try_exec), 0);
	assert_int_equal(ends_with(&role, try_fork), 0);
	unlink(path_of_all);
}

static void opens_what_is_below_its_folders_alone(void **state)
{
	static const char *const below[] = { "/nowhere", path_of_all, NULL };
	const struct confinement role = { .name = "confined", .opens = true, .below = below };
	int fd;

	(void)state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
		need_unmet("this kernel has no Landlock");
	strcpy(path_of_all, "/tmp/gpusonde-test-confine-XXXXXX");
	fd = mkstemp(path_of_all);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	close(fd);
	assert_int_equal(ends_with(&role, try_folder), 1);
	unlink(path_of_all);
}

static int kept_folder;

/* 1: it may make, replace and remove files in its folder. */
static int try_keeping(void)
{
	int fd = openat(kept_folder, "new", O_WRONLY | O_CREAT, 0666);

	if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) < 0)
		return 0;
	return syscall(SYS_renameat2, kept_folder, "new", kept_folder, "kept", 0) == 0 &&
	       openat(kept_folder, "kept", O_RDONLY) >= 0 && unlinkat(kept_folder, "kept", 0) == 0;
}

/* Elsewhere, from where it stands or from another folder. */
static int try_keeping_elsewhere(void)
{
	int other = openat(kept_folder, ".", O_RDONLY | O_DIRECTORY);

	return open(path_of_all, O_WRONLY) >= 0 || unlink(path_of_all) == 0 ||
	       openat(other, "new", O_WRONLY | O_CREAT, 0666) >= 0;
}

static int try_keeping_beyond(void)
{
	return openat(kept_folder, path_of_all, O_WRONLY) >= 0 ||
	       openat(kept_folder, "../other", O_WRONLY | O_CREAT, 0666) >= 0;
}

static void keeps_files_in_its_folder_alone(void **state)
{
	static const char *const below[] = { NULL };
	char inner[64], outer[] = "/tmp/gpusonde-test-keeping-XXXXXX";
	struct confinement role = { .name = "confined",
				    .opens = true,
				    .connects = true,
				    .below = below,
				    .keeps_files = true,
				    .file_bytes = 4096 };
	int fd;

	(void)state;
	strcpy(path_of_all, "/tmp/gpusonde-test-confine-XXXXXX");
	fd = mkstemp(path_of_all);
	assert_true(fd >= 0 && fchmod(fd, 0666) == 0);
	close(fd);
	/* Nobody else can enter the outer folder: the descriptor is enough. */
	assert_non_null(mkdtemp(outer));
	snprintf(inner, sizeof(inner), "%s/inner", outer);
	assert_int_equal(mkdir(inner, 0777), 0);
	assert_int_equal(chmod(inner, 0777), 0);
	kept_folder = role.folder = open(inner, O_RDONLY | O_DIRECTORY);
	assert_int_equal(ends_with(&role, try_keeping), 1);
	if (!SANITIZED)
		assert_int_equal(ends_with(&role, try_keeping_elsewhere), 0);
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1)
		assert_int_equal(ends_with(&role, try_keeping_beyond), 0);
	close(kept_folder);
	rmdir(inner);
	rmdir(outer);
	unlink(path_of_all);
}

static void does_not_outlive_its_owner(void **state)
{
	(void)state;
	assert_int_equal(confine(&nothing, getpid()), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(may_do_nothing_else),
		cmocka_unit_test(leaves_root_and_dumps_nothing),
		cmocka_unit_test(may_do_what_its_role_needs),
		cmocka_unit_test(writes_to_nothing_that_it_opens),
		cmocka_unit_test(connects_by_tcp_alone),
		cmocka_unit_test(opens_what_is_below_its_folders_alone),
		cmocka_unit_test(keeps_files_in_its_folder_alone),
		cmocka_unit_test(does_not_outlive_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
