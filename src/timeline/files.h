// SPDX-License-Identifier: Apache-2.0
/*
 * The files of a timeline: one, or several that follow each other by size and time, of which the newest are
 * kept. Each opens alone. For one thread, which a file system may hang.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "timeline/block.h"
#include "timeline/timeline.h"

struct timeline_files_config {
	enum timeline_format format;
	int folder; /* descriptor, owned by the files; AT_FDCWD; -1: open_folder() makes it */
	/* A descriptor, or -errno; called before the first file is opened. NULL: there is @folder. */
	int (*open_folder)(const char *path);
	char path[PATH_MAX]; /* for open_folder() */
	char stem[PATH_MAX]; /* the name without number and ending; with AT_FDCWD a path */
	bool exclusive; /* each file must be new, and is its owner's and group's alone; else it is replaced */
	/* A new file is begun before one has so many bytes, or after so much time; 0: neither. */
	uint64_t rotate_bytes;
	int64_t rotate_ns;
	uint32_t keep; /* of several: files beyond so many are removed, the oldest first; 0: all stay */
	/* Before a file is begun, the oldest of those in the folder with this prefix go (timeline/room.h). */
	const char *prefix; /* a literal; NULL: none go */
	uint64_t folder_bytes;
};

struct timeline_files {
	struct timeline_files_config config;
	int fd; /* of the file that is written; -1: none */
	uint32_t number; /* its, from 1 */
	bool begun; /* what was in it before is gone */
	uint64_t bytes; /* its, of whole blocks */
	int64_t begin_ns; /* its first block's */
};

/* For who has a configuration and opens no files. */
void timeline_folder_close(const struct timeline_files_config *config);
/* Takes config->folder, also on failure, and opens the first file: -errno. */
int timeline_files_open(struct timeline_files *files, const struct timeline_files_config *config);
void timeline_files_close(struct timeline_files *files);
/* -errno: the file is as before, but for what cannot be cut off: a pipe or a device. The next may succeed. */
int timeline_files_write(struct timeline_files *files, const struct timeline_block *block);
/* Ends the file that is written, also if nothing was written. */
int timeline_files_end(struct timeline_files *files);
/* ".pftrace" */
const char *timeline_ending(enum timeline_format format);
/* The format that a file's name asks for by its ending; *ret_stem: bytes before it. False: none. */
bool timeline_format_of(const char *path, enum timeline_format *ret_format, size_t *ret_stem);
/* The name of file @number. */
void timeline_files_name(const struct timeline_files_config *config, uint32_t number,
			 char ret_name[static PATH_MAX]);
