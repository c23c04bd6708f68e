// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a program under a seccomp filter that refuses system calls that it does not know, as containers have.
 *
 *	filtered kill|errno PROGRAM ARGUMENT...
 *
 * Unknown are the numbers that the kernel gave to its own calls on x86-64, and those that it left out
 * between the machines' own and the common ones: 335 to 423. Without a program it makes such a call itself.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST = 335, BEYOND = 424 };

static int set_filter(unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, BEYOND, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	if (argc < 2 || (strcmp(argv[1], "kill") && strcmp(argv[1], "errno"))) {
		fprintf(stderr, "usage: filtered kill|errno PROGRAM ARGUMENT...\n");
		return 2;
	}
	if (set_filter(argv[1][0] == 'k' ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM) < 0) {
		perror("filtered: seccomp");
		return 1;
	}
	if (argc == 2)
		return syscall(BEYOND - 1) < 0 && errno == EPERM ? 0 : 1;
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
