// SPDX-License-Identifier: Apache-2.0
#include "unwind/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/text.h"

enum { PIECE = 256 << 10, STATUS = 4096 };

/* The PID in its own namespace, which the process knows itself by, and the user as who it makes files. */
static int own_ids(pid_t pid, pid_t *ret_pid, uint32_t *ret_user)
{
	char path[64], text[STATUS];
	_cleanup_close_ int fd = -1;
	const char *at;
	ssize_t n;

	*ret_pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -ESRCH;
	text[n] = '\0';
	at = strstr(text, "\nUid:");
	if (!at || sscanf(at, "\nUid: %*u %*u %*u %" SCNu32, ret_user) != 1)
		return -EBADMSG;
	at = strstr(text, "\nNSpid:");
	if (!at)
		return 0;
	at += strlen("\nNSpid:");
	/* The last one of the line. */
	for (char *end; *at == '\t' || *at == ' '; at = end) {
		long one = strtol(at, &end, 10);

		if (end == at)
			break;
		*ret_pid = (pid_t)one;
	}
	return 0;
}

/* Each step is looked at before the next one asks its file system anything. */
static int step(struct mounts_user *user, int folder, const char *name, int *ret_handle)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int handle = (int)syscall(SYS_openat2, folder, name, &how, sizeof(how)), r;

	if (handle < 0)
		return -errno;
	r = mounts_admit(handle, user);
	if (r == 1) {
		*ret_handle = handle;
		return 0;
	}
	close(handle);
	return r < 0 ? r : -EREMOTEIO;
}

int perf_map_open(struct mounts_user *user, int *ret_fd)
{
	_cleanup_close_ int top = -1, folder = -1, handle = -1;
	char path[64], name[64];
	uint32_t owner;
	struct stat st;
	pid_t pid;
	int fd, r = own_ids(user->pid, &pid, &owner);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)user->pid);
	snprintf(name, sizeof(name), "perf-%d.map", (int)pid);
	top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	r = mounts_admit(top, user);
	if (r != 1)
		return r < 0 ? r : -EREMOTEIO;
	r = step(user, top, "tmp", &folder);
	if (r == 0)
		r = step(user, folder, name, &handle);
	if (r < 0)
		return r;
	if (fstat(handle, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (st.st_uid != owner)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int parse_line(struct cursor line, perf_map_fn *fn, void *userdata)
{
	char name[PERF_MAP_NAME];
	uint64_t address, size;
	size_t n;

	if (cursor_hex(&line, &address) < 0 || !cursor_literal(&line, " ") || cursor_hex(&line, &size) < 0 ||
	    !cursor_literal(&line, " ") || size == 0 || address + size < address || cursor_eof(&line))
		return 0;
	n = cursor_left(&line);
	n = n < sizeof(name) ? n : sizeof(name) - 1;
	memcpy(name, line.p, n);
	name[n] = '\0';
	utf8_sanitize(name);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return fn(address, size, name, userdata);
}

int perf_map_parse(const char *text, size_t n, perf_map_fn *fn, void *userdata, size_t *ret_n)
{
	struct cursor c = cursor_over(text, n), line;
	int r = 0;

	while (r == 0 && cursor_until(&c, '\n', &line) == 0)
		r = parse_line(line, fn, userdata);
	*ret_n = (size_t)(c.p - text);
	return r;
}

int perf_map_read(int fd, perf_map_fn *fn, void *userdata)
{
	_cleanup_free_ char *text = malloc(PIECE);
	size_t at = 0, kept = 0, whole;
	int r = 0;
	ssize_t n;

	while (r == 0 && text && at < PERF_MAP_BYTES &&
	       (n = pread(fd, text + kept, PIECE - kept, (off_t)at)) > 0) {
		r = perf_map_parse(text, kept + (size_t)n, fn, userdata, &whole);
		at += (size_t)n;
		kept += (size_t)n - whole;
		memmove(text, text + whole, kept);
		if (kept == PIECE)
			break; /* no line is that long */
	}
	return r;
}
