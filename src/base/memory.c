// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

/*
 * Bits of an entry of /proc/PID/pagemap (kernel: admin-guide/mm/pagemap): present, swapped out, file-backed
 * or shared.
 */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

/* State of one walk over the loaded objects. */
struct walk {
	uintptr_t page; /* bytes */
	int pagemap;
};

/* Whether the loader changed its code (text relocations), so that the file differs from memory. */
static bool has_text_relocations(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr);
		     d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

/*
 * The driver's libraries are skipped: interposers patch them in memory, and we must not interfere with the
 * driver.
 */
static bool is_drivers(const struct dl_phdr_info *object)
{
	const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;

	return strncmp(name, "libnvidia", 9) == 0 || strncmp(name, "libcuda", 7) == 0;
}

/*
 * Has every page that is there come from the file as it is? A page that somebody wrote to (a debugger's or a
 * uprobe's breakpoint, an inline hook) is a private copy, and would be lost. When the kernel does not tell,
 * no.
 */
static bool is_as_in_file(const struct walk *walk, uintptr_t begin, uintptr_t end)
{
	uint64_t entries[512];

	while (begin < end) {
		size_t n = MIN((end - begin) / walk->page, ARRAY_SIZE(entries));
		ssize_t got = pread(walk->pagemap, entries, n * sizeof(entries[0]),
				    (off_t)(begin / walk->page * sizeof(entries[0])));

		if (got != (ssize_t)(n * sizeof(entries[0])))
			return false;
		for (size_t i = 0; i < n; i++)
			if ((entries[i] & (PAGE_PRESENT | PAGE_SWAPPED)) && !(entries[i] & PAGE_OF_FILE))
				return false;
		begin += n * walk->page;
	}
	return true;
}

static int drop_segments(struct dl_phdr_info *object, _unused_ size_t size, void *userdata)
{
	const struct walk *walk = userdata;
	uintptr_t page = walk->page;

	if (has_text_relocations(object) || is_drivers(object))
		return 0;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
		uintptr_t end = (begin + segment->p_memsz) & ~(page - 1);

		/* Only whole pages that are mapped read-only from the file; others may have been modified. */
		begin = (begin + page - 1) & ~(page - 1);
		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && begin < end &&
		    is_as_in_file(walk, begin, end))
			madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
	return 0;
}

void memory_give_back(void)
{
	_cleanup_close_ int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct walk walk = { .page = (uintptr_t)sysconf(_SC_PAGESIZE), .pagemap = pagemap };

	malloc_trim(0);
	if (pagemap >= 0)
		dl_iterate_phdr(drop_segments, &walk);
}
