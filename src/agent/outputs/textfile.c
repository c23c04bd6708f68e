// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/textfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/outputs/prom_file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "view/view.h"

enum {
	STACK_BYTES = 512 << 10,
	PAGE_BYTES_MAX = 64 << 20,
};
#define PATIENCE_NS (2 * NSEC_PER_SEC) /* for a disk, at the end */
#define HUNG_NS (20 * NSEC_PER_SEC) /* for a disk, until it is said */

struct textfile {
	struct textfile_source source;
	const char *families;
	int64_t interval_ns;
	pthread_t thread;

	/* of the thread */
	struct prom_file file;
	uint64_t written_seq; /* of the snapshot */

	/* of the main thread */
	uint64_t counted_written, counted_failed;
	char said[PROM_FILE_ERROR];

	pthread_mutex_t lock; /* of what follows; never held while something is rendered or written */
	pthread_cond_t changed;
	bool stop;
	bool reading; /* the thread has a snapshot */
	int64_t writing_ns; /* since when the disk is waited for; 0: it is not */
	uint64_t written, failed;
	size_t bytes;
	char error[PROM_FILE_ERROR];
};

/* ---- the thread ---- */

/* Waits for the next turn. False: there is none. */
static bool next_turn(struct textfile *t, int64_t at_ns)
{
	const struct timespec until = { at_ns / NSEC_PER_SEC, at_ns % NSEC_PER_SEC };
	bool goes_on;

	pthread_mutex_lock(&t->lock);
	while (!t->stop && clock_mono_ns() < at_ns)
		pthread_cond_timedwait(&t->changed, &t->lock, &until);
	goes_on = !t->stop;
	t->reading = goes_on;
	pthread_mutex_unlock(&t->lock);
	return goes_on;
}

static void stop_reading(struct textfile *t)
{
	pthread_mutex_lock(&t->lock);
	t->reading = false;
	t->writing_ns = clock_mono_ns();
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* The very text of /metrics. -EALREADY: the file is of this snapshot. */
static int render(struct textfile *t, struct strbuf *out)
{
	struct snapshot *snapshot = t->source.newest(t->source.userdata);
	int r = -EALREADY;

	if (t->written_seq != snapshot->seq)
		r = view_prometheus(snapshot, EXPOSITION_PROMETHEUS, t->families, out);
	if (r == 0 && out->failed)
		r = -ENOMEM;
	if (r == 0)
		t->written_seq = snapshot->seq;
	snapshot_unref(snapshot);
	return r;
}

/* @r: 1: it was there already. */
static void tell_written(struct textfile *t, int r, size_t bytes, const char *why)
{
	pthread_mutex_lock(&t->lock);
	t->writing_ns = 0;
	t->written += r == 0;
	t->failed += r < 0;
	t->bytes = r < 0 ? 0 : r == 0 ? bytes : t->bytes;
	snprintf(t->error, sizeof(t->error), "%s", r < 0 ? why : "");
	pthread_mutex_unlock(&t->lock);
}

static void write_page(struct textfile *t)
{
	char why[PROM_FILE_ERROR] = "the page is too large, or there is no memory for it";
	struct strbuf page;
	int r;

	strbuf_init(&page, PAGE_BYTES_MAX);
	r = render(t, &page);
	stop_reading(t);
	if (r == 0)
		r = prom_file_write(&t->file, page.data, page.len, why);
	else if (r != -EALREADY) /* An old page must not look alive. */
		prom_file_remove(&t->file);
	if (r < 0 && r != -EALREADY)
		t->written_seq = 0;
	tell_written(t, r == -EALREADY ? 1 : r, page.len, why);
	strbuf_done(&page);
}

static void *textfile_thread(void *userdata)
{
	struct textfile *t = userdata;
	int64_t at_ns = clock_mono_ns();

	while (next_turn(t, at_ns)) {
		write_page(t);
		at_ns = MAX(at_ns + t->interval_ns, clock_mono_ns());
	}
	prom_file_remove(&t->file);
	return NULL;
}

/* ---- the main thread ---- */

static void log_textfile(struct textfile *t, const char *error)
{
	if (*error && !STRV_EQ(error, t->said))
		log_error("the file for node_exporter cannot be written: %s (textfile.path)", error);
	else if (!*error && *t->said)
		log_notice("the file for node_exporter is written again");
	snprintf(t->said, sizeof(t->said), "%s", error);
}

void textfile_tick(struct textfile *t, struct model *model)
{
	char error[PROM_FILE_ERROR];
	uint64_t written, failed;
	size_t bytes;
	bool hung;

	pthread_mutex_lock(&t->lock);
	hung = t->writing_ns != 0 && clock_mono_ns() - t->writing_ns > HUNG_NS;
	written = t->written;
	failed = t->failed;
	bytes = t->bytes;
	snprintf(error, sizeof(error), "%s", hung ? "its disk does not answer" : t->error);
	pthread_mutex_unlock(&t->lock);
	log_textfile(t, error);
	if (written + failed == 0 && !hung)
		return;
	model_agent_set(model, AGENT_TEXTFILE_UP, !*error);
	model_agent_set(model, AGENT_TEXTFILE_BYTES, (double)bytes);
	model_agent_add(model, AGENT_TEXTFILE_WRITTEN, (double)(written - t->counted_written));
	model_agent_add(model, AGENT_TEXTFILE_FAILED, (double)(failed - t->counted_failed));
	t->counted_written = written;
	t->counted_failed = failed;
}

const char *textfile_error(const struct textfile *t)
{
	return t->said;
}

static void textfile_destroy(struct textfile *t)
{
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int textfile_init(struct textfile *t)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return thread_start(STACK_BYTES, textfile_thread, t, &t->thread);
}

int textfile_new(const struct options *options, const struct textfile_source *source,
		 struct textfile **ret_textfile)
{
	const char *path = options_text(options, OPT_textfile_path);
	const char *families = options_text(options, OPT_textfile_families);
	struct textfile *t;
	int r;

	*ret_textfile = NULL;
	if (!path)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	r = prom_file_init(path, &t->file);
	if (r < 0) {
		free(t);
		return r;
	}
	t->source = *source;
	t->families = families ? families : options_text(options, OPT_http_families);
	t->interval_ns = options_number(options, OPT_textfile_interval);
	r = textfile_init(t);
	if (r < 0) {
		textfile_destroy(t);
		return r;
	}
	pthread_setname_np(t->thread, "textfile");
	*ret_textfile = t;
	return 0;
}

void textfile_free(struct textfile *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->changed);
	/* Snapshots end with the agent; rendering takes no longer than it takes. */
	while (t->reading)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
	if (thread_join(t->thread, PATIENCE_NS))
		textfile_destroy(t);
	else /* The thread keeps what it needs, until the disk or the process ends. */
		pthread_detach(t->thread);
}
