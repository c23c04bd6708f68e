// SPDX-License-Identifier: Apache-2.0
#include "trace/kernel_sites_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

enum {
	HITS = 3, /* a site is optimised after a hit */
	TIMEOUT_MS = 5000, /* long enough for an overloaded machine */
};

enum child_status { CHILD_ALIVE, CHILD_NO_FILTERS = 100, CHILD_UNTRIED };

/* What a filter answers to a system call that it does not know. */
static const uint32_t actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO | EPERM };

/* ---- the child: takes no lock, since it is forked from a multi-threaded process ---- */

/* The only system call that the child still makes is exit_group(). */
static int set_filter(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, action),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

static _Noreturn void child(void (*const *functions)(void), unsigned n, uint32_t action)
{
	static const int fatal[] = { SIGSYS, SIGSEGV, SIGILL, SIGBUS, SIGTRAP };
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0); /* no core file if it is killed */
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		signal(fatal[i], SIG_DFL);
	r = set_filter(action);
	if (r == 0)
		for (int hit = 0; hit < HITS; hit++)
			for (unsigned i = 0; i < n; i++)
				functions[i]();
	/* Not _exit(), to which sanitizers add system calls. */
	for (;;)
		syscall(SYS_exit_group, r == 0       ? CHILD_ALIVE :
					r == -EINVAL ? CHILD_NO_FILTERS :
						       CHILD_UNTRIED);
}

/* ---- the parent ---- */

/* Its end closes the pipe. */
static bool has_ended(int fd)
{
	struct pollfd wait = { .fd = fd };
	int r;

	do
		r = poll(&wait, 1, TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	return r > 0;
}

static enum filter_verdict verdict_of(int status)
{
	if (WIFSIGNALED(status)) /* a filter kills by SIGSYS; SIGKILL is somebody else's */
		return WTERMSIG(status) == SIGKILL ? FILTER_UNTRIED : FILTER_HARMS;
	switch (WEXITSTATUS(status)) {
	case CHILD_ALIVE:
	case CHILD_NO_FILTERS:
		return FILTER_HARMLESS;
	case CHILD_UNTRIED:
		return FILTER_UNTRIED;
	default:
		return FILTER_HARMS;
	}
}

static enum filter_verdict try_filter(void (*const *functions)(void), unsigned n, uint32_t action)
{
	_cleanup_close_ int ours = -1, its = -1;
	int pair[2], status = 0;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return FILTER_UNTRIED;
	ours = pair[0];
	its = pair[1];
	pid = fork();
	if (pid < 0)
		return FILTER_UNTRIED;
	if (pid == 0)
		child(functions, n, action);
	close(TAKE_FD(its));
	if (!has_ended(ours))
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return FILTER_UNTRIED;
	return verdict_of(status);
}

enum filter_verdict kernel_sites_try_filters(void (*const *functions)(void), unsigned n)
{
	enum filter_verdict worst = FILTER_HARMLESS;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		enum filter_verdict verdict = try_filter(functions, n, actions[i]);

		if (verdict == FILTER_HARMS)
			return verdict;
		if (verdict == FILTER_UNTRIED)
			worst = verdict;
	}
	return worst;
}
