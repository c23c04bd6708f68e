// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <errno.h>
#include <string.h>

int host_read(struct reader *reader, const struct range *range, const Elf64_Ehdr *header)
{
	Elf64_Shdr section, names;
	uint64_t n = header->e_shnum;
	uint32_t names_at = header->e_shstrndx;

	if (header->e_shoff == 0 || header->e_shentsize != sizeof(section) ||
	    reader_get(reader, range, header->e_shoff, &section, sizeof(section)) < 0)
		return 0;
	if (n == 0)
		n = section.sh_size;
	if (names_at == SHN_XINDEX)
		names_at = section.sh_link;
	if (reader_get(reader, range, header->e_shoff + names_at * sizeof(names), &names, sizeof(names)) < 0)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		struct range part;
		char name[16] = "";
		int r;

		if (reader_get(reader, range, header->e_shoff + i * sizeof(section), &section,
			       sizeof(section)) < 0)
			return 0;
		reader_get(reader, range, names.sh_offset + section.sh_name, name, sizeof(name));
		name[15] = 0;
		if (section.sh_type == SHT_NOBITS ||
		    (strcmp(name, ".nv_fatbin") != 0 && strcmp(name, "__nv_relfatbin") != 0))
			continue;
		part = (struct range){ range->offset + section.sh_offset, section.sh_size };
		r = fatbin_section(reader, &part);
		if (r < 0)
			return r;
	}
	return 0;
}
int wrapper_read(struct reader *reader, const struct range *range)
{
	(void)reader, (void)range;
	return -ENOEXEC;
}
