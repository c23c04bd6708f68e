// SPDX-License-Identifier: Apache-2.0
#include "naming/naming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "naming/private.h"

enum { STACK_BYTES = 4 << 20 };
#define PATIENCE_NS (600 * NSEC_PER_MSEC)

/* ---- its life ---- */

static void works_done(struct works *works)
{
	struct work *work;

	while ((work = works_take(works)))
		work_free(work);
}

static void release(struct naming *naming)
{
	works_done(&naming->images);
	works_done(&naming->queue);
	works_done(&naming->again);
	for (uint32_t i = 0; i < naming->answers_n; i++)
		kernel_unref(
			naming->answers[(naming->answers_head + i) % naming->config.limits.questions].kernel);
	free(naming->answers);
	processes_done(naming);
	files_done(naming);
	images_done(naming);
	kernels_free(naming->kernels);
	closep(&naming->event_fd);
	pthread_cond_destroy(&naming->wake);
	pthread_mutex_destroy(&naming->lock);
	free(naming);
}

static void set_limits(struct naming_limits *limits)
{
	if (limits->questions == 0)
		limits->questions = QUESTIONS;
	if (limits->bytes == 0)
		limits->bytes = 48 << 20;
	if (limits->files == 0)
		limits->files = FILES;
}

static int init(struct naming *naming, const struct naming_config *config)
{
	pthread_condattr_t attr;
	int r;

	naming->config = *config;
	set_limits(&naming->config.limits);
	snprintf(naming->proc_root, sizeof(naming->proc_root), "%s",
		 config->proc_root ? config->proc_root : "/proc");
	pthread_mutex_init(&naming->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&naming->wake, &attr);
	pthread_condattr_destroy(&attr);
	naming->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (naming->event_fd < 0)
		return -errno;
	naming->answers = calloc(naming->config.limits.questions, sizeof(naming->answers[0]));
	if (!naming->answers)
		return -ENOMEM;
	r = kernels_new(&naming->kernels);
	if (r == 0)
		r = thread_start(STACK_BYTES, naming_run, naming, &naming->thread);
	if (r == 0)
		pthread_getcpuclockid(naming->thread, &naming->thread_clock);
	return r;
}

int naming_new(const struct naming_config *config, struct naming **ret_naming)
{
	struct naming *naming = calloc(1, sizeof(*naming));
	int r;

	if (!naming)
		return -ENOMEM;
	r = init(naming, config);
	if (r < 0) {
		release(naming);
		return r;
	}
	*ret_naming = naming;
	return 0;
}

void naming_free(struct naming *naming)
{
	if (!naming)
		return;
	pthread_mutex_lock(&naming->lock);
	atomic_store(&naming->stop, true);
	pthread_cond_signal(&naming->wake);
	pthread_mutex_unlock(&naming->lock);
	if (!thread_join(naming->thread, PATIENCE_NS)) {
		log_warning(
			"the thread that reads files of kernels does not end: a file system does not answer");
		return;
	}
	release(naming);
}

/* ---- asking ---- */

static char *put_text(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *here = *at;

	memcpy(here, text, n);
	*at += n;
	return here;
}

struct work *work_new(enum work_kind kind, const struct naming_question *question)
{
	const char *path = question->path ? question->path : "";
	size_t symbol_n = question->symbol ? strlen(question->symbol) + 1 : 0;
	struct work *work = malloc(sizeof(*work) + symbol_n + strlen(path) + 1);
	char *at;

	if (!work)
		return NULL;
	*work = (struct work){ .kind = kind, .asked_ns = clock_mono_ns(), .question = *question };
	at = (char *)(work + 1);
	work->question.symbol = question->symbol ? put_text(&at, question->symbol) : NULL;
	work->question.path = put_text(&at, path);
	return work;
}

int naming_enqueue(struct naming *naming, struct work *work, struct works *works, uint32_t *n, uint32_t max)
{
	int r = 0;

	if (!work)
		return -ENOMEM;
	pthread_mutex_lock(&naming->lock);
	if (*n >= max) {
		naming->stats.refused++;
		r = -EAGAIN;
	} else {
		(*n)++;
		naming->stats.asked += work->kind == WORK_QUESTION;
		work->seq = ++naming->seq;
		works_put(works, work);
		pthread_cond_signal(&naming->wake);
	}
	pthread_mutex_unlock(&naming->lock);
	if (r < 0)
		work_free(work);
	return r;
}

int naming_ask(struct naming *naming, const struct naming_question *question)
{
	return naming_enqueue(naming, work_new(WORK_QUESTION, question), &naming->queue, &naming->questions_n,
			      naming->config.limits.questions);
}

int naming_image(struct naming *naming, pid_t pid, uint64_t incarnation, uint64_t address)
{
	const struct naming_question image = { .pid = pid, .incarnation = incarnation, .image = address };

	return naming_enqueue(naming, work_new(WORK_IMAGE, &image), &naming->images, &naming->images_n,
			      naming->config.limits.questions);
}

static void mark_over(struct works *works, pid_t pid, uint64_t incarnation)
{
	for (struct work *work = works->first; work; work = work->next)
		if (work->kind == WORK_QUESTION || work->kind == WORK_IMAGE)
			work->over |= is_of(work->question.pid, work->question.incarnation, pid, incarnation);
}

void naming_forget(struct naming *naming, pid_t pid, uint64_t incarnation)
{
	const struct naming_question over = { .pid = pid, .incarnation = incarnation };

	pthread_mutex_lock(&naming->lock);
	mark_over(&naming->queue, pid, incarnation);
	mark_over(&naming->images, pid, incarnation);
	if (is_of(naming->now_pid, naming->now_incarnation, pid, incarnation))
		atomic_store(&naming->now_over, true);
	pthread_mutex_unlock(&naming->lock);
	naming_enqueue(naming, work_new(WORK_FORGET, &over), &naming->queue, &naming->forgets_n, FORGETS);
}

/* ---- answers ---- */

int naming_fd(const struct naming *naming)
{
	return naming->event_fd;
}

bool naming_take(struct naming *naming, struct naming_answer *ret_answer)
{
	eventfd_t value;
	bool taken = false;

	pthread_mutex_lock(&naming->lock);
	if (naming->answers_n > 0) {
		*ret_answer = naming->answers[naming->answers_head];
		naming->answers_head = (naming->answers_head + 1) % naming->config.limits.questions;
		naming->answers_n--;
		naming->questions_n--;
		taken = true;
	} else {
		(void)eventfd_read(naming->event_fd, &value); /* it is empty now */
	}
	pthread_mutex_unlock(&naming->lock);
	return taken;
}

void naming_stats(struct naming *naming, struct naming_stats *ret_stats)
{
	struct timespec spent;

	pthread_mutex_lock(&naming->lock);
	*ret_stats = naming->stats;
	pthread_mutex_unlock(&naming->lock);
	if (clock_gettime(naming->thread_clock, &spent) == 0)
		ret_stats->seconds = (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}
