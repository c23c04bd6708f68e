// SPDX-License-Identifier: Apache-2.0
#include "kube/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "kube/url.h"
#include "net/failure.h"

enum {
	PAGE_OBJECTS = 500,
	VERSION_MAX = 256,
	CONTINUE_MAX = 8192, /* bytes of the token that the next page is asked for with */
	PAGES_MAX = 2000, /* of one list: a server that always has another page is no server */
};
#define LIST_QUIET_NS (30 * NSEC_PER_SEC)
#define LIST_WHOLE_NS (300 * NSEC_PER_SEC) /* of all its pages together */
#define WATCH_GRACE_NS (30 * NSEC_PER_SEC) /* for the end of a watch to come */
#define SHORT_WATCH_NS NSEC_PER_SEC /* one that ends sooner counts as a failure */
#define RETRY_FIRST_NS NSEC_PER_SEC
#define RETRY_LAST_NS (60 * NSEC_PER_SEC)
/* Where nobody answers, nobody has work from being asked: one that was restarted is found again soon. */
#define RETRY_UNANSWERED_NS (10 * NSEC_PER_SEC)

enum phase { WAITING, LISTING, WATCHING };

enum {
	ID_EVENT_TYPE = WATCH_OWN_IDS,
	ID_EVENT, /* one document of a watch */
	ID_OBJECT_VERSION,
	ID_OBJECT_CODE, /* of a Status */
	ID_OBJECT_MESSAGE,
	ID_ITEM,
	ID_LIST_VERSION,
	ID_LIST_CONTINUE,
};

struct watch {
	struct client *client;
	struct watch_config config;
	char *path, *query;
	struct json_reader *list_reader, *watch_reader;
	enum phase phase;
	struct request *request;
	int64_t due_ns; /* of WAITING: when to go on */
	int64_t begun_ns; /* of LISTING, WATCHING */
	bool relist, from_etcd, rejected;
	unsigned retries; /* failures in a row */
	unsigned pages;
	char version[VERSION_MAX]; /* up to which all is known; "": it is not */
	char next_version[VERSION_MAX]; /* of the list that comes, or the object at hand */
	char next_page[CONTINUE_MAX];
	char type[16]; /* of the event at hand */
	long code;
	char message[200];
	struct watch_state state;
};

/* ---- failures ---- */

/* Half of it to all of it, so that a thousand nodes do not come back at once. */
static int64_t with_jitter(int64_t ns)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		return ns;
	return ns / 2 + (int64_t)((double)(ns / 2) * random / UINT32_MAX);
}

static bool is_short(const struct watch *watch)
{
	return clock_mono_ns() - watch->begun_ns < MIN(SHORT_WATCH_NS, watch->config.timeout_ns / 2);
}

/* Only a watch that has lasted is a success: what ends each one at once lets each list come. */
static void forget_failures(struct watch *watch)
{
	if (watch->phase == WATCHING && !is_short(watch))
		watch->retries = 0;
}

static void wait_before_next(struct watch *watch, int64_t least_ns, int64_t most_ns)
{
	int64_t after_ns;

	forget_failures(watch);
	after_ns = RETRY_FIRST_NS << MIN(watch->retries, 6u);
	watch->retries++;
	watch->phase = WAITING;
	watch->due_ns = clock_mono_ns() + MAX(least_ns, with_jitter(MIN(after_ns, most_ns)));
}

static void note_failure(struct watch *watch, enum watch_outcome outcome, enum net_failure failure,
			 const char *words)
{
	watch->state.outcome = outcome;
	watch->state.failures[failure]++;
	snprintf(watch->state.error, sizeof(watch->state.error), "%s %s: %s",
		 watch->phase == WATCHING ? "watching" : "listing", watch->path, words);
	utf8_sanitize(watch->state.error);
}

static void fail_watch(struct watch *watch, enum net_failure failure, const char *words)
{
	note_failure(watch, WATCH_FAILS, failure, words);
	wait_before_next(watch, 0, RETRY_LAST_NS);
}

static void fail_by(struct watch *watch, const struct outcome *outcome)
{
	bool refused = outcome->status == 401 || outcome->status == 403 || outcome->status == 404;

	/* Tokens and certificates may have been replaced. */
	watch->rejected |= outcome->status == 401 || net_failure_is_tls(outcome->failure);
	note_failure(watch, refused ? WATCH_REFUSED : WATCH_FAILS, outcome->failure, outcome->words);
	/* A server that has just started refuses for a moment what it will permit. */
	wait_before_next(watch, outcome->retry_after_ns,
			 outcome->status ? RETRY_LAST_NS : RETRY_UNANSWERED_NS);
}

static void succeed(struct watch *watch)
{
	watch->state.outcome = WATCH_WELL;
	watch->state.error[0] = '\0';
	watch->state.good_ns = clock_mono_ns();
}

/*
 * At once the first time. A server that always answers so would be asked without end, and by every node: then
 * it is a failure as others are.
 */
static void list_anew(struct watch *watch)
{
	watch->relist = watch->from_etcd = true;
	watch->version[0] = '\0';
	forget_failures(watch);
	if (watch->retries > 0) {
		fail_watch(watch, NET_FAILED_STATUS, "whatever it is asked for is too old (410)");
		return;
	}
	watch->state.failures[NET_FAILED_STATUS] += watch->phase == LISTING;
	watch->retries++;
	watch->phase = WAITING;
	watch->due_ns = 0;
}

/* ---- what comes ---- */

static int copy_value(char *to, size_t size, const struct json_value *value)
{
	if (value->kind != JSON_VALUE_TEXT || value->n >= size || memchr(value->text, 0, value->n))
		return value->kind == JSON_VALUE_NULL ? 0 : -EBADMSG;
	memcpy(to, value->text, value->n);
	to[value->n] = '\0';
	return 0;
}

static void cut_value(char *to, size_t size, const struct json_value *value)
{
	size_t n = value->kind == JSON_VALUE_TEXT ? MIN(value->n, size - 1) : 0;

	if (n)
		memcpy(to, value->text, n);
	to[n] = '\0';
}

static int take_own(struct watch *watch, int id, const struct json_value *value)
{
	char number[16] = "";

	switch (id) {
	case ID_EVENT_TYPE:
		cut_value(watch->type, sizeof(watch->type), value);
		return 0;
	case ID_OBJECT_VERSION:
	case ID_LIST_VERSION:
		return copy_value(watch->next_version, sizeof(watch->next_version), value);
	case ID_LIST_CONTINUE:
		return copy_value(watch->next_page, sizeof(watch->next_page), value);
	case ID_OBJECT_MESSAGE:
		cut_value(watch->message, sizeof(watch->message), value);
		return 0;
	case ID_OBJECT_CODE:
		if (value->kind == JSON_VALUE_NUMBER)
			memcpy(number, value->text, MIN(value->n, sizeof(number) - 1));
		watch->code = strtol(number, NULL, 10);
		return 0;
	default:
		return 0;
	}
}

static int on_value(int id, const struct json_value *value, void *userdata)
{
	struct watch *watch = userdata;

	return id >= WATCH_OWN_IDS ? take_own(watch, id, value) :
				     watch->config.ops.value(id, value, watch->config.userdata);
}

static int on_begin(int id, void *userdata)
{
	struct watch *watch = userdata;

	if (id == ID_EVENT) {
		watch->type[0] = watch->next_version[0] = watch->message[0] = '\0';
		watch->code = 0;
	}
	if (id == ID_EVENT || id == ID_ITEM)
		watch->config.object_begins(watch->config.userdata);
	if (id >= WATCH_OWN_IDS || !watch->config.ops.begin)
		return 0;
	return watch->config.ops.begin(id, watch->config.userdata);
}

/* -ECANCELED: the server ends the watch by it. */
static int take_event(struct watch *watch)
{
	bool there = STRV_EQ(watch->type, "ADDED") || STRV_EQ(watch->type, "MODIFIED");
	bool gone = STRV_EQ(watch->type, "DELETED");

	if (STRV_EQ(watch->type, "ERROR"))
		return -ECANCELED;
	if (there || gone)
		watch->config.object_ended(gone, watch->config.userdata);
	else if (!STRV_EQ(watch->type, "BOOKMARK"))
		return -EBADMSG;
	if (watch->next_version[0])
		memcpy(watch->version, watch->next_version, sizeof(watch->version));
	forget_failures(watch);
	succeed(watch);
	return 0;
}

static int on_end(int id, void *userdata)
{
	struct watch *watch = userdata;

	if (id == ID_EVENT)
		return take_event(watch);
	if (id == ID_ITEM)
		watch->config.object_ended(false, watch->config.userdata);
	if (id >= WATCH_OWN_IDS || !watch->config.ops.end)
		return 0;
	return watch->config.ops.end(id, watch->config.userdata);
}

static int on_data(const char *data, size_t n, void *userdata)
{
	struct watch *watch = userdata;

	return json_feed(watch->phase == LISTING ? watch->list_reader : watch->watch_reader, data, n);
}

/* ---- lists ---- */

static int ask_url(struct watch *watch, struct strbuf *url, const struct request_limits *limits,
		   const struct request_ops *ops)
{
	if (url->failed)
		return -ENOMEM;
	return client_get(watch->client, url->data, "application/json", limits, ops, watch, &watch->request);
}

static void end_list(struct watch *watch)
{
	memcpy(watch->version, watch->next_version, sizeof(watch->version));
	watch->relist = false;
	watch->from_etcd = true;
	watch->state.listed = true;
	succeed(watch);
	watch->config.list_ended(watch->config.userdata);
	watch->phase = WAITING;
	watch->due_ns = 0;
}

static void on_page(const struct outcome *outcome, void *userdata);

static void ask_page(struct watch *watch)
{
	static const struct request_ops ops = { on_data, on_page };
	const struct request_limits limits = { LIST_QUIET_NS,
					       watch->begun_ns + LIST_WHOLE_NS - clock_mono_ns() };
	struct strbuf url;
	int r;

	strbuf_init(&url, 0);
	strbuf_addf(&url, "%s?%s%slimit=%d", watch->path, watch->query, *watch->query ? "&" : "",
		    PAGE_OBJECTS);
	if (watch->next_page[0]) {
		strbuf_adds(&url, "&continue=");
		url_add(&url, watch->next_page);
	} else if (!watch->from_etcd) {
		strbuf_adds(&url, "&resourceVersion=0");
	}
	watch->next_page[0] = watch->next_version[0] = '\0';
	r = json_reader_reset(watch->list_reader);
	if (r == 0)
		r = ask_url(watch, &url, &limits, &ops);
	if (r < 0)
		fail_watch(watch, NET_FAILED_LOCAL, strerror(-r));
	strbuf_done(&url);
}

static void begin_list(struct watch *watch)
{
	watch->phase = LISTING;
	watch->begun_ns = clock_mono_ns();
	watch->state.lists++;
	watch->pages = 0;
	watch->next_page[0] = '\0';
	watch->config.list_begins(watch->config.userdata);
	ask_page(watch);
}

static void on_page(const struct outcome *outcome, void *userdata)
{
	struct watch *watch = userdata;

	watch->request = NULL;
	if (outcome->status == 410) {
		list_anew(watch);
	} else if (outcome->error || outcome->status != 200) {
		fail_by(watch, outcome);
	} else if (json_end(watch->list_reader) < 0 || !watch->next_version[0]) {
		fail_watch(watch, NET_FAILED_BODY, "what it sends is no list");
	} else if (!watch->next_page[0]) {
		end_list(watch);
	} else if (++watch->pages == PAGES_MAX || clock_mono_ns() - watch->begun_ns >= LIST_WHOLE_NS) {
		note_failure(watch, WATCH_FAILS, NET_FAILED_BODY, "the list does not end");
		wait_before_next(watch, RETRY_LAST_NS, RETRY_LAST_NS);
	} else {
		ask_page(watch);
	}
}

/* ---- watches ---- */

static void end_by_error(struct watch *watch)
{
	char words[sizeof(watch->message) + 32];

	if (watch->code == 410) {
		list_anew(watch);
		return;
	}
	snprintf(words, sizeof(words), "error %ld: %s", watch->code, watch->message);
	fail_watch(watch, NET_FAILED_STATUS, words);
}

/* A server ends watches when their time is over, or it ends itself. */
static void end_cleanly(struct watch *watch)
{
	if (json_end(watch->watch_reader) < 0) {
		fail_watch(watch, NET_FAILED_TRANSPORT, "the connection broke within an event");
	} else if (is_short(watch)) {
		wait_before_next(watch, 0, RETRY_LAST_NS);
	} else {
		succeed(watch);
		watch->retries = 0;
		watch->phase = WAITING;
		watch->due_ns = 0;
	}
}

static void on_watch_end(const struct outcome *outcome, void *userdata)
{
	struct watch *watch = userdata;

	watch->request = NULL;
	if (outcome->error == -ECANCELED)
		end_by_error(watch);
	else if (outcome->status == 410)
		list_anew(watch);
	else if (outcome->error || outcome->status != 200)
		fail_by(watch, outcome);
	else
		end_cleanly(watch);
	/* What cannot be read now could not be the next time, from the same version on. */
	if (outcome->error == -EBADMSG || outcome->error == -EFBIG || outcome->error == -E2BIG)
		watch->relist = true;
}

static void begin_watch(struct watch *watch)
{
	static const struct request_ops ops = { on_data, on_watch_end };
	const int64_t most_ns = watch->config.timeout_ns + WATCH_GRACE_NS;
	const struct request_limits limits = { most_ns, most_ns };
	struct strbuf url;
	int r;

	watch->phase = WATCHING;
	watch->state.watches++;
	watch->begun_ns = clock_mono_ns();
	strbuf_init(&url, 0);
	strbuf_addf(&url, "%s?%s%swatch=1&allowWatchBookmarks=true&timeoutSeconds=%lld&resourceVersion=",
		    watch->path, watch->query, *watch->query ? "&" : "",
		    (long long)(watch->config.timeout_ns / NSEC_PER_SEC));
	url_add(&url, watch->version);
	r = json_reader_reset(watch->watch_reader);
	if (r == 0)
		r = ask_url(watch, &url, &limits, &ops);
	if (r < 0)
		fail_watch(watch, NET_FAILED_LOCAL, strerror(-r));
	strbuf_done(&url);
}

/* ---- life ---- */

int64_t watch_step(struct watch *watch, int64_t now_ns)
{
	if (watch->phase == WATCHING && request_is_answered(watch->request))
		succeed(watch);
	if (watch->phase == WAITING && now_ns >= watch->due_ns) {
		if (watch->relist || !watch->version[0])
			begin_list(watch);
		else
			begin_watch(watch);
	}
	return watch->phase == WAITING ? watch->due_ns : INT64_MAX;
}

void watch_reconnect(struct watch *watch)
{
	if (watch->phase == WAITING)
		return;
	client_cancel(watch->client, TAKE_PTR(watch->request));
	watch->phase = WAITING;
	watch->due_ns = 0;
}

void watch_hurry(struct watch *watch)
{
	if (watch->phase == WAITING)
		watch->due_ns = MIN(watch->due_ns, clock_mono_ns() + with_jitter(RETRY_FIRST_NS));
}

bool watch_take_rejected(struct watch *watch)
{
	bool rejected = watch->rejected;

	watch->rejected = false;
	return rejected;
}

const struct watch_state *watch_state(const struct watch *watch)
{
	return &watch->state;
}

static int add_paths(struct watch *watch)
{
	static const struct json_path of_list[] = {
		{ "metadata resourceVersion", ID_LIST_VERSION },
		{ "metadata continue", ID_LIST_CONTINUE },
		{ "items []", ID_ITEM },
	};
	static const struct json_path of_event[] = {
		{ "", ID_EVENT },
		{ "type", ID_EVENT_TYPE },
		{ "object metadata resourceVersion", ID_OBJECT_VERSION },
		{ "object code", ID_OBJECT_CODE },
		{ "object message", ID_OBJECT_MESSAGE },
	};
	const struct watch_config *config = &watch->config;
	int r = json_reader_add(watch->list_reader, "", of_list, ARRAY_SIZE(of_list));

	if (r == 0)
		r = json_reader_add(watch->list_reader, "items []", config->paths, config->paths_n);
	if (r == 0)
		r = json_reader_add(watch->watch_reader, "", of_event, ARRAY_SIZE(of_event));
	if (r == 0)
		r = json_reader_add(watch->watch_reader, "object", config->paths, config->paths_n);
	return r;
}

int watch_new(struct client *client, const struct watch_config *config, struct watch **ret_watch)
{
	static const struct json_ops ops = { on_value, on_begin, on_end };
	_cleanup_(watch_freep) struct watch *watch = calloc(1, sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	watch->client = client;
	watch->config = *config;
	watch->path = strdup(config->path);
	watch->query = strdup(config->query);
	watch->relist = true;
	if (!watch->path || !watch->query)
		return -ENOMEM;
	r = json_reader_new(&ops, watch, &watch->list_reader);
	if (r == 0)
		r = json_reader_new(&ops, watch, &watch->watch_reader);
	if (r == 0)
		r = add_paths(watch);
	if (r < 0)
		return r;
	*ret_watch = TAKE_PTR(watch);
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	client_cancel(watch->client, watch->request);
	json_reader_free(watch->list_reader);
	json_reader_free(watch->watch_reader);
	free(watch->path);
	free(watch->query);
	free(watch);
}
