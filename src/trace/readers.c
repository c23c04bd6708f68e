// SPDX-License-Identifier: Apache-2.0
#include "trace/readers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "config.h"
#include "proc/trust.h"
#include "trace/reader_sites.h"

/*
 * Opening a file and reading /proc wait for nothing on a healthy machine. Reading code may wait for a busy
 * disk, of a file that no user can withhold.
 */
#define FILES_DEADLINE_NS NSEC_PER_SEC
#define SITES_DEADLINE_NS (5 * NSEC_PER_SEC)
#define AGAIN_NS (100 * NSEC_PER_MSEC)
#define IDLE_NS (10 * NSEC_PER_SEC)

enum { STUCK_MAX = 4 };

struct request {
	struct request *next;
	enum files_op op;
	int lost; /* -ETIMEDOUT, -EIO: a helper was, over it */
	int64_t again_ns; /* then */
	struct reader_file file;
	struct files_opened opened; /* once it is open */
	int fd;
	char path[];
};

/* The requests that wait for one helper; the first is being served if @busy. */
struct queue {
	struct readers *readers;
	struct helper *helper;
	struct request *first, *last;
	bool busy;
	uint64_t starts; /* of the helper that was set up */
	sd_event_source *again;
};

struct readers {
	struct readers_config config;
	struct readers_ops ops;
	void *userdata;
	char trust[sizeof(((struct files_question *)NULL)->text)];
	struct queue files, sites;
	struct sites_taken taken; /* of the answer that "sites" is sending */
	uint32_t requests_n;
	uint64_t refused;
	bool serving; /* in serve(), which loops */
};

static void queue_put(struct queue *queue, struct request *request)
{
	request->next = NULL;
	if (queue->last)
		queue->last->next = request;
	else
		queue->first = request;
	queue->last = request;
}

static struct request *queue_take(struct queue *queue)
{
	struct request *request = queue->first;

	queue->first = request->next;
	if (!queue->first)
		queue->last = NULL;
	queue->busy = false;
	return request;
}

static void request_free(struct request *request)
{
	closep(&request->fd);
	free(request);
}

/* ---- answers ---- */

/* Answers the request and frees it. */
static void finish(struct readers *readers, struct request *request, enum reader_outcome outcome, int error,
		   const struct site_list *sites)
{
	struct reader_result result = {
		.outcome = outcome,
		.error = error,
		.allowed = request->opened.allowed,
		.by_users = request->opened.by_users,
		.remote = request->opened.remote,
		.dev = request->opened.dev,
		.ino = request->opened.ino,
		.size = request->opened.size,
		.changed = { .tv_sec = request->opened.changed_s, .tv_nsec = request->opened.changed_ns },
		.fd = TAKE_FD(request->fd),
		.sites = sites,
	};

	readers->requests_n--;
	memcpy(result.type, request->opened.type, sizeof(result.type));
	result.type[sizeof(result.type) - 1] = '\0';
	if (request->op == FILES_LOOK)
		readers->ops.looked(&request->file, outcome, error, NULL, 0, readers->userdata);
	else
		readers->ops.opened(&request->file, &result, readers->userdata);
	closep(&result.fd);
	request_free(request);
}

static void finish_look(struct readers *readers, const void *message, size_t n)
{
	struct request *request = queue_take(&readers->files);
	const struct files_areas *areas = message;
	int error = n < sizeof(*areas) || areas->error > 0 ? -EBADMSG : areas->error;

	readers->requests_n--;
	readers->ops.looked(&request->file, READER_ANSWERED, error, error < 0 ? NULL : message,
			    error < 0 ? 0 : n, readers->userdata);
	request_free(request);
}

static void take_opened(struct readers *readers, const void *message, size_t n, int fd)
{
	struct request *request = queue_take(&readers->files);

	request->fd = fd;
	if (n != sizeof(request->opened)) {
		finish(readers, request, READER_ANSWERED, -EBADMSG, NULL);
		return;
	}
	memcpy(&request->opened, message, n);
	if (request->opened.error > 0)
		request->opened.error = -EBADMSG;
	if (request->opened.error < 0 || !request->opened.allowed || fd < 0)
		finish(readers, request, READER_ANSWERED, request->opened.error, NULL);
	else
		queue_put(&readers->sites, request);
}

/* ---- requests ---- */

static int send_file(struct readers *readers, const struct request *request)
{
	struct files_question question = {
		.op = (uint32_t)request->op,
		.pid = request->file.pid,
		.user = request->file.user,
		.roles = readers->config.roles,
		.start = request->file.start,
		.end = request->file.end,
		.dev = request->file.dev,
		.ino = request->file.ino,
	};
	struct helper_stats stats;
	int r = 0;

	snprintf(question.version, sizeof(question.version), "%s", GPUSONDE_VERSION);
	helper_stats(readers->files.helper, &stats);
	if (stats.pid == 0 || stats.starts != readers->files.starts) {
		struct files_question set_up = { .op = FILES_SET_UP };

		memcpy(set_up.version, question.version, sizeof(set_up.version));
		snprintf(set_up.text, sizeof(set_up.text), "%s", readers->trust);
		set_up.user_probes = *library_user();
		r = helper_send(readers->files.helper, &set_up, sizeof(set_up), -1);
		helper_stats(readers->files.helper, &stats);
		if (r == 0)
			readers->files.starts = stats.starts;
	}
	snprintf(question.text, sizeof(question.text), "%.*s", (int)request->file.path_n, request->path);
	if (r == 0)
		r = helper_send(readers->files.helper, &question, sizeof(question), -1);
	if (r == 0) {
		helper_mark(readers->files.helper, request->file.asker);
		helper_deadline(readers->files.helper, FILES_DEADLINE_NS);
	}
	return r;
}

static int send_sites(struct readers *readers, const struct request *request)
{
	struct sites_question question;
	int r;

	sites_taken_done(&readers->taken);
	sites_question_init(&question, readers->config.query, request->path, request->file.path_n);
	r = helper_send(readers->sites.helper, &question, sizeof(question), request->fd);
	if (r == 0) {
		helper_mark(readers->sites.helper, request->file.asker);
		helper_deadline(readers->sites.helper, SITES_DEADLINE_NS);
	}
	return r;
}

static void try_again_later(struct queue *queue)
{
	sd_event_source_set_time(queue->again, (uint64_t)((clock_mono_ns() + AGAIN_NS) / NSEC_PER_USEC));
	sd_event_source_set_enabled(queue->again, SD_EVENT_ONESHOT);
}

/* Those that have to wait let the others pass. False: all have to. */
static bool bring_forward(struct queue *queue)
{
	int64_t now_ns = clock_mono_ns();

	for (const struct request *last = queue->last;
	     queue->first->lost && now_ns < queue->first->again_ns;) {
		bool whole = queue->first == last;

		queue_put(queue, queue_take(queue));
		if (whole)
			return false;
	}
	return true;
}

/* READER_ANSWERED: it was sent, or has to wait (-EAGAIN); else it ends so. */
static enum reader_outcome send_request(struct readers *readers, const struct queue *queue,
					const struct request *request, int *ret_error)
{
	/* A helper that cannot even be ended is enough. */
	if ((request->lost || request->file.asker) &&
	    helper_is_stuck_for(queue->helper, request->file.asker)) {
		*ret_error = request->lost ? request->lost : -ETIMEDOUT;
		return request->lost ? READER_LOST : READER_BARRED;
	}
	*ret_error = queue == &readers->files ? send_file(readers, request) : send_sites(readers, request);
	return *ret_error < 0 && *ret_error != -EAGAIN ? READER_UNAVAILABLE : READER_ANSWERED;
}

static void serve_queue(struct readers *readers, struct queue *queue)
{
	while (queue->first && !queue->busy) {
		enum reader_outcome outcome = READER_ANSWERED;
		int error = -EAGAIN;

		if (bring_forward(queue))
			outcome = send_request(readers, queue, queue->first, &error);
		if (outcome != READER_ANSWERED) {
			finish(readers, queue_take(queue), outcome, error, NULL);
		} else if (error == -EAGAIN) {
			try_again_later(queue);
			return;
		} else {
			queue->busy = true;
		}
	}
}

/* An answer may add requests, to either queue: not from within itself. */
static void serve(struct readers *readers)
{
	if (readers->serving)
		return;
	readers->serving = true;
	serve_queue(readers, &readers->files);
	serve_queue(readers, &readers->sites);
	readers->serving = false;
}

/* ---- the helpers ---- */

static void on_files_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct readers *readers = userdata;
	_cleanup_close_ int file = fd;

	helper_deadline(readers->files.helper, 0);
	if (!readers->files.busy) {
		helper_reject(readers->files.helper);
		return;
	}
	if (readers->files.first->op == FILES_LOOK)
		finish_look(readers, message, n);
	else
		take_opened(readers, message, n, TAKE_FD(file));
	serve(readers);
}

static void on_sites_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct readers *readers = userdata;
	_cleanup_free_ struct site_list *list = NULL;
	_unused_ _cleanup_close_ int file = fd;
	struct request *request;
	int r;

	if (!readers->sites.busy) {
		helper_deadline(readers->sites.helper, 0);
		helper_reject(readers->sites.helper);
		return;
	}
	r = sites_answer_take(&readers->taken, message, n, &list);
	if (r == -EAGAIN)
		return;
	helper_deadline(readers->sites.helper, 0);
	request = queue_take(&readers->sites);
	/* After an answer that cannot be used, further parts of it may come. */
	if (request->opened.by_users || request->file.asker || r == -EBADMSG || r == -ENOMEM)
		helper_stop(readers->sites.helper);
	finish(readers, request, READER_ANSWERED, r, list);
	serve(readers);
}

static void lost(struct readers *readers, struct queue *queue, bool hung)
{
	struct request *request = queue->busy ? queue->first : NULL;

	if (request) {
		queue_take(queue);
		if (request->lost) {
			finish(readers, request, READER_LOST, hung ? -ETIMEDOUT : -EIO, NULL);
		} else {
			request->lost = hung ? -ETIMEDOUT : -EIO;
			/* By then it has ended, or is stuck. */
			request->again_ns = clock_mono_ns() + (hung ? HELPER_STUCK_NS + AGAIN_NS : AGAIN_NS);
			queue_put(queue, request);
		}
	}
	serve(readers);
}

static void on_files_lost(bool hung, void *userdata)
{
	struct readers *readers = userdata;

	lost(readers, &readers->files, hung);
}

static void on_sites_lost(bool hung, void *userdata)
{
	struct readers *readers = userdata;

	lost(readers, &readers->sites, hung);
}

static int on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct queue *queue = userdata;

	serve(queue->readers);
	return 0;
}

/* ---- for the caller ---- */

static int add_request(struct readers *readers, enum files_op op, const struct reader_file *file)
{
	struct request *request;

	if (readers->requests_n >= READER_REQUESTS_MAX) {
		readers->refused++;
		return -EAGAIN;
	}
	if (file->path_n >= sizeof(((struct files_question *)NULL)->text))
		return -ENAMETOOLONG;
	request = calloc(1, sizeof(*request) + file->path_n + 1);
	if (!request)
		return -ENOMEM;
	request->op = op;
	request->fd = -1;
	request->file = *file;
	if (file->path_n)
		memcpy(request->path, file->path, file->path_n);
	request->file.path = request->path;
	readers->requests_n++;
	queue_put(&readers->files, request);
	serve(readers);
	return 0;
}

int readers_look(struct readers *readers, pid_t pid, uint64_t asker)
{
	return add_request(readers, FILES_LOOK, &(struct reader_file){ .pid = pid, .asker = asker });
}

int readers_open(struct readers *readers, const struct reader_file *file)
{
	return add_request(readers, file->pid ? FILES_OPEN : FILES_EXPECT, file);
}

bool readers_stuck_for(const struct readers *readers, uint64_t asker)
{
	return helper_is_stuck_for(readers->files.helper, asker) ||
	       helper_is_stuck_for(readers->sites.helper, asker);
}

void readers_stats(const struct readers *readers, struct readers_stats *ret_stats)
{
	ret_stats->refused = readers->refused;
	helper_stats(readers->files.helper, &ret_stats->files);
	helper_stats(readers->sites.helper, &ret_stats->sites);
}

static int queue_init(sd_event *event, struct readers *readers, struct queue *queue, const char *role,
		      uint64_t capabilities, const struct helper_ops *ops)
{
	const struct helper_config config = {
		.program = readers->config.program,
		.role = role,
		.capabilities = capabilities,
		.max_stuck = STUCK_MAX,
		.idle_ns = IDLE_NS,
	};
	int r = helper_new(event, &config, ops, readers, &queue->helper);

	queue->readers = readers;
	if (r >= 0)
		r = sd_event_add_time(event, &queue->again, CLOCK_MONOTONIC, 0, 1000, on_again, queue);
	return r < 0 ? r : sd_event_source_set_enabled(queue->again, SD_EVENT_OFF);
}

int readers_new(sd_event *event, const struct readers_config *config, const struct readers_ops *ops,
		void *userdata, struct readers **ret_readers)
{
	static const struct helper_ops files_ops = { on_files_answer, on_files_lost },
				       sites_ops = { on_sites_answer, on_sites_lost };
	_cleanup_(readers_freep) struct readers *readers = calloc(1, sizeof(*readers));
	_cleanup_(trust_freep) struct trust *trust = NULL;
	int r;

	if (!readers)
		return -ENOMEM;
	readers->config = *config;
	readers->ops = *ops;
	readers->userdata = userdata;
	r = trust_new(config->trust, &trust);
	if (r == 0)
		r = trust_write(trust, readers->trust, sizeof(readers->trust));
	if (r < 0)
		return r;
	r = queue_init(event, readers, &readers->files, "files", READER_FILES_CAPABILITIES, &files_ops);
	if (r >= 0)
		r = queue_init(event, readers, &readers->sites, "sites", 0, &sites_ops);
	if (r < 0)
		return r;
	*ret_readers = TAKE_PTR(readers);
	return 0;
}

static void queue_done(struct queue *queue)
{
	helper_free(queue->helper);
	sd_event_source_disable_unref(queue->again);
	while (queue->first)
		request_free(queue_take(queue));
}

void readers_free(struct readers *readers)
{
	if (!readers)
		return;
	queue_done(&readers->files);
	queue_done(&readers->sites);
	sites_taken_done(&readers->taken);
	free(readers);
}
