// SPDX-License-Identifier: Apache-2.0
#include "agent/history.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/history_answer.h"
#include "base/clock.h"
#include "base/thread.h"

#define FRESH_NS (5 * NSEC_PER_SEC) /* an answer is given again for so long */
#define IDLE_NS (30 * NSEC_PER_SEC)
#define SLOW_NS NSEC_PER_SEC /* who asks while one takes longer does not wait */
#define STUCK_NS (10 * NSEC_PER_SEC)
#define WAIT_NS (100 * NSEC_PER_MSEC)
enum { STACK_BYTES = 512 << 10 };

enum answer_state { ANSWER_FREE, ANSWER_WANTED, ANSWER_READING, ANSWER_DONE };

struct answer {
	enum answer_state state;
	struct history_question question;
	int64_t asked_ns, done_ns;
	struct history_text text;
};

struct history_service {
	char *path;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked, done;
	bool stop;
	int64_t reading_ns; /* since when one is read; 0: none is */
	struct answer answers[HISTORY_ANSWERS];

	atomic_int pid;
	struct store_reader *reader; /* of the thread */
};

/* ---- the thread ---- */

static void close_reader(struct history_service *service)
{
	service->pid = 0; /* first: the number may soon be another process's */
	store_reader_free(TAKE_PTR(service->reader));
}

/* Listed anew for each question, since who records goes on; opened anew if that fails. */
static int open_reader(struct history_service *service, char *why, size_t size)
{
	int r;

	if (service->reader && store_reader_refresh(service->reader) < 0)
		close_reader(service);
	if (service->reader)
		return 0;
	r = store_reader_open(service->path, &service->reader, why, size);
	service->pid = r == 0 ? store_reader_pid(service->reader) : 0;
	return r;
}

static void read_answer(struct history_service *service, const struct history_question *question,
			struct history_text *text)
{
	char why[300] = "";
	int r = open_reader(service, why, sizeof(why));

	if (r == 0)
		r = history_answer(service->reader, question, text);
	else
		history_refuse(text, r, why);
	if (r < 0 && r != -ENOENT && r != -E2BIG && r != -EINVAL)
		close_reader(service);
}

/* The one that has waited longest; NULL: none does. */
static struct answer *next_answer(struct history_service *service)
{
	struct answer *next = NULL;

	for (unsigned i = 0; i < HISTORY_ANSWERS; i++) {
		struct answer *a = &service->answers[i];

		if (a->state == ANSWER_WANTED && (!next || a->asked_ns < next->asked_ns))
			next = a;
	}
	return next;
}

static void forget_answers(struct history_service *service)
{
	for (unsigned i = 0; i < HISTORY_ANSWERS; i++) {
		struct answer *a = &service->answers[i];

		if (a->state != ANSWER_DONE || clock_mono_ns() - a->done_ns < IDLE_NS)
			continue;
		strbuf_done(&a->text.body);
		a->state = ANSWER_FREE;
	}
}

static void wait_for_question(struct history_service *service)
{
	const int64_t until_ns = clock_mono_ns() + IDLE_NS;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };

	if (pthread_cond_timedwait(&service->asked, &service->lock, &until) == ETIMEDOUT) {
		forget_answers(service);
		close_reader(service);
	}
}

static void *history_thread(void *userdata)
{
	struct history_service *service = userdata;

	pthread_mutex_lock(&service->lock);
	while (!service->stop) {
		struct answer *answer = next_answer(service);
		struct history_text text = { .status = 200 };

		if (!answer) {
			wait_for_question(service);
			continue;
		}
		answer->state = ANSWER_READING;
		service->reading_ns = clock_mono_ns();
		pthread_mutex_unlock(&service->lock);
		strbuf_init(&text.body, HISTORY_BYTES_MAX / HISTORY_ANSWERS);
		read_answer(service, &answer->question, &text);
		pthread_mutex_lock(&service->lock);
		service->reading_ns = 0;
		answer->text = text;
		answer->done_ns = clock_mono_ns();
		answer->state = ANSWER_DONE;
		pthread_cond_broadcast(&service->done);
	}
	pthread_mutex_unlock(&service->lock);
	close_reader(service);
	return NULL;
}

/* ---- who asks ---- */

/* Where the answer is or will be; NULL: all are being waited for. */
static struct answer *answer_to(struct history_service *service, const struct history_question *question)
{
	struct answer *oldest = NULL;

	for (unsigned i = 0; i < HISTORY_ANSWERS; i++) {
		struct answer *a = &service->answers[i];
		bool fresh = a->state != ANSWER_DONE || clock_mono_ns() - a->done_ns < FRESH_NS;

		if (a->state != ANSWER_FREE && fresh &&
		    memcmp(&a->question, question, sizeof(*question)) == 0)
			return a;
		if ((a->state == ANSWER_FREE || a->state == ANSWER_DONE) &&
		    (!oldest || a->done_ns < oldest->done_ns))
			oldest = a;
	}
	if (!oldest)
		return NULL;
	strbuf_done(&oldest->text.body);
	*oldest =
		(struct answer){ .state = ANSWER_WANTED, .question = *question, .asked_ns = clock_mono_ns() };
	pthread_cond_signal(&service->asked);
	return oldest;
}

static void wait_a_moment(struct history_service *service, const struct answer *answer)
{
	const int64_t until_ns = clock_mono_ns() + WAIT_NS;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };

	if (service->reading_ns && clock_mono_ns() - service->reading_ns > SLOW_NS)
		return;
	while (answer->state != ANSWER_DONE)
		if (pthread_cond_timedwait(&service->done, &service->lock, &until) != 0)
			return;
}

static void reply_busy(const struct history_service *service, struct http_reply *reply)
{
	if (service->reading_ns && clock_mono_ns() - service->reading_ns > STUCK_NS) {
		reply->status = 503;
		strbuf_adds(&reply->body, "503 the recording cannot be read: does the disk hang?\n");
		return;
	}
	reply->status = 202;
	reply->content_type = "application/json";
	strbuf_adds(&reply->body, "{\"pending\":true}\n");
}

static int ask_history(struct history_service *service, const struct history_question *question,
		       struct http_reply *reply)
{
	struct answer *answer;
	int r = 0;

	if (!service) {
		reply->status = 404;
		strbuf_adds(&reply->body, "404 nothing is recorded: recording.path is not set\n");
		return 0;
	}
	pthread_mutex_lock(&service->lock);
	answer = answer_to(service, question);
	if (answer)
		wait_a_moment(service, answer);
	if (answer && answer->state == ANSWER_DONE) {
		reply->status = answer->text.status;
		if (answer->text.is_json)
			reply->content_type = "application/json";
		strbuf_add(&reply->body, answer->text.body.data, answer->text.body.len);
		r = answer->text.body.failed ? -EMSGSIZE : 0;
	} else {
		reply_busy(service, reply);
	}
	pthread_mutex_unlock(&service->lock);
	return r;
}

int history_page(struct history_service *service, const struct http_request *request,
		 struct http_reply *reply)
{
	struct history_question question = { .moment = false };

	memcpy(question.numbers, request->numbers, sizeof(question.numbers));
	return ask_history(service, &question, reply);
}

int moment_page(struct history_service *service, const struct http_request *request, struct http_reply *reply)
{
	struct history_question question = { .moment = true };

	memcpy(question.numbers, request->numbers, sizeof(question.numbers));
	return ask_history(service, &question, reply);
}

/* ---- life ---- */

int history_service_new(const char *path, struct history_service **ret_service)
{
	struct history_service *service = calloc(1, sizeof(*service));
	pthread_condattr_t attributes;
	int r;

	if (!service)
		return -ENOMEM;
	service->path = strdup(path);
	pthread_mutex_init(&service->lock, NULL);
	/* A wall clock that is set must hold up no page. */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&service->asked, &attributes);
	pthread_cond_init(&service->done, &attributes);
	pthread_condattr_destroy(&attributes);
	r = service->path ? thread_start(STACK_BYTES, history_thread, service, &service->thread) : -ENOMEM;
	if (r < 0) {
		free(service->path);
		free(service);
		return r;
	}
	pthread_setname_np(service->thread, "history");
	*ret_service = service;
	return 0;
}

void history_service_free(struct history_service *service)
{
	pid_t pid;

	if (!service)
		return;
	pthread_mutex_lock(&service->lock);
	service->stop = true;
	pthread_cond_signal(&service->asked);
	pthread_mutex_unlock(&service->lock);
	/* What it waits for ends with the process; where the kernel does not let it, it is left behind. */
	pid = service->pid;
	if (pid > 0)
		kill(pid, SIGKILL);
	if (!thread_join(service->thread, NSEC_PER_SEC))
		return;
	for (unsigned i = 0; i < HISTORY_ANSWERS; i++)
		strbuf_done(&service->answers[i].text.body);
	pthread_mutex_destroy(&service->lock);
	pthread_cond_destroy(&service->asked);
	pthread_cond_destroy(&service->done);
	free(service->path);
	free(service);
}

pid_t history_service_pid(struct history_service *service)
{
	return service->pid;
}
