// SPDX-License-Identifier: Apache-2.0
/*
 * ELF files of the host: executables, libraries and objects. Their CUDA images are in separate sections. Only
 * if those cannot be found, the wrappers are followed, by which the program itself finds them.
 */
#include "cubin/private.h"

#include <errno.h>
#include <string.h>

enum { AT_ONCE = 64, SECTIONS_MAX = 1 << 20, SEGMENTS_MAX = 256, WRAPPERS_MAX = 65536, PARTS_MAX = 1024 };

struct host {
	struct reader *reader;
	const struct range *range;
	const Elf64_Ehdr *header;
	uint64_t n; /* sections */
	Elf64_Shdr names;
	struct range wrappers; /* size 0: none */
	uint64_t unresolved; /* wrappers whose pointers the loader fills in */
	struct range parts[PARTS_MAX]; /* of sections with images, which do not overlap */
	size_t parts_n;
	struct range again; /* the first one that overlaps another, or exceeds the limit */
	uint64_t again_n; /* how many of those */
};

/* Cut at the file's end. */
static struct range part_of(const struct host *host, uint64_t offset, uint64_t size)
{
	uint64_t left = host->range->size - MIN(host->range->size, offset);

	if (size > left)
		reader_trouble(host->reader, host->range->offset + offset,
			       "a section of %llu bytes, of which %llu are in the file",
			       (unsigned long long)size, (unsigned long long)left);
	return (struct range){ host->range->offset + offset, MIN(size, left) };
}

/* False: it was read before, as a whole or a part of it; counted. No linker writes overlapping sections. */
static bool is_new(struct host *host, const struct range *part)
{
	bool full = host->parts_n == PARTS_MAX;

	for (size_t i = 0; i < host->parts_n && !full; i++)
		if (part->offset < host->parts[i].offset + host->parts[i].size &&
		    host->parts[i].offset < part->offset + part->size)
			full = true;
	if (!full)
		host->parts[host->parts_n++] = *part;
	else if (host->again_n++ == 0)
		host->again = *part;
	return !full;
}

static int read_section(struct host *host, const Elf64_Shdr *section)
{
	static const char fatbin[] = ".nv_fatbin", relocatable[] = "__nv_relfatbin",
			  wrappers[] = ".nvFatBinSegment";
	const struct range names = { host->range->offset + host->names.sh_offset, host->names.sh_size };
	char name[sizeof(wrappers)] = "";
	struct range part;
	ssize_t n;

	n = reader_some(host->reader, &names, section->sh_name, name, sizeof(name));
	if (n <= 0 || !memchr(name, '\0', (size_t)n))
		return 0;
	if (STRV_EQ(name, wrappers))
		host->wrappers = part_of(host, section->sh_offset, section->sh_size);
	if (!STRV_EQ(name, fatbin) && !STRV_EQ(name, relocatable))
		return 0;
	part = part_of(host, section->sh_offset, section->sh_size);
	if (part.size == 0 || !is_new(host, &part))
		return 0;
	return fatbin_section(host->reader, &part, STRV_EQ(name, relocatable));
}

static int read_sections(struct host *host)
{
	Elf64_Shdr sections[AT_ONCE];

	for (uint64_t i = 0; i < host->n; i += AT_ONCE) {
		uint64_t n = MIN(host->n - i, (uint64_t)AT_ONCE),
			 at = host->header->e_shoff + i * sizeof(*sections);

		if (reader_get(host->reader, host->range, at, sections, n * sizeof(*sections)) < 0) {
			reader_trouble(host->reader, host->range->offset + at, "section headers: %s",
				       reader_why(host->reader));
			break;
		}
		for (uint64_t k = 0; k < n; k++) {
			/*
			 * Code and sections without data in the file are not relevant, so their names are not
			 * read.
			 */
			bool data = sections[k].sh_type == SHT_PROGBITS &&
				    !(sections[k].sh_flags & SHF_EXECINSTR);
			int r = data ? read_section(host, &sections[k]) : 0;

			if (r == 0)
				r = reader_stopped(host->reader);
			if (r < 0)
				return r;
		}
	}
	if (host->again_n)
		reader_trouble(
			host->reader, host->again.offset,
			"%llu sections of images, of which this is the first, are not read: they lie over "
			"others, or are more than %d",
			(unsigned long long)host->again_n, PARTS_MAX);
	return 0;
}

/* The file offset of the linked @address. */
static int offset_of(const struct host *host, uint64_t address, uint64_t *ret_offset)
{
	for (unsigned i = 0; i < MIN((unsigned)host->header->e_phnum, (unsigned)SEGMENTS_MAX); i++) {
		Elf64_Phdr segment;

		if (reader_get(host->reader, host->range, host->header->e_phoff + i * sizeof(segment),
			       &segment, sizeof(segment)) < 0)
			break;
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz) {
			*ret_offset = segment.p_offset + (address - segment.p_vaddr);
			return 0;
		}
	}
	return -ENOENT;
}

static int follow_wrapper(struct host *host, const struct wrapper *wrapper)
{
	struct range rest;
	uint64_t offset, size;
	int r;

	if (wrapper->data == 0 || offset_of(host, wrapper->data, &offset) < 0 ||
	    offset >= host->range->size) {
		host->unresolved++;
		return 0;
	}
	rest = (struct range){ host->range->offset + offset, host->range->size - offset };
	r = fatbin_container(host->reader, &rest, false, &size);
	if (r == -ENODATA)
		host->unresolved++;
	return r == -ENODATA ? 0 : r;
}

static int read_wrappers(struct host *host)
{
	for (uint64_t at = 0; at < host->wrappers.size && at < WRAPPERS_MAX * sizeof(struct wrapper);
	     at += sizeof(struct wrapper)) {
		struct wrapper wrapper;
		int r = reader_stopped(host->reader);

		if (reader_get(host->reader, &host->wrappers, at, &wrapper, sizeof(wrapper)) < 0)
			break;
		if (!reader_walk(host->reader,
				 WALK_COST + (uint64_t)host->header->e_phnum * sizeof(Elf64_Phdr),
				 host->wrappers.offset + at))
			break;
		if (r == 0 && wrapper.magic == CUBIN_WRAPPER_MAGIC)
			r = follow_wrapper(host, &wrapper);
		if (r < 0)
			return r;
	}
	if (host->unresolved)
		reader_trouble(
			host->reader, host->wrappers.offset,
			"%llu wrappers of images that lie in no section of theirs, and whose addresses the "
			"file does not tell",
			(unsigned long long)host->unresolved);
	return 0;
}

int host_read(struct reader *reader, const struct range *range, const Elf64_Ehdr *header)
{
	struct host host = { .reader = reader, .range = range, .header = header, .n = header->e_shnum };
	uint32_t containers = reader->containers, names = header->e_shstrndx;
	Elf64_Shdr first;
	int r;

	if (header->e_shoff == 0)
		return 0;
	if (header->e_shentsize != sizeof(first) ||
	    reader_get(reader, range, header->e_shoff, &first, sizeof(first)) < 0) {
		reader_trouble(reader, range->offset,
			       "no section headers where the ELF header says that they are");
		return 0;
	}
	if (host.n == 0)
		host.n = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (host.n > SECTIONS_MAX) {
		reader_trouble(reader, range->offset, "%llu sections, of which %d are looked at",
			       (unsigned long long)host.n, SECTIONS_MAX);
		host.n = SECTIONS_MAX;
	}
	if (names >= host.n || reader_get(reader, range, header->e_shoff + names * sizeof(host.names),
					  &host.names, sizeof(host.names)) < 0) {
		reader_trouble(reader, range->offset, "its sections have no names");
		return 0;
	}
	r = read_sections(&host);
	if (r == 0 && reader->containers == containers && host.wrappers.size)
		r = read_wrappers(&host);
	return r;
}

int wrapper_read(struct reader *reader, const struct range *range)
{
	struct wrapper wrapper;
	struct range container;
	uint64_t size;
	int r;

	if (reader->source->address == 0 || reader_get(reader, range, 0, &wrapper, sizeof(wrapper)) < 0)
		return -ENOEXEC;
	container.offset = wrapper.data - reader->source->address;
	/* In another process's memory without bound, in ours up to the given size. */
	container.size = reader->source->size;
	if (container.size != UINT64_MAX)
		container.size -= MIN(container.size, container.offset);
	r = fatbin_container(reader, &container, false, &size);
	if (r == -ENODATA) {
		reader_trouble(reader, range->offset,
			       "a wrapper that points to %#llx, where there is no container",
			       (unsigned long long)wrapper.data);
		return 0;
	}
	return r;
}
