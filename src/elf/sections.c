// SPDX-License-Identifier: Apache-2.0
/*
 * Sections, which an executable may lack: only used for data that the loader does not need.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/private.h"

enum { SECTIONS_MAX = 1 << 16, BLOCK_SECTIONS = 64, SECTION_NAME_MAX = 64 };

static void take_header(const Elf64_Shdr *header, struct elf_section *ret_section)
{
	*ret_section = (struct elf_section){
		.name = header->sh_name,
		.type = header->sh_type,
		.link = header->sh_link,
		.flags = header->sh_flags,
		.address = header->sh_addr,
		.offset = header->sh_offset,
		.size = header->sh_size,
		.entry_size = header->sh_entsize,
	};
}

static int read_section(const struct elf_file *file, uint64_t index, struct elf_section *ret_section)
{
	Elf64_Shdr header;
	int r = elf_read_all(file, file->sections_at + index * sizeof(header), &header, sizeof(header));

	if (r == 0)
		take_header(&header, ret_section);
	return r;
}

/* A file with 2^16 sections or more has their number in the first section header. */
static int count_sections(const struct elf_file *file, uint64_t *ret_count)
{
	struct elf_section first;
	int r;

	*ret_count = file->sections_n;
	if (file->sections_n > 0 || file->sections_at == 0)
		return 0;
	r = read_section(file, 0, &first);
	if (r == 0)
		*ret_count = MIN(first.size, (uint64_t)SECTIONS_MAX);
	return r == -ENOEXEC ? 0 : r;
}

typedef bool section_fn(const struct elf_file *file, const struct elf_section *section, const void *userdata);

/* The first section that @fn accepts. -ENOENT: none within the file. */
static int find_section(const struct elf_file *file, section_fn *fn, const void *userdata,
			struct elf_section *ret_section)
{
	Elf64_Shdr block[BLOCK_SECTIONS];
	struct elf_section section;
	uint64_t sections;
	int r = count_sections(file, &sections);

	for (uint64_t done = 0; r == 0 && done < sections; done += BLOCK_SECTIONS) {
		size_t got, n = (size_t)MIN(sections - done, (uint64_t)BLOCK_SECTIONS);

		r = elf_read(file, file->sections_at + done * sizeof(*block), block, n * sizeof(*block),
			     &got);
		for (size_t i = 0; r == 0 && i < got / sizeof(*block); i++) {
			take_header(&block[i], &section);
			if (!fn(file, &section, userdata))
				continue;
			*ret_section = section;
			return 0;
		}
		if (r == 0 && got < n * sizeof(*block))
			break;
	}
	return r < 0 ? r : -ENOENT;
}

int elf_section_at(const struct elf_file *file, uint64_t index, struct elf_section *ret_section)
{
	uint64_t sections;
	int r = count_sections(file, &sections);

	if (r == 0)
		r = index < sections ? read_section(file, index, ret_section) : -ENOENT;
	return r == -ENOEXEC ? -ENOENT : r;
}

static bool is_type(_unused_ const struct elf_file *file, const struct elf_section *section,
		    const void *userdata)
{
	return section->type == *(const uint32_t *)userdata;
}

int elf_section_of_type(const struct elf_file *file, uint32_t type, struct elf_section *ret_section)
{
	return find_section(file, is_type, &type, ret_section);
}

struct code {
	struct elf_range *ranges;
	size_t n, max;
};

/*
 * Adds the part that lies in an executable segment. Returns false for every section, so that all are visited.
 */
static bool add_code(const struct elf_file *file, const struct elf_section *section, const void *userdata)
{
	struct code *code = *(struct code *const *)userdata;
	const struct elf_segment *s = elf_segment_of_address(file, section->address);
	uint64_t from, size;

	if (section->type != SHT_PROGBITS || !(section->flags & SHF_EXECINSTR) ||
	    !(section->flags & SHF_ALLOC) || section->size == 0 || !s || !s->executable ||
	    code->n == code->max)
		return false;
	from = section->address - s->address;
	size = MIN(section->size, s->size - from);
	code->ranges[code->n++] = (struct elf_range){
		.address = section->address,
		.offset = s->offset + from,
		.size = size,
		.memory_size = size,
		.executable = true,
		.writable = s->writable,
	};
	return false;
}

int elf_code_ranges(const struct elf_file *file, struct elf_range *ranges, size_t max, size_t *ret_n)
{
	struct code code = { .ranges = ranges, .max = max }, *userdata = &code;
	struct elf_section none;
	struct elf_range range;
	int r = find_section(file, add_code, &userdata, &none);

	if (r < 0 && r != -ENOENT)
		return r;
	if (code.n == 0)
		for (uint32_t i = 0; code.n < max && elf_range(file, i, &range); i++)
			if (range.executable)
				ranges[code.n++] = range;
	*ret_n = code.n;
	return 0;
}

struct named {
	const char *name;
	uint64_t names_at, names_size;
};

static bool is_named(const struct elf_file *file, const struct elf_section *section, const void *userdata)
{
	const struct named *named = userdata;
	char name[SECTION_NAME_MAX];
	size_t n = strlen(named->name) + 1;

	return n <= sizeof(name) && section->name < named->names_size &&
	       n <= named->names_size - section->name &&
	       elf_read_all(file, named->names_at + section->name, name, n) == 0 &&
	       memcmp(name, named->name, n) == 0;
}

int elf_section(struct elf_file *file, const char *name, uint64_t *ret_offset, uint64_t *ret_size)
{
	struct named named = { .name = name };
	struct elf_section section;
	int r;

	r = elf_section_at(file, file->section_names, &section);
	if (r < 0)
		return r;
	if (section.offset > INT64_MAX / 2)
		return -ENOENT;
	named.names_at = section.offset;
	named.names_size = MIN(section.size, (uint64_t)INT64_MAX / 2);
	r = find_section(file, is_named, &named, &section);
	if (r < 0)
		return r;
	if (section.type == SHT_NOBITS || section.offset > file->size ||
	    section.size > file->size - section.offset)
		return -ENOENT;
	*ret_offset = section.offset;
	*ret_size = section.size;
	return 0;
}
