// SPDX-License-Identifier: Apache-2.0
/* What the files of src/elf share. */
#pragma once

#include "elf/elf.h"

enum {
	ELF_SEGMENTS_MAX = 64,
	ELF_PIECE_BYTES = 1024,
	ELF_PIECES = 512,
	ELF_PIECE_READS_MAX = 1 << 20, /* half a second; only names scattered on purpose take as many */
};

struct elf_segment {
	uint64_t offset, address, size; /* of what lies in the file */
	uint64_t memory_size; /* what is beyond is zero */
	bool loaded; /* else notes */
	bool executable, writable;
};

struct elf_file {
	int fd;
	uint16_t machine;
	uint64_t size; /* when it was opened */
	uint64_t sections_at;
	uint32_t sections_n; /* 0 with sections_at: the first section header says */
	uint32_t section_names; /* the section of them */
	uint64_t dynamic_at, dynamic_size; /* what the loader goes by; 0: it has no loader */
	uint64_t relro_address, relro_size; /* read-only once the loader is done */
	uint32_t segments_n;
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	uint64_t skipped;
};

/* As the file has it: nothing of it need be true. */
struct elf_section {
	uint32_t name, type, link;
	uint64_t flags, address, offset, size, entry_size;
};

/*
 * A table read here and there, mostly in order: pieces of it are kept, so that few are read twice. Some
 * linkers scatter names, so pieces are small.
 */
struct elf_piece {
	uint64_t number; /* in the table, from 1; 0: nothing is here */
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
/* -ENOENT: not all of it lies within the table and the file. */
int elf_pieces_read(struct elf_pieces *of, uint64_t at, void *buf, size_t n);
/*
 * A name into ELF_NAME_MAX + 1 bytes; -ENOENT where it is empty or does not end within the table, the file
 * and the limit.
 */
int elf_pieces_text(struct elf_pieces *of, uint64_t at, char *buf);

/* Up to @n bytes, short at the file's end. */
int elf_read(const struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n);
/* -ENOEXEC when the file ends before. */
int elf_read_all(const struct elf_file *file, uint64_t offset, void *buf, size_t n);
const struct elf_segment *elf_segment_of_address(const struct elf_file *file, uint64_t address);
/* -ENOENT: there is none. */
int elf_section_at(const struct elf_file *file, uint64_t index, struct elf_section *ret_section);
int elf_section_of_type(const struct elf_file *file, uint32_t type, struct elf_section *ret_section);
