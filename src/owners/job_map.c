// SPDX-License-Identifier: Apache-2.0
#include "owners/job_map.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"

static bool take_number(struct cursor *c, uint32_t *ret_number)
{
	uint64_t number;

	if (cursor_u64(c, &number) < 0 || number >= DEVICE_REF_NO)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

bool job_map_device(const char *name, struct device_ref *ret_device)
{
	struct device_ref device = {
		.kind = DEVICE_BY_INDEX, .gi = DEVICE_REF_NO, .ci = DEVICE_REF_NO, .mig = DEVICE_REF_NO
	};
	struct cursor c = cursor_over(name, strlen(name));

	if (!take_number(&c, &device.index) || (cursor_literal(&c, ".") && !take_number(&c, &device.gi)) ||
	    !cursor_eof(&c))
		return false;
	*ret_device = device;
	return true;
}

static void add_job(struct job_map *map, const struct device_ref *device, struct cursor id)
{
	struct allocation *row = &map->rows[map->n];
	size_t n = cursor_left(&id);

	if (map->n == map->max || n >= sizeof(row->id) || memchr(id.p, 0, n)) {
		map->dropped++;
		return;
	}
	memset(row, 0, sizeof(*row));
	row->workload = WORKLOAD_JOB;
	memcpy(row->id, id.p, n);
	strcpy(row->resource, "hpc_job");
	row->device = *device;
	map->n++;
}

void job_map_add(struct job_map *map, struct device_ref device, const char *text, size_t n)
{
	struct cursor c = cursor_over(text, n), line;

	while (!cursor_eof(&c)) {
		if (cursor_until(&c, '\n', &line) < 0) {
			line = c;
			c.p = c.end;
		}
		cursor_skip_space(&line);
		while (!cursor_eof(&line) && isspace((unsigned char)line.end[-1]))
			line.end--;
		if (!cursor_eof(&line))
			add_job(map, &device, line);
	}
}

static int read_one(struct job_map *map, int dir, const char *name)
{
	_cleanup_free_ char *text = malloc(JOB_MAP_FILE_MAX);
	struct device_ref device;
	size_t n;
	int r;

	if (!job_map_device(name, &device))
		return 0;
	r = text ? read_file_at(dir, name, text, JOB_MAP_FILE_MAX, &n) : -ENOMEM;
	if (r == 0)
		job_map_add(map, device, text, n);
	return r == -ENOENT ? 0 : r;
}

/* Equal folders make equal tables. */
static int compare_rows(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct allocation));
}

int job_map_read(struct job_map *map, int fd)
{
	uint32_t before = map->n;
	struct dirent *entry;
	DIR *dir = fdopendir(fd);
	int error = 0;

	if (!dir) {
		error = -errno;
		close(fd);
		return error;
	}
	for (unsigned n = 0; (entry = readdir(dir)); n++) {
		int r = n == JOB_MAP_FILES_MAX ? -E2BIG : read_one(map, dirfd(dir), entry->d_name);

		error = r < 0 ? r : error;
		if (n == JOB_MAP_FILES_MAX)
			break;
	}
	closedir(dir);
	if (map->n > before)
		qsort(map->rows + before, map->n - before, sizeof(map->rows[0]), compare_rows);
	return error;
}
