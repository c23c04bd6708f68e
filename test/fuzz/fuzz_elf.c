// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as an ELF file: every function that is told of lies in code within the file, both ways of naming
 * its place agree.
 */
#include "fuzz.h"

#include <string.h>

#include "file.h"

struct reading {
	struct elf_file *file;
	size_t size;
	uint64_t functions;
};

static int check(const struct elf_symbol *symbol, void *userdata)
{
	struct reading *reading = userdata;
	uint8_t code[64];
	uint64_t offset, start, end;
	size_t n, length = strlen(symbol->name);

	reading->functions++;
	if (length > ELF_NAME_MAX || symbol->offset >= reading->size)
		abort();
	if (elf_offset(reading->file, symbol->address, &offset) < 0 || offset != symbol->offset)
		abort();
	if (elf_code(reading->file, offset, code, sizeof(code), &n) < 0 || n == 0 || n > sizeof(code) ||
	    n > reading->size - offset)
		abort();
	if (elf_part(reading->file, symbol->address, &start, &end) == 0 &&
	    (symbol->address < start || symbol->address >= end))
		abort();
	return 0;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_(elf_closep) struct elf_file *file = fuzz_elf_file(fuzz_file(data, size));
	struct reading reading = { file, size, 0 };
	uint8_t id[ELF_BUILD_ID_MAX];
	uint64_t address;
	size_t n;
	int r;

	if (!file)
		return 0;
	if (elf_functions(file, check, &reading) < 0 || reading.functions > 2 * size / 24)
		abort();
	if (elf_entries(file, check, &reading) < 0 || reading.functions > 4 * size / 24)
		abort();
	r = elf_build_id(file, id, &n);
	if (r != -ENODATA && (r < 0 || n == 0 || n > sizeof(id)))
		abort();
	for (uint64_t at = 0; at < size; at += 1 + size / 16)
		if (elf_address(file, at, &address) != 0 && elf_code(file, at, id, 1, &n) == 0)
			abort();
	return 0;
}
