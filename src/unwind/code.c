// SPDX-License-Identifier: Apache-2.0
#include "unwind/private.h"

#include <errno.h>
#include <unistd.h>

void file_code_read(struct file_code *code, int fd)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	struct elf_range range;

	*code = (struct file_code){ .n = 0 };
	if (elf_open(fd, &elf) < 0)
		return;
	for (uint32_t i = 0; elf_range(elf, i, &range); i++)
		if (range.executable && code->n < FILE_RANGES)
			code->ranges[code->n++] = range;
}

int file_code_bias(const struct file_code *code, const struct proc_map *map, uint64_t *ret_bias)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < code->n; i++) {
		const struct elf_range *range = &code->ranges[i];
		uint64_t from = range->offset & ~(page - 1);

		if (map->offset < from || map->offset >= range->offset + range->size)
			continue;
		*ret_bias = map->start - (range->address - (range->offset - from) + map->offset - from);
		return 0;
	}
	return -ENOENT;
}

bool is_made_code(const struct proc_map *map)
{
	if (map->ino != 0)
		return false;
	return map->path_n == 0 || map->path[0] != '[' || map->path[1] == 'a'; /* or [anon:...] */
}
