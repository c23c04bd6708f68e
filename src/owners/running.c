// SPDX-License-Identifier: Apache-2.0
#include "owners/running.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

/* The inode of the first PID namespace (PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h). */
#define FIRST_NAMESPACE "pid:[4026531836]"

bool running_can_tell(void)
{
	struct stat st;
	char name[64];
	ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (n < 0)
		return false;
	name[n] = '\0';
	/* With hidepid there is no process of others. */
	return STRV_EQ(name, FIRST_NAMESPACE) && stat("/proc/1", &st) == 0;
}

bool running_is(uint32_t pid, const char *id)
{
	char path[64], text[16384];
	int r;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	r = read_file(path, text, sizeof(text), NULL);
	/* What cannot be compared is taken for the container's. */
	return r == 0 ? strstr(text, id) != NULL : r == -E2BIG;
}

uint32_t running_pid(int fd)
{
	char text[32];
	struct cursor c;
	uint64_t pid;
	size_t n;

	if (read_fd(fd, text, sizeof(text), &n) < 0)
		return 0;
	c = cursor_over(text, n);
	return cursor_u64(&c, &pid) == 0 && pid <= INT32_MAX ? (uint32_t)pid : 0;
}
