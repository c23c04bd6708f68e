// SPDX-License-Identifier: Apache-2.0
#include "agent/driver/detach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"

enum { STACK_BYTES = 16 << 10 };

/* Its memory is ours, so this is not on our stack. */
static struct {
	_Alignas(16) char stack[STACK_BYTES];
	int alive[2]; /* a pipe: its end is ours */
	int *kept; /* descriptors in ascending order, of probes and of the pipe */
	unsigned n;
} successor;

static bool is_probe(int folder, const char *name)
{
	static const char *const kinds[] = { "anon_inode:bpf_link", "anon_inode:bpf-link",
					     "anon_inode:[perf_event]" };
	char target[64];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

	target[MAX(n, 0)] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (STRV_EQ(target, kinds[i]))
			return true;
	return false;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The descriptors of probes; 0: there are none. */
static unsigned find_probes(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned cap = 0, n = 0;
	struct dirent *entry;
	uint64_t fd;

	while (folder && (entry = readdir(folder))) {
		if (parse_u64(entry->d_name, &fd) < 0 || !is_probe(dirfd(folder), entry->d_name))
			continue;
		/* One more for the pipe. */
		if (n + 2 > cap) {
			int *grown = reallocarray(successor.kept, cap = 2 * cap + 64, sizeof(*grown));

			if (!grown)
				break;
			successor.kept = grown;
		}
		successor.kept[n++] = (int)fd;
	}
	if (folder)
		closedir(folder);
	return n;
}

/* System calls alone: it shares our memory, locks and thread-local variables included. */
static int succeed(_unused_ void *userdata)
{
	unsigned first = 0;
	char byte;

	for (unsigned i = 0; i < successor.n; i++) {
		unsigned fd = (unsigned)successor.kept[i];

		if (fd > first)
			syscall(SYS_close_range, first, fd - 1, 0);
		first = fd + 1;
	}
	syscall(SYS_close_range, first, ~0U, 0);
	syscall(SYS_prctl, PR_SET_NAME, "gpusonde-detach");
	while (syscall(SYS_read, successor.alive[0], &byte, 1) < 0 && errno == EINTR)
		;
	syscall(SYS_exit_group, 0);
	return 0;
}

void detach_after_end(void)
{
	if (SANITIZED || (successor.n = find_probes()) == 0)
		return;
	if (pipe2(successor.alive, O_CLOEXEC) < 0)
		return;
	successor.kept[successor.n++] = successor.alive[0];
	qsort(successor.kept, successor.n, sizeof(*successor.kept), ascending);
	if (clone(succeed, successor.stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL) >= 0)
		close(successor.alive[0]);
	/* The other end stays open until the kernel closes it. */
}
