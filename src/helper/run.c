// SPDX-License-Identifier: Apache-2.0
#include "helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"

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

static int wait_for_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool limit_self(const struct run *run)
{
	if (run->nice && setpriority(PRIO_PROCESS, 0, run->nice) < 0)
		return false;
	if (run->memory && !SANITIZED &&
	    setrlimit(RLIMIT_AS, &(struct rlimit){ run->memory, run->memory }) < 0)
		return false;
	return !run->powerless || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
}

/* After fork() in a process of many threads: system calls alone. @failed is told the errno. */
static _Noreturn void become(const struct run *run, const struct pipes *pipes, pid_t parent, int failed)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;
	int error;

	sigemptyset(&none);
	if (null >= 0 && limit_self(run) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
	    dup2(null, STDIN_FILENO) >= 0 && dup2(pipes->output[1], STDOUT_FILENO) >= 0 &&
	    dup2(pipes->errors[1], STDERR_FILENO) >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execve(run->program ? run->program : "/proc/self/exe", run->arguments, environ);
	error = errno;
	_exit(write(failed, &error, sizeof(error)) == sizeof(error) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* No posix_spawn(): what it starts would outlive us. */
static int run_start(const struct run *run, const struct pipes *pipes, pid_t *ret_pid)
{
	const pid_t parent = getpid();
	int failed[2], error = 0;
	ssize_t n;

	if (pipe2(failed, O_CLOEXEC) < 0)
		return -errno;
	*ret_pid = fork();
	if (*ret_pid == 0)
		become(run, pipes, parent, failed[1]);
	if (*ret_pid < 0)
		error = errno;
	close(failed[1]);
	do
		n = *ret_pid > 0 ? read(failed[0], &error, sizeof(error)) : 0;
	while (n < 0 && errno == EINTR);
	close(failed[0]);
	if (n == sizeof(error))
		wait_for_end(*ret_pid);
	return -error;
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

/* One that closes what it prints to may go on. */
static int wait_until(pid_t pid, int64_t end_ns)
{
	_cleanup_close_ int pidfd = pidfd_open(pid, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return -errno;
	for (;;) {
		int64_t left_ns = end_ns - clock_mono_ns();
		int n = poll(&end, 1, left_ns > 0 ? (int)(left_ns / NSEC_PER_MSEC) + 1 : 0);

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static void set_pid(const struct run *run, pid_t pid)
{
	if (run->pid)
		atomic_store(run->pid, pid);
}

int run_program(const struct run *run, struct strbuf *ret_output, struct strbuf *ret_errors)
{
	_cleanup_(pipes_close) struct pipes pipes = { { -1, -1 }, { -1, -1 } };
	const int64_t end_ns = clock_mono_ns() + run->seconds * NSEC_PER_SEC;
	int status, r;
	pid_t pid = -1;

	if (pipe2(pipes.output, O_CLOEXEC) < 0 || pipe2(pipes.errors, O_CLOEXEC) < 0)
		return -errno;
	r = run_start(run, &pipes, &pid);
	if (r < 0)
		return r;
	set_pid(run, pid);
	closep(&pipes.output[1]);
	closep(&pipes.errors[1]);
	pipes.output[1] = pipes.errors[1] = -1;
	r = take_both(&pipes, end_ns, run->limit, ret_output, ret_errors);
	if (r == 0)
		r = wait_until(pid, end_ns);
	if (r < 0)
		kill(pid, SIGKILL);
	set_pid(run, 0); /* first: the number may soon be another process's */
	status = wait_for_end(pid);
	return r < 0 ? r : status;
}
