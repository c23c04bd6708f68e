// SPDX-License-Identifier: Apache-2.0
/*
 * The owner's side of the two helpers that read for the engine: "files" opens what processes map
 * (trace/reader_files.h), "sites" reads the code of what was opened (trace/reader_sites.h). Requests are
 * served in order; each is answered by exactly one call of an op, from the event loop, whatever the helpers
 * do. What a helper was lost over is tried once more in a new one, since a busy machine is slow, too. After a
 * file that users can write to "sites" is a new process, which that file has no hold of.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "helper/helper.h"
#include "trace/reader_files.h"
#include "trace/site_list.h"

enum { READER_REQUESTS_MAX = 512 }; /* queued; more are refused with -EAGAIN */

struct readers;

struct readers_config {
	const char *program; /* NULL: gpusonde-reader */
	const char *trust; /* trace.trust, checked */
	unsigned roles; /* what FILES_LOOK looks for */
	const struct site_query *query; /* must outlive the readers */
};

/* A file to open: mapped by a process, or expected (@pid 0). */
struct reader_file {
	pid_t pid;
	uint32_t user; /* of the process */
	uint64_t asker; /* who answers for the process (trace/users.h); 0: root */
	uint64_t start, end, dev, ino;
	const char *path;
	size_t path_n;
	void *data; /* the caller's */
};

enum reader_outcome {
	READER_ANSWERED,
	READER_LOST, /* the helper hung or crashed over it, twice or for ever */
	READER_BARRED, /* a helper still hangs over something else of the same asker */
	READER_UNAVAILABLE, /* no helper can be had; says nothing of what was asked for */
};

struct reader_result {
	enum reader_outcome outcome;
	int error; /* 0: open and listed, if @allowed; else the file's, or of what is lost or unavailable */
	bool allowed, by_users, remote; /* struct files_opened */
	uint64_t dev, ino, size;
	struct timespec changed;
	char type[64];
	int fd; /* -1 if not open; the callee may take it */
	const struct site_list *sites; /* valid during the call */
};

struct readers_ops {
	/* @message, @n: struct files_areas; NULL where @error is not 0. Of @file only who is looked at. */
	void (*looked)(const struct reader_file *file, enum reader_outcome outcome, int error,
		       const void *message, size_t n, void *userdata);
	/* @file->path is valid during the call. */
	void (*opened)(const struct reader_file *file, struct reader_result *result, void *userdata);
};

struct readers_stats {
	uint64_t refused; /* requests: the queue was full */
	struct helper_stats files, sites;
};

int readers_new(sd_event *event, const struct readers_config *config, const struct readers_ops *ops,
		void *userdata, struct readers **ret_readers);
/* Requests that wait are not answered. */
void readers_free(struct readers *readers);
DEFINE_CLEANUP(struct readers *, readers_free, readers_freep)
/* -EAGAIN: the queue is full. */
int readers_look(struct readers *readers, pid_t pid, uint64_t asker);
int readers_open(struct readers *readers, const struct reader_file *file);
/* Whether a helper that was lost over something of theirs has not ended. */
bool readers_stuck_for(const struct readers *readers, uint64_t asker);
void readers_stats(const struct readers *readers, struct readers_stats *ret_stats);
