// SPDX-License-Identifier: Apache-2.0
/* A command of our own as a child process: what it prints, within a time and a size. */
#include "cmd/mcp/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

struct pipes {
	int output[2], errors[2];
};

static void pipes_close(struct pipes *pipes)
{
	for (unsigned i = 0; i < 2; i++) {
		closep(&pipes->output[i]);
		closep(&pipes->errors[i]);
	}
}

static int start_command(char *const arguments[], const struct pipes *pipes, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, pipes->output[1], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, pipes->errors[1], STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* What is there. 0: its writers have ended; 1: there may be more. -E2BIG. */
static int take_some(int fd, size_t limit, struct strbuf *out)
{
	char buf[16 << 10];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	if (out->len + (size_t)n > limit)
		return -E2BIG;
	strbuf_add(out, buf, (size_t)n);
	return n > 0;
}

static int take_both(const struct pipes *pipes, int64_t end_ns, size_t limit, struct strbuf *ret_output,
		     struct strbuf *ret_errors)
{
	struct pollfd fds[] = { { .fd = pipes->output[0], .events = POLLIN },
				{ .fd = pipes->errors[0], .events = POLLIN } };
	struct strbuf *to[] = { ret_output, ret_errors };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int64_t left_ns = end_ns - clock_mono_ns();

		if (left_ns <= 0)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)(left_ns / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
			return -errno;
		for (unsigned i = 0; i < 2; i++) {
			int r = fds[i].revents ? take_some(fds[i].fd, limit, to[i]) : 1;

			if (r < 0)
				return r;
			if (r == 0)
				fds[i].fd = -1;
		}
	}
	return 0;
}

static int wait_for_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int mcp_run(char *const arguments[], unsigned seconds, size_t limit, struct strbuf *ret_output,
	    struct strbuf *ret_errors)
{
	_cleanup_(pipes_close) struct pipes pipes = { { -1, -1 }, { -1, -1 } };
	int status, r;
	pid_t pid;

	if (pipe2(pipes.output, O_CLOEXEC) < 0 || pipe2(pipes.errors, O_CLOEXEC) < 0)
		return -errno;
	r = start_command(arguments, &pipes, &pid);
	if (r < 0)
		return r;
	closep(&pipes.output[1]);
	closep(&pipes.errors[1]);
	pipes.output[1] = pipes.errors[1] = -1;
	r = take_both(&pipes, clock_mono_ns() + seconds * NSEC_PER_SEC, limit, ret_output, ret_errors);
	if (r < 0)
		kill(pid, SIGKILL);
	status = wait_for_end(pid);
	return r < 0 ? r : status;
}
