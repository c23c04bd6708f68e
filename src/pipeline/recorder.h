// SPDX-License-Identifier: Apache-2.0
/*
 * Records a timeline (timeline.h) to files, keeps its newest part in memory, or both.
 *
 *   trace_timeline ── block ─┬─> timeline/writer.h: files, from start to stop
 *                            └─> timeline/recent.h: the last while in memory ── dump ──> timeline/writer.h
 *
 * One thread owns it: the one that drains the ring. It waits for no file. What files had no time or room for
 * is counted, and marked in the timeline.
 */
#pragma once

#include "pipeline/timeline_merge.h"
#include "timeline/writer.h"

struct trace_recorder;

struct trace_recorder_config {
	enum timeline_format format;
	struct pipeline *pipeline;
	const struct blas *blas; /* NULL: not known */
	const struct stack_sums *stacks; /* NULL: not recorded */
	uint32_t pid; /* of this process alone; 0: of all */
	/* What is kept in memory: of so much time, at most so many bytes; 0: nothing. */
	int64_t last_ns;
	size_t last_bytes;
	/* A GPU has had an error; may be NULL. Anything but trace_recorder_free() may be called from it. */
	void (*xid)(uint32_t code, void *userdata);
	void *userdata;
};

/* -ENOMEM. */
int trace_recorder_new(const struct trace_recorder_config *config, struct trace_recorder **ret_recorder);
/* Ends what is written, and does not wait for it. */
void trace_recorder_free(struct trace_recorder *recorder);
DEFINE_CLEANUP(struct trace_recorder *, trace_recorder_free, trace_recorder_freep)

/* For sinks; what comes is taken whether files are written or not. */
struct trace_timeline *trace_recorder_timeline(struct trace_recorder *recorder);
/* To be called once a second. @node: may be NULL. */
void trace_recorder_collect(struct trace_recorder *recorder, const struct snapshot *node);

/* From now on what comes is written to these files, opened @now or on their thread. -EBUSY; -errno. */
int trace_recorder_start(struct trace_recorder *recorder, const struct timeline_files_config *files,
			 bool now);
/* Writes the rest. The status is the files' until the next start. */
void trace_recorder_stop(struct trace_recorder *recorder);
/*
 * Adds what a program wrote (timeline_merge.h) to what is written. What waits for the disk has no bound
 * meanwhile but that of the file.
 */
int trace_recorder_merge(struct trace_recorder *recorder, int fd, struct trace_timeline_merged *ret_merged);
bool trace_recorder_is_on(const struct trace_recorder *recorder);
/*
 * Writes what is in memory, with a mark of its @reason. -EBUSY: the dump before is not written yet; -ENODATA:
 * nothing is kept; -errno.
 */
int trace_recorder_dump(struct trace_recorder *recorder, const struct timeline_files_config *files, bool now,
			const char *reason);

/* Of files, begun by start and by dump. Zeroes: none were. */
void trace_recorder_status(const struct trace_recorder *recorder, struct timeline_writer_status *ret_status);
void trace_recorder_dump_status(const struct trace_recorder *recorder,
				struct timeline_writer_status *ret_status);
/* Waits for both; false: they are not done within this time. */
bool trace_recorder_wait(struct trace_recorder *recorder, int64_t patience_ns);
/* Bytes in memory. */
size_t trace_recorder_kept(const struct trace_recorder *recorder);
struct trace_timeline_missing trace_recorder_missing(struct trace_recorder *recorder);
