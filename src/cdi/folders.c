// SPDX-License-Identifier: Apache-2.0
/* The folders of specifications. A later one's devices replace those of an earlier one, as CDI has it. */
#include "cdi/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/hashmap.h"
#include "base/macro.h"

static const char *const folders[] = { "etc/cdi", "var/run/cdi" };
#define CAPS_PATH "proc/driver/nvidia-caps/mig-minors"

struct file {
	const char *folder;
	char *name;
	struct stat st;
};

struct files {
	struct file *list;
	uint32_t n, room;
};

static void files_done(struct files *files)
{
	for (uint32_t i = 0; i < files->n; i++)
		free(files->list[i].name);
	free(files->list);
}

static void cdi_failed(struct cdi *cdi, const char *folder, const char *name, int error)
{
	if (!cdi->error[0])
		snprintf(cdi->error, sizeof(cdi->error), "/%s%s%.64s: %s", folder, *name ? "/" : "", name,
			 strerror(-error));
}

static bool is_specification(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && end != name && (strcmp(end, ".yaml") == 0 || strcmp(end, ".json") == 0);
}

static int open_specification(int root, const char *folder, const char *name, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fd_open_below(root, path, flags);
}

static int files_add(struct files *files, int root, const char *folder, const char *name)
{
	_cleanup_close_ int fd = open_specification(root, folder, name, O_PATH);
	struct file file = { .folder = folder };

	if (fd < 0 || fstat(fd, &file.st) < 0)
		return 0; /* gone meanwhile */
	if (files->n == files->room) {
		uint32_t room = MAX(16u, files->room * 2);
		struct file *list = reallocarray(files->list, room, sizeof(*list));

		if (!list)
			return -ENOMEM;
		files->list = list;
		files->room = room;
	}
	file.name = strdup(name);
	if (!file.name)
		return -ENOMEM;
	files->list[files->n++] = file;
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* In the order of their names. */
static int list_folder(struct cdi *cdi, int root, const char *folder, struct files *files)
{
	int fd = fd_open_below(root, folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint32_t before = files->n;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		else if (fd != -ENOENT)
			cdi_failed(cdi, folder, "", fd);
		return 0;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (!is_specification(entry->d_name))
			continue;
		if (files->n == CDI_FILES_MAX)
			cdi->dropped++;
		else
			r = files_add(files, root, folder, entry->d_name);
	}
	closedir(dir);
	if (files->n > before)
		qsort(files->list + before, files->n - before, sizeof(files->list[0]), compare_files);
	return r;
}

static uint64_t files_seen(const struct files *files)
{
	uint64_t seen = files->n + 1;

	for (uint32_t i = 0; i < files->n; i++) {
		const struct file *file = &files->list[i];

		seen = seen * 31 + hash_bytes(file->name, strlen(file->name));
		seen = seen * 31 + hash_bytes(&file->st.st_mtim, sizeof(file->st.st_mtim));
		seen = seen * 31 + hash_bytes(&file->st.st_size, sizeof(file->st.st_size));
		seen = seen * 31 + hash_bytes(&file->st.st_ino, sizeof(file->st.st_ino));
	}
	return seen;
}

/* ---- what they say ---- */

static void read_specification(struct cdi *cdi, int root, const struct file *file, char *text,
			       const struct mig_caps *caps)
{
	_cleanup_close_ int fd = open_specification(root, file->folder, file->name, O_RDONLY | O_NONBLOCK);
	size_t n;
	int r = fd < 0 ? fd : read_fd(fd, text, CDI_FILE_MAX + 1, &n);

	if (r == 0)
		r = cdi_add(cdi, text, n, caps);
	if (r < 0 && r != -ENOENT)
		cdi_failed(cdi, file->folder, file->name, r);
}

/* Instances are told by the driver's own list, which there is with MIG alone. */
static void read_caps(int root, char *text, struct mig_caps *ret_caps)
{
	_cleanup_close_ int fd = fd_open_below(root, CAPS_PATH, O_RDONLY | O_NONBLOCK);
	size_t n;

	if ((fd >= 0 && read_fd(fd, text, CDI_FILE_MAX + 1, &n) == 0) ||
	    read_file("/" CAPS_PATH, text, CDI_FILE_MAX + 1, &n) == 0)
		mig_caps_parse(text, n, ret_caps);
}

static int read_files(struct cdi *cdi, int root, const struct files *files)
{
	_cleanup_free_ char *text = malloc(CDI_FILE_MAX + 1);

	if (!text)
		return -ENOMEM;
	read_caps(root, text, &cdi->caps);
	for (uint32_t i = 0; i < files->n; i++)
		read_specification(cdi, root, &files->list[i], text, &cdi->caps);
	return 0;
}

int cdi_read(struct cdi *cdi, int root)
{
	struct cdi now = { 0 };
	struct files files = { 0 };
	int r = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(folders) && r == 0; i++)
		r = list_folder(&now, root, folders[i], &files);
	now.seen = files_seen(&files) * 31 + hash_bytes(now.error, strlen(now.error));
	if (r == 0 && now.seen != cdi->seen) {
		r = read_files(&now, root, &files);
		if (r == 0) {
			cdi_done(cdi);
			*cdi = now;
			now = (struct cdi){ 0 };
			r = 1;
		}
	}
	cdi_done(&now);
	files_done(&files);
	return r;
}
