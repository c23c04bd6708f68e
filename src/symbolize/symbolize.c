// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "symbolize/file.h"
#include "symbolize/image.h"
#include "symbolize/intern.h"
#include "symbolize/process.h"
#include "symbolize/worker.h"

enum { STACK_BYTES = 4 << 20 };
#define PATIENCE_NS (600 * NSEC_PER_MSEC)

/* ---- creation and end ---- */

static void works_done(struct works *works)
{
	struct work *work;

	while ((work = works_take(works)))
		work_free(work);
}

static void release(struct symbolizer *symbolizer)
{
	works_done(&symbolizer->images);
	works_done(&symbolizer->queue);
	works_done(&symbolizer->again);
	for (uint32_t i = 0; i < symbolizer->answers_n; i++)
		kernel_unref(symbolizer
				     ->answers[(symbolizer->answers_head + i) %
					       symbolizer->config.limits.questions]
				     .kernel);
	free(symbolizer->answers);
	processes_done(symbolizer);
	files_done(symbolizer);
	images_done(symbolizer);
	kernels_free(symbolizer->kernels);
	closep(&symbolizer->wake_fds[0]);
	closep(&symbolizer->wake_fds[1]);
	pthread_cond_destroy(&symbolizer->wake);
	pthread_mutex_destroy(&symbolizer->lock);
	free(symbolizer);
}

static void set_limits(struct symbolizer_limits *limits)
{
	if (limits->questions == 0)
		limits->questions = QUESTIONS;
	if (limits->bytes == 0)
		limits->bytes = 48 << 20;
	if (limits->files == 0)
		limits->files = FILES;
}

static int init(struct symbolizer *symbolizer, const struct symbolizer_config *config)
{
	pthread_condattr_t attr;
	int r;

	symbolizer->config = *config;
	set_limits(&symbolizer->config.limits);
	if (symbolizer->config.patience_ns == 0)
		symbolizer->config.patience_ns = PATIENCE_NS;
	snprintf(symbolizer->proc_root, sizeof(symbolizer->proc_root), "%s",
		 config->proc_root ? config->proc_root : "/proc");
	pthread_mutex_init(&symbolizer->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&symbolizer->wake, &attr);
	pthread_condattr_destroy(&attr);
	symbolizer->wake_fds[0] = symbolizer->wake_fds[1] = -1;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, symbolizer->wake_fds) < 0)
		return -errno;
	symbolizer->answers = calloc(symbolizer->config.limits.questions, sizeof(symbolizer->answers[0]));
	if (!symbolizer->answers)
		return -ENOMEM;
	r = kernels_new(&symbolizer->kernels);
	if (r == 0)
		r = thread_start(STACK_BYTES, symbolizer_run, symbolizer, &symbolizer->thread);
	if (r == 0)
		pthread_getcpuclockid(symbolizer->thread, &symbolizer->thread_clock);
	return r;
}

int symbolizer_new(const struct symbolizer_config *config, struct symbolizer **ret_symbolizer)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	int r;

	if (!symbolizer)
		return -ENOMEM;
	r = init(symbolizer, config);
	if (r < 0) {
		release(symbolizer);
		return r;
	}
	*ret_symbolizer = symbolizer;
	return 0;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	pthread_mutex_lock(&symbolizer->lock);
	atomic_store(&symbolizer->stop, true);
	pthread_cond_signal(&symbolizer->wake);
	pthread_mutex_unlock(&symbolizer->lock);
	if (!thread_join(symbolizer->thread, symbolizer->config.patience_ns)) {
		log_warning("the thread that reads kernels does not end: a file system does not respond");
		return;
	}
	release(symbolizer);
}

/* ---- questions ---- */

static char *put_text(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *here = *at;

	memcpy(here, text, n);
	*at += n;
	return here;
}

struct work *work_new(enum work_kind kind, const struct symbolizer_question *question)
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

int symbolizer_enqueue(struct symbolizer *symbolizer, struct work *work, struct works *works, uint32_t *n,
		       uint32_t max)
{
	int r = 0;

	if (!work)
		return -ENOMEM;
	pthread_mutex_lock(&symbolizer->lock);
	if (*n >= max) {
		symbolizer->stats.refused++;
		r = -EAGAIN;
	} else {
		(*n)++;
		symbolizer->stats.asked += work->kind == WORK_QUESTION;
		work->seq = work->question.seq ? work->question.seq : ++symbolizer->seq;
		works_put(works, work);
		pthread_cond_signal(&symbolizer->wake);
	}
	pthread_mutex_unlock(&symbolizer->lock);
	if (r < 0)
		work_free(work);
	return r;
}

int symbolizer_ask(struct symbolizer *symbolizer, const struct symbolizer_question *question)
{
	return symbolizer_enqueue(symbolizer, work_new(WORK_QUESTION, question), &symbolizer->queue,
				  &symbolizer->questions_n, symbolizer->config.limits.questions);
}

int symbolizer_image(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, uint64_t address,
		     uint64_t seq)
{
	const struct symbolizer_question image = {
		.process.pid = (uint32_t)pid, .incarnation = incarnation, .image = address, .seq = seq
	};

	return symbolizer_enqueue(symbolizer, work_new(WORK_IMAGE, &image), &symbolizer->images,
				  &symbolizer->images_n, symbolizer->config.limits.questions);
}

static void mark_over(struct works *works, pid_t pid, uint64_t incarnation)
{
	for (struct work *work = works->first; work; work = work->next)
		if (work->kind == WORK_QUESTION || work->kind == WORK_IMAGE)
			work->over |= is_of((pid_t)work->question.process.pid, work->question.incarnation,
					    pid, incarnation);
}

void symbolizer_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation)
{
	const struct symbolizer_question over = { .process.pid = (uint32_t)pid, .incarnation = incarnation };

	pthread_mutex_lock(&symbolizer->lock);
	mark_over(&symbolizer->queue, pid, incarnation);
	mark_over(&symbolizer->images, pid, incarnation);
	if (is_of(symbolizer->now_pid, symbolizer->now_incarnation, pid, incarnation))
		atomic_store(&symbolizer->now_over, true);
	pthread_mutex_unlock(&symbolizer->lock);
	symbolizer_enqueue(symbolizer, work_new(WORK_FORGET, &over), &symbolizer->queue,
			   &symbolizer->forgets_n, FORGETS);
}

/* ---- answers ---- */

int symbolizer_fd(const struct symbolizer *symbolizer)
{
	return symbolizer->wake_fds[0];
}

bool symbolizer_take(struct symbolizer *symbolizer, struct symbolizer_answer *ret_answer)
{
	bool taken = false;

	pthread_mutex_lock(&symbolizer->lock);
	if (symbolizer->answers_n > 0) {
		*ret_answer = symbolizer->answers[symbolizer->answers_head];
		symbolizer->answers_head =
			(symbolizer->answers_head + 1) % symbolizer->config.limits.questions;
		symbolizer->answers_n--;
		symbolizer->questions_n--;
		taken = true;
	} else {
		(void)recv(symbolizer->wake_fds[0], (char[1]){ 0 }, 1, 0); /* it is empty now */
		symbolizer->woken = false;
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return taken;
}

void symbolizer_stats(struct symbolizer *symbolizer, struct symbolizer_stats *ret_stats)
{
	struct timespec spent;

	pthread_mutex_lock(&symbolizer->lock);
	*ret_stats = symbolizer->stats;
	pthread_mutex_unlock(&symbolizer->lock);
	if (clock_gettime(symbolizer->thread_clock, &spent) == 0)
		ret_stats->seconds = (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}
