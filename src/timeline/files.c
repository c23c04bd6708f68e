// SPDX-License-Identifier: Apache-2.0
#include "timeline/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "timeline/room.h"

static const struct {
	const char *ending;
	/* Of a file: before its first block, between two, after the last one; without any. */
	const char *head, *between, *tail, *empty;
} forms[] = {
	[TIMELINE_PERFETTO] = { ".pftrace", "", "", "", "" },
	[TIMELINE_CHROME] = { ".json", "[\n", ",\n", "\n]\n", "[]\n" },
};

const char *timeline_ending(enum timeline_format format)
{
	return forms[format].ending;
}

bool timeline_format_of(const char *path, enum timeline_format *ret_format, size_t *ret_stem)
{
	size_t n = strlen(path);

	for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t end = strlen(forms[i].ending);

		if (n > end && STRV_EQ(path + n - end, forms[i].ending)) {
			*ret_format = (enum timeline_format)i;
			*ret_stem = n - end;
			return true;
		}
	}
	return false;
}

static bool rotates(const struct timeline_files_config *config)
{
	return config->rotate_bytes || config->rotate_ns;
}

void timeline_files_name(const struct timeline_files_config *config, uint32_t number,
			 char ret_name[static PATH_MAX])
{
	const char *ending = forms[config->format].ending;
	int room = PATH_MAX - 32; /* of the stem */

	if (rotates(config))
		snprintf(ret_name, PATH_MAX, "%.*s.%06" PRIu32 "%s", room, config->stem, number, ending);
	else
		snprintf(ret_name, PATH_MAX, "%.*s%s", room, config->stem, ending);
}

static int need_folder(struct timeline_files_config *config)
{
	int folder = config->folder == -1 && config->open_folder ? config->open_folder(config->path) :
								   config->folder;

	if (folder < 0 && folder != AT_FDCWD)
		return folder;
	config->folder = folder;
	return 0;
}

static int open_next(struct timeline_files *files)
{
	struct timeline_files_config *config = &files->config;
	int how = config->exclusive ? O_EXCL | O_NOFOLLOW : O_NOCTTY, need = need_folder(config);
	char name[PATH_MAX];

	if (need < 0)
		return need;
	if (config->prefix)
		timeline_make_room(config->folder, config->prefix, forms[config->format].ending,
				   config->folder_bytes);
	timeline_files_name(config, files->number + 1, name);
	files->fd = openat(config->folder, name, O_WRONLY | O_CREAT | O_CLOEXEC | how,
			   config->exclusive ? 0640 : 0666);
	if (files->fd < 0)
		return -errno;
	files->number++;
	files->begun = false;
	files->bytes = 0;
	return 0;
}

/* What does not exist any more was removed by somebody else. */
static int begin_next(struct timeline_files *files)
{
	uint32_t keep = files->config.keep;
	char name[PATH_MAX];
	int r = open_next(files);

	if (r < 0 || !keep || files->number <= keep)
		return r;
	timeline_files_name(&files->config, files->number - keep, name);
	unlinkat(files->config.folder, name, 0);
	return 0;
}

int timeline_files_open(struct timeline_files *files, const struct timeline_files_config *config)
{
	int r;

	*files = (struct timeline_files){ .config = *config, .fd = -1 };
	r = open_next(files);
	if (r < 0)
		timeline_files_close(files);
	return r;
}

void timeline_folder_close(const struct timeline_files_config *config)
{
	int folder = config->folder;

	closep(&folder);
}

void timeline_files_close(struct timeline_files *files)
{
	closep(&files->fd);
	files->fd = -1;
	timeline_folder_close(&files->config);
	files->config.folder = -1;
}

/* Until here what was there before stays. A pipe or a device has nothing to empty. */
static int empty_file(struct timeline_files *files)
{
	if (!files->begun && ftruncate(files->fd, 0) < 0 && errno != EINVAL)
		return -errno;
	files->begun = true;
	return 0;
}

int timeline_files_end(struct timeline_files *files)
{
	const char *text =
		files->bytes == 0 ? forms[files->config.format].empty : forms[files->config.format].tail;
	int r = files->fd < 0 ? 0 : empty_file(files);
	ssize_t n = r < 0 || files->fd < 0 ? r : write_all(files->fd, text, strlen(text));

	closep(&files->fd);
	files->fd = -1;
	return n < 0 ? (int)n : 0;
}

static bool is_full(const struct timeline_files *files, const struct timeline_block *block)
{
	const struct timeline_files_config *config = &files->config;

	if (files->bytes == 0)
		return false;
	return (config->rotate_bytes && files->bytes + block->n > config->rotate_bytes) ||
	       (config->rotate_ns && block->end_ns - files->begin_ns >= config->rotate_ns);
}

/* By one call where the kernel takes it whole: a process that is killed leaves whole blocks. */
static int write_both(int fd, const char *before, const struct timeline_block *block)
{
	const struct iovec parts[] = { { .iov_base = (char *)before, .iov_len = strlen(before) },
				       { .iov_base = (char *)block->data, .iov_len = block->n } };
	size_t all = parts[0].iov_len + block->n, written;
	ssize_t n;

	do
		n = writev(fd, parts, ARRAY_SIZE(parts));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	written = (size_t)n;
	if (written < parts[0].iov_len)
		return -EIO;
	n = written == all ? 0 : write_all(fd, block->data + (written - parts[0].iov_len), all - written);
	return n < 0 ? (int)n : 0;
}

int timeline_files_write(struct timeline_files *files, const struct timeline_block *block)
{
	const char *before;
	int r = 0;

	if (files->fd >= 0 && is_full(files, block))
		r = timeline_files_end(files);
	if (r == 0 && files->fd < 0)
		r = begin_next(files);
	if (r == 0)
		r = empty_file(files);
	if (r < 0)
		return r;
	if (files->bytes == 0)
		files->begin_ns = block->begin_ns;
	before = files->bytes == 0 ? forms[files->config.format].head : forms[files->config.format].between;
	r = write_both(files->fd, before, block);
	if (r == 0)
		files->bytes += block->n + strlen(before);
	else if (ftruncate(files->fd, (off_t)files->bytes) == 0)
		lseek(files->fd, (off_t)files->bytes, SEEK_SET);
	return r;
}
