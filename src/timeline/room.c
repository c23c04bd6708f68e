// SPDX-License-Identifier: Apache-2.0
#include "timeline/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/row_list.h"

struct found {
	char name[NAME_MAX + 1];
	uint64_t bytes;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static bool is_ours(const char *name, const char *prefix, const char *ending)
{
	size_t n = strlen(name), end = strlen(ending);

	return strncmp(name, prefix, strlen(prefix)) == 0 && n > end && STRV_EQ(name + n - end, ending);
}

static void add_if_regular(int folder, const char *name, struct row_list *list, uint64_t *sum)
{
	struct found *row;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	row = row_list_add(list);
	if (!row)
		return;
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->bytes = (uint64_t)st.st_size;
	*sum += row->bytes;
}

static int list_files(int folder, const char *prefix, const char *ending, struct row_list *list,
		      uint64_t *ret_sum)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	for (struct dirent *e; (e = readdir(dir));)
		if (is_ours(e->d_name, prefix, ending))
			add_if_regular(folder, e->d_name, list, ret_sum);
	closedir(dir);
	return 0;
}

int timeline_make_room(int folder, const char *prefix, const char *ending, uint64_t bytes)
{
	struct row_list list = { .size = sizeof(struct found), .max = 2 * ROOM_FILES_MAX };
	const struct found *at;
	uint64_t sum = 0;
	int r = list_files(folder, prefix, ending, &list, &sum);

	if (list.n > 0)
		qsort(list.list, list.n, list.size, by_name);
	at = list.list;
	for (uint32_t i = 0; i < list.n && (sum > bytes || list.n - i >= ROOM_FILES_MAX); i++) {
		if (unlinkat(folder, at[i].name, 0) < 0 && r == 0)
			r = -errno;
		sum -= at[i].bytes;
	}
	row_list_done(&list);
	return r;
}
