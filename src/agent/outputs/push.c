// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/outputs/push_events.h"
#include "agent/outputs/push_key.h"
#include "agent/outputs/push_rows.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "view/view.h"

#define ASK_NS (3900 * NSEC_PER_MSEC) /* how it goes: with every fourth tick of a second */
#define ANSWER_NS (20 * NSEC_PER_SEC) /* disks are slow at times */
#define RETRY_NS (2 * NSEC_PER_SEC) /* after its process has failed; then twice as long each time */
#define RETRY_LATEST_NS (60 * NSEC_PER_SEC)
enum {
	MAX_STUCK = 2,
	FAREWELL_MS = 4000, /* what push/serve.c takes for it, and more */
};

struct push {
	enum push_kind_id kind;
	struct model *model;
	struct helper *helper;
	struct push_config config;
	struct push_events *events; /* PUSH_OTLP_LOGS; else NULL */
	bool asked;
	bool handed_over; /* with the question that is not answered yet */
	uint32_t handed_events; /* that were, of PUSH_OTLP_LOGS */
	bool leaves; /* the last question was sent */
	uint64_t pushed_seq; /* of the snapshot */
	int64_t asked_ns, pushed_ns; /* boot clock; 0: never */
	int64_t after_ns; /* the next question is due so long after the one before */
	unsigned failures; /* of its process, in a row */
	char key_error[300]; /* why there is no key; "" */
	char error[1000]; /* of it all; "" */
};

/* ---- how things stand ---- */

static void log_push_error(const struct push *p, const char *error)
{
	if (STRV_EQ(error, p->error))
		return;
	if (*error)
		log_warning("pushing to the server (%s): %s", push_kind_names[p->kind], error);
	else
		log_notice("pushing to the server (%s) works again", push_kind_names[p->kind]);
}

/* The row of this destination in a family; @first: the row of the first kind. */
static enum agent_metric destination_row(const struct push *p, enum agent_metric first)
{
	return first + p->kind;
}

static void set_push_state(struct push *p, enum push_outcome outcome, const char *error)
{
	char text[sizeof(p->error)];

	snprintf(text, sizeof(text), "%s%s%s", p->key_error, *p->key_error && *error ? "; " : "", error);
	log_push_error(p, text);
	snprintf(p->error, sizeof(p->error), "%s", text);
	if (outcome != PUSH_BEGINS || *text)
		model_agent_set(p->model, destination_row(p, AGENT_PUSH_UP_ROWS),
				outcome == PUSH_OK && !*p->key_error);
}

const char *push_error(const struct push *p)
{
	return p->error;
}

static void retry_push_later(struct push *p)
{
	p->after_ns = MIN(RETRY_NS << MIN(p->failures, 6u), RETRY_LATEST_NS);
	p->failures++;
}

/* ---- answers ---- */

static void add_push_figure(struct push *p, enum agent_metric first, uint64_t n)
{
	model_agent_add(p->model, destination_row(p, first), (double)n);
}

static void take_push_figures(struct push *p, const struct push_end *end)
{
	add_push_figure(p, AGENT_PUSH_SENT_ROWS, end->sent);
	add_push_figure(p, AGENT_PUSH_QUEUED_ROWS, end->queued);
	add_push_figure(p, AGENT_PUSH_REFUSED_ROWS, end->refused);
	add_push_figure(p, AGENT_PUSH_REFUSED_SAMPLES_ROWS, end->refused_samples);
	for (unsigned i = NET_OK + 1; i < NET_FAILURES; i++)
		add_push_figure(p, AGENT_PUSH_FAILED_CONNECT_ROWS + (i - NET_FAILED_CONNECT) * PUSH_KINDS,
				end->failures[i]);
	for (unsigned i = 0; i < PUSH_LOSSES; i++)
		add_push_figure(p, AGENT_PUSH_LOST_FULL_ROWS + i * PUSH_KINDS, end->lost[i]);
	model_agent_set(p->model, destination_row(p, AGENT_PUSH_QUEUE_BYTES_ROWS), (double)end->bytes);
	model_agent_set(p->model, destination_row(p, AGENT_PUSH_QUEUE_BATCHES_ROWS), end->batches);
}

/* What was handed over last may have been kept, which nobody tells any more. */
static void lose_page(struct push *p)
{
	if (p->handed_over)
		add_push_figure(p, AGENT_PUSH_LOST_UNKEPT_ROWS, 1);
	model_agent_add(p->model, AGENT_DROPPED_PUSH_EVENTS, p->handed_events);
	p->handed_over = false;
	p->handed_events = 0;
}

/* Events that no question can take any more. */
static void lose_waiting(struct push *p, const char *why)
{
	uint32_t n = p->events ? push_events_waiting(p->events) : 0;

	if (n == 0)
		return;
	log_warning("%u events are not told to the server (%s): %s", n, push_kind_names[p->kind], why);
	model_agent_add(p->model, AGENT_DROPPED_PUSH_EVENTS, n);
	push_events_forget(p->events);
}

static void on_push_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct push *p = userdata;
	struct push_end end;

	closep(&fd);
	if (!p->asked || n != sizeof(end)) {
		helper_reject(p->helper);
		return;
	}
	memcpy(&end, message, sizeof(end));
	if (end.outcome >= PUSH_OUTCOMES) {
		helper_reject(p->helper);
		return;
	}
	p->asked = p->handed_over = false;
	p->handed_events = 0;
	p->failures = 0;
	p->after_ns = ASK_NS;
	helper_deadline(p->helper, 0);
	end.error[sizeof(end.error) - 1] = '\0';
	utf8_sanitize(end.error);
	take_push_figures(p, &end);
	set_push_state(p, end.outcome, end.error);
}

static void on_push_lost(bool hung, void *userdata)
{
	struct push *p = userdata;

	p->asked = false;
	lose_page(p);
	retry_push_later(p);
	set_push_state(p, PUSH_FAILS,
		       hung ? "the process that pushes, gpusonde-push, does not answer" :
			      "the process that pushes, gpusonde-push, ended");
}

/* ---- what is pushed ---- */

/* A file in memory, and its size; -ENODATA: there is nothing now. */
static int make_page(struct push *p, const struct snapshot *snapshot, uint32_t *ret_bytes)
{
	if (p->events)
		return push_events_write(p->events, ret_bytes);
	if (p->kind == PUSH_ROWS)
		return push_rows(p->model, snapshot, ret_bytes);
	return view_samples(snapshot, p->config.families, ret_bytes);
}

/* ---- questions ---- */

/* @fd has @bytes to push; -1: nothing. */
static void send_question(struct push *p, int64_t now_ns, uint32_t bytes, int fd, bool ends)
{
	struct push_question *question = calloc(1, sizeof(*question));
	int r = -ENOMEM;

	if (question) {
		snprintf(question->version, sizeof(question->version), "%s", GPUSONDE_VERSION);
		question->settings = p->config.settings;
		question->bytes = bytes;
		question->ends = ends;
		push_key_read(&p->config.key, question, p->key_error, sizeof(p->key_error));
		r = helper_send(p->helper, question, sizeof(*question), fd);
		explicit_bzero(question, sizeof(*question));
		free(question);
	}
	if (r == -EAGAIN)
		return; /* with the next tick */
	p->asked_ns = now_ns;
	/* Events stay here until they are handed over. */
	p->handed_over = fd >= 0 && (r == 0 || !p->events);
	p->handed_events = p->handed_over && p->events ? push_events_waiting(p->events) : 0;
	if (r < 0) {
		lose_page(p);
		set_push_state(p, PUSH_FAILS,
			       r == -EBUSY ? "too many processes that push hang" : strerror(-r));
		retry_push_later(p);
		return;
	}
	p->asked = true;
	helper_deadline(p->helper, ANSWER_NS);
}

static bool is_after(int64_t then_ns, int64_t now_ns, int64_t period_ns)
{
	return then_ns == 0 || now_ns - then_ns >= period_ns;
}

static void push_snapshot(struct push *p, const struct snapshot *snapshot, int64_t now_ns)
{
	_cleanup_close_ int fd = -1;
	uint32_t bytes = 0;

	fd = make_page(p, snapshot, &bytes);
	if (fd < 0 && fd != -ENODATA) {
		p->pushed_ns = now_ns;
		if (!p->events) /* which wait on */
			add_push_figure(p, AGENT_PUSH_LOST_UNKEPT_ROWS, 1);
		set_push_state(p, PUSH_FAILS, strerror(-fd));
		return;
	}
	send_question(p, now_ns, fd < 0 ? 0 : bytes, fd < 0 ? -1 : fd, false);
	if (fd >= 0 && p->asked) {
		p->pushed_ns = now_ns;
		p->pushed_seq = snapshot->seq;
		if (p->events)
			push_events_forget(p->events);
	}
}

/* Rows are taken to be of now; samples have their time, once each, and say that they are old. */
static bool is_unsent(const struct push *p, const struct snapshot *snapshot)
{
	if (p->events)
		return push_events_waiting(p->events) > 0;
	return p->kind == PUSH_ROWS ? snapshot->fresh : snapshot->seq != p->pushed_seq;
}

void push_tick(struct push *p, const struct snapshot *snapshot)
{
	int64_t now_ns = clock_boot_ns();

	if (p->events)
		push_events_take(p->events, snapshot, p->model, false);
	if (p->asked)
		return;
	if (p->failures == 0 && is_unsent(p, snapshot) &&
	    is_after(p->pushed_ns, now_ns, p->config.interval_ns))
		push_snapshot(p, snapshot, now_ns);
	/* Also before anything was read: there may be what an agent before this one has left. */
	else if (is_after(p->asked_ns, now_ns, p->after_ns))
		send_question(p, now_ns, 0, -1, false);
}

/* ---- life ---- */

int push_new(sd_event *event, struct model *model, const struct push_config *config, struct push **ret_push)
{
	static const struct helper_ops ops = { on_push_answer, on_push_lost };
	const struct helper_config helper = {
		.program = config->program ? config->program : "gpusonde-push",
		.role = "push",
		.max_stuck = MAX_STUCK,
	};
	_cleanup_(push_freep) struct push *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->model = model;
	p->kind = config->settings.kind;
	p->config = *config;
	p->config.program = NULL;
	p->after_ns = ASK_NS;
	if (p->kind == PUSH_OTLP_LOGS) {
		r = push_events_new(config->settings.folder[0] != '\0', &p->events);
		if (r < 0)
			return r;
	}
	r = helper_new(event, &helper, &ops, p, &p->helper);
	if (r < 0)
		return r;
	take_push_figures(p, &(struct push_end){ .outcome = PUSH_BEGINS });
	*ret_push = TAKE_PTR(p);
	return 0;
}

static void send_farewell(struct push *p)
{
	_cleanup_close_ int fd = -1;
	uint32_t bytes = 0;

	if (p->events)
		fd = push_events_write(p->events, &bytes);
	if (fd < 0 && fd != -ENODATA && p->events)
		lose_waiting(p, strerror(-fd));
	send_question(p, clock_boot_ns(), fd < 0 ? 0 : bytes, fd < 0 ? -1 : fd, true);
	if (fd >= 0 && p->asked)
		push_events_forget(p->events);
	p->leaves = true;
}

/* One that is busy, or has not begun, is not asked for anything. */
void push_leave(struct push *p, const struct snapshot *snapshot)
{
	if (!p || !p->helper || p->leaves)
		return;
	if (p->events && snapshot)
		push_events_take(p->events, snapshot, p->model, true);
	if (!p->asked && push_pid(p) != 0)
		send_farewell(p);
	lose_waiting(p, "the agent ends, and the process that pushes does not take them");
}

static void await_leave(struct push *p)
{
	int64_t waited_ms = (clock_boot_ns() - p->asked_ns) / NSEC_PER_MSEC;

	if (p->leaves && p->asked && waited_ms < FAREWELL_MS)
		helper_wait(p->helper, (int)(FAREWELL_MS - waited_ms));
}

void push_free(struct push *p)
{
	if (!p)
		return;
	push_leave(p, NULL);
	await_leave(p);
	helper_free(p->helper);
	push_events_free(p->events);
	free(p);
}

pid_t push_pid(const struct push *p)
{
	struct helper_stats stats;

	if (!p)
		return 0;
	helper_stats(p->helper, &stats);
	return stats.pid;
}
