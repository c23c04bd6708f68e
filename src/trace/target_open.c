// SPDX-License-Identifier: Apache-2.0
#include "proc/mapped.h"
#include "trace/target_private.h"

int target_open(const char *root, const struct target_mapping *mapping, int *ret_fd, struct stat *ret_st)
{
	const struct proc_mapped mapped = { .pid = mapping->pid,
					    .start = mapping->start,
					    .end = mapping->end,
					    .dev = mapping->dev,
					    .ino = mapping->ino,
					    .path = mapping->path,
					    .path_n = mapping->path_n };

	return proc_mapped_open(root, &mapped, ret_fd, ret_st);
}
