// SPDX-License-Identifier: Apache-2.0
#include "timeline/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/raised.h"
#include "base/row_list.h"
#include "base/thread.h"

enum { STACK_BYTES = 256 << 10, QUEUE_MAX = 1 << 17 /* blocks */ };

struct timeline_writer {
	pthread_mutex_t lock; /* of all but @files and @current; not held while the disk is waited for */
	pthread_cond_t changed;
	unsigned owners; /* the caller and the thread */
	struct row_list queue; /* struct timeline_block *, in the order of putting */
	struct row_list current; /* the thread's: what it writes */
	size_t queued; /* bytes of both */
	bool ends;
	struct timeline_writer_status status;
	struct timeline_files files; /* the thread's */
	bool opened;
};

static struct timeline_block *block_at(const struct row_list *list, uint32_t i)
{
	return ((struct timeline_block **)list->list)[i];
}

static void drop_all(struct row_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		timeline_block_unref(block_at(list, i));
	row_list_done(list);
}

static void writer_leave(struct timeline_writer *w)
{
	bool last;

	pthread_mutex_lock(&w->lock);
	last = --w->owners == 0;
	pthread_mutex_unlock(&w->lock);
	if (!last)
		return;
	drop_all(&w->queue);
	drop_all(&w->current);
	timeline_files_close(&w->files);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* ---- the thread ---- */

/* Takes what waits; false: there is nothing, and there will be nothing. */
static bool take_queue(struct timeline_writer *w)
{
	struct row_list empty = w->current;

	pthread_mutex_lock(&w->lock);
	while (w->queue.n == 0 && !w->ends)
		pthread_cond_wait(&w->changed, &w->lock);
	w->current = w->queue;
	w->queue = empty;
	pthread_mutex_unlock(&w->lock);
	return w->current.n > 0;
}

static void writer_tell(struct timeline_writer *w, const struct timeline_block *block, int r)
{
	pthread_mutex_lock(&w->lock);
	if (block)
		w->queued -= block->n;
	if (block && r == 0)
		w->status.bytes += block->n, w->status.events += block->events;
	else if (block)
		w->status.lost += block->events;
	if (w->status.error == 0)
		w->status.error = r;
	w->status.files = w->files.number;
	pthread_mutex_unlock(&w->lock);
}

static void write_current(struct timeline_writer *w)
{
	for (uint32_t i = 0; i < w->current.n; i++) {
		struct timeline_block *block = block_at(&w->current, i);

		writer_tell(w, block, timeline_files_write(&w->files, block));
		timeline_block_unref(block);
	}
	row_list_clear(&w->current);
}

static void *writer_thread(void *userdata)
{
	struct timeline_writer *w = userdata;

	/* The files are those of a user, or in a folder of the agent's user. */
	capabilities_lower_thread();
	if (!w->opened)
		writer_tell(w, NULL, timeline_files_open(&w->files, &w->files.config));
	while (take_queue(w))
		write_current(w);
	writer_tell(w, NULL, timeline_files_end(&w->files));
	pthread_mutex_lock(&w->lock);
	w->status.done = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	writer_leave(w);
	return NULL;
}

/* ---- the caller's side ---- */

static int writer_put(struct timeline_writer *w, struct timeline_block *block, bool bounded)
{
	struct timeline_block **row;
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (bounded && w->queued + block->n > TIMELINE_QUEUE_BYTES)
		r = -ENOBUFS;
	row = r == 0 ? row_list_add(&w->queue) : NULL;
	if (row) {
		*row = timeline_block_ref(block);
		w->queued += block->n;
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return row ? 0 : -ENOBUFS;
}

int timeline_writer_put(struct timeline_writer *w, struct timeline_block *block)
{
	return writer_put(w, block, true);
}

int timeline_writer_put_kept(struct timeline_writer *w, struct timeline_block *block)
{
	return writer_put(w, block, false);
}

void timeline_writer_end(struct timeline_writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

bool timeline_writer_wait(struct timeline_writer *w, int64_t patience_ns)
{
	int64_t until_ns = clock_mono_ns() + patience_ns;
	const struct timespec until = { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };
	bool done;

	pthread_mutex_lock(&w->lock);
	while (!w->status.done)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT)
			break;
	done = w->status.done;
	pthread_mutex_unlock(&w->lock);
	return done;
}

void timeline_writer_status(struct timeline_writer *w, struct timeline_writer_status *ret_status)
{
	pthread_mutex_lock(&w->lock);
	*ret_status = w->status;
	pthread_mutex_unlock(&w->lock);
}

void timeline_writer_free(struct timeline_writer *w)
{
	if (!w)
		return;
	timeline_writer_end(w);
	writer_leave(w);
}

static void init_sync(struct timeline_writer *w)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int timeline_writer_new(const struct timeline_files_config *config, bool now,
			struct timeline_writer **ret_writer)
{
	struct timeline_writer *w = calloc(1, sizeof(*w));
	pthread_t thread;
	int r = 0;

	if (!w) {
		timeline_folder_close(config);
		return -ENOMEM;
	}
	w->files = (struct timeline_files){ .config = *config, .fd = -1 };
	w->owners = 1;
	w->queue = w->current =
		(struct row_list){ .size = sizeof(struct timeline_block *), .max = QUEUE_MAX };
	init_sync(w);
	if (now)
		r = timeline_files_open(&w->files, config);
	w->opened = now;
	if (r == 0) {
		w->owners = 2;
		r = thread_start(STACK_BYTES, writer_thread, w, &thread);
		if (r < 0)
			w->owners = 1;
	}
	if (r < 0) {
		writer_leave(w);
		return r;
	}
	pthread_detach(thread);
	*ret_writer = w;
	return 0;
}
