// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the files of src/elf.
 */
#pragma once

#include "elf/elf.h"

enum {
	ELF_SEGMENTS_MAX = 64,
	ELF_PIECE_BYTES = 1024,
	ELF_PIECES = 512,
	/* takes half a second; only reached if names are scattered on purpose */
	ELF_PIECE_READS_MAX = 1 << 20,
	ELF_CHECK = 256, /* symbols or slots between looks at the limits */
	/* Steps (elf_limit_steps()), as measured. */
	ELF_STEPS_SYMBOL = 2, /* a defined one */
	ELF_STEPS_PIECE = 10, /* that is read */
	ELF_STEP_BYTES = 1024, /* of a name, for one step */
};

struct elf_segment {
	uint64_t offset, address, size; /* of what lies in the file */
	uint64_t memory_size; /* the rest beyond @size is zero */
	bool loaded; /* else notes */
	bool executable, writable;
};

struct elf_file {
	int fd;
	uint16_t machine;
	uint64_t size; /* when it was opened */
	uint64_t sections_at;
	uint32_t sections_n; /* 0 with sections_at set: the number is in the first section header */
	uint32_t section_names; /* index of the section with their names */
	uint64_t dynamic_at, dynamic_size; /* used by the loader; 0: there is none */
	uint64_t relro_address, relro_size; /* read-only after loading */
	uint32_t segments_n;
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	uint64_t skipped;
	int64_t cpu_end_ns; /* of the thread's CPU time; INT64_MAX: no limit */
	uint64_t *steps_left; /* NULL: no limit */
};

/* Raw data of the file, not validated. */
struct elf_section {
	uint32_t name, type, link;
	uint64_t flags, address, offset, size, entry_size;
};

/*
 * Cache for a table that is read mostly in order: small blocks, so that few are read twice. Blocks are small
 * since some linkers scatter names.
 */
struct elf_piece {
	uint64_t number; /* in the table, from 1; 0: unused */
	size_t n;
	char bytes[ELF_PIECE_BYTES];
};

struct elf_pieces {
	const struct elf_file *file;
	uint64_t at, size; /* of the table; their sum does not wrap */
	uint32_t reads;
	struct elf_piece pieces[ELF_PIECES];
};

void elf_pieces_init(struct elf_pieces *pieces, const struct elf_file *file, uint64_t at, uint64_t size);
/* -ENOENT: not completely within the table and the file. */
int elf_pieces_read(struct elf_pieces *of, uint64_t at, void *buf, size_t n);
/*
 * Reads a name into ELF_NAME_MAX + 1 bytes; -ENOENT if it is empty or not terminated within the table, the
 * file and the limit.
 */
int elf_pieces_text(struct elf_pieces *of, uint64_t at, char *buf);

/* -ETIME: a limit is passed. */
int elf_check_limits(const struct elf_file *file);
static inline void elf_count_steps(const struct elf_file *file, uint64_t n)
{
	if (file->steps_left)
		elf_take_steps(file->steps_left, n);
}
/* Up to @n bytes, short at the file's end. */
int elf_read(const struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n);
/* -ENOEXEC when the file ends before. */
int elf_read_all(const struct elf_file *file, uint64_t offset, void *buf, size_t n);
const struct elf_segment *elf_segment_of_address(const struct elf_file *file, uint64_t address);
/* -ENOENT: there is none. */
int elf_section_at(const struct elf_file *file, uint64_t index, struct elf_section *ret_section);
int elf_section_of_type(const struct elf_file *file, uint32_t type, struct elf_section *ret_section);
