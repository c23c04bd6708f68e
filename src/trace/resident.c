// SPDX-License-Identifier: Apache-2.0
#include "trace/resident.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* of every architecture, include/uapi/asm-generic/unistd.h */
#endif

enum { INSTRUCTION_MAX = 16 }; /* bytes that the kernel reads at a site: MAX_UINSN_BYTES, rounded up */

/* As in linux/mman.h since 6.5. */
struct range {
	uint64_t offset, length;
};
struct cached {
	uint64_t pages, dirty, written_back, evicted, recently_evicted;
};

static bool is_resident(int fd, uint64_t first, uint64_t end)
{
	struct range range = { first, end - first };
	struct cached cached = { 0 };

	if (syscall(SYS_cachestat, fd, &range, &cached, 0) < 0)
		return errno == ENOSYS;
	return cached.pages * (uint64_t)sysconf(_SC_PAGESIZE) >= end - first;
}

bool sites_resident(int fd, uint64_t size, const struct site_list *list)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < list->n; i++) {
		uint64_t offset = list->at[i].offset, end = MIN(offset + INSTRUCTION_MAX, size);

		if (!(list->at[i].flags & SITE_ENTRY_CHOSEN))
			continue;
		if (offset >= size || !is_resident(fd, offset / page * page, (end + page - 1) / page * page))
			return false;
	}
	return true;
}
