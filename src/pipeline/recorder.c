// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "timeline/recent.h"

struct trace_recorder {
	struct trace_timeline *timeline;
	struct timeline_recent *recent; /* NULL: nothing is kept */
	struct timeline_writer *writer; /* NULL: none was started */
	struct timeline_writer *dump; /* the newest; NULL: none was written */
	bool on; /* the writer gets blocks */
	bool patient; /* as many as there are */
	/* Events that files had no room for: in all, of this writer so far, and what no mark says yet. */
	uint64_t unwritten, unwritten_here, unsaid;
	uint64_t recent_lost; /* as of the last collection */
};

static void not_written(struct trace_recorder *recorder, uint64_t events)
{
	recorder->unwritten += events;
	recorder->unsaid += events;
}

static int take_block(struct timeline_block *block, void *userdata)
{
	struct trace_recorder *recorder = userdata;

	int r = !recorder->on     ? 0 :
		recorder->patient ? timeline_writer_put_kept(recorder->writer, block) :
				    timeline_writer_put(recorder->writer, block);

	if (r < 0)
		not_written(recorder, block->events);
	if (recorder->recent)
		timeline_recent_add(recorder->recent, block);
	return 0;
}

struct trace_timeline *trace_recorder_timeline(struct trace_recorder *recorder)
{
	return recorder->timeline;
}

static void take_losses(struct trace_recorder *recorder)
{
	struct timeline_writer_status status;

	if (!recorder->writer)
		return;
	timeline_writer_status(recorder->writer, &status);
	not_written(recorder, status.lost - recorder->unwritten_here);
	recorder->unwritten_here = status.lost;
}

static void say_unwritten(struct trace_recorder *recorder)
{
	char text[96];

	if (recorder->unsaid == 0)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " events not written: the disk is full or too slow",
		 recorder->unsaid);
	trace_timeline_say(recorder->timeline, text);
	recorder->unsaid = 0;
}

void trace_recorder_collect(struct trace_recorder *recorder, const struct snapshot *node)
{
	trace_timeline_node(recorder->timeline, node);
	take_losses(recorder);
	say_unwritten(recorder);
	trace_timeline_collect(recorder->timeline);
}

int trace_recorder_start(struct trace_recorder *recorder, const struct timeline_files_config *files, bool now)
{
	struct timeline_writer *writer;
	int r;

	if (recorder->on) {
		timeline_folder_close(files);
		return -EBUSY;
	}
	r = timeline_writer_new(files, now, &writer);
	if (r < 0)
		return r;
	trace_timeline_begin(recorder->timeline);
	timeline_writer_free(recorder->writer);
	recorder->writer = writer;
	recorder->unwritten_here = recorder->unsaid = 0;
	recorder->on = true;
	return 0;
}

void trace_recorder_stop(struct trace_recorder *recorder)
{
	if (!recorder->on)
		return;
	take_losses(recorder);
	say_unwritten(recorder);
	trace_timeline_finish(recorder->timeline);
	recorder->on = false;
	timeline_writer_end(recorder->writer);
}

int trace_recorder_merge(struct trace_recorder *recorder, int fd, struct trace_timeline_merged *ret_merged)
{
	int r;

	recorder->patient = true;
	r = trace_timeline_merge(recorder->timeline, fd, ret_merged);
	trace_timeline_collect(recorder->timeline);
	recorder->patient = false;
	return r;
}

bool trace_recorder_is_on(const struct trace_recorder *recorder)
{
	return recorder->on;
}

/* Marks are in the timeline, and so in what is written, too. */
static void say_dump(struct trace_recorder *recorder, const char *reason)
{
	uint64_t lost = timeline_recent_lost(recorder->recent);
	char text[128];

	if (lost > recorder->recent_lost) {
		snprintf(text, sizeof(text), "no room for all of the time: %" PRIu64 " older events left out",
			 lost - recorder->recent_lost);
		trace_timeline_say(recorder->timeline, text);
		recorder->recent_lost = lost;
	}
	snprintf(text, sizeof(text), "written because of %s", reason);
	trace_timeline_say(recorder->timeline, text);
	trace_timeline_collect(recorder->timeline);
}

static bool is_writing(const struct timeline_writer *writer)
{
	struct timeline_writer_status status = { .done = true };

	if (writer)
		timeline_writer_status((struct timeline_writer *)writer, &status);
	return !status.done;
}

int trace_recorder_dump(struct trace_recorder *recorder, const struct timeline_files_config *files, bool now,
			const char *reason)
{
	struct timeline_writer *writer;
	int r = !recorder->recent ? -ENODATA : is_writing(recorder->dump) ? -EBUSY : 0;

	if (r < 0) {
		timeline_folder_close(files);
		return r;
	}
	r = timeline_writer_new(files, now, &writer);
	if (r < 0)
		return r;
	say_dump(recorder, reason);
	for (uint32_t i = 0; r == 0 && timeline_recent_at(recorder->recent, i); i++)
		r = timeline_writer_put_kept(writer, timeline_recent_at(recorder->recent, i));
	timeline_writer_end(writer);
	timeline_writer_free(recorder->dump);
	recorder->dump = writer;
	return r;
}

static void status_of(struct timeline_writer *writer, struct timeline_writer_status *ret_status)
{
	*ret_status = (struct timeline_writer_status){ .done = true };
	if (writer)
		timeline_writer_status(writer, ret_status);
}

void trace_recorder_status(const struct trace_recorder *recorder, struct timeline_writer_status *ret_status)
{
	status_of(recorder->writer, ret_status);
}

void trace_recorder_dump_status(const struct trace_recorder *recorder,
				struct timeline_writer_status *ret_status)
{
	status_of(recorder->dump, ret_status);
}

bool trace_recorder_wait(struct trace_recorder *recorder, int64_t patience_ns)
{
	return (!recorder->writer || timeline_writer_wait(recorder->writer, patience_ns)) &&
	       (!recorder->dump || timeline_writer_wait(recorder->dump, patience_ns));
}

size_t trace_recorder_kept(const struct trace_recorder *recorder)
{
	return recorder->recent ? timeline_recent_bytes(recorder->recent) : 0;
}

struct trace_timeline_missing trace_recorder_missing(struct trace_recorder *recorder)
{
	struct trace_timeline_missing missing = trace_timeline_missing(recorder->timeline);

	take_losses(recorder);
	missing.unwritten = recorder->unwritten;
	return missing;
}

int trace_recorder_new(const struct trace_recorder_config *config, struct trace_recorder **ret_recorder)
{
	_cleanup_(trace_recorder_freep) struct trace_recorder *recorder = calloc(1, sizeof(*recorder));
	const struct trace_timeline_config timeline = {
		.format = config->format,
		.pipeline = config->pipeline,
		.blas = config->blas,
		.stacks = config->stacks,
		.pid = config->pid,
		.xid = config->xid,
		.xid_userdata = config->userdata,
		.ops = { .write = take_block },
		.userdata = recorder,
	};
	int r;

	if (!recorder)
		return -ENOMEM;
	r = trace_timeline_new(&timeline, &recorder->timeline);
	if (r == 0 && config->last_ns > 0)
		r = timeline_recent_new(config->last_ns, config->last_bytes, &recorder->recent);
	if (r < 0)
		return r;
	*ret_recorder = TAKE_PTR(recorder);
	return 0;
}

void trace_recorder_free(struct trace_recorder *recorder)
{
	if (!recorder)
		return;
	trace_recorder_stop(recorder);
	trace_timeline_free(recorder->timeline);
	timeline_recent_free(recorder->recent);
	timeline_writer_free(recorder->writer);
	timeline_writer_free(recorder->dump);
	free(recorder);
}
