// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a program with kernels: every stub that is told of is code of it, by a name such as symbols
 * have.
 */
#include "fuzz.h"

#include <string.h>

#include "cubin/stub.h"
#include "file.h"

struct reading {
	struct elf_file *file;
	size_t size;
	uint64_t stubs;
};

static bool is_code(const struct elf_file *file, uint64_t address)
{
	struct elf_range range;

	for (uint32_t i = 0; elf_range(file, i, &range); i++)
		if (range.executable && address - range.address < range.memory_size)
			return true;
	return false;
}

static int check(const struct stub *stub, void *userdata)
{
	struct reading *reading = userdata;

	reading->stubs++;
	if (stub->source != KERNEL_SOURCE_REGISTERED && stub->source != KERNEL_SOURCE_SYMBOL)
		abort();
	if (!is_code(reading->file, stub->address) || stub->symbol[0] == '\0' ||
	    strlen(stub->symbol) > reading->size)
		abort();
	/*
	 * A host function has a stub for each of its names and each of its handles: the product is bounded.
	 */
	if (reading->stubs > ((16 << 20) + 4 * reading->size) / 64)
		abort();
	return 0;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	_cleanup_(elf_closep) struct elf_file *file = fuzz_elf_file(fd);
	struct reading reading = { file, size, 0 };
	uint64_t skipped = 0;
	int r, debug_fd = -1;

	if (!file)
		return 0;
	/* The file is its own debug file, too: its symbols are read twice. */
	r = stubs_read(fd, fd, check, &reading, &skipped);
	if (r != 0 && r != -ENOEXEC)
		abort();
	if (stub_debug_file(fd, "/nonexistent", "/nowhere/file", &debug_fd) != -ENOENT)
		abort();
	return 0;
}
