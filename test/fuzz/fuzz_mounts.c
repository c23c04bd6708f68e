// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/mounts.h"

static char root[] = "/tmp/fuzz-mounts.XXXXXX";

static void remove_root(void)
{
	static const char *const parts[] = { "/1/mountinfo", "/7/mountinfo", "/1", "/7", "" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", root, parts[i]);
		remove(path);
	}
}

static void make_table(const char *pid, const uint8_t *data, size_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/mountinfo", root, pid);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void make_root(void)
{
	char path[64];

	if (!mkdtemp(root))
		abort();
	snprintf(path, sizeof(path), "%s/1", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/7", root);
	mkdir(path, 0700);
	atexit(remove_root);
}

/* The input is root's table and, from its first NUL on, that of a process; neither makes FUSE local. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static bool made;
	const uint8_t *nul = memchr(data, 0, size);
	size_t first = nul ? (size_t)(nul - data) : size;
	struct mounts *mounts;

	if (!made)
		make_root();
	made = true;
	make_table("1", data, first);
	make_table("7", data + first, size - first);
	if (mounts_new(root, &mounts) < 0)
		abort();
	for (uint64_t id = 0; id < 16; id++) {
		struct mount_found found;

		mounts_find(mounts, id % 2 ? 7 : 0, id, &found);
		if (found.kind == MOUNT_LOCAL && (!found.by_root || strcmp(found.type, "fuse") == 0))
			abort();
	}
	mounts_free(mounts);
	return 0;
}
