// SPDX-License-Identifier: Apache-2.0
#include "proc/ancestor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/fd.h"

enum { GENERATIONS_MAX = 64 };

/* Its name, start and parent: the latter is the second field behind the name. */
static int read_parent(const char *root, uint32_t pid, const char *comm, struct process_stat *stat,
		       bool *ret_named, uint64_t *ret_parent)
{
	char path[256], text[1024];
	struct cursor c;
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
	r = read_file(path, text, sizeof(text), &n);
	if (r == 0)
		r = process_stat_parse(text, n, stat);
	if (r < 0)
		return -ESRCH;
	*ret_named = cursor_equals(&stat->comm, comm);
	c = cursor_over(stat->comm.end, n - (size_t)(stat->comm.end - text));
	/* ") S 1234 ..." */
	if (!cursor_literal(&c, ")"))
		return -ESRCH;
	cursor_skip_space(&c);
	if (cursor_eof(&c))
		return -ESRCH;
	c.p++;
	cursor_skip_space(&c);
	return cursor_u64(&c, ret_parent) < 0 ? -ESRCH : 0;
}

int proc_ancestor(const char *root, uint32_t pid, const char *comm, struct process_id *ret_id)
{
	struct process_stat stat;
	uint64_t parent = pid;
	bool named = false;

	for (unsigned n = 0; n < GENERATIONS_MAX && parent > 0 && parent <= UINT32_MAX; n++) {
		uint32_t current = (uint32_t)parent;

		if (read_parent(root, current, comm, &stat, &named, &parent) < 0)
			return -ESRCH;
		if (named && n > 0) {
			*ret_id = (struct process_id){ .pid = current, .start_ticks = stat.start_ticks };
			return 0;
		}
	}
	return -ESRCH;
}
