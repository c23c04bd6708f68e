// SPDX-License-Identifier: Apache-2.0
/* The folder of the agent's timelines, which only its user may write to. */
#pragma once

#include "agent/record/record.h"
#include "timeline/files.h"

/* Where it is, by the options. */
void record_folder(const struct options *options, char ret_path[static PATH_MAX]);
/* Whether such a file could be one of ours. */
bool record_is_file(const char *name);
/*
 * New files in the folder @path, with a name of the time and @what. All such files together are kept below
 * @bytes. Nothing is opened here: that is done by the thread that writes.
 */
void record_files(const char *path, uint64_t bytes, const char *what,
		  struct timeline_files_config *ret_files);
/* Cause and remedy of an error of these files; "" for 0. */
void record_explain(const char *path, int error, char ret_text[static RECORD_ERROR]);
