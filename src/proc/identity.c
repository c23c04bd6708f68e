// SPDX-License-Identifier: Apache-2.0
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"
#include "base/text.h"

enum {
	STAT_MAX = 1024, /* 52 numbers and a name of at most 64 bytes */
	STATUS_MAX = 4096,
	CGROUP_MAX = 16384, /* v1 has a dozen lines, each with a path of at most PATH_MAX */
};

/*
 * The directory refers to the process it was opened for: after its end, reads fail with ESRCH even if the PID
 * has been reused.
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

/* The name in @ret_stat points into @text. */
static int read_stat(int process, char text[static STAT_MAX], struct process_stat *ret_stat)
{
	size_t length;
	int r = read_file_at(process, "stat", text, STAT_MAX, &length);

	if (r >= 0)
		r = process_stat_parse(text, length, ret_stat);
	return r == -ENOENT ? -ESRCH : r;
}

/* After @key at the begin of a line. The name in this file is escaped, so it cannot forge one. */
static bool find_line(const char *text, const char *key, struct cursor *ret_line)
{
	const char *line = strstr(text, key);

	if (!line)
		return false;
	line += strlen(key);
	*ret_line = cursor_over(line, strcspn(line, "\n"));
	cursor_skip_space(ret_line);
	return true;
}

/* The real user, and the PID in the innermost name space, which comes last in its line. */
static int read_status(int process, struct proc_identity *identity)
{
	char text[STATUS_MAX];
	struct cursor line;
	size_t length;
	uint64_t number;
	int r = read_file_at(process, "status", text, sizeof(text), &length);

	if (r == -E2BIG) /* hundreds of groups, which come after the user, and before the PIDs */
		text[sizeof(text) - 1] = '\0';
	else if (r < 0)
		return r;
	if (find_line(text, "\nUid:", &line) && cursor_u64(&line, &number) == 0 && number <= UINT32_MAX)
		identity->uid = (uint32_t)number;
	if (r < 0 || !find_line(text, "\nNStgid:", &line))
		return 0;
	while (cursor_u64(&line, &number) == 0 && number <= UINT32_MAX) {
		identity->ns_pid = (uint32_t)number;
		cursor_skip_space(&line);
	}
	return 0;
}

int proc_process_id(const char *root, uint32_t pid, struct process_id *ret_id)
{
	_cleanup_close_ int process = open_process(root, pid);
	struct process_stat stat;
	char text[STAT_MAX];
	int r = process < 0 ? process : read_stat(process, text, &stat);

	if (r < 0)
		return r;
	*ret_id = (struct process_id){ .pid = pid, .start_ticks = stat.start_ticks };
	return 0;
}

bool proc_is_alive(const char *root, uint32_t pid)
{
	_cleanup_close_ int process = open_process(root, pid);
	struct process_stat stat;
	char text[STAT_MAX];
	int r = process < 0 ? process : read_stat(process, text, &stat);

	if (r < 0)
		return r == -EBADMSG; /* the process exists; its state is unknown */
	return (stat.state != 'Z' && stat.state != 'X') || stat.threads > 1;
}

int proc_cpu_seconds(const char *root, uint32_t pid, double *ret_seconds)
{
	_cleanup_close_ int process = open_process(root, pid);
	struct process_stat stat;
	char text[STAT_MAX];
	int r = process < 0 ? process : read_stat(process, text, &stat);

	if (r >= 0)
		*ret_seconds =
			((double)stat.user_ticks + (double)stat.kernel_ticks) / (double)sysconf(_SC_CLK_TCK);
	return r < 0 ? r : 0;
}

char proc_thread_state(const char *root, uint32_t pid, uint32_t tid)
{
	_cleanup_close_ int process = open_process(root, pid);
	char path[sizeof("task/4294967295/stat")], text[STAT_MAX];
	struct process_stat stat;
	size_t length;

	snprintf(path, sizeof(path), "task/%u/stat", (unsigned)tid);
	if (process < 0 || read_file_at(process, path, text, sizeof(text), &length) < 0 ||
	    process_stat_parse(text, length, &stat) < 0)
		return '\0';
	return stat.state;
}

int proc_identify(const char *root, uint32_t pid, struct proc_identity *ret_identity)
{
	_cleanup_close_ int process = open_process(root, pid);
	struct proc_identity identity = { .uid = UINT32_MAX };
	struct process_stat stat;
	char text[CGROUP_MAX];
	size_t length;
	int r = process < 0 ? process : read_stat(process, text, &stat);

	if (r < 0)
		return r;
	identity.id = (struct process_id){ .pid = pid, .start_ticks = stat.start_ticks };
	snprintf(identity.comm, sizeof(identity.comm), "%.*s",
		 (int)MIN(cursor_left(&stat.comm), sizeof(identity.comm) - 1), stat.comm.p);
	utf8_sanitize(identity.comm);
	/* Unreadable fields remain unknown: the name alone is useful. */
	(void)read_status(process, &identity);
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
