// SPDX-License-Identifier: Apache-2.0
/* What the files of src/elf share. */
#pragma once

#include "elf/elf.h"

enum { ELF_SEGMENTS_MAX = 64 };

struct elf_segment {
	uint64_t offset, address, size; /* of what lies in the file */
	bool loaded; /* else notes */
	bool executable;
};

struct elf_file {
	int fd;
	uint16_t machine;
	uint64_t size; /* when it was opened */
	uint64_t sections_at;
	uint32_t sections_n; /* 0 with sections_at: the first section header says */
	uint32_t segments_n;
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	uint64_t skipped;
};

/* Up to @n bytes, short at the file's end. */
int elf_read(const struct elf_file *file, uint64_t offset, void *buf, size_t n, size_t *ret_n);
/* -ENOEXEC when the file ends before. */
int elf_read_all(const struct elf_file *file, uint64_t offset, void *buf, size_t n);
const struct elf_segment *elf_segment_of_address(const struct elf_file *file, uint64_t address);
