// SPDX-License-Identifier: Apache-2.0
#include "agent/record/record_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "config/places.h"

#define PREFIX "timeline-"
static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
enum { FOLDER_MODE = 0750, FILE_SHARE = 8, LEAST_FILE = 4 << 20, GREATEST_FILE = 256 << 20 };

/* Others could put links there, or take away what is written. */
static int open_folder(const char *path)
{
	_cleanup_close_ int folder = -1;
	struct stat st;
	int r = place_make_folder(path, FOLDER_MODE);

	if (r < 0)
		return r;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &st) < 0)
		return -errno;
	if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return TAKE_FD(folder);
}

void record_folder(const struct options *options, char ret_path[static PATH_MAX])
{
	const char *folder = options_text(options, OPT_timeline_directory);
	struct place place;

	if (folder)
		snprintf(ret_path, PATH_MAX, "%s", folder);
	else
		snprintf(ret_path, PATH_MAX, "%.*s/timelines", PATH_MAX - 32, place_state(options, &place));
}

bool record_is_file(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(name) <= NAME_MAX &&
	       name[strspn(name, allowed)] == '\0';
}

static void name_by_time(const char *what, char *stem, size_t size)
{
	int64_t now_ns = clock_real_ns();
	const time_t seconds = now_ns / NSEC_PER_SEC;
	char time[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(time, sizeof(time), "%Y%m%dT%H%M%S", &tm);
	snprintf(stem, size, PREFIX "%s.%03dZ-%.32s", time, (int)(now_ns % NSEC_PER_SEC / NSEC_PER_MSEC),
		 what);
	for (char *c = stem; *c; c++)
		if (!strchr(allowed, *c))
			*c = '-';
}

void record_files(const char *path, uint64_t bytes, const char *what, struct timeline_files_config *ret_files)
{
	uint64_t share = CLAMP(bytes / FILE_SHARE, (uint64_t)LEAST_FILE, (uint64_t)GREATEST_FILE);

	*ret_files = (struct timeline_files_config){
		.format = TIMELINE_PERFETTO,
		.folder = -1,
		.open_folder = open_folder,
		.exclusive = true,
		.rotate_bytes = share,
		.prefix = PREFIX,
		/* A recording and what is kept in memory may be written at the same time. */
		.folder_bytes = bytes - 2 * share,
	};
	snprintf(ret_files->path, sizeof(ret_files->path), "%s", path);
	name_by_time(what, ret_files->stem, sizeof(ret_files->stem));
}

void record_explain(const char *path, int error, char ret_text[static RECORD_ERROR])
{
	if (error == 0)
		ret_text[0] = '\0';
	else if (error == -EPERM)
		snprintf(ret_text, RECORD_ERROR,
			 "the folder %.100s belongs to another user, or others can write to it: chmod go-w, "
			 "or name another one (timeline.directory)",
			 path);
	else
		snprintf(ret_text, RECORD_ERROR, "%s: the folder %.100s (timeline.directory)",
			 strerror(-error), path);
}
