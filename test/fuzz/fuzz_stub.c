// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a program with kernels: every stub that is told of is code of it, by a name such as symbols have. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "cubin/stub.h"
#include "elf/elf.h"

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
	/* A host function has a stub for each of its names and each of its handles, and is called for each. */
	return reading->stubs > 1 << 20 ? -ECANCELED : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	struct reading reading = { .size = size };
	uint64_t skipped = 0;
	int r, debug_fd = -1;

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
	/* The file is its own debug file, too: its symbols are read twice. */
	r = stubs_read(fd, fd, check, &reading, &skipped);
	if (r != 0 && r != -ENOEXEC && r != -ECANCELED)
		abort();
	if (stub_debug_file(fd, "/nonexistent", "/nowhere/file", &debug_fd) != -ENOENT)
		abort();
	return 0;
}
