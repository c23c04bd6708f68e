// SPDX-License-Identifier: Apache-2.0
#include "elf/elf.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf/private.h"

/* Of segments that are loaded; a linker makes two to six. */
enum { PROGRAM_HEADERS_MAX = 4096, NOTES_MAX = 64 << 10 };

int elf_read(const struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n)
{
	size_t done = 0;

	while (done < n && offset + done < file->size) {
		ssize_t got = pread(file->fd, (char *)buf + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	*ret_n = done;
	return 0;
}

int elf_read_all(const struct elf_file *file, uint64_t offset, void *buf, size_t n)
{
	size_t got;
	int r = elf_read(file, offset, buf, n, &got);

	return r < 0 ? r : got < n ? -ENOEXEC : 0;
}

static bool header_good(const Elf64_Ehdr *header)
{
	unsigned char order = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;

	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == order && header->e_ident[EI_VERSION] == EV_CURRENT &&
	       (header->e_type == ET_EXEC || header->e_type == ET_DYN);
}

/*
 * Segments that a loader would reject are ignored: ranges that wrap, or are larger in the file than in
 * memory.
 */
static bool segment_good(const Elf64_Phdr *ph)
{
	return ph->p_memsz > 0 && ph->p_filesz <= ph->p_memsz && ph->p_offset <= INT64_MAX &&
	       ph->p_filesz <= INT64_MAX - ph->p_offset && ph->p_vaddr <= UINT64_MAX - ph->p_memsz;
}

static int read_segments(struct elf_file *file, const Elf64_Ehdr *header)
{
	if (header->e_phnum == 0)
		return 0;
	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > PROGRAM_HEADERS_MAX ||
	    header->e_phoff > INT64_MAX / 2)
		return -ENOEXEC;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr ph;
		int r = elf_read_all(file, header->e_phoff + i * sizeof(ph), &ph, sizeof(ph));

		if (r < 0)
			return r;
		if (!segment_good(&ph))
			continue;
		if (ph.p_type == PT_DYNAMIC) {
			file->dynamic_at = ph.p_offset;
			file->dynamic_size = ph.p_filesz;
		}
		if (ph.p_type == PT_GNU_RELRO) {
			file->relro_address = ph.p_vaddr;
			file->relro_size = ph.p_memsz;
		}
		if (ph.p_type != PT_LOAD && ph.p_type != PT_NOTE)
			continue;
		if (file->segments_n == ELF_SEGMENTS_MAX)
			return -ENOEXEC;
		file->segments[file->segments_n++] = (struct elf_segment){
			.offset = ph.p_offset,
			.address = ph.p_vaddr,
			.size = ph.p_filesz,
			.memory_size = ph.p_memsz,
			.loaded = ph.p_type == PT_LOAD,
			.executable = ph.p_type == PT_LOAD && ph.p_flags & PF_X,
			.writable = ph.p_type == PT_LOAD && ph.p_flags & PF_W,
		};
	}
	return 0;
}

static int read_headers(struct elf_file *file)
{
	Elf64_Ehdr header;
	int r = elf_read_all(file, 0, &header, sizeof(header));

	if (r < 0)
		return r;
	if (!header_good(&header))
		return -ENOEXEC;
	file->machine = header.e_machine;
	if (header.e_shoff != 0 && header.e_shentsize == sizeof(Elf64_Shdr) &&
	    header.e_shoff <= INT64_MAX / 2) {
		file->sections_at = header.e_shoff;
		file->sections_n = header.e_shnum;
		file->section_names = header.e_shstrndx;
	}
	return read_segments(file, &header);
}

int elf_open(int fd, struct elf_file **ret_file)
{
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->fd = fd;
	file->size = (uint64_t)st.st_size;
	file->cpu_end_ns = INT64_MAX;
	r = read_headers(file);
	if (r < 0)
		return r;
	*ret_file = TAKE_PTR(file);
	return 0;
}

void elf_close(struct elf_file *file)
{
	free(file);
}

void elf_limit_cpu(struct elf_file *file, int64_t end_ns)
{
	file->cpu_end_ns = end_ns;
}

void elf_limit_steps(struct elf_file *file, uint64_t *left)
{
	file->steps_left = left;
}

bool elf_take_steps(uint64_t *left, uint64_t n)
{
	*left -= MIN(*left, n);
	return *left > 0;
}

int elf_check_limits(const struct elf_file *file)
{
	if (file->steps_left && *file->steps_left == 0)
		return -ETIME;
	return file->cpu_end_ns != INT64_MAX && clock_thread_cpu_ns() > file->cpu_end_ns ? -ETIME : 0;
}

uint16_t elf_machine(const struct elf_file *file)
{
	return file->machine;
}

uint64_t elf_skipped(const struct elf_file *file)
{
	return file->skipped;
}

/* Segments may share a page of the file: executable ones come first, since probes are placed there. */
static const struct elf_segment *segment_of_offset(const struct elf_file *file, uint64_t offset)
{
	const struct elf_segment *found = NULL;

	for (unsigned i = 0; i < file->segments_n; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (!s->loaded || offset < s->offset || offset - s->offset >= s->size)
			continue;
		if (s->executable)
			return s;
		if (!found)
			found = s;
	}
	return found;
}

const struct elf_segment *elf_segment_of_address(const struct elf_file *file, uint64_t address)
{
	for (unsigned i = 0; i < file->segments_n; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (s->loaded && address >= s->address && address - s->address < s->size)
			return s;
	}
	return NULL;
}

int elf_code(struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n)
{
	const struct elf_segment *s = segment_of_offset(file, offset);

	if (!s || !s->executable)
		return -ENOENT;
	return elf_read(file, offset, buf, MIN((uint64_t)n, s->size - (offset - s->offset)), ret_n);
}

static struct elf_range range_of_segment(const struct elf_segment *s)
{
	return (struct elf_range){
		.address = s->address,
		.offset = s->offset,
		.size = s->size,
		.memory_size = s->memory_size,
		.executable = s->executable,
		.writable = s->writable,
	};
}

bool elf_range_of(const struct elf_file *file, uint64_t address, struct elf_range *ret_range)
{
	for (unsigned i = 0; i < file->segments_n; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (s->loaded && address >= s->address && address - s->address < s->memory_size) {
			*ret_range = range_of_segment(s);
			return true;
		}
	}
	return false;
}

bool elf_range(const struct elf_file *file, uint32_t index, struct elf_range *ret_range)
{
	for (unsigned i = 0; i < file->segments_n; i++) {
		const struct elf_segment *s = &file->segments[i];

		if (!s->loaded || index-- > 0)
			continue;
		*ret_range = range_of_segment(s);
		return true;
	}
	return false;
}

int elf_data(struct elf_file *file, uint64_t address, void *buf, size_t n, size_t *ret_n)
{
	const struct elf_segment *s = elf_segment_of_address(file, address);
	uint64_t from;

	if (!s)
		return -ENOENT;
	from = address - s->address;
	return elf_read(file, s->offset + from, buf, MIN((uint64_t)n, s->size - from), ret_n);
}

int elf_address(struct elf_file *file, uint64_t offset, uint64_t *ret_address)
{
	const struct elf_segment *s = segment_of_offset(file, offset);

	if (!s)
		return -ENOENT;
	*ret_address = s->address + (offset - s->offset);
	return 0;
}

int elf_offset(struct elf_file *file, uint64_t address, uint64_t *ret_offset)
{
	const struct elf_segment *s = elf_segment_of_address(file, address);

	if (!s)
		return -ENOENT;
	*ret_offset = s->offset + (address - s->address);
	return 0;
}

/*
 * Finds the build-id among the @n bytes of a note segment: header, name, description, each padded to 4 bytes.
 */
static int find_build_id(const uint8_t *notes, size_t n, uint8_t *buf, size_t *ret_n)
{
	size_t at = 0;

	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name_n, description_n;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name_n = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
		description_n = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
		if (name_n > n - at || note.n_descsz > n - at - name_n)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= ELF_BUILD_ID_MAX) {
			memcpy(buf, notes + at + name_n, note.n_descsz);
			*ret_n = note.n_descsz;
			return 0;
		}
		if (description_n > n - at - name_n)
			break;
		at += name_n + description_n;
	}
	return -ENODATA;
}

int elf_build_id(struct elf_file *file, uint8_t buf[static ELF_BUILD_ID_MAX], size_t *ret_n)
{
	_cleanup_free_ uint8_t *notes = malloc(NOTES_MAX);

	if (!notes)
		return -ENOMEM;
	for (unsigned i = 0; i < file->segments_n; i++) {
		const struct elf_segment *s = &file->segments[i];
		size_t n;
		int r;

		if (s->loaded)
			continue;
		r = elf_read(file, s->offset, notes, MIN(s->size, (uint64_t)NOTES_MAX), &n);
		if (r == 0)
			r = find_build_id(notes, n, buf, ret_n);
		if (r != -ENODATA)
			return r;
	}
	return -ENODATA;
}

bool elf_is_cut(const struct elf_file *file)
{
	struct elf_range range;
	Elf64_Ehdr header;

	if (elf_read_all(file, 0, &header, sizeof(header)) < 0 || header.e_shoff > file->size ||
	    (uint64_t)header.e_shnum * header.e_shentsize > file->size - header.e_shoff)
		return true;
	for (uint32_t i = 0; elf_range(file, i, &range); i++)
		if (range.offset > file->size || range.size > file->size - range.offset)
			return true;
	return false;
}
