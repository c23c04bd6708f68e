// SPDX-License-Identifier: Apache-2.0
#include "trace/resident.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"

enum { INSTRUCTION_MAX = 16 }; /* bytes that the kernel reads at a site: MAX_UINSN_BYTES, rounded up */

/* @first and @end: on boundaries of pages, in at most two of them. */
static bool is_resident(const char *mapped, uint64_t first, uint64_t end)
{
	unsigned char pages[2] = { 0, 0 };
	uint64_t n = (end - first) / (uint64_t)sysconf(_SC_PAGESIZE);

	if (n > sizeof(pages) || mincore((void *)(uintptr_t)(mapped + first), end - first, pages) < 0)
		return false;
	return pages[0] & 1 && (n == 1 || pages[1] & 1);
}

bool sites_resident(int fd, uint64_t size, const struct site_list *list)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	/* Nothing of it is touched. */
	void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	bool all = mapped != MAP_FAILED;

	for (uint32_t i = 0; all && i < list->n; i++) {
		uint64_t offset = list->at[i].offset, end = MIN(offset + INSTRUCTION_MAX, size);

		if (list->at[i].flags & SITE_ENTRY_CHOSEN)
			all = offset < size &&
			      is_resident(mapped, offset / page * page, (end + page - 1) / page * page);
	}
	if (mapped != MAP_FAILED)
		munmap(mapped, size);
	return all;
}
