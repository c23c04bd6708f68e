// SPDX-License-Identifier: Apache-2.0
#include "agent/web/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "config/web_access.h"
#include "serve/access.h"

enum { STACK_BYTES = 512 << 10, ERRORS_BYTES_MAX = 16 << 10 };

struct web_watch {
	struct web *web;
	char *texts[WEB_ACCESS_OPTIONS]; /* of the options */
	struct strbuf records; /* in effect */
	char *logged; /* what was wrong at the last look; NULL: nothing */
	int64_t looked_ns;
	pthread_t thread;
	bool started; /* not yet joined */
	bool outdated; /* it looks for options of before a reload */
	atomic_bool running;

	/* the thread's while it runs */
	char *looks_for[WEB_ACCESS_OPTIONS];
	struct strbuf found, errors;
	int result;
};

static void free_texts(char *texts[WEB_ACCESS_OPTIONS])
{
	for (unsigned i = 0; i < WEB_ACCESS_OPTIONS; i++) {
		free(texts[i]);
		texts[i] = NULL;
	}
}

static int copy_texts(const char *const from[WEB_ACCESS_OPTIONS], char *to[WEB_ACCESS_OPTIONS])
{
	for (unsigned i = 0; i < WEB_ACCESS_OPTIONS; i++) {
		to[i] = from[i] ? strdup(from[i]) : NULL;
		if (from[i] && !to[i]) {
			free_texts(to);
			return -ENOMEM;
		}
	}
	return 0;
}

static bool records_are_same(const struct strbuf *a, const struct strbuf *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Takes @records over. @may_ask_less: as for web_set_access(). */
static int take_records(struct web_watch *watch, struct strbuf *records, bool may_ask_less)
{
	int r = web_set_access(watch->web, records, may_ask_less);

	if (r < 0) {
		access_forget(records);
		return r;
	}
	access_forget(&watch->records);
	watch->records = *records;
	strbuf_init(records, ACCESS_BYTES_MAX);
	return 0;
}

int web_watch_configure(struct web_watch *watch, const struct options *options)
{
	const char *texts[WEB_ACCESS_OPTIONS];
	char *copies[WEB_ACCESS_OPTIONS] = { NULL };
	struct strbuf records, errors;
	int r;

	for (unsigned i = 0; i < WEB_ACCESS_OPTIONS; i++)
		texts[i] = options_text(options, web_access_options[i]);
	strbuf_init(&records, ACCESS_BYTES_MAX);
	strbuf_init(&errors, ERRORS_BYTES_MAX);
	r = copy_texts(texts, copies);
	if (r == 0)
		r = web_access_read(texts, &records, &errors);
	log_lines(LOG_ERR, errors.data);
	if (r == 0 && errors.len > 0)
		r = -EINVAL;
	if (r == 0)
		r = take_records(watch, &records, true);
	if (r == 0) {
		free_texts(watch->texts);
		memcpy(watch->texts, copies, sizeof(copies));
		memset(copies, 0, sizeof(copies));
		watch->outdated = watch->started;
	}
	free_texts(copies);
	access_forget(&records);
	strbuf_done(&errors);
	return r;
}

static void *look_for_files(void *userdata)
{
	struct web_watch *watch = userdata;

	watch->result = web_access_read((const char *const *)watch->looks_for, &watch->found, &watch->errors);
	atomic_store(&watch->running, false);
	return NULL;
}

static void say_errors(struct web_watch *watch, const char *errors)
{
	if (watch->logged && STRV_EQ(watch->logged, errors))
		return;
	free(watch->logged);
	watch->logged = strdup(errors);
	log_error("who may ask stays as it was, because of the files:");
	log_lines(LOG_ERR, errors);
}

static void take_found(struct web_watch *watch)
{
	static const char less[] =
		"less is asked of clients than before, as when a file is only half written; if that is "
		"meant, reload the agent (SIGHUP)\n";
	int r;

	if (watch->result < 0 || watch->outdated)
		return;
	if (watch->errors.len > 0) {
		say_errors(watch, watch->errors.data);
		return;
	}
	r = records_are_same(&watch->found, &watch->records) ? -EALREADY :
							       take_records(watch, &watch->found, false);
	if (r == -EPERM) {
		say_errors(watch, less);
		return;
	}
	free(TAKE_PTR(watch->logged));
	if (r == 0)
		log_notice("certificates, users or tokens have changed: the new ones are in effect");
}

static void end_look(struct web_watch *watch)
{
	pthread_join(watch->thread, NULL);
	watch->started = false;
	take_found(watch);
	watch->outdated = false;
	access_forget(&watch->found);
	strbuf_done(&watch->errors);
	free_texts(watch->looks_for);
}

static void begin_look(struct web_watch *watch)
{
	if (copy_texts((const char *const *)watch->texts, watch->looks_for) < 0)
		return;
	strbuf_init(&watch->found, ACCESS_BYTES_MAX);
	strbuf_init(&watch->errors, ERRORS_BYTES_MAX);
	atomic_store(&watch->running, true);
	watch->started = thread_start(STACK_BYTES, look_for_files, watch, &watch->thread) == 0;
	if (!watch->started)
		free_texts(watch->looks_for);
}

void web_watch_tick(struct web_watch *watch)
{
	int64_t now_ns = clock_mono_ns();

	if (watch->started && !atomic_load(&watch->running))
		end_look(watch);
	if (watch->started || now_ns - watch->looked_ns < WEB_WATCH_NS || !web_access_has_files(watch->texts))
		return;
	watch->looked_ns = now_ns;
	begin_look(watch);
}

int web_watch_new(struct web *web, const struct options *options, struct web_watch **ret_watch)
{
	struct web_watch *watch = calloc(1, sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	watch->web = web;
	watch->looked_ns = clock_mono_ns();
	strbuf_init(&watch->records, ACCESS_BYTES_MAX);
	r = web_watch_configure(watch, options);
	if (r < 0)
		web_watch_free(watch);
	else
		*ret_watch = watch;
	return r;
}

void web_watch_free(struct web_watch *watch)
{
	if (!watch)
		return;
	/* A look that hangs keeps what it has. */
	if (watch->started && atomic_load(&watch->running))
		return;
	if (watch->started) {
		watch->outdated = true;
		end_look(watch);
	}
	access_forget(&watch->records);
	free_texts(watch->texts);
	free(watch->logged);
	free(watch);
}
