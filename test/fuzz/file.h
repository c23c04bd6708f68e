// SPDX-License-Identifier: Apache-2.0
/* The input as a file, for what reads files. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/elf.h"

/* A descriptor that stays ours: the next input takes its place. */
static inline int fuzz_file(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 || write_all(fd, data, size) < 0)
		abort();
	return fd;
}

/* NULL: it is no ELF file. */
static inline struct elf_file *fuzz_elf_file(int fd)
{
	struct elf_file *file = NULL;
	int r = elf_open(fd, &file);

	if (r < 0 && r != -ENOEXEC)
		abort();
	return file;
}
