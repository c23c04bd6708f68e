// SPDX-License-Identifier: Apache-2.0
/*
 * /metrics as a file for node_exporter (textfile.path), by a thread of its own, since a disk may hang: then
 * the file ages, and nobody waits. docs/textfile.md.
 */
#pragma once

#include "base/macro.h"
#include "config/options.h"
#include "model/model.h"

struct textfile;

struct textfile_source {
	/* The newest snapshot, from any thread; the caller's reference. */
	struct snapshot *(*newest)(void *userdata);
	void *userdata;
};

/*
 * 0 and NULL if no file is wanted. -EINVAL: textfile.path is not one; -errno: no thread. @source must remain
 * valid until textfile_free(), the options' texts, too.
 */
int textfile_new(const struct options *options, const struct textfile_source *source,
		 struct textfile **ret_textfile);
/* Removes the file, unless its disk hangs: then neither waits. */
void textfile_free(struct textfile *textfile);
DEFINE_CLEANUP(struct textfile *, textfile_free, textfile_freep)

/* Counts what was written, and logs what has changed. Of the thread of the event loop, as the next. */
void textfile_tick(struct textfile *textfile, struct model *model);
/* Why there is no file; "": there is one, or will be. Borrowed until the next tick. */
const char *textfile_error(const struct textfile *textfile);
