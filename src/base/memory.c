// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"

/* Was its code changed while it was loaded? Then the file has not what is in memory. */
static bool has_text_relocations(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr); d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

static int drop_segments(struct dl_phdr_info *object, _unused_ size_t size, _unused_ void *userdata)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (has_text_relocations(object))
		return 0;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
		uintptr_t end = (begin + segment->p_memsz) & ~(page - 1);

		/* Only whole pages that the file maps without leave to write: in others is what no file has. */
		begin = (begin + page - 1) & ~(page - 1);
		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && begin < end)
			madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
	return 0;
}

void memory_give_back(void)
{
	malloc_trim(0);
	dl_iterate_phdr(drop_segments, NULL);
}
