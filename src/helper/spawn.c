// SPDX-License-Identifier: Apache-2.0
#include "helper/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "config.h"
#include "helper/starter.h"

static const char reader[] = "gpusonde-reader";

enum { FD_ASIDE = 10, WORDS = _LINUX_CAPABILITY_U32S_3 };

/* A folder in which others than root and the owner of our file can replace nothing. */
static bool is_safe_folder(const char *path, uid_t owner)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == owner) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX);
}

/*
 * Whether @path, which is made free of symbolic links, may get our capabilities. Those of our file belong to
 * every user who may run it, and a hard link gives it a place that the user chose.
 */
static bool is_safe(char path[static PATH_MAX])
{
	char resolved[PATH_MAX], folder[PATH_MAX];
	struct stat own, program;

	if (!capabilities_lowered())
		return true;
	if (!realpath(path, resolved) || stat("/proc/self/exe", &own) < 0 || stat(resolved, &program) < 0 ||
	    (program.st_uid != 0 && program.st_uid != own.st_uid))
		return false;
	strcpy(path, resolved);
	strcpy(folder, resolved);
	for (char *slash; (slash = strrchr(folder, '/'));) {
		*slash = '\0';
		if (!is_safe_folder(*folder ? folder : "/", own.st_uid))
			return false;
	}
	return true;
}

static void find_beside(const char *name, int mode, uint64_t capabilities, char ret_path[PATH_MAX])
{
	/* As built, and as installed, which works below any DESTDIR. */
	static const char *const beside[] = { "/", "/../libexec/gpusonde/" };
	char folder[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(beside) && program_folder(folder) == 0; i++)
		if (snprintf(ret_path, PATH_MAX, "%s%s%s", folder, beside[i], name) < PATH_MAX &&
		    access(ret_path, mode) == 0 && (!capabilities || is_safe(ret_path)))
			return;
	snprintf(ret_path, PATH_MAX, "%s%s", GPUSONDE_LIBEXECDIR "/", name);
}

void helper_find_program(const char *configured, uint64_t capabilities, char ret_path[PATH_MAX])
{
	const char *name = configured ? configured : reader;

	if (strchr(name, '/'))
		snprintf(ret_path, PATH_MAX, "%s", name);
	else
		find_beside(name, X_OK, capabilities, ret_path);
}

void helper_find_library(const char *name, char ret_path[PATH_MAX])
{
	find_beside(name, R_OK, 0, ret_path);
}

/* ---- capabilities that pass an exec, where this process is not root ---- */

struct passed {
	bool changed;
	uint64_t inheritable; /* before */
	uint64_t raised; /* ambient ones that were not before */
};

/*
 * Makes this thread's capabilities of @wanted ambient. Failures are ignored: the helper then lacks them, and
 * says what it is refused.
 */
static void pass_capabilities(uint64_t wanted, struct passed *passed)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	*passed = (struct passed){ .changed = false };
	if (geteuid() == 0 || syscall(SYS_capget, &header, sets) < 0)
		return;
	passed->inheritable = sets[0].inheritable | (uint64_t)sets[1].inheritable << 32;
	sets[0].inheritable |= sets[0].permitted & (uint32_t)wanted;
	sets[1].inheritable |= sets[1].permitted & (uint32_t)(wanted >> 32);
	if (syscall(SYS_capset, &header, sets) < 0)
		return;
	passed->changed = true;
	for (unsigned long cap = 0; cap < 64; cap++)
		if (wanted >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 0 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
			passed->raised |= UINT64_C(1) << cap;
}

static void keep_capabilities(const struct passed *passed)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	if (!passed->changed || syscall(SYS_capget, &header, sets) < 0)
		return;
	for (unsigned long cap = 0; cap < 64; cap++)
		if (passed->raised >> cap & 1)
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, cap, 0, 0);
	sets[0].inheritable = (uint32_t)passed->inheritable;
	sets[1].inheritable = (uint32_t)(passed->inheritable >> 32);
	syscall(SYS_capset, &header, sets);
}

/* ---- starting ---- */

static int make_sockets(int *ret_ours, int *ret_theirs)
{
	_cleanup_close_ int theirs = -1, ours = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	*ret_theirs = fcntl(theirs, F_DUPFD_CLOEXEC, FD_ASIDE);
	if (*ret_theirs < 0)
		return -errno;
	r = fd_nonblock(ours);
	if (r < 0) {
		closep(ret_theirs);
		return r;
	}
	*ret_ours = TAKE_FD(ours);
	return 0;
}

/* The descriptors that the thread which starts it is sent. */
enum { SEND_ERRORS, SEND_SOCKET, SEND_PROGRAM, SEND_N };

static int add_actions(posix_spawn_file_actions_t *actions, const int fds[SEND_N])
{
	int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_ERRORS], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_ERRORS], STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_SOCKET], HELPER_SOCKET);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_PROGRAM], HELPER_PROGRAM);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, HELPER_PROGRAM + 1);
	return -r;
}

/* The event loop blocks signals, and its handlers do not exist in the helper. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int spawn(char *const argv[], const int fds[SEND_N], pid_t *ret_pid)
{
	char path[40];
	char *const none[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = -posix_spawn_file_actions_init(&actions);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", HELPER_PROGRAM);
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = add_actions(&actions, fds);
		if (r == 0)
			r = set_signals(&attributes);
		if (r == 0)
			r = -posix_spawn(ret_pid, path, &actions, &attributes, argv, none);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

struct start {
	char *const *argv;
	uint64_t capabilities;
	pid_t pid;
};

/* In the starter's thread: its capabilities are passed. */
static int start_helper(const int fds[], void *userdata)
{
	struct start *start = userdata;
	struct passed passed;
	int r;

	pass_capabilities(start->capabilities, &passed);
	r = spawn(start->argv, fds, &start->pid);
	keep_capabilities(&passed);
	return r;
}

int helper_open_program(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	int aside = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_ASIDE);

	return aside < 0 ? -errno : aside;
}

int helper_spawn(int program, const char *name, const char *role, uint64_t capabilities, pid_t *ret_pid,
		 int *ret_pidfd, int *ret_socket)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	char owner[16];
	char *const argv[] = { (char *)name, (char *)role, owner, NULL };
	struct start begun = { .argv = argv, .capabilities = capabilities };
	int r = make_sockets(&ours, &theirs);
	const int fds[SEND_N] = { STDERR_FILENO, theirs, program };

	if (r < 0)
		return r;
	snprintf(owner, sizeof(owner), "%d", (int)getpid());
	/* So that it can change to a user of its own; those of our file it could pass to others. */
	if (!capabilities_lowered())
		begun.capabilities |= UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID;
	r = starter_run(start_helper, &begun, fds, SEND_N);
	if (r < 0)
		return r;
	/* The PID cannot be reused before we wait for it, so this is the process that we started. */
	*ret_pidfd = pidfd_open(begun.pid, 0);
	if (*ret_pidfd < 0) {
		r = -errno;
		kill(begun.pid, SIGKILL);
		waitpid(begun.pid, NULL, 0);
		return r;
	}
	*ret_pid = begun.pid;
	*ret_socket = TAKE_FD(ours);
	return 0;
}
