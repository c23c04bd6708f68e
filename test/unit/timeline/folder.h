// SPDX-License-Identifier: Apache-2.0
/* A folder for a test's files, and blocks for them. */
#pragma once

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "timeline/block.h"

static char folder_path[64];
static int folder = -1;

static int folder_begin(void **state)
{
	(void)state;
	snprintf(folder_path, sizeof(folder_path), "/tmp/gpusonde-timeline-XXXXXX");
	assert_non_null(mkdtemp(folder_path));
	folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(folder >= 0);
	return 0;
}

static int folder_end(void **state)
{
	DIR *dir = fdopendir(folder);

	(void)state;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	assert_int_equal(rmdir(folder_path), 0);
	return 0;
}

/* "" where there is none. */
static inline const char *content(const char *name)
{
	static char text[4096];

	if (read_file_at(folder, name, text, sizeof(text), NULL) < 0)
		text[0] = '\0';
	return text;
}

static inline struct timeline_block *block_of(const char *text, int64_t end_ns)
{
	struct timeline_block *block = timeline_block_new(text, strlen(text));

	assert_non_null(block);
	block->events = 10;
	block->begin_ns = block->end_ns = end_ns;
	return block;
}
