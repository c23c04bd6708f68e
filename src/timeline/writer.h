// SPDX-License-Identifier: Apache-2.0
/*
 * Writes blocks to files on a thread of its own, so that a disk that is slow, full or hung keeps nobody from
 * tracing. What waits has a bound in bytes; what does not fit is refused, and the caller says so in the
 * timeline.
 *
 *   thread that traces ── timeline_writer_put() ──> queue ── thread ──> timeline/files.h
 *
 * The thread owns itself: who does not want to wait for it leaves it, with the file system that it hangs in.
 */
#pragma once

#include "timeline/files.h"

struct timeline_writer;

enum { TIMELINE_QUEUE_BYTES = 8 << 20 };

struct timeline_writer_status {
	uint64_t bytes, events; /* written, of all files */
	uint64_t lost; /* events that could not be written */
	uint32_t files;
	int error; /* -errno of what failed first; 0: nothing did */
	bool done; /* the thread has ended */
};

/*
 * Opens the first file before it returns where @now, else on the thread. Takes config->folder, also on
 * failure. -errno.
 */
int timeline_writer_new(const struct timeline_files_config *config, bool now,
			struct timeline_writer **ret_writer);
/* Takes a reference. -ENOBUFS: too much waits. */
int timeline_writer_put(struct timeline_writer *writer, struct timeline_block *block);
/* The same without a bound, for blocks that are in memory anyway. -ENOBUFS: no memory. */
int timeline_writer_put_kept(struct timeline_writer *writer, struct timeline_block *block);
/* The files end when all that was put is written. */
void timeline_writer_end(struct timeline_writer *writer);
/* After timeline_writer_end(). False: it is not done within this time. */
bool timeline_writer_wait(struct timeline_writer *writer, int64_t patience_ns);
void timeline_writer_status(struct timeline_writer *writer, struct timeline_writer_status *ret_status);
/* Ends it, and does not wait. */
void timeline_writer_free(struct timeline_writer *writer);
DEFINE_CLEANUP(struct timeline_writer *, timeline_writer_free, timeline_writer_freep)
