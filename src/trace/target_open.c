// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

int target_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct proc_map map;
	void *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	maps.fd = -1;
	if (p == MAP_FAILED)
		return -errno;
	r = proc_maps_open("/proc", getpid(), &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0 &&
	       !(map.start <= (uintptr_t)p && (uintptr_t)p < map.end))
		;
	munmap(p, page);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret_dev = map.dev;
	*ret_ino = map.ino;
	return 0;
}
