// SPDX-License-Identifier: Apache-2.0
#include "cubin/cubin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t read_file(void *of, uint64_t offset, void *buf, size_t n)
{
	ssize_t r;

	if (offset > INT64_MAX - n)
		return 0;
	do
		r = pread((int)(intptr_t)of, buf, n, (off_t)offset);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

int cubin_source_file(int fd, struct cubin_source *ret_source)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_source = (struct cubin_source){ .read = read_file,
					     .of = (void *)(intptr_t)fd,
					     .size = (uint64_t)st.st_size };
	return 0;
}

static ssize_t read_memory(void *of, uint64_t offset, void *buf, size_t n)
{
	const struct cubin_memory *memory = of;

	if (offset >= memory->n)
		return 0;
	n = MIN(n, memory->n - (size_t)offset);
	memcpy(buf, (const char *)memory->bytes + offset, n);
	return (ssize_t)n;
}

void cubin_source_memory(const struct cubin_memory *memory, struct cubin_source *ret_source)
{
	*ret_source = (struct cubin_source){ .read = read_memory,
					     .of = (void *)(uintptr_t)memory,
					     .size = memory->n,
					     .address = (uintptr_t)memory->bytes };
}

static ssize_t read_process(void *of, uint64_t offset, void *buf, size_t n)
{
	const struct cubin_process *process = of;
	uint64_t address = process->address + offset; /* wraps */
	ssize_t r;

	r = process_vm_readv(process->pid, &(struct iovec){ buf, n }, 1,
			     &(struct iovec){ (void *)address, n }, 1, 0);
	return r < 0 ? -errno : r;
}

void cubin_source_process(const struct cubin_process *process, struct cubin_source *ret_source)
{
	*ret_source = (struct cubin_source){ .read = read_process,
					     .of = (void *)(uintptr_t)process,
					     .size = UINT64_MAX,
					     .address = process->address };
}
