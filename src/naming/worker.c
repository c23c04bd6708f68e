// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/ioprio.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "naming/private.h"

/* A question without an answer is tried again, twice; those of one slot together, so that a process's maps are read once for them. */
enum { TRIES = 3 };
#define AGAIN_NS (250 * NSEC_PER_MSEC)
#define SLOT_NS (50 * NSEC_PER_MSEC)
#define TRIM_NS (10 * NSEC_PER_SEC) /* it walks the whole heap */

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

bool naming_stopping(const struct naming *naming)
{
	return atomic_load_explicit(&naming->stop, memory_order_relaxed);
}

bool naming_over(const struct naming *naming)
{
	return atomic_load_explicit(&naming->now_over, memory_order_relaxed);
}

void naming_count(struct naming *naming, uint64_t *row, uint64_t n)
{
	pthread_mutex_lock(&naming->lock);
	*row += n;
	pthread_mutex_unlock(&naming->lock);
}

void naming_weigh(struct naming *naming, int64_t bytes)
{
	naming->bytes += (uint64_t)bytes;
	pthread_mutex_lock(&naming->lock);
	naming->stats.bytes = naming->bytes + naming->processes_bytes;
	naming->stats.files = naming->files_n;
	pthread_mutex_unlock(&naming->lock);
}

/* ---- answering ---- */

static void give(struct naming *naming, struct work *work, struct kernel *kernel)
{
	pthread_mutex_lock(&naming->lock);
	/* Never full: a question is let in where there is room for its answer. */
	naming->answers[(naming->answers_head + naming->answers_n) % naming->config.limits.questions] =
		(struct naming_answer){ .id = work->question.id, .kernel = kernel };
	naming->answers_n++;
	naming->stats.answered++;
	naming->stats.named[kernel->source]++;
	pthread_mutex_unlock(&naming->lock);
	work_free(work);
	eventfd_write(naming->event_fd, 1);
}

static void put_again(struct naming *naming, struct work *work)
{
	int64_t again = naming->config.again_ns ? naming->config.again_ns : AGAIN_NS;
	int64_t due = clock_mono_ns() + (again << (2 * work->tries));

	work->tries++;
	work->due_ns = due - due % SLOT_NS + SLOT_NS;
	works_put(&naming->again, work);
}

static void answer(struct naming *naming, struct work *work)
{
	struct kernel *kernel;
	int r = answer_find(naming, work, &kernel);

	if (r == -EAGAIN && work->tries + 1 < TRIES && !naming_over(naming)) {
		kernel_unref(kernel);
		put_again(naming, work);
	} else if (r == 0 || r == -EAGAIN) {
		give(naming, work, kernel);
	} else if (r == -ECANCELED) {
		work_free(work); /* nobody waits for it any more */
	} else {
		put_again(naming, work); /* memory: there may be some later */
	}
}

static void forget(struct naming *naming, const struct work *work)
{
	const struct naming_question *q = &work->question;
	struct works again = naming->again;
	struct work *waiting;

	/* What was to be tried again has its last try now, while its mappings are known. */
	naming->again = (struct works){ 0 };
	while ((waiting = works_take(&again))) {
		if (is_of(waiting->question.pid, waiting->question.incarnation, q->pid, q->incarnation)) {
			atomic_store(&naming->now_over, true);
			answer(naming, waiting);
		} else {
			works_put(&naming->again, waiting);
		}
	}
	process_drop(naming, q->pid, q->incarnation);
	images_forget(naming, q->pid, q->incarnation);
}

/* ---- the thread ---- */

/* Of those that are tried again, the first that is due; else *ret_next_ns is when one will be. */
static struct work *due(struct naming *naming, int64_t now, int64_t *ret_next_ns)
{
	struct works again = naming->again;
	struct work *found = NULL, *work;

	*ret_next_ns = INT64_MAX;
	naming->again = (struct works){ 0 };
	while ((work = works_take(&again))) {
		if (!found && work->due_ns <= now) {
			found = work;
			continue;
		}
		*ret_next_ns = MIN(*ret_next_ns, work->due_ns);
		works_put(&naming->again, work);
	}
	if (found)
		found->asked_ns = found->due_ns;
	return found;
}

/* NULL: we are to stop. */
static struct work *next(struct naming *naming)
{
	struct work *work = NULL;

	pthread_mutex_lock(&naming->lock);
	while (!naming_stopping(naming)) {
		int64_t next_ns;
		struct timespec until;

		work = works_take(&naming->images);
		if (!work)
			work = works_take(&naming->queue);
		if (!work)
			work = due(naming, clock_mono_ns(), &next_ns);
		if (work)
			break;
		if (naming->trim && naming->trimmed_ns + TRIM_NS > clock_mono_ns()) {
			next_ns = MIN(next_ns, naming->trimmed_ns + TRIM_NS);
		} else if (naming->trim) {
			naming->trim = false;
			naming->trimmed_ns = clock_mono_ns();
			pthread_mutex_unlock(&naming->lock);
			malloc_trim(0);
			pthread_mutex_lock(&naming->lock);
			continue;
		}
		if (next_ns == INT64_MAX) {
			pthread_cond_wait(&naming->wake, &naming->lock);
			continue;
		}
		until.tv_sec = next_ns / NSEC_PER_SEC;
		until.tv_nsec = next_ns % NSEC_PER_SEC;
		pthread_cond_timedwait(&naming->wake, &naming->lock, &until);
	}
	if (work && work->kind == WORK_IMAGE)
		naming->images_n--;
	if (work && work->kind == WORK_LOOK)
		naming->looks_n--;
	if (work && work->kind == WORK_FORGET)
		naming->forgets_n--;
	if (work) {
		naming->now_pid = work->question.pid;
		naming->now_incarnation = work->question.incarnation;
		atomic_store(&naming->now_over, work->over);
	}
	pthread_mutex_unlock(&naming->lock);
	return work;
}

/* Behind everybody else, for processors and for disks; what is refused is done without. */
static void step_back(void)
{
	const struct sched_param none = { 0 };
	pid_t self = (pid_t)syscall(SYS_gettid);

	pthread_setname_np(pthread_self(), "gpusonde-naming");
	sched_setscheduler(self, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)self, 19);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

void *naming_run(void *userdata)
{
	struct naming *naming = userdata;
	struct work *work;

	step_back();
	while ((work = next(naming))) {
		switch (work->kind) {
		case WORK_QUESTION:
			answer(naming, work);
			break;
		case WORK_IMAGE:
			image_read(naming, work);
			work_free(work);
			break;
		case WORK_LOOK:
			look_take(naming, work->look);
			work_free(work);
			break;
		case WORK_FORGET:
			forget(naming, work);
			work_free(work);
			break;
		}
	}
	return NULL;
}
