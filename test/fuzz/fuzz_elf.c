// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: every function that is told of lies in code within the file, both ways of naming its place agree. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/elf.h"

struct reading {
	struct elf_file *file;
	size_t size;
	uint64_t functions;
};

static int check(const struct elf_symbol *symbol, void *userdata)
{
	struct reading *reading = userdata;
	uint8_t code[64];
	uint64_t offset;
	size_t n, length = strlen(symbol->name);

	reading->functions++;
	if (length > ELF_NAME_MAX || symbol->offset >= reading->size)
		abort();
	if (elf_offset(reading->file, symbol->address, &offset) < 0 || offset != symbol->offset)
		abort();
	if (elf_code(reading->file, offset, code, sizeof(code), &n) < 0 || n == 0 || n > sizeof(code) ||
	    n > reading->size - offset)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct reading reading = { .size = size };
	uint8_t id[ELF_BUILD_ID_MAX];
	uint64_t address;
	size_t n;
	int r;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 || write_all(fd, data, size) < 0)
		abort();
	r = elf_open(fd, &file);
	if (r == -ENOEXEC)
		return 0;
	if (r < 0)
		abort();
	reading.file = file;
	if (elf_functions(file, check, &reading) < 0 || reading.functions > 2 * size / 24)
		abort();
	r = elf_build_id(file, id, &n);
	if (r != -ENODATA && (r < 0 || n == 0 || n > sizeof(id)))
		abort();
	for (uint64_t at = 0; at < size; at += 1 + size / 16)
		if (elf_address(file, at, &address) != 0 && elf_code(file, at, id, 1, &n) == 0)
			abort();
	return 0;
}
