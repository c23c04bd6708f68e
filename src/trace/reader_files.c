// SPDX-License-Identifier: Apache-2.0
#include "trace/reader_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config.h"
#include "helper/helper.h"
#include "helper/message.h"
#include "proc/mapped.h"
#include "proc/maps.h"
#include "proc/trust.h"
#include "trace/reader_sites.h"

struct files_reader {
	struct mounts *mounts;
	struct trust *trust;
	char *answer; /* HELPER_MESSAGE_MAX bytes */
};

/* ---- what a process maps ---- */

static bool add_area(char *answer, size_t *at, const struct proc_map *map)
{
	const struct files_area area = { .start = map->start,
					 .end = map->end,
					 .dev = map->dev,
					 .ino = map->ino,
					 .path_n = (uint32_t)map->path_n };

	if (*at + sizeof(area) + map->path_n > HELPER_MESSAGE_MAX)
		return false;
	memcpy(answer + *at, &area, sizeof(area));
	memcpy(answer + *at + sizeof(area), map->path, map->path_n);
	*at += sizeof(area) + map->path_n;
	return true;
}

static size_t look(struct files_reader *reader, const struct files_question *question)
{
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct files_areas header = { 0 };
	size_t at = sizeof(header);
	struct proc_map map;
	int r;

	maps.fd = -1;
	r = proc_maps_open("/proc", question->pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0) {
		if (!map.executable || !map.ino || !(library_of_path(map.path, map.path_n) & question->roles))
			continue;
		if (add_area(reader->answer, &at, &map))
			header.n++;
		else
			header.more++;
	}
	header.error = r < 0 ? r : 0;
	memcpy(reader->answer, &header, sizeof(header));
	return at;
}

uint32_t files_areas_left_out(const void *message, size_t n)
{
	struct files_areas header;

	if (!message || n < sizeof(header))
		return 0;
	memcpy(&header, message, sizeof(header));
	return header.more;
}

bool files_areas_next(const void *message, size_t n, size_t *at, struct files_area *ret_area,
		      const char **ret_path)
{
	const char *bytes = message;

	if (*at == 0)
		*at = sizeof(struct files_areas);
	if (*at > n || n - *at < sizeof(*ret_area))
		return false;
	memcpy(ret_area, bytes + *at, sizeof(*ret_area));
	if (ret_area->path_n > n - *at - sizeof(*ret_area))
		return false;
	*ret_path = bytes + *at + sizeof(*ret_area);
	*at += sizeof(*ret_area) + ret_area->path_n;
	return true;
}

/* ---- opening ---- */

/* Asks no file system: what the kernel has of the file, and the mount it was reached through. */
static int judge(struct files_reader *reader, const struct files_question *question, int fd,
		 struct files_opened *opened)
{
	struct mount_found mount;
	struct trust_file file = { .mount = &mount,
				   .path = question->text,
				   .path_n = strlen(question->text),
				   .user = question->user };
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0)
		return -errno;
	mounts_find(reader->mounts, question->pid, st.stx_mnt_id, &mount);
	opened->allowed = trust_allows(reader->trust, &file);
	opened->remote = mount.kind != MOUNT_LOCAL;
	opened->by_users = st.stx_uid != 0 || (st.stx_mode & (S_IWGRP | S_IWOTH));
	memcpy(opened->type, mount.type, sizeof(opened->type));
	return 0;
}

struct judging {
	struct files_reader *reader;
	const struct files_question *question;
	struct files_opened *opened;
};

static int admit(int handle, void *userdata)
{
	struct judging *judging = userdata;
	int r = judge(judging->reader, judging->question, handle, judging->opened);

	return r < 0 ? r : judging->opened->allowed;
}

/* Judged by the handle that is then opened: a file system that is not trusted is asked nothing. */
static int open_mapped_file(struct files_reader *reader, const struct files_question *question,
			    struct files_opened *opened, struct stat *st, int *ret_fd)
{
	struct judging judging = { reader, question, opened };
	const struct proc_mapped mapped = { .pid = question->pid,
					    .start = question->start,
					    .end = question->end,
					    .dev = question->dev,
					    .ino = question->ino,
					    .path = question->text,
					    .path_n = strlen(question->text),
					    .admit = admit,
					    .userdata = &judging };
	int r = proc_mapped_open("/proc", &mapped, ret_fd, st);

	return r == -EREMOTEIO && !opened->allowed ? 0 : r;
}

static int open_expected_file(struct files_reader *reader, const struct files_question *question,
			      struct files_opened *opened, struct stat *st, int *ret_fd)
{
	_cleanup_close_ int handle = open(question->text, O_PATH | O_CLOEXEC), fd = -1;
	int r = handle < 0 ? -errno : judge(reader, question, handle, opened);

	if (r < 0 || !opened->allowed)
		return r;
	if (fstat(handle, st) < 0)
		return -errno;
	r = fd_reopen(handle, st, &fd);
	if (r == 0 && st->st_size == 0)
		r = -ENOENT;
	if (r == 0)
		r = proc_maps_identify(fd, &opened->dev, &opened->ino);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int answer_opened(struct files_reader *reader, int channel, const struct files_question *question)
{
	struct files_opened opened = { .dev = question->dev, .ino = question->ino };
	_cleanup_close_ int fd = -1;
	struct stat st = { 0 };

	opened.error = question->op == FILES_OPEN ? open_mapped_file(reader, question, &opened, &st, &fd) :
						    open_expected_file(reader, question, &opened, &st, &fd);
	opened.changed_s = st.st_ctim.tv_sec;
	opened.changed_ns = st.st_ctim.tv_nsec;
	opened.size = (uint64_t)st.st_size;
	return send_with_fd(channel, &opened, sizeof(opened), opened.error < 0 ? -1 : fd);
}

/* ---- serving ---- */

static int set_up(struct files_reader *reader, const struct files_question *question)
{
	library_set_user(&question->user_probes);
	trust_free(TAKE_PTR(reader->trust));
	return trust_new(question->text, &reader->trust);
}

static int answer_files(struct files_reader *reader, int channel, const struct files_question *question)
{
	if (question->op == FILES_SET_UP)
		return set_up(reader, question);
	if (!reader->trust)
		return -EBADMSG;
	if (question->op == FILES_LOOK)
		return send_with_fd(channel, reader->answer, look(reader, question), -1);
	return answer_opened(reader, channel, question);
}

int reader_files_serve(int channel)
{
	struct files_reader reader = { .answer = malloc(HELPER_MESSAGE_MAX) };
	static struct files_question question;
	int fd, r = reader.answer ? mounts_new("/proc", &reader.mounts) : -ENOMEM;
	ssize_t n = r;

	while (r == 0 && (n = receive_with_fd(channel, &question, sizeof(question), &fd)) > 0) {
		closep(&fd);
		if (n != sizeof(question) ||
		    strncmp(question.version, GPUSONDE_VERSION, sizeof(question.version)) != 0)
			return HELPER_FOREIGN;
		question.text[sizeof(question.text) - 1] = '\0';
		r = answer_files(&reader, channel, &question);
	}
	mounts_free(reader.mounts);
	trust_free(reader.trust);
	free(reader.answer);
	return r == 0 && n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
