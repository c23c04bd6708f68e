// SPDX-License-Identifier: Apache-2.0
#include "push/queue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <zlib.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
	BLOCK = 4096,
	ENTRIES_MAX = 1 << 18,
	NAME_DIGITS = 16,
};
#define SUFFIX ".batch"
#define NEW_FILE "new"
#define MAGIC "gspush2\n"

/* A file: this, then the batch. Numbers are little-endian. */
struct file_header {
	char magic[8];
	uint32_t n, crc; /* of the batch's bytes; of what follows, them included */
	int64_t real_ns;
	uint32_t samples, format;
};
_Static_assert(sizeof(struct file_header) == 32, "written to disk as it is");
enum { CHECKED_FROM = offsetof(struct file_header, real_ns) };

struct entry {
	uint64_t number, bytes; /* that it takes of the disk */
	int64_t real_ns; /* when it was written */
};

struct queue {
	int folder;
	uint64_t max_bytes, held, next;
	int64_t max_age_ns; /* 0: any */
	struct entry *entries; /* ordered by number */
	uint32_t n, room;
	struct queue_figures figures;
};

/* ---- the folder ---- */

static int make_private(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid())
		return -EPERM;
	return chmod(path, 0700) < 0 ? -errno : 0;
}

int queue_open_folder(const char *folder, const char *name)
{
	_cleanup_free_ char *outer = NULL;
	_cleanup_close_ int above = -1, fd = -1;
	int r;

	if (asprintf(&outer, "%s/push", folder) < 0) {
		outer = NULL;
		return -ENOMEM;
	}
	r = make_private(outer);
	if (r < 0)
		return r;
	above = open(outer, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (above < 0 || (mkdirat(above, name, 0777) < 0 && errno != EEXIST))
		return -errno;
	fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	/* The mask of the process has cut the mode. */
	if (fd < 0 || fchmod(fd, 0777) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* ---- names ---- */

static void batch_name(uint64_t number, char ret_name[static NAME_DIGITS + sizeof(SUFFIX)])
{
	snprintf(ret_name, NAME_DIGITS + sizeof(SUFFIX), "%0*" PRIx64 SUFFIX, NAME_DIGITS, number);
}

/* 0: it is no batch's. */
static uint64_t batch_number(const char *name)
{
	char again[NAME_DIGITS + sizeof(SUFFIX)];
	uint64_t number;

	if (strlen(name) != sizeof(again) - 1)
		return 0;
	number = strtoull(name, NULL, 16);
	batch_name(number, again);
	return STRV_EQ(again, name) && number < UINT64_MAX ? number : 0;
}

static uint64_t blocks_of(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* ---- entries ---- */

static int append_entry(struct queue *queue, uint64_t number, uint64_t size, int64_t real_ns)
{
	if (queue->n == queue->room) {
		uint32_t room = MAX(64u, queue->room * 2);
		struct entry *more = reallocarray(queue->entries, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		queue->entries = more;
		queue->room = room;
	}
	queue->entries[queue->n++] = (struct entry){ number, blocks_of(size), real_ns };
	queue->figures.bytes += blocks_of(size);
	return 0;
}

static void remove_entry(struct queue *queue, uint32_t i)
{
	char name[NAME_DIGITS + sizeof(SUFFIX)];

	batch_name(queue->entries[i].number, name);
	unlinkat(queue->folder, name, 0);
	queue->figures.bytes -= queue->entries[i].bytes;
	queue->n--;
	memmove(&queue->entries[i], &queue->entries[i + 1], (queue->n - i) * sizeof(*queue->entries));
}

void queue_remove(struct queue *queue, uint64_t number)
{
	uint32_t i = LOWER_BOUND(queue->n, k, queue->entries[k].number < number);

	if (i == queue->n || queue->entries[i].number != number)
		return;
	remove_entry(queue, i);
	/* So that it does not come back when the machine ends, after later ones were sent. */
	fsync(queue->folder);
}

void queue_hold(struct queue *queue, uint64_t number)
{
	queue->held = number;
}

/* Until @bytes more fit. */
static bool make_place(struct queue *queue, uint64_t bytes)
{
	uint32_t at = 0;

	while (at < queue->n &&
	       (queue->figures.bytes + bytes > queue->max_bytes || queue->n >= ENTRIES_MAX)) {
		if (queue->entries[at].number == queue->held) {
			at++;
			continue;
		}
		remove_entry(queue, at);
		queue->figures.full++;
	}
	return queue->figures.bytes + bytes <= queue->max_bytes;
}

static void drop_old(struct queue *queue)
{
	int64_t since_ns = clock_real_ns() - queue->max_age_ns;

	while (queue->max_age_ns > 0 && queue->n > 0 && queue->entries[0].number != queue->held &&
	       queue->entries[0].real_ns < since_ns) {
		remove_entry(queue, 0);
		queue->figures.old++;
	}
}

/* ---- what is there ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int take_entry(struct queue *queue, const char *name)
{
	uint64_t number = batch_number(name);
	struct stat st;

	/* Of a process that ended while it wrote: it was not kept yet. */
	if (STRV_EQ(name, NEW_FILE))
		unlinkat(queue->folder, name, 0);
	if (!number || fstatat(queue->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	queue->next = MAX(queue->next, number + 1);
	return append_entry(queue, number, (uint64_t)st.st_size,
			    st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec);
}

static int read_folder(struct queue *queue)
{
	int fd = openat(queue->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && queue->n < ENTRIES_MAX && (errno = 0, entry = readdir(dir)))
		r = take_entry(queue, entry->d_name);
	closedir(dir);
	if (r == 0 && queue->n > 0)
		qsort(queue->entries, queue->n, sizeof(*queue->entries), compare_entries);
	return r;
}

int queue_new(int folder, uint64_t max_bytes, int64_t max_age_ns, struct queue **ret_queue)
{
	_cleanup_(queue_freep) struct queue *queue = calloc(1, sizeof(*queue));
	int r;

	if (!queue)
		return -ENOMEM;
	queue->folder = folder;
	queue->max_bytes = max_bytes;
	queue->max_age_ns = max_age_ns;
	queue->next = 1;
	r = read_folder(queue);
	if (r < 0)
		return r;
	drop_old(queue);
	(void)make_place(queue, 0);
	*ret_queue = TAKE_PTR(queue);
	return 0;
}

void queue_free(struct queue *queue)
{
	if (!queue)
		return;
	free(queue->entries);
	free(queue);
}

void queue_take_figures(struct queue *queue, struct queue_figures *ret_figures)
{
	*ret_figures = queue->figures;
	ret_figures->batches = queue->n;
	queue->figures.full = queue->figures.torn = queue->figures.old = 0;
}

/* ---- files ---- */

static uint32_t checksum(const struct file_header *header, const uint8_t *data)
{
	uint32_t crc =
		(uint32_t)crc32(0, (const uint8_t *)header + CHECKED_FROM, sizeof(*header) - CHECKED_FROM);

	return (uint32_t)crc32(crc, data, header->n);
}

static int write_file(int folder, const char *name, const struct batch *batch)
{
	struct file_header header = { .n = (uint32_t)batch->n,
				      .real_ns = batch->real_ns,
				      .samples = batch->samples,
				      .format = batch->format };
	/* Any user who may enter the folder above may read it: see queue_open_folder(). */
	_cleanup_close_ int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	ssize_t n;

	if (fd < 0)
		return -errno;
	memcpy(header.magic, MAGIC, sizeof(header.magic));
	header.crc = checksum(&header, batch->data);
	n = write_all(fd, &header, sizeof(header));
	if (n >= 0)
		n = write_all(fd, batch->data, batch->n);
	if (n < 0)
		return (int)n;
	return fsync(fd) < 0 ? -errno : 0;
}

static int put_file(struct queue *queue, const struct batch *batch, uint64_t number)
{
	char name[NAME_DIGITS + sizeof(SUFFIX)];
	int r = write_file(queue->folder, NEW_FILE, batch);

	batch_name(number, name);
	/* Not renameat(), for which C libraries use several calls: the filter allows this one. */
	if (r == 0 && syscall(SYS_renameat2, queue->folder, NEW_FILE, queue->folder, name, 0) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(queue->folder, NEW_FILE, 0);
		return r;
	}
	return fsync(queue->folder) < 0 ? -errno : 0;
}

int queue_add(struct queue *queue, const struct batch *batch, uint64_t *ret_number)
{
	uint64_t size = sizeof(struct file_header) + batch->n, number = queue->next;
	int r;

	drop_old(queue);
	if (blocks_of(size) > queue->max_bytes || !make_place(queue, blocks_of(size)))
		return -EFBIG;
	r = put_file(queue, batch, number);
	if (r == 0)
		r = append_entry(queue, number, size, clock_real_ns());
	if (r < 0)
		return r;
	queue->next++;
	*ret_number = number;
	return 0;
}

int queue_parse(uint8_t *file, size_t n, struct batch *ret_batch)
{
	struct file_header header;

	if (n < sizeof(header))
		return -EBADMSG;
	memcpy(&header, file, sizeof(header));
	if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0 || header.n == 0 ||
	    header.n != n - sizeof(header) || checksum(&header, file + sizeof(header)) != header.crc)
		return -EBADMSG;
	*ret_batch = (struct batch){ .data = file + sizeof(header),
				     .n = header.n,
				     .real_ns = header.real_ns,
				     .samples = header.samples,
				     .format = header.format };
	return 0;
}

/* *ret_file is the caller's. */
static int load_file(int folder, const char *name, uint8_t **ret_file, size_t *ret_n)
{
	_cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *file = NULL;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > BATCH_BYTES_MAX + (off_t)sizeof(struct file_header))
		return -EBADMSG;
	/* One for read_fd()'s NUL. */
	file = malloc((size_t)st.st_size + 1);
	if (!file)
		return -ENOMEM;
	r = read_fd(fd, file, (size_t)st.st_size + 1, ret_n);
	if (r == 0)
		*ret_file = (uint8_t *)TAKE_PTR(file);
	return r;
}

static int load_batch(int folder, uint64_t number, struct batch *ret_batch)
{
	char name[NAME_DIGITS + sizeof(SUFFIX)];
	uint8_t *file = NULL;
	struct batch batch;
	size_t n;
	int r;

	batch_name(number, name);
	r = load_file(folder, name, &file, &n);
	if (r == 0)
		r = queue_parse(file, n, &batch);
	if (r == 0) {
		memmove(file, batch.data, batch.n);
		batch.data = file;
		*ret_batch = batch;
	} else {
		free(file);
	}
	return r;
}

int queue_first(struct queue *queue, uint64_t *ret_number, struct batch *ret_batch)
{
	drop_old(queue);
	while (queue->n > 0) {
		uint64_t number = queue->entries[0].number;
		int r = load_batch(queue->folder, number, ret_batch);

		if (r == 0) {
			*ret_number = number;
			return 0;
		}
		if (r == -ENOMEM)
			return r;
		remove_entry(queue, 0);
		queue->figures.torn++;
	}
	return -ENOENT;
}
