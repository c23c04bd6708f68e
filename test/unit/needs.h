// SPDX-License-Identifier: Apache-2.0
/*
 * What a case wants of where it runs, tried at its beginning: without, it says what is missing and skips.
 * qemu's user emulation lacks calls, starts no other programs of its machine by itself, and hides what it
 * runs behind itself.
 */
#pragma once

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The call @name, tried with arguments that no call takes. */
#define NEED_CALL(name)                                                                  \
	do {                                                                             \
		if (syscall(SYS_##name, -1L, 0L, 0L, 0L, 0L, 0L) < 0 && errno == ENOSYS) \
			need_unmet("there is no " #name "() here");                      \
	} while (0)

static inline void need_unmet(const char *why)
{
	print_message("# SKIP %s\n", why);
	skip();
}

/* That programs of the build folder can be started. */
static inline void need_programs(void)
{
	char path[4096];
	int status = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/gpusonde", test_build_root());
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		execl(path, path, "--version", (char *)NULL);
		_exit(errno == ENOEXEC ? 125 : 126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 125)
		need_unmet("programs of the machine that this is built for cannot be started here");
	assert_int_equal(status, 0);
}

/* A child of ours looks like another program to us. */
static inline bool need_is_emulated(void)
{
	char link[64], own[4096] = "", childs[4096] = "";
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	assert_true(readlink(link, childs, sizeof(childs) - 1) > 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return strcmp(own, childs) != 0;
}

static inline void need_processes(void)
{
	if (need_is_emulated())
		need_unmet("processes look like the emulator that runs them");
}

/* A whole program of tests wants memory by the TiB that is only reserved; else it has said that it skips. */
static inline bool need_has_room(void)
{
	bool room = !need_is_emulated();

	if (!room)
		printf("1..0 # SKIP the emulator keeps tables of memory that is only reserved, too\n");
	return room;
}
