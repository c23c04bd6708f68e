// SPDX-License-Identifier: Apache-2.0
#include "agent/push.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/row_list.h"
#include "base/text.h"
#include "config.h"
#include "config/places.h"
#include "helper/helper.h"
#include "view/container_rows.h"

#define ASK_NS (3900 * NSEC_PER_MSEC) /* how it goes: with every fourth tick of a second */
#define ANSWER_NS (20 * NSEC_PER_SEC) /* disks are slow at times */
#define RETRY_NS (2 * NSEC_PER_SEC) /* after its process has failed; then twice as long each time */
#define RETRY_LATEST_NS (60 * NSEC_PER_SEC)
enum { MAX_STUCK = 2 };

struct push {
	struct model *model;
	struct helper *helper;
	struct push_config config;
	char *key_file; /* NULL: the environment's */
	bool asked;
	int64_t asked_ns, pushed_ns; /* boot clock; 0: never */
	int64_t after_ns; /* the next question is due so long after the one before */
	unsigned failures; /* of its process, in a row */
	char key_error[300]; /* why there is no key; "" */
	char error[600]; /* of it all; "" */
};

/* ---- how things stand ---- */

static void log_push_error(const char *error, const char *before)
{
	if (STRV_EQ(error, before))
		return;
	if (*error)
		log_warning("pushing to the server: %s", error);
	else
		log_notice("pushing to the server works again");
}

static void set_push_state(struct push *p, enum push_outcome outcome, const char *error)
{
	char text[sizeof(p->error)];

	snprintf(text, sizeof(text), "%s%s%s", p->key_error, *p->key_error && *error ? "; " : "", error);
	log_push_error(text, p->error);
	snprintf(p->error, sizeof(p->error), "%s", text);
	if (outcome != PUSH_BEGINS || *text)
		model_agent_set(p->model, AGENT_PUSH_UP, outcome == PUSH_OK && !*p->key_error);
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

static void take_push_figures(struct push *p, const struct push_end *end)
{
	model_agent_add(p->model, AGENT_PUSH_SENT, (double)end->sent);
	model_agent_add(p->model, AGENT_PUSH_QUEUED, (double)end->queued);
	model_agent_add(p->model, AGENT_PUSH_REFUSED, (double)end->refused);
	for (unsigned i = NET_OK + 1; i < NET_FAILURES; i++)
		model_agent_add(p->model, AGENT_PUSH_FAILED_CONNECT + (i - NET_FAILED_CONNECT),
				(double)end->failures[i]);
	model_agent_add(p->model, AGENT_PUSH_LOST_FULL, (double)end->lost[PUSH_LOST_FULL]);
	model_agent_add(p->model, AGENT_PUSH_LOST_TORN, (double)end->lost[PUSH_LOST_TORN]);
	model_agent_add(p->model, AGENT_PUSH_LOST_UNKEPT, (double)end->lost[PUSH_LOST_UNKEPT]);
	model_agent_set(p->model, AGENT_PUSH_QUEUE_BYTES, (double)end->bytes);
	model_agent_set(p->model, AGENT_PUSH_QUEUE_BATCHES, end->batches);
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
	p->asked = false;
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
	retry_push_later(p);
	set_push_state(p, PUSH_FAILS,
		       hung ? "the process that pushes, gpusonde-push, does not answer" :
			      "the process that pushes, gpusonde-push, ended");
}

/* ---- the key ---- */

static int check_key(const char *key)
{
	if (!*key)
		return -ENODATA;
	for (const char *c = key; *c; c++)
		if (*c <= ' ' || *c > '~')
			return -EINVAL;
	return 0;
}

static int read_key_file(const char *path, char ret_key[static PUSH_KEY_MAX])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n;
	int r = fd < 0 ? -errno : read_fd(fd, ret_key, PUSH_KEY_MAX, &n);

	if (r < 0)
		return r;
	while (n > 0 && strchr(" \t\r\n", ret_key[n - 1]))
		ret_key[--n] = '\0';
	return strlen(ret_key) == n ? 0 : -EINVAL;
}

static int find_key(const char *key_file, char ret_key[static PUSH_KEY_MAX])
{
	const char *key = getenv("API_KEY");
	int r = 0;

	if (key_file)
		r = read_key_file(key_file, ret_key);
	else if (!key || strlen(key) >= PUSH_KEY_MAX)
		r = key ? -E2BIG : -ENODATA;
	else
		strcpy(ret_key, key);
	if (r == 0)
		r = check_key(ret_key);
	if (r < 0)
		ret_key[0] = '\0';
	return r;
}

/* Files of keys are replaced as keys are. */
static void read_key(struct push *p, char ret_key[static PUSH_KEY_MAX])
{
	const char *place = p->key_file ? p->key_file : "API_KEY";
	int r = find_key(p->key_file, ret_key);

	p->key_error[0] = '\0';
	if (r == -ENODATA)
		snprintf(p->key_error, sizeof(p->key_error), "there is no key in %.200s", place);
	else if (r == -EINVAL)
		snprintf(p->key_error, sizeof(p->key_error),
			 "the key in %.200s has other characters than printable ones of ASCII", place);
	else if (r < 0)
		snprintf(p->key_error, sizeof(p->key_error), "the key cannot be read from %.200s: %s", place,
			 strerror(-r));
}

/* ---- rows ---- */

#define PUT(member_, text_) PUT_TEXT(row->member_, text_)

static void fill_row(const struct container_row *from, struct push_row *row)
{
	PUT(gpu, from->gpu);
	PUT(uuid, from->uuid);
	PUT(device, from->device);
	PUT(model, from->model);
	PUT(mig_profile, from->mig_profile);
	PUT(mig_instance, from->mig_instance);
	PUT(node, from->node);
	PUT(container, from->container);
	PUT(namespace, from->namespace);
	PUT(pod, from->pod);
	for (unsigned m = 0; m < CONTRACT_METRICS; m++) {
		if (!container_row_has(from, m) || !isfinite(from->v[m]))
			continue;
		row->v[m] = from->v[m];
		row->present |= 1u << m;
	}
}

/* What is old is no measurement of now, which is how the server takes it. */
static struct push_row *fill_rows(const struct container_rows *rows, uint32_t *ret_n, uint32_t *ret_dropped)
{
	uint32_t n, used = 0, dropped = 0;
	const struct container_row *list = container_rows_list(rows, &n);
	struct push_row *made = calloc(MIN(n, (uint32_t)PUSH_ROWS_MAX) + 1u, sizeof(*made));

	for (uint32_t i = 0; made && i < n; i++) {
		if (list[i].stale || list[i].present == 0)
			continue;
		if (used == PUSH_ROWS_MAX)
			dropped++;
		else
			fill_row(&list[i], &made[used++]);
	}
	*ret_n = used;
	*ret_dropped = dropped;
	return made;
}

/* A file in memory with the rows: a descriptor, the caller's, or -errno. */
static int write_rows(const struct push_row *rows, uint32_t n)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-push", MFD_CLOEXEC);
	ssize_t r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, rows, n * sizeof(*rows));
	return r < 0 ? (int)r : TAKE_FD(fd);
}

/* -ENODATA: there is nothing to push. */
static int make_rows(struct push *p, const struct snapshot *snapshot, uint32_t *ret_n)
{
	_cleanup_free_ struct push_row *made = NULL;
	struct container_rows *rows;
	uint32_t dropped;
	int r = container_rows_new(snapshot, &rows);

	if (r < 0)
		return r;
	made = fill_rows(rows, ret_n, &dropped);
	container_rows_free(rows);
	if (!made)
		return -ENOMEM;
	model_agent_add(p->model, AGENT_DROPPED_PUSH_ROWS, dropped);
	return *ret_n == 0 ? -ENODATA : write_rows(made, *ret_n);
}

/* ---- questions ---- */

static void send_question(struct push *p, int64_t now_ns, uint32_t rows, int fd)
{
	struct push_question *question = calloc(1, sizeof(*question));
	int r = -ENOMEM;

	if (question) {
		snprintf(question->version, sizeof(question->version), "%s", GPUSONDE_VERSION);
		question->settings = p->config.settings;
		question->rows = rows;
		question->row_bytes = sizeof(struct push_row);
		read_key(p, question->key);
		r = helper_send(p->helper, question, sizeof(*question), fd);
		explicit_bzero(question->key, sizeof(question->key));
		free(question);
	}
	if (r == -EAGAIN)
		return; /* with the next tick */
	p->asked_ns = now_ns;
	if (fd >= 0)
		p->pushed_ns = now_ns;
	if (r < 0) {
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

static void push_rows(struct push *p, const struct snapshot *snapshot, int64_t now_ns)
{
	_cleanup_close_ int fd = -1;
	uint32_t n = 0;

	fd = make_rows(p, snapshot, &n);
	if (fd < 0 && fd != -ENODATA)
		set_push_state(p, PUSH_FAILS, strerror(-fd));
	send_question(p, now_ns, fd < 0 ? 0 : n, fd < 0 ? -1 : fd);
}

void push_tick(struct push *p, const struct snapshot *snapshot)
{
	int64_t now_ns = clock_boot_ns();

	if (p->asked)
		return;
	if (p->failures == 0 && snapshot->fresh && is_after(p->pushed_ns, now_ns, p->config.interval_ns))
		push_rows(p, snapshot, now_ns);
	/* Also before anything was read: there may be what an agent before this one has left. */
	else if (is_after(p->asked_ns, now_ns, p->after_ns))
		send_question(p, now_ns, 0, -1);
}

/* ---- what is configured ---- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

#define COPY_SETTING(member_, text_) snprintf(member_, sizeof(member_), "%s", text_)

/* As programs in Go read it: the upper case first. */
static void copy_variable(const char *upper, const char *lower, char *out, size_t size)
{
	const char *value = getenv(upper);

	if (!value || !*value)
		value = getenv(lower);
	if (value && strlen(value) < size)
		strcpy(out, value);
}

static void find_proxy(struct push_settings *settings)
{
	bool tls = strncmp(settings->url, "https://", 8) == 0;

	copy_variable(tls ? "HTTPS_PROXY" : "HTTP_PROXY", tls ? "https_proxy" : "http_proxy", settings->proxy,
		      sizeof(settings->proxy));
	copy_variable("NO_PROXY", "no_proxy", settings->no_proxy, sizeof(settings->no_proxy));
}

static int check_url(const char *url, char *why, size_t size)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
		snprintf(why, size, "push.url (CAST_API) must begin with https:// or http://");
	else if (strpbrk(url, "@?# ") || !text_is_printable(url) || host[3] == '/' || host[3] == '\0')
		snprintf(why, size,
			 "push.url (CAST_API) must be a scheme, a host and perhaps a port and a path");
	else
		return 0;
	return -EINVAL;
}

/* Appends to a list of what is missing. */
static void add_missing(bool there, const char *name, char *list, size_t size)
{
	size_t n = strlen(list);

	if (!there)
		snprintf(list + n, size - n, "%s%s", n ? ", " : "", name);
}

/* It becomes a part of the address. */
static int check_cluster(const char *cluster, char *why, size_t size)
{
	if (text_is_printable(cluster) && !strpbrk(cluster, "/ ") && !STRV_EQ(cluster, ".") &&
	    !STRV_EQ(cluster, ".."))
		return 0;
	snprintf(why, size, "push.cluster (CLUSTER_ID) must be an ID, without blanks and slashes");
	return -EINVAL;
}

static int check_whole(const struct options *options, char *why, size_t size)
{
	const char *url = options_text(options, OPT_push_url),
		   *file = options_text(options, OPT_push_key_file);
	const char *cluster = options_text(options, OPT_push_cluster);
	char missing[160] = "";
	int r;

	/* API_KEY alone may be anybody's. */
	if (!url && !cluster && !file)
		return -ENOENT;
	add_missing(url, "push.url (CAST_API)", missing, sizeof(missing));
	add_missing(cluster, "push.cluster (CLUSTER_ID)", missing, sizeof(missing));
	add_missing(file || getenv("API_KEY"), "push.key_file (or the variable API_KEY)", missing,
		    sizeof(missing));
	if (!*missing) {
		r = check_url(url, why, size);
		return r < 0 ? r : check_cluster(cluster, why, size);
	}
	snprintf(why, size, "only a part of it is configured; missing: %s", missing);
	return -EINVAL;
}

int push_configure(const struct options *options, struct push_config *ret_config, char *why, size_t size)
{
	struct push_settings *s = &ret_config->settings;
	struct place place;
	int r = check_whole(options, why, size);
	size_t n;

	if (r < 0)
		return r;
	*ret_config = (struct push_config){
		.key_file = options_text(options, OPT_push_key_file),
		.interval_ns = options_number(options, OPT_push_interval),
	};
	COPY_SETTING(s->url, or_empty(options_text(options, OPT_push_url)));
	COPY_SETTING(s->cluster, or_empty(options_text(options, OPT_push_cluster)));
	COPY_SETTING(s->folder, place_state(options, &place));
	COPY_SETTING(s->ca_file, or_empty(options_text(options, OPT_push_ca_file)));
	s->queue_bytes = (uint64_t)options_number(options, OPT_push_queue);
	for (n = strlen(s->url); n > 0 && s->url[n - 1] == '/'; n--)
		s->url[n - 1] = '\0';
	find_proxy(s);
	if (strncmp(s->url, "http://", 7) == 0)
		log_warning("push.url is not https: the key is sent to %s unencrypted", s->url);
	return 0;
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
	p->config = *config;
	p->config.program = NULL;
	p->after_ns = ASK_NS;
	if (config->key_file) {
		p->key_file = strdup(config->key_file);
		if (!p->key_file)
			return -ENOMEM;
	}
	r = helper_new(event, &helper, &ops, p, &p->helper);
	if (r < 0)
		return r;
	*ret_push = TAKE_PTR(p);
	return 0;
}

void push_free(struct push *p)
{
	if (!p)
		return;
	helper_free(p->helper);
	free(p->key_file);
	free(p);
}

pid_t push_pid(const struct push *p)
{
	struct helper_stats stats;

	helper_stats(p->helper, &stats);
	return stats.pid;
}
