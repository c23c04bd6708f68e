// SPDX-License-Identifier: Apache-2.0
#include "agent/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/record/record_folder.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/places.h"
#include "pipeline/measured.h"
#include "pipeline/pipeline.h"
#include "pipeline/recorder.h"
#include "trace/engine.h"

enum { LAST_BYTES = 32 << 20 };
#define TURN_NS (50 * NSEC_PER_MSEC) /* of each drain of the ring */

struct record {
	/* constant */
	char folder[PATH_MAX];
	uint64_t folder_bytes;
	int64_t last_ns;

	/* shared */
	pthread_mutex_t lock; /* held only to copy what follows */
	struct record_request request;
	struct record_status status;
	bool traced;
	char unasked[RECORD_REASON]; /* why what is kept is to be written; "": it is not */

	/* of the tracing thread */
	struct trace_engine *engine; /* NULL: nothing is traced */
	struct pipeline *pipeline;
	struct trace_recorder *recording, *last; /* NULL: none */
	bool recorded; /* @recording has its sinks */
	int64_t until_ns; /* of the recording; 0: no limit */
	uint64_t bytes_max; /* the same */
	int64_t dumped_ns; /* when it was written unasked; 0: never */
	/* Of these, what is in the status's totals. */
	uint64_t counted[RECORD_TOTALS], counted_last[RECORD_TOTALS];
};

/* ---- any thread ---- */

bool record_is_possible(struct record *record)
{
	bool possible;

	pthread_mutex_lock(&record->lock);
	possible = record->traced;
	pthread_mutex_unlock(&record->lock);
	return possible;
}

static void set_traced(struct record *record, bool traced)
{
	pthread_mutex_lock(&record->lock);
	record->traced = traced;
	pthread_mutex_unlock(&record->lock);
}

uint64_t record_ask(struct record *record, const struct record_request *request)
{
	uint64_t number;

	pthread_mutex_lock(&record->lock);
	record->request = *request;
	number = ++record->status.asked;
	pthread_mutex_unlock(&record->lock);
	return number;
}

void record_status(struct record *record, struct record_status *ret_status)
{
	pthread_mutex_lock(&record->lock);
	*ret_status = record->status;
	pthread_mutex_unlock(&record->lock);
}

void record_write_last(struct record *record, const char *reason)
{
	pthread_mutex_lock(&record->lock);
	snprintf(record->unasked, sizeof(record->unasked), "%s", reason);
	pthread_mutex_unlock(&record->lock);
}

/* ---- sinks ---- */

static void remove_sinks(struct record *record, struct trace_recorder *recorder)
{
	struct trace_timeline *timeline = trace_recorder_timeline(recorder);

	event_sinks_remove(trace_engine_sinks(record->engine), trace_timeline_sink(timeline));
	span_sinks_remove(pipeline_span_sinks(record->pipeline), trace_timeline_spans(timeline));
	if (trace_timeline_works(timeline))
		work_sinks_remove(measured_sinks(pipeline_measured(record->pipeline)),
				  trace_timeline_works(timeline));
}

static int add_works(struct record *record, struct trace_timeline *timeline)
{
	struct work_sink *works = trace_timeline_works(timeline);

	if (!works)
		return 0;
	works->sink.turn_ns = TURN_NS;
	return work_sinks_add(measured_sinks(pipeline_measured(record->pipeline)), works);
}

static int add_sinks(struct record *record, struct trace_recorder *recorder)
{
	struct trace_timeline *timeline = trace_recorder_timeline(recorder);
	int r;

	trace_timeline_sink(timeline)->sink.turn_ns = TURN_NS;
	r = event_sinks_add(trace_engine_sinks(record->engine), trace_timeline_sink(timeline));
	if (r >= 0)
		r = span_sinks_add(pipeline_span_sinks(record->pipeline), trace_timeline_spans(timeline));
	if (r >= 0)
		r = add_works(record, timeline);
	if (r < 0)
		remove_sinks(record, recorder);
	return r < 0 ? r : 0;
}

/* Every call is sent as an event while somebody wants it. */
static void want_events(struct record *record)
{
	int r = trace_engine_every_call(record->engine, record->last || record->recorded);

	if (r < 0)
		log_warning("calls whose order does not matter may be missing in the timeline: %s",
			    strerror(-r));
}

/* What has been missing since before the timeline began. */
static int say_incomplete(const struct trace_process_sum *process, void *userdata)
{
	struct event_sink *sink = trace_timeline_sink(trace_recorder_timeline(userdata));

	if (!process->ended && process->incomplete)
		sink->incomplete(process->tgid, process->incarnation, process->incomplete,
				 sink->sink.userdata);
	return 0;
}

/* ---- totals ---- */

static void totals_of(const struct timeline_writer_status *files,
		      const struct trace_timeline_missing *missing, uint64_t ret_totals[static RECORD_TOTALS])
{
	ret_totals[RECORD_BYTES] = files->bytes;
	ret_totals[RECORD_EVENTS] = files->events;
	ret_totals[RECORD_FILES] = files->files;
	ret_totals[RECORD_FAILURES] = files->error != 0;
	ret_totals[RECORD_LOST] = missing->lost;
	ret_totals[RECORD_UNFIT] = missing->dropped;
	ret_totals[RECORD_UNWRITTEN] = missing->unwritten;
}

static void count_more(struct record *record, uint64_t counted[static RECORD_TOTALS],
		       const uint64_t now[static RECORD_TOTALS])
{
	pthread_mutex_lock(&record->lock);
	for (unsigned i = 0; i < RECORD_TOTALS; i++) {
		record->status.totals[i] += now[i] - counted[i];
		counted[i] = now[i];
	}
	pthread_mutex_unlock(&record->lock);
}

/* To be called before a recording or a dump takes the place of the one before. */
static void count_totals(struct record *record)
{
	struct timeline_writer_status files;
	struct trace_timeline_missing missing;
	uint64_t now[RECORD_TOTALS];

	if (record->recording) {
		trace_recorder_status(record->recording, &files);
		missing = trace_recorder_missing(record->recording);
		totals_of(&files, &missing, now);
		count_more(record, record->counted, now);
	}
	if (record->last) {
		trace_recorder_dump_status(record->last, &files);
		missing = trace_recorder_missing(record->last);
		missing.unwritten = files.lost;
		totals_of(&files, &missing, now);
		count_more(record, record->counted_last, now);
	}
}

/* The next dump's are counted from 0; what is missing in the timeline goes on. */
static void begin_dump_totals(struct record *record)
{
	static const enum record_total of_files[] = { RECORD_BYTES, RECORD_EVENTS, RECORD_FILES,
						      RECORD_FAILURES, RECORD_UNWRITTEN };

	for (unsigned i = 0; i < ARRAY_SIZE(of_files); i++)
		record->counted_last[of_files[i]] = 0;
}

/* ---- what is asked for ---- */

static void stop_recording(struct record *record)
{
	if (!record->recorded)
		return;
	remove_sinks(record, record->recording);
	trace_recorder_stop(record->recording);
	record->recorded = false;
	want_events(record);
	log_notice("the recording of a timeline has ended");
}

static int begin_files(struct record *record, struct trace_recorder *recorder, const char *what,
		       struct record_file *ret_file)
{
	struct timeline_files_config files;
	char name[PATH_MAX];
	int r;

	record_files(record->folder, record->folder_bytes, what, &files);
	if (recorder == record->recording)
		r = trace_recorder_start(recorder, &files, false);
	else
		r = trace_recorder_dump(recorder, &files, false, what);
	if (r < 0)
		return r;
	timeline_files_name(&files, 1, name);
	pthread_mutex_lock(&record->lock);
	*ret_file = (struct record_file){ 0 };
	snprintf(ret_file->path, sizeof(ret_file->path), "%.*s/%.*s", PATH_MAX / 2, record->folder,
		 PATH_MAX / 2 - 2, name);
	pthread_mutex_unlock(&record->lock);
	return 0;
}

static bool is_being_written(const struct record *record)
{
	struct timeline_writer_status status = { .done = true };

	if (record->recording)
		trace_recorder_status(record->recording, &status);
	return !status.done;
}

static int start_recording(struct record *record, const struct record_request *request,
			   char error[static RECORD_ERROR])
{
	const struct trace_recorder_config config = {
		.format = TIMELINE_PERFETTO,
		.pipeline = record->pipeline,
		.blas = pipeline_blas(record->pipeline),
		.stacks = pipeline_stacks(record->pipeline),
		.pid = request->pid,
	};
	int r;

	if (record->recorded) {
		snprintf(error, RECORD_ERROR, "a recording runs already: gpusonde record stop ends it");
		return -EBUSY;
	}
	/* Each that a hung disk keeps would take memory and a thread. */
	if (is_being_written(record)) {
		snprintf(error, RECORD_ERROR, "the recording before is still being written");
		return -EBUSY;
	}
	count_totals(record);
	memset(record->counted, 0, sizeof(record->counted));
	trace_recorder_free(TAKE_PTR(record->recording));
	r = trace_recorder_new(&config, &record->recording);
	if (r == 0)
		r = begin_files(record, record->recording, "record", &record->status.recording);
	if (r == 0)
		r = add_sinks(record, record->recording);
	if (r < 0) {
		trace_recorder_free(TAKE_PTR(record->recording));
		return r;
	}
	record->recorded = true;
	record->until_ns = request->duration_ns ? clock_mono_ns() + request->duration_ns : 0;
	record->bytes_max = request->bytes;
	trace_timeline_say(trace_recorder_timeline(record->recording),
			   "the recording begins: what runs already has no beginning in it");
	trace_engine_each(record->engine, say_incomplete, record->recording);
	want_events(record);
	log_notice("recording a timeline to %s", record->status.recording.path);
	return 0;
}

static int write_last(struct record *record, const char *reason, char error[static RECORD_ERROR])
{
	int r;

	if (!record->last) {
		snprintf(error, RECORD_ERROR,
			 "nothing is kept in memory: set timeline.last (60s) and restart the agent");
		return -ENODATA;
	}
	count_totals(record);
	r = begin_files(record, record->last, reason, &record->status.last);
	if (r == 0)
		begin_dump_totals(record);
	if (r == -EBUSY)
		snprintf(error, RECORD_ERROR, "what was kept before is still being written");
	if (r == 0)
		log_notice("writing the last of the timeline to %s: %s", record->status.last.path, reason);
	return r;
}

static int do_request(struct record *record, const struct record_request *request,
		      char error[static RECORD_ERROR])
{
	int r = 0;

	switch (request->action) {
	case RECORD_START:
		r = start_recording(record, request, error);
		break;
	case RECORD_STOP:
		if (!record->recorded)
			snprintf(error, RECORD_ERROR, "nothing is recorded");
		stop_recording(record);
		break;
	case RECORD_LAST:
		r = write_last(record, request->reason, error);
		break;
	}
	if (r < 0 && !error[0])
		snprintf(error, RECORD_ERROR, "%s", strerror(-r));
	return r;
}

static bool take_request(struct record *record, struct record_request *ret_request, uint64_t *ret_number)
{
	bool is;

	pthread_mutex_lock(&record->lock);
	is = record->status.done != record->status.asked;
	*ret_request = record->request;
	*ret_number = record->status.asked;
	pthread_mutex_unlock(&record->lock);
	return is;
}

static void serve_request(struct record *record)
{
	struct record_request request;
	char error[RECORD_ERROR] = "";
	uint64_t number;
	int r;

	if (!take_request(record, &request, &number))
		return;
	r = do_request(record, &request, error);
	pthread_mutex_lock(&record->lock);
	record->status.done = number;
	memcpy(record->status.error, error, sizeof(error));
	if (r == 0 && request.action == RECORD_START)
		record->status.request = request;
	pthread_mutex_unlock(&record->lock);
}

/* ---- once a second ---- */

static void on_xid(uint32_t code, void *userdata)
{
	char reason[RECORD_REASON];

	snprintf(reason, sizeof(reason), "XID %" PRIu32, code);
	record_write_last(userdata, reason);
}

/* What happens again and again is not written again and again. */
static void write_unasked(struct record *record)
{
	char error[RECORD_ERROR] = "", reason[RECORD_REASON];
	int64_t now = clock_mono_ns();

	pthread_mutex_lock(&record->lock);
	memcpy(reason, record->unasked, sizeof(reason));
	record->unasked[0] = '\0';
	pthread_mutex_unlock(&record->lock);
	if (!reason[0] || !record->last || (record->dumped_ns && now - record->dumped_ns < record->last_ns))
		return;
	if (write_last(record, reason, error) < 0)
		log_warning("the last of the timeline is not written for %s: %s", reason, error);
	else
		record->dumped_ns = now;
}

static void end_at_limits(struct record *record)
{
	struct timeline_writer_status status;

	if (!record->recorded)
		return;
	trace_recorder_status(record->recording, &status);
	if ((status.files == 0 && status.error) ||
	    (record->until_ns && clock_mono_ns() >= record->until_ns) ||
	    (record->bytes_max && status.bytes >= record->bytes_max))
		stop_recording(record);
}

static void put_file(struct record_file *file, const char *folder,
		     const struct timeline_writer_status *status)
{
	file->files = status->files;
	file->bytes = status->bytes;
	file->done = status->done;
	record_explain(folder, status->error, file->error);
}

static void publish(struct record *record)
{
	struct timeline_writer_status recording = { .done = true }, last = { .done = true };
	struct trace_timeline_missing missing = { 0 };

	count_totals(record);
	if (record->recording) {
		trace_recorder_status(record->recording, &recording);
		missing = trace_recorder_missing(record->recording);
	}
	if (record->last)
		trace_recorder_dump_status(record->last, &last);
	pthread_mutex_lock(&record->lock);
	record->status.on = record->recorded;
	put_file(&record->status.recording, record->folder, &recording);
	put_file(&record->status.last, record->folder, &last);
	record->status.lost = missing.lost;
	record->status.dropped = missing.dropped;
	record->status.cut = missing.cut;
	record->status.unwritten = missing.unwritten;
	record->status.kept_bytes = record->last ? trace_recorder_kept(record->last) : 0;
	pthread_mutex_unlock(&record->lock);
}

void record_tick(struct record *record, const struct snapshot *node)
{
	if (record->last)
		trace_recorder_collect(record->last, node);
	if (record->recorded)
		trace_recorder_collect(record->recording, node);
	write_unasked(record);
	end_at_limits(record);
	serve_request(record);
	publish(record);
}

/* ---- start and end ---- */

static int keep_last(struct record *record)
{
	const struct trace_recorder_config config = {
		.format = TIMELINE_PERFETTO,
		.pipeline = record->pipeline,
		.blas = pipeline_blas(record->pipeline),
		.stacks = pipeline_stacks(record->pipeline),
		.last_ns = record->last_ns,
		.last_bytes = LAST_BYTES,
		.xid = on_xid,
		.userdata = record,
	};
	int r = trace_recorder_new(&config, &record->last);

	if (r == 0)
		r = add_sinks(record, record->last);
	if (r < 0)
		trace_recorder_free(TAKE_PTR(record->last));
	return r;
}

int record_attach(struct record *record, struct trace_engine *engine, struct pipeline *pipeline)
{
	int r = 0;

	record->engine = engine;
	record->pipeline = pipeline;
	set_traced(record, true);
	if (record->last_ns > 0)
		r = keep_last(record);
	if (record->last)
		want_events(record);
	return r;
}

void record_detach(struct record *record)
{
	if (!record->engine)
		return;
	set_traced(record, false);
	stop_recording(record);
	if (record->last)
		remove_sinks(record, record->last);
	trace_recorder_free(TAKE_PTR(record->recording));
	trace_recorder_free(TAKE_PTR(record->last));
	record->engine = NULL;
}

int record_new(const struct options *options, struct record **ret_record)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record)
		return -ENOMEM;
	pthread_mutex_init(&record->lock, NULL);
	record_folder(options, record->folder);
	record->folder_bytes = (uint64_t)options_number(options, OPT_timeline_max_size);
	record->last_ns = record->status.last_ns = options_number(options, OPT_timeline_last);
	*ret_record = record;
	return 0;
}

void record_free(struct record *record)
{
	if (!record)
		return;
	pthread_mutex_destroy(&record->lock);
	free(record);
}
