// SPDX-License-Identifier: Apache-2.0
#include "proc/ancestor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "proc/proc.h"

enum { GENERATIONS_MAX = 64 };

static int read_parent(const char *root, uint32_t pid, const char *comm, struct process_stat *stat,
		       bool *ret_named, uint64_t *ret_parent)
{
	char path[256], text[1024];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
	r = read_file(path, text, sizeof(text), &n);
	if (r == 0)
		r = process_stat_parse(text, n, stat);
	if (r < 0)
		return -ESRCH;
	*ret_named = cursor_equals(&stat->comm, comm);
	*ret_parent = stat->parent;
	return 0;
}

/* Of the real user: a program that a user starts as root by its mode has its user's. */
static bool is_roots(const char *root, uint32_t pid)
{
	struct proc_identity identity;

	return proc_identify(root, pid, &identity) == 0 && identity.uid == 0;
}

/*
 * A file of this name, also with more behind it: a distribution's "-wlm", or the kernel's mark of one that
 * was replaced while it runs.
 */
static bool runs_program(const char *root, uint32_t pid, const char *name)
{
	char path[256], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

/* It may have ended, and its PID be another process's, while it was looked at. */
static bool is_still(const char *root, struct process_id id)
{
	struct process_id now;

	return proc_process_id(root, id.pid, &now) == 0 && process_id_equal(now, id);
}

int proc_root_ancestor(const char *root, uint32_t pid, const char *name, struct process_id *ret_id)
{
	struct process_stat stat;
	uint64_t parent = pid;
	bool named = false;

	for (unsigned n = 0; n < GENERATIONS_MAX && parent > 0 && parent <= UINT32_MAX; n++) {
		struct process_id id = { .pid = (uint32_t)parent };

		if (read_parent(root, id.pid, name, &stat, &named, &parent) < 0)
			return -ESRCH;
		id.start_ticks = stat.start_ticks;
		if (n == 0 || !named || !is_roots(root, id.pid) || !runs_program(root, id.pid, name) ||
		    !is_still(root, id))
			continue;
		*ret_id = id;
		return 0;
	}
	return -ESRCH;
}
