// SPDX-License-Identifier: Apache-2.0
#include "symbolize/worker.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolize/answer.h"
#include "symbolize/image.h"
#include "symbolize/look.h"
#include "symbolize/process.h"
#include "symbolize/progress.h"

/*
 * A question without an answer is retried twice; retries of one time slot are handled together, so that a
 * process's maps are read once for them.
 */
enum { TRIES = 3 };
#define AGAIN_NS (250 * NSEC_PER_MSEC)
#define SLOT_NS (50 * NSEC_PER_MSEC)
#define TRIM_NS (10 * NSEC_PER_SEC) /* trimming visits the whole heap */

void works_put(struct works *works, struct work *work)
{
	work->next = NULL;
	if (works->last)
		works->last->next = work;
	else
		works->first = work;
	works->last = work;
	works->n++;
}

struct work *works_take(struct works *works)
{
	struct work *work = works->first;

	if (work) {
		works->first = work->next;
		if (!works->first)
			works->last = NULL;
		works->n--;
	}
	return work;
}

void work_free(struct work *work)
{
	if (work->look)
		look_free(work->look);
	free(work);
}

bool symbolizer_stopping(const struct symbolizer *symbolizer)
{
	return atomic_load_explicit(&symbolizer->stop, memory_order_relaxed);
}

bool symbolizer_over(const struct symbolizer *symbolizer)
{
	return atomic_load_explicit(&symbolizer->now_over, memory_order_relaxed);
}

void symbolizer_count(struct symbolizer *symbolizer, uint64_t *row, uint64_t n)
{
	pthread_mutex_lock(&symbolizer->lock);
	*row += n;
	pthread_mutex_unlock(&symbolizer->lock);
}

void symbolizer_weigh(struct symbolizer *symbolizer, int64_t bytes)
{
	symbolizer->bytes += (uint64_t)bytes;
	pthread_mutex_lock(&symbolizer->lock);
	symbolizer->stats.bytes = symbolizer->bytes + symbolizer->processes_bytes;
	symbolizer->stats.files = symbolizer->files_n;
	pthread_mutex_unlock(&symbolizer->lock);
}

/* ---- answers ---- */

static void give(struct symbolizer *symbolizer, struct work *work, struct kernel *kernel)
{
	pthread_mutex_lock(&symbolizer->lock);
	/* Never full: a question is accepted only if there is space for its answer. */
	symbolizer->answers[(symbolizer->answers_head + symbolizer->answers_n) %
			    symbolizer->config.limits.questions] =
		(struct symbolizer_answer){ .id = work->question.id, .kernel = kernel };
	symbolizer->answers_n++;
	symbolizer->stats.answered++;
	symbolizer->stats.named[kernel->source]++;
	if (!symbolizer->woken)
		symbolizer->woken = send(symbolizer->wake_fds[1], "", 1, MSG_NOSIGNAL) == 1;
	pthread_mutex_unlock(&symbolizer->lock);
	work_free(work);
}

static void put_again(struct symbolizer *symbolizer, struct work *work)
{
	int64_t again = symbolizer->config.again_ns ? symbolizer->config.again_ns : AGAIN_NS;
	int64_t due = clock_mono_ns() + (again << (2 * work->tries));

	work->tries++;
	work->due_ns = due - due % SLOT_NS + SLOT_NS;
	works_put(&symbolizer->again, work);
}

static void answer(struct symbolizer *symbolizer, struct work *work)
{
	struct kernel *kernel;
	int r = answer_find(symbolizer, work, &kernel);

	if (r == -EAGAIN && work->tries + 1 < TRIES && !symbolizer_over(symbolizer)) {
		kernel_unref(kernel);
		put_again(symbolizer, work);
	} else if (r == 0 || r == -EAGAIN) {
		give(symbolizer, work, kernel);
	} else if (r == -ECANCELED) {
		work_free(work); /* nobody needs the answer any more */
	} else {
		put_again(symbolizer, work); /* out of memory: retry later */
	}
}

static void forget(struct symbolizer *symbolizer, const struct work *work)
{
	const struct symbolizer_question *q = &work->question;
	struct works again = symbolizer->again;
	struct work *waiting;

	/* Questions to be retried get their last try now, while the mappings are known. */
	symbolizer->again = (struct works){ 0 };
	while ((waiting = works_take(&again))) {
		if (is_of((pid_t)waiting->question.process.pid, waiting->question.incarnation,
			  (pid_t)q->process.pid, q->incarnation)) {
			atomic_store(&symbolizer->now_over, true);
			answer(symbolizer, waiting);
		} else {
			works_put(&symbolizer->again, waiting);
		}
	}
	process_drop(symbolizer, (pid_t)q->process.pid, q->incarnation);
	images_forget(symbolizer, (pid_t)q->process.pid, q->incarnation);
}

/* ---- the thread ---- */

/* The first question whose retry time has come; else *ret_next_ns is the time of the next one. */
static struct work *due(struct symbolizer *symbolizer, int64_t now, int64_t *ret_next_ns)
{
	struct works again = symbolizer->again;
	struct work *found = NULL, *work;

	*ret_next_ns = INT64_MAX;
	symbolizer->again = (struct works){ 0 };
	while ((work = works_take(&again))) {
		if (!found && work->due_ns <= now) {
			found = work;
			continue;
		}
		*ret_next_ns = MIN(*ret_next_ns, work->due_ns);
		works_put(&symbolizer->again, work);
	}
	if (found)
		found->asked_ns = found->due_ns;
	return found;
}

/* NULL: the thread must stop. */
static struct work *next(struct symbolizer *symbolizer)
{
	struct work *work = NULL;

	pthread_mutex_lock(&symbolizer->lock);
	while (!symbolizer_stopping(symbolizer)) {
		int64_t next_ns;
		struct timespec until;

		work = works_take(&symbolizer->images);
		if (!work)
			work = works_take(&symbolizer->queue);
		if (!work)
			work = due(symbolizer, clock_mono_ns(), &next_ns);
		if (work)
			break;
		if (symbolizer->trim && symbolizer->trimmed_ns + TRIM_NS > clock_mono_ns()) {
			next_ns = MIN(next_ns, symbolizer->trimmed_ns + TRIM_NS);
		} else if (symbolizer->trim) {
			symbolizer->trim = false;
			symbolizer->trimmed_ns = clock_mono_ns();
			pthread_mutex_unlock(&symbolizer->lock);
			malloc_trim(0);
			pthread_mutex_lock(&symbolizer->lock);
			continue;
		}
		if (next_ns == INT64_MAX) {
			pthread_cond_wait(&symbolizer->wake, &symbolizer->lock);
			continue;
		}
		until.tv_sec = next_ns / NSEC_PER_SEC;
		until.tv_nsec = next_ns % NSEC_PER_SEC;
		pthread_cond_timedwait(&symbolizer->wake, &symbolizer->lock, &until);
	}
	if (work && work->kind == WORK_IMAGE)
		symbolizer->images_n--;
	if (work && work->kind == WORK_LOOK)
		symbolizer->looks_n--;
	if (work && work->kind == WORK_FORGET)
		symbolizer->forgets_n--;
	if (work) {
		symbolizer->now_pid = (pid_t)work->question.process.pid;
		symbolizer->now_incarnation = work->question.incarnation;
		atomic_store(&symbolizer->now_over, work->over);
	}
	pthread_mutex_unlock(&symbolizer->lock);
	return work;
}

/* Lowest priority for CPU and disks; failures are ignored. */
static void step_back(void)
{
	const struct sched_param none = { 0 };
	pid_t self = (pid_t)syscall(SYS_gettid);

	pthread_setname_np(pthread_self(), "gpusonde-symbol");
	sched_setscheduler(self, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)self, 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

void *symbolizer_run(void *userdata)
{
	struct symbolizer *symbolizer = userdata;
	struct work *work;

	step_back();
	progress_use(symbolizer->config.lane);
	while ((work = next(symbolizer))) {
		progress_process((pid_t)work->question.process.pid);
		switch (work->kind) {
		case WORK_QUESTION:
			answer(symbolizer, work);
			break;
		case WORK_IMAGE:
			image_read(symbolizer, work);
			work_free(work);
			break;
		case WORK_LOOK:
			look_take(symbolizer, work->look);
			work_free(work);
			break;
		case WORK_FORGET:
			forget(symbolizer, work);
			work_free(work);
			break;
		}
		progress_process(0);
	}
	return NULL;
}
