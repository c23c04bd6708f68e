// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's timelines: recordings that somebody asks for (POST /control/record, gpusonde record), and what
 * it keeps in memory (timeline.last) and writes when something happens.
 *
 *   any thread ── record_ask() ──> newest request ── record_tick(), on the tracing thread ──> recorder.h
 *
 * Files are made in the folder timeline.directory alone, with names that nobody chooses. While nothing is
 * recorded and nothing is kept, no event comes here.
 */
#pragma once

#include <limits.h>

#include "base/macro.h"
#include "config/options.h"
#include "model/snapshot.h"

struct pipeline;
struct record;
struct trace_engine;

enum record_action { RECORD_START, RECORD_STOP, RECORD_LAST };

enum { RECORD_REASON = 64, RECORD_ERROR = 256 };

struct record_request {
	enum record_action action;
	/* of RECORD_START */
	int64_t duration_ns; /* 0: no limit */
	uint64_t bytes; /* 0: no limit but that of the folder */
	uint32_t pid; /* 0: all processes */
	/* of RECORD_LAST; what asked for it */
	char reason[RECORD_REASON];
};

struct record_file {
	char path[PATH_MAX]; /* of the first one; "": there was none yet */
	uint32_t files;
	uint64_t bytes;
	char error[RECORD_ERROR]; /* "": all that was to be written was */
	bool done;
};

/* Of all timelines that the agent has written. The last three are events. */
enum record_total {
	RECORD_BYTES,
	RECORD_EVENTS,
	RECORD_FILES,
	RECORD_FAILURES, /* recordings and dumps that are not all written */
	RECORD_LOST, /* struct trace_timeline_missing */
	RECORD_UNFIT, /* .dropped */
	RECORD_UNWRITTEN,
	RECORD_TOTALS
};

struct record_status {
	uint64_t asked, done; /* numbers of requests; @error is of the newest one that is done */
	char error[RECORD_ERROR];
	bool on;
	struct record_request request; /* of the recording */
	struct record_file recording, last;
	uint64_t lost, dropped, cut, unwritten; /* of the recording: struct trace_timeline_missing */
	int64_t last_ns; /* timeline.last */
	uint64_t kept_bytes;
	uint64_t totals[RECORD_TOTALS]; /* by enum record_total */
};

int record_new(const struct options *options, struct record **ret_record);
void record_free(struct record *record); /* after record_detach() */
DEFINE_CLEANUP(struct record *, record_free, record_freep)

/* ---- any thread ---- */

/* Tracing runs. */
bool record_is_possible(struct record *record);
/* The request's number. One that is not done yet is replaced. */
uint64_t record_ask(struct record *record, const struct record_request *request);
void record_status(struct record *record, struct record_status *ret_status);
/* Writes what is kept, if it is, with the next tick; not more often than it is kept for. */
void record_write_last(struct record *record, const char *reason);

/* ---- the tracing thread ---- */

/* Tracing has begun. -errno: what is to be kept is not. */
int record_attach(struct record *record, struct trace_engine *engine, struct pipeline *pipeline);
/* To be called once a second. @node: may be NULL. */
void record_tick(struct record *record, const struct snapshot *node);
/* Before the engine ends. */
void record_detach(struct record *record);
