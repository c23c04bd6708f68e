// SPDX-License-Identifier: Apache-2.0
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/text.h"

enum {
	STAT_MAX = 1024, /* 52 numbers and a name of at most 64 bytes */
	STATUS_MAX = 4096,
	CGROUP_MAX = 16384, /* v1 has a dozen lines, each with a path of at most PATH_MAX */
	START_FIELD = 22, /* of stat, the state being number 3 */
};

/*
 * The directory stands for the process it was opened for: when that has ended, reads below it fail with
 * ESRCH, even if its PID was given to another.
 */
static int open_process(const char *root, uint32_t pid)
{
	char path[256];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%u", root, (unsigned)pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

/* "pid (name) state ...": the name may hold anything, so it ends at the last parenthesis. */
static int parse_stat(const char *text, size_t length, uint64_t *ret_ticks, struct cursor *ret_name)
{
	const char *first = memchr(text, '(', length), *last = memrchr(text, ')', length);
	struct cursor c, field;

	if (!first || !last || last < first)
		return -EBADMSG;
	*ret_name = (struct cursor){ .p = first + 1, .end = last };
	c = (struct cursor){ .p = last + 1, .end = text + length };
	cursor_skip_space(&c);
	for (unsigned n = 3; n < START_FIELD; n++)
		if (cursor_until(&c, ' ', &field) < 0)
			return -EBADMSG;
	return cursor_u64(&c, ret_ticks) < 0 ? -EBADMSG : 0;
}

static int read_stat(int process, uint64_t *ret_ticks, char ret_comm[static 64])
{
	char text[STAT_MAX];
	struct cursor name;
	size_t length;
	int r;

	r = read_file_at(process, "stat", text, sizeof(text), &length);
	if (r >= 0)
		r = parse_stat(text, length, ret_ticks, &name);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	snprintf(ret_comm, 64, "%.*s", (int)MIN(cursor_left(&name), (size_t)63), name.p);
	utf8_sanitize(ret_comm);
	return 0;
}

/* The real user; the name in this file is escaped, so that no name can forge the line. */
static int read_uid(int process, uint32_t *ret_uid)
{
	char text[STATUS_MAX];
	const char *line;
	struct cursor c;
	size_t length;
	uint64_t uid;
	int r;

	r = read_file_at(process, "status", text, sizeof(text), &length);
	if (r == -E2BIG) { /* hundreds of groups, which stand behind the user */
		length = sizeof(text) - 1;
		text[length] = '\0';
	} else if (r < 0) {
		return r;
	}
	line = strstr(text, "\nUid:");
	if (!line)
		return -EBADMSG;
	c = (struct cursor){ .p = line + strlen("\nUid:"), .end = text + length };
	cursor_skip_space(&c);
	if (cursor_u64(&c, &uid) < 0 || uid > UINT32_MAX)
		return -EBADMSG;
	*ret_uid = (uint32_t)uid;
	return 0;
}

int proc_start_ticks(const char *root, uint32_t pid, uint64_t *ret_ticks)
{
	_cleanup_close_ int process = open_process(root, pid);
	uint64_t ticks;
	char comm[64];
	int r;

	if (process < 0)
		return process;
	r = read_stat(process, &ticks, comm);
	if (r < 0)
		return r;
	*ret_ticks = ticks;
	return 0;
}

int proc_identify(const char *root, uint32_t pid, struct proc_identity *ret_identity)
{
	_cleanup_close_ int process = open_process(root, pid);
	struct proc_identity identity = { .uid = UINT32_MAX };
	char text[CGROUP_MAX];
	size_t length;
	int r;

	if (process < 0)
		return process;
	r = read_stat(process, &identity.start_ticks, identity.comm);
	if (r < 0)
		return r;
	/* What cannot be read stays unknown: a name without an owner is better than nothing. */
	(void)read_uid(process, &identity.uid);
	if (read_file_at(process, "cgroup", text, sizeof(text), &length) == 0)
		proc_cgroup_parse(text, length, &identity.cgroup);
	*ret_identity = identity;
	return 0;
}

bool proc_sees_all(void)
{
	/*
	 * Inode of the first PID namespace: PROC_PID_INIT_INO of include/linux/proc_ns.h, kernel interface
	 * since 3.8.
	 */
	const ino_t first = 0xEFFFFFFCU;
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == first;
}
