// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <poll.h>
#include <sys/socket.h>

#include "agent/lifeline.h"
#include "base/macro.h"
#include "helper/message.h"

enum { PATIENCE_MS = 20000 };

static bool has_ended(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLHUP;
}

static int new_one(struct lifeline **lifeline, int *fd)
{
	int r = lifeline_new(lifeline, fd);

	if (r == -EPERM || r == -ENOSYS)
		need_unmet("a thread may not have descriptors of its own here");
	return r;
}

static void ends_when_it_is_let_go_of(_unused_ void **state)
{
	struct lifeline *lifeline;
	int fd, copy;

	assert_int_equal(new_one(&lifeline, &fd), 0);
	assert_false(has_ended(fd, 50));
	copy = dup(fd);
	lifeline_free(lifeline);
	assert_true(has_ended(copy, PATIENCE_MS)); /* the join comes before */
	close(copy);
}

/* It is stopped, so it does nothing itself, and has the pipe's ends in its table as the agent has probes. */
static void ends_when_the_process_is_killed(_unused_ void **state)
{
	struct lifeline *lifeline;
	int ends[2], fd = -1, status;
	char byte;
	pid_t pid;

	assert_int_equal(new_one(&lifeline, &fd), 0);
	lifeline_free(lifeline);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (lifeline_new(&lifeline, &fd) < 0 || send_with_fd(ends[1], "x", 1, fd) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(2);
	}
	assert_int_equal(receive_with_fd(ends[0], &byte, 1, &fd), 1);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_false(has_ended(fd, 50));
	kill(pid, SIGKILL);
	assert_true(has_ended(fd, PATIENCE_MS));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* The writing end is in no table but the thread's. */
static void leaves_two_descriptors(_unused_ void **state)
{
	struct lifeline *lifeline;
	unsigned before = 0, after = 0;
	int fd;

	for (int i = 0; i < 1024; i++)
		before += fcntl(i, F_GETFD) >= 0;
	assert_int_equal(new_one(&lifeline, &fd), 0);
	for (int i = 0; i < 1024; i++)
		after += fcntl(i, F_GETFD) >= 0;
	assert_int_equal(after, before + 2); /* the end to watch, and what ends the thread */
	lifeline_free(lifeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_when_it_is_let_go_of),
		cmocka_unit_test(ends_when_the_process_is_killed),
		cmocka_unit_test(leaves_two_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
