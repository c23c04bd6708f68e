// SPDX-License-Identifier: Apache-2.0
/* Sections, which a program need not have: only what its loader has no use for is looked up by them. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/private.h"

enum { SECTIONS_MAX = 1 << 16, BLOCK_SECTIONS = 64, SECTION_NAME_MAX = 64 };

static int read_section(const struct elf_file *file, uint64_t index, Elf64_Shdr *ret_section)
{
	return elf_read_all(file, file->sections_at + index * sizeof(*ret_section), ret_section,
			    sizeof(*ret_section));
}

/* A file of 2^16 sections and more says their number in the first one. */
static int count_sections(const struct elf_file *file, uint64_t *ret_count)
{
	Elf64_Shdr first;
	int r;

	*ret_count = file->sections_n;
	if (file->sections_n > 0 || file->sections_at == 0)
		return 0;
	r = read_section(file, 0, &first);
	if (r == 0)
		*ret_count = MIN(first.sh_size, (uint64_t)SECTIONS_MAX);
	return r == -ENOEXEC ? 0 : r;
}

typedef bool section_fn(const struct elf_file *file, const Elf64_Shdr *section, const void *userdata);

/* The first section that @fn takes. -ENOENT: none in the file as far as it goes. */
static int find_section(const struct elf_file *file, section_fn *fn, const void *userdata,
			Elf64_Shdr *ret_section)
{
	Elf64_Shdr block[BLOCK_SECTIONS];
	uint64_t sections;
	int r = count_sections(file, &sections);

	for (uint64_t done = 0; r == 0 && done < sections; done += BLOCK_SECTIONS) {
		size_t got, n = (size_t)MIN(sections - done, (uint64_t)BLOCK_SECTIONS);

		r = elf_read(file, file->sections_at + done * sizeof(*block), block, n * sizeof(*block), &got);
		for (size_t i = 0; r == 0 && i < got / sizeof(*block); i++) {
			if (!fn(file, &block[i], userdata))
				continue;
			*ret_section = block[i];
			return 0;
		}
		if (r == 0 && got < n * sizeof(*block))
			break;
	}
	return r < 0 ? r : -ENOENT;
}

int elf_section_at(const struct elf_file *file, uint64_t index, Elf64_Shdr *ret_section)
{
	uint64_t sections;
	int r = count_sections(file, &sections);

	if (r == 0)
		r = index < sections ? read_section(file, index, ret_section) : -ENOENT;
	return r == -ENOEXEC ? -ENOENT : r;
}

static bool is_type(_unused_ const struct elf_file *file, const Elf64_Shdr *section, const void *userdata)
{
	return section->sh_type == *(const uint32_t *)userdata;
}

int elf_section_of_type(const struct elf_file *file, uint32_t type, Elf64_Shdr *ret_section)
{
	return find_section(file, is_type, &type, ret_section);
}

struct named {
	const char *name;
	uint64_t names_at, names_size;
};

static bool is_named(const struct elf_file *file, const Elf64_Shdr *section, const void *userdata)
{
	const struct named *named = userdata;
	char name[SECTION_NAME_MAX];
	size_t n = strlen(named->name) + 1;

	return n <= sizeof(name) && section->sh_name < named->names_size &&
	       n <= named->names_size - section->sh_name &&
	       elf_read_all(file, named->names_at + section->sh_name, name, n) == 0 &&
	       memcmp(name, named->name, n) == 0;
}

int elf_section(struct elf_file *file, const char *name, uint64_t *ret_offset, uint64_t *ret_size)
{
	struct named named = { .name = name };
	Elf64_Shdr section;
	int r;

	r = elf_section_at(file, file->section_names, &section);
	if (r < 0)
		return r;
	if (section.sh_offset > INT64_MAX / 2)
		return -ENOENT;
	named.names_at = section.sh_offset;
	named.names_size = MIN(section.sh_size, (uint64_t)INT64_MAX / 2);
	r = find_section(file, is_named, &named, &section);
	if (r < 0)
		return r;
	if (section.sh_type == SHT_NOBITS || section.sh_offset > file->size ||
	    section.sh_size > file->size - section.sh_offset)
		return -ENOENT;
	*ret_offset = section.sh_offset;
	*ret_size = section.sh_size;
	return 0;
}
