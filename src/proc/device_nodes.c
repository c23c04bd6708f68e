// SPDX-License-Identifier: Apache-2.0
#include "proc/device_nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	ENTRIES_MAX = 8192, /* a host's has some hundreds */
	NVIDIA_MAJOR = 195,
	GPUS_MAX = 254, /* the numbers above are nvidiactl's and nvidia-modeset's */
};

/* The folder is not left by links: neither to another root nor to a process's descriptors. */
static int open_dev(const char *root, uint32_t pid)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	_cleanup_close_ int top = -1;
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/root", root, pid);
	top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -ESRCH;
	fd = (int)syscall(SYS_openat2, top, "dev", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Its minor number, if the entry is a GPU's node. */
static bool is_gpu(int dir, const char *name, uint32_t *ret_minor)
{
	struct cursor c = cursor_over(name, strlen(name));
	struct stat st;
	uint64_t n;

	if (!cursor_literal(&c, "nvidia") || cursor_u64(&c, &n) < 0 || !cursor_eof(&c) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 || !S_ISCHR(st.st_mode) ||
	    major(st.st_rdev) != NVIDIA_MAJOR || minor(st.st_rdev) >= GPUS_MAX)
		return false;
	*ret_minor = minor(st.st_rdev);
	return true;
}

static int read_minors(DIR *dir, bool found[static GPUS_MAX])
{
	const struct dirent *entry;
	uint32_t number;

	for (unsigned seen = 0; (entry = readdir(dir)); seen++) {
		if (seen == ENTRIES_MAX)
			return -E2BIG;
		if (is_gpu(dirfd(dir), entry->d_name, &number))
			found[number] = true;
	}
	return 0;
}

static int print_minors(const bool *found, char *buf, size_t size, size_t *ret_n)
{
	size_t n = 0;

	for (unsigned i = 0; i < GPUS_MAX; i++) {
		if (!found[i])
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%u", n ? "," : "", i);
		if (n >= size)
			return -E2BIG;
	}
	*ret_n = n;
	return 0;
}

int proc_device_nodes(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	bool found[GPUS_MAX] = { false };
	int fd = open_dev(root, pid), r;
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	r = read_minors(dir, found);
	closedir(dir);
	return r < 0 ? r : print_minors(found, buf, size, ret_n);
}
