// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/maps.h"

/* The input as a maps file: every area has an extent and a path within the buffer, and reading ends. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static struct proc_maps maps;
	struct proc_map map;
	size_t areas = 0;

	maps = (struct proc_maps){ .fd = memfd_create("maps", MFD_CLOEXEC) };
	if (maps.fd < 0 || write(maps.fd, data, size) != (ssize_t)size || lseek(maps.fd, 0, SEEK_SET) != 0)
		abort();
	while (proc_maps_next(&maps, &map) > 0) {
		if (map.start >= map.end || map.path < maps.buf ||
		    map.path + map.path_n > maps.buf + sizeof(maps.buf))
			abort();
		if (++areas > size)
			abort();
	}
	proc_maps_done(&maps);
	return 0;
}
