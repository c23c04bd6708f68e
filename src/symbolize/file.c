// SPDX-License-Identifier: Apache-2.0
/*
 * A file is the same as another when both have the same build-id, size and bytes (of a large one, samples of
 * them: a build-id is easily copied), or the same device, inode, size and time of change, which nobody can
 * set. What was read of it is kept in tables, which go when they are the least used and others need the room;
 * its identity and that it has no device code stay longer.
 */
#include "symbolize/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "symbolize/figures.h"
#include "symbolize/image.h"
#include "symbolize/process.h"
#include "symbolize/progress.h"
#include "symbolize/stubs.h"
#include "symbolize/worker.h"
#include "proc/mapped.h"

enum { SAMPLES = 256, SAMPLE = 16 << 10 };

static struct file_id id_of(const struct stat *st)
{
	return (struct file_id){
		.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size, .changed = st->st_ctim
	};
}

static bool same_id(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool has_id(const struct file *file, const struct file_id *id)
{
	for (uint32_t i = 0; i < file->ids_n; i++)
		if (same_id(&file->ids[i], id))
			return true;
	return false;
}

/* Whether reading it made an earlier helper hang or crash. */
static bool is_avoided(const struct symbolizer *symbolizer, struct file_mark file)
{
	for (uint32_t i = 0; i < symbolizer->config.avoided_n; i++) {
		const struct file_mark *mark = &symbolizer->config.avoided[i];

		if (mark->dev == file.dev && mark->ino == file.ino &&
		    (mark->changed_ns == 0 || mark->changed_ns == file.changed_ns))
			return true;
	}
	return false;
}

static int open_at(const struct symbolizer *symbolizer, const struct place *place, int *ret_fd,
		   struct stat *ret_st)
{
	const struct proc_mapped mapped = { .pid = place->pid,
					    .start = place->start,
					    .end = place->end,
					    .dev = place->dev,
					    .ino = place->ino,
					    .path = place->path,
					    .path_n = strlen(place->path) };

	if (place->fd) {
		*ret_fd = fcntl(*place->fd, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 || fstat(*ret_fd, ret_st) < 0 ? -errno : 0;
	}
	if (place->end == 0)
		return proc_file_open(symbolizer->proc_root, place->pid, place->path, ret_fd, ret_st);
	return proc_mapped_open(symbolizer->proc_root, &mapped, ret_fd, ret_st);
}

static int place_open(const struct symbolizer *symbolizer, const struct place *place, int *ret_fd,
		      struct stat *ret_st)
{
	const struct file_mark before = { .dev = place->dev, .ino = place->ino };
	int r;

	/* What hung while it was opened was never seen by stat(). */
	if (place->ino && is_avoided(symbolizer, before))
		return -ENOEXEC;
	progress_file(place->dev, place->ino, NULL);
	r = open_at(symbolizer, place, ret_fd, ret_st);
	if (r < 0)
		return r;
	progress_file(0, 0, ret_st);
	return is_avoided(symbolizer, progress_mark(ret_st)) ? -ENOEXEC : 0;
}

/* ---- which file ---- */

/*
 * All of a file up to 4 MiB; of a larger one 4 MiB in evenly spaced parts that include its first and last
 * bytes.
 */
static uint64_t bytes_of(int fd, uint64_t size)
{
	uint64_t hash = 0, last = size > SAMPLE ? size - SAMPLE : 0;
	char bytes[SAMPLE];

	for (uint64_t i = 0; i < SAMPLES; i++) {
		bool whole = size <= (uint64_t)SAMPLES * SAMPLE;
		uint64_t at = whole ? i * SAMPLE : i == SAMPLES - 1 ? last : last / (SAMPLES - 1) * i;
		ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)at);

		if (n <= 0)
			break;
		hash = (hash ^ hash_bytes(bytes, (size_t)n)) * UINT64_C(0x9e3779b97f4a7c15) + i;
	}
	return hash;
}

static void describe(struct file *file, int fd)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;

	file->sample = bytes_of(fd, file->ids[0].size);
	if (elf_open(fd, &elf) < 0)
		return;
	while (file->loads_n < FILE_LOADS && elf_range(elf, file->loads_n, &file->loads[file->loads_n]))
		file->loads_n++;
	if (elf_build_id(elf, file->build_id, &file->build_id_n) < 0)
		file->build_id_n = 0;
}

static bool same_build(const struct file *a, const struct file *b)
{
	return a->build_id_n > 0 && a->build_id_n == b->build_id_n && a->ids[0].size == b->ids[0].size &&
	       a->sample == b->sample && memcmp(a->build_id, b->build_id, a->build_id_n) == 0;
}

static void add_id(struct file *file, const struct file_id *id)
{
	/* Keeps the first, replaces the oldest of the others. */
	if (file->ids_n == FILE_IDS) {
		memmove(&file->ids[1], &file->ids[2], (FILE_IDS - 2) * sizeof(*id));
		file->ids_n--;
	}
	file->ids[file->ids_n++] = *id;
}

static void drop_tables(struct symbolizer *symbolizer, struct file *file)
{
	stub_table_free(TAKE_PTR(file->stubs));
	for (unsigned i = 0; i < FILE_ARCHS; i++)
		figures_free(TAKE_PTR(file->figures[i]));
	symbolizer_weigh(symbolizer, -(int64_t)file->bytes);
	symbolizer->trim |= file->bytes > 0;
	file->bytes = 0;
}

void file_let_go(struct symbolizer *symbolizer, struct file *file)
{
	if (file->fd < 0)
		return;
	close(TAKE_FD(file->fd));
	symbolizer->open_files--;
}

/*
 * An open file keeps a container's file system busy, so it is held no longer than the mappings that keep it
 * busy anyway.
 */
static void hold(struct symbolizer *symbolizer, struct file *file, int *fd)
{
	if (file->fd >= 0 || file->device_code == DEVICE_CODE_NONE || symbolizer->open_files == OPEN_FILES)
		return;
	file->fd = TAKE_FD(*fd);
	symbolizer->open_files++;
}

void file_use(struct file *file)
{
	file->users++;
}

void file_leave(struct symbolizer *symbolizer, struct file *file)
{
	if (--file->users == 0)
		file_let_go(symbolizer, file);
}

static void file_free(struct symbolizer *symbolizer, struct file *file)
{
	file_let_go(symbolizer, file);
	drop_tables(symbolizer, file);
	free(file);
}

/* The least recently used one that is not in use. */
static struct file **oldest(struct symbolizer *symbolizer, bool with_tables)
{
	struct file **found = NULL;

	for (uint32_t i = 0; i < symbolizer->files_n; i++) {
		struct file *file = symbolizer->files[i];

		if (file->busy || (with_tables && file->bytes == 0))
			continue;
		if (!found || file->used < (*found)->used)
			found = &symbolizer->files[i];
	}
	return found;
}

static int add_file(struct symbolizer *symbolizer, struct file *file)
{
	struct file **files;

	if (symbolizer->files_n >= symbolizer->config.limits.files) {
		struct file **old = oldest(symbolizer, false);

		if (!old)
			return -ENOMEM;
		processes_drop_file(symbolizer, *old);
		symbolizer_count(symbolizer, &symbolizer->stats.evicted, (*old)->bytes > 0);
		file_free(symbolizer, *old);
		*old = file;
		return 0;
	}
	files = reallocarray(symbolizer->files, symbolizer->files_n + 1, sizeof(struct file *));
	if (!files)
		return -ENOMEM;
	symbolizer->files = files;
	files[symbolizer->files_n++] = file;
	return 0;
}

static struct file *known(struct symbolizer *symbolizer, const struct file *like, const struct file_id *id)
{
	for (uint32_t i = 0; i < symbolizer->files_n; i++) {
		struct file *file = symbolizer->files[i];

		if (id ? has_id(file, id) : same_build(file, like))
			return file;
	}
	return NULL;
}

int file_find(struct symbolizer *symbolizer, const struct place *place, struct file **ret_file)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ struct file *made = NULL;
	struct file *file;
	struct file_id id;
	struct stat st;
	int r = place_open(symbolizer, place, &fd, &st);

	if (r < 0)
		return r;
	id = id_of(&st);
	file = known(symbolizer, NULL, &id);
	if (!file) {
		made = calloc(1, sizeof(*made));
		if (!made)
			return -ENOMEM;
		made->fd = -1;
		made->ids[made->ids_n++] = id;
		describe(made, fd);
		file = known(symbolizer, made, NULL);
		if (file) {
			add_id(file, &id);
		} else {
			r = add_file(symbolizer, made);
			if (r < 0)
				return r;
			file = TAKE_PTR(made);
		}
	}
	if (place->end != 0 || place->fd)
		hold(symbolizer, file, &fd);
	file->used = ++symbolizer->used;
	*ret_file = file;
	return 0;
}

void files_done(struct symbolizer *symbolizer)
{
	for (uint32_t i = 0; i < symbolizer->files_n; i++)
		file_free(symbolizer, symbolizer->files[i]);
	free(TAKE_PTR(symbolizer->files));
	symbolizer->files_n = 0;
}

void make_room(struct symbolizer *symbolizer)
{
	while (symbolizer->bytes > symbolizer->config.limits.bytes) {
		struct file **old = oldest(symbolizer, true);
		uint64_t image = images_oldest(symbolizer);

		if (image != UINT64_MAX && (!old || image < (*old)->used)) {
			if (!images_evict(symbolizer, image))
				return;
		} else if (old) {
			drop_tables(symbolizer, *old);
		} else {
			return;
		}
		symbolizer_count(symbolizer, &symbolizer->stats.evicted, 1);
	}
}

/* ---- its contents ---- */

/* Creating or removing a hard link changes the file's ctime, too: then its bytes are compared. */
static int still_same(struct file *file, int fd, const struct stat *st)
{
	struct file_id id = id_of(st);

	if (has_id(file, &id))
		return 0;
	if (id.size != file->ids[0].size || bytes_of(fd, id.size) != file->sample)
		return -ESTALE;
	add_id(file, &id);
	return 0;
}

int file_open(struct symbolizer *symbolizer, struct file *file, const struct place *place, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (file->fd >= 0) {
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
		r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
		if (r == 0)
			progress_file(0, 0, &st);
	} else {
		r = place_open(symbolizer, place, &fd, &st);
	}
	if (r == 0)
		r = still_same(file, fd, &st);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int file_unchanged(struct file *file, int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : still_same(file, fd, &st);
}
