// SPDX-License-Identifier: Apache-2.0
#include "agent/answers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

#define FRESH_NS (5 * NSEC_PER_SEC) /* an answer is given again for so long */
#define IDLE_NS (30 * NSEC_PER_SEC)
#define SLOW_NS NSEC_PER_SEC /* who asks while one takes longer does not wait */
#define WAIT_NS (100 * NSEC_PER_MSEC)
enum { STACK_BYTES = 512 << 10 };

enum kept_state { KEPT_FREE, KEPT_WANTED, KEPT_MAKING, KEPT_DONE };

struct kept {
	enum kept_state state;
	struct question question;
	int64_t asked_ns, done_ns;
	bool given; /* somebody has had the answer */
	struct answer answer;
};

struct answers {
	struct answers_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t asked, done;
	bool stop;
	int64_t making_ns; /* since when one is made; 0: none is */
	struct kept kept[ANSWERS];
};

/* ---- the thread ---- */

/* The one that has waited longest; NULL: none does. */
static struct kept *next_wanted(struct answers *answers)
{
	struct kept *next = NULL;

	for (unsigned i = 0; i < ANSWERS; i++) {
		struct kept *k = &answers->kept[i];

		if (k->state == KEPT_WANTED && (!next || k->asked_ns < next->asked_ns))
			next = k;
	}
	return next;
}

static void forget_old(struct answers *answers)
{
	for (unsigned i = 0; i < ANSWERS; i++) {
		struct kept *k = &answers->kept[i];

		if (k->state != KEPT_DONE || clock_mono_ns() - k->done_ns < IDLE_NS)
			continue;
		strbuf_done(&k->answer.body);
		k->state = KEPT_FREE;
	}
}

static void become_idle(struct answers *answers)
{
	if (answers->config.idle)
		answers->config.idle(answers->config.userdata);
}

static void wait_for_question(struct answers *answers)
{
	const int64_t until_ns = clock_mono_ns() + IDLE_NS;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };

	if (pthread_cond_timedwait(&answers->asked, &answers->lock, &until) == ETIMEDOUT) {
		forget_old(answers);
		become_idle(answers);
	}
}

static void *answers_thread(void *userdata)
{
	struct answers *answers = userdata;

	pthread_mutex_lock(&answers->lock);
	while (!answers->stop) {
		struct kept *kept = next_wanted(answers);
		struct answer answer = { .status = 200 };

		if (!kept) {
			wait_for_question(answers);
			continue;
		}
		kept->state = KEPT_MAKING;
		answers->making_ns = clock_mono_ns();
		pthread_mutex_unlock(&answers->lock);
		strbuf_init(&answer.body, ANSWER_BYTES_MAX);
		answers->config.make(&kept->question, &answer, answers->config.userdata);
		pthread_mutex_lock(&answers->lock);
		answers->making_ns = 0;
		kept->answer = answer;
		kept->done_ns = clock_mono_ns();
		kept->state = KEPT_DONE;
		pthread_cond_broadcast(&answers->done);
	}
	pthread_mutex_unlock(&answers->lock);
	become_idle(answers);
	return NULL;
}

/* ---- who asks ---- */

static bool kept_is_of(const struct kept *kept, const struct question *question)
{
	return memcmp(&kept->question, question, sizeof(*question)) == 0;
}

/* One that nobody has had yet stays for who comes again: else many who ask would take it from each other. */
static bool may_go(const struct kept *kept, bool fresh)
{
	return kept->state == KEPT_FREE || (kept->state == KEPT_DONE && (kept->given || !fresh));
}

/* Where the answer is or will be; NULL: all are being waited for. */
static struct kept *kept_of(struct answers *answers, const struct question *question)
{
	struct kept *oldest = NULL;

	for (unsigned i = 0; i < ANSWERS; i++) {
		struct kept *k = &answers->kept[i];
		bool fresh = k->state != KEPT_DONE || clock_mono_ns() - k->done_ns < FRESH_NS;

		if (k->state != KEPT_FREE && fresh && kept_is_of(k, question))
			return k;
		if (may_go(k, fresh) && (!oldest || k->done_ns < oldest->done_ns))
			oldest = k;
	}
	if (!oldest)
		return NULL;
	strbuf_done(&oldest->answer.body);
	*oldest = (struct kept){ .state = KEPT_WANTED, .asked_ns = clock_mono_ns() };
	memcpy(&oldest->question, question, sizeof(*question));
	pthread_cond_signal(&answers->asked);
	return oldest;
}

static void wait_a_moment(struct answers *answers, const struct kept *kept)
{
	const int64_t until_ns = clock_mono_ns() + WAIT_NS;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };

	if (answers->making_ns && clock_mono_ns() - answers->making_ns > SLOW_NS)
		return;
	while (kept->state != KEPT_DONE)
		if (pthread_cond_timedwait(&answers->done, &answers->lock, &until) != 0)
			return;
}

static void reply_pending(const struct answers *answers, const struct question *question,
			  struct http_reply *reply)
{
	const char *html = answers->config.pending_html ? answers->config.pending_html(question) : NULL;

	if (answers->making_ns && clock_mono_ns() - answers->making_ns > answers->config.slow_ns) {
		reply->status = 503;
		strbuf_addf(&reply->body, "503 %s\n", answers->config.stuck);
		return;
	}
	reply->status = 202;
	reply->content_type = html ? "text/html; charset=utf-8" : "application/json";
	strbuf_adds(&reply->body, html ? html : "{\"pending\":true}\n");
}

struct question question_of(uint32_t page, int64_t now_ns, const struct http_request *request)
{
	struct question question;

	memset(&question, 0, sizeof(question));
	question.page = page;
	question.now_ns = now_ns;
	memcpy(question.numbers, request->numbers, sizeof(question.numbers));
	snprintf(question.text, sizeof(question.text), "%s", request->text);
	return question;
}

int answers_reply(struct answers *answers, const struct question *question, struct http_reply *reply)
{
	struct kept *kept;
	int r = 0;

	pthread_mutex_lock(&answers->lock);
	kept = kept_of(answers, question);
	if (kept)
		wait_a_moment(answers, kept);
	/* While this waited, another who asks may have made room of it. */
	if (kept && kept->state == KEPT_DONE && kept_is_of(kept, question)) {
		kept->given = true;
		reply->status = kept->answer.status;
		if (kept->answer.content_type)
			reply->content_type = kept->answer.content_type;
		strbuf_add(&reply->body, kept->answer.body.data, kept->answer.body.len);
		r = kept->answer.body.failed ? -EMSGSIZE : 0;
	} else {
		reply_pending(answers, question, reply);
	}
	pthread_mutex_unlock(&answers->lock);
	return r;
}

/* ---- life ---- */

int answers_new(const struct answers_config *config, struct answers **ret_answers)
{
	struct answers *answers = calloc(1, sizeof(*answers));
	pthread_condattr_t attributes;
	int r;

	if (!answers)
		return -ENOMEM;
	answers->config = *config;
	pthread_mutex_init(&answers->lock, NULL);
	/* A wall clock that is set must hold up no page. */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&answers->asked, &attributes);
	pthread_cond_init(&answers->done, &attributes);
	pthread_condattr_destroy(&attributes);
	r = thread_start(STACK_BYTES, answers_thread, answers, &answers->thread);
	if (r < 0) {
		free(answers);
		return r;
	}
	pthread_setname_np(answers->thread, config->name);
	*ret_answers = answers;
	return 0;
}

bool answers_free(struct answers *answers)
{
	if (!answers)
		return true;
	pthread_mutex_lock(&answers->lock);
	answers->stop = true;
	pthread_cond_signal(&answers->asked);
	pthread_mutex_unlock(&answers->lock);
	if (answers->config.interrupt)
		answers->config.interrupt(answers->config.userdata);
	if (!thread_join(answers->thread, NSEC_PER_SEC))
		return false;
	for (unsigned i = 0; i < ANSWERS; i++)
		strbuf_done(&answers->kept[i].answer.body);
	pthread_mutex_destroy(&answers->lock);
	pthread_cond_destroy(&answers->asked);
	pthread_cond_destroy(&answers->done);
	free(answers);
	return true;
}
