// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/top/growth.h"
#include "config.h"
#include "helper/helper.h"
#include "hosts/protocol.h"

/* What a host that is silent has said before is shown for so long, with its age. */
#define OLD_NS (10 * NSEC_PER_SEC)

_Static_assert(HOSTS_URLS_MAX >= HOSTS_MAX * HOST_URL_TEXT, "all hosts of a list are asked");
_Static_assert(sizeof(struct hosts_begin) <= HELPER_MESSAGE_MAX, "comes whole");

struct host_state {
	struct strbuf body; /* of the page that comes */
	json_t *pages[PAGES]; /* of the round that comes, but the first */
	bool asked, findings_asked; /* in the round that comes, or was the last */
	json_t *findings; /* the page as it was asked for last; NULL: there is none */
	int64_t findings_ns; /* when that was; 0: never, or what was said then is not so any more */
	struct sample *newest; /* NULL: none */
	int64_t answered_mono_ns; /* 0: never */
	char failure[HOSTS_WORDS_MAX]; /* of the newest round; "": it has answered, or was not asked yet */
};

struct hosts {
	const struct options *options;
	const struct host_list *list;
	struct helper *helper;
	bool begun; /* the process knows the hosts */
	bool news;
	struct host_state *states;
};

/* ---- what it is told ---- */

static int read_pem(const struct options *options, enum option_id id, char *pem, char why[static 160])
{
	const char *path = options_text(options, id);
	int r = path ? read_file(path, pem, HOSTS_PEM_MAX, NULL) : 0;

	if (r < 0)
		snprintf(why, 160, "%.100s cannot be read: %s", path, strerror(-r));
	return r;
}

static int begin_process(struct hosts *hosts, char why[static 160])
{
	_cleanup_free_ struct hosts_begin *message = calloc(1, sizeof(*message));
	size_t at = 0;
	int r;

	if (!message)
		return -ENOMEM;
	snprintf(message->version, sizeof(message->version), "%s", GPUSONDE_VERSION);
	message->message = HOSTS_BEGIN;
	for (uint32_t i = 0; i < hosts->list->n; i++, message->n++) {
		const char *url = hosts->list->list[i].url;

		at += strlen(strcpy(message->urls + at, url)) + 1;
	}
	for (unsigned i = 0; i < PAGES; i++)
		snprintf(message->paths[i], HOSTS_PATH_MAX, "%s", page_path((enum page)i));
	r = read_pem(hosts->options, OPT_client_ca_file, message->ca, why);
	if (r == 0)
		r = read_pem(hosts->options, OPT_client_certificate_file, message->certificate, why);
	if (r == 0)
		r = read_pem(hosts->options, OPT_client_key_file, message->key, why);
	if (r == 0)
		r = helper_send(hosts->helper, message, sizeof(*message), -1);
	explicit_bzero(message->key, sizeof(message->key));
	hosts->begun = r == 0;
	return r;
}

/* The file is read each time: tokens are renewed. */
static int ask_round(struct hosts *hosts, unsigned pages, char why[static 160])
{
	struct hosts_round round = { .message = HOSTS_ROUND, .pages = pages };
	const char *path = options_text(hosts->options, OPT_client_token_file);
	int r = path ? read_file(path, round.token, sizeof(round.token), NULL) : 0;

	if (r < 0) {
		snprintf(why, 160, "%.100s cannot be read: %s", path, strerror(-r));
		return r;
	}
	round.token[strcspn(round.token, "\r\n")] = '\0';
	r = helper_send(hosts->helper, &round, sizeof(round), -1);
	explicit_bzero(round.token, sizeof(round.token));
	return r;
}

static void fail_host(struct hosts *hosts, uint32_t i, const char *why)
{
	struct host_state *state = &hosts->states[i];

	snprintf(state->failure, sizeof(state->failure), "%s", why);
	utf8_sanitize(state->failure);
	state->asked = false;
	json_decref(state->findings);
	state->findings = NULL;
	state->findings_ns = 0;
	hosts->news = true;
}

/* What is wrong is said above all tabs, and findings are part of it. */
static bool are_findings_due(const struct hosts *hosts, int64_t now_ns)
{
	for (uint32_t i = 0; i < hosts->list->n; i++) {
		const struct host_state *state = &hosts->states[i];

		if (!state->asked && (!state->findings_ns || now_ns - state->findings_ns >= FINDINGS_NS))
			return true;
	}
	return false;
}

/* Who is being asked still is not asked anew. */
static void expect_answer(struct host_state *state, unsigned pages, int64_t now_ns)
{
	if (state->asked)
		return;
	state->asked = true;
	state->findings_asked = pages >> PAGE_FINDINGS & 1;
	if (state->findings_asked)
		state->findings_ns = now_ns;
}

void hosts_ask(struct hosts *hosts, unsigned pages)
{
	int64_t now_ns = clock_mono_ns();
	char why[160] = "";
	int r = hosts->begun ? 0 : begin_process(hosts, why);

	pages |= 1u << PAGE_NODE;
	if (are_findings_due(hosts, now_ns))
		pages |= 1u << PAGE_FINDINGS;
	if (r == 0)
		r = ask_round(hosts, pages, why);
	if (r == -EAGAIN)
		return; /* one that has ended is replaced in a moment, or is busy */
	if (r < 0 && !*why)
		snprintf(why, sizeof(why), "gpusonde-hosts, which asks them, cannot be started: %s",
			 strerror(-r));
	for (uint32_t i = 0; i < hosts->list->n; i++)
		if (r < 0)
			fail_host(hosts, i, why);
		else
			expect_answer(&hosts->states[i], pages, now_ns);
}

/* ---- what it says ---- */

static void forget_round(struct host_state *state)
{
	strbuf_reset(&state->body);
	for (unsigned i = 0; i < PAGES; i++) {
		json_decref(state->pages[i]);
		state->pages[i] = NULL;
	}
}

/* Each sample has a copy of its own: others are in other threads' hands. */
static void keep_findings(struct host_state *state, struct sample *sample)
{
	if (!state->findings_asked) {
		sample->pages[PAGE_FINDINGS] = json_deep_copy(state->findings);
		return;
	}
	json_decref(state->findings);
	state->findings = json_deep_copy(sample->pages[PAGE_FINDINGS]);
}

/* False: it is no page of an agent. */
static bool take_page(struct hosts *hosts, uint32_t i, enum page page)
{
	struct host_state *state = &hosts->states[i];
	struct sample *sample = NULL;

	if (page != PAGE_NODE) {
		json_decref(state->pages[page]);
		state->pages[page] = json_loadb(state->body.data, state->body.len, 0, NULL);
		return true;
	}
	if (sample_of_text(state->body.data, state->body.len, &sample) < 0)
		return false;
	sample->from_agent = true;
	snprintf(sample->host, sizeof(sample->host), "%s", hosts->list->list[i].name);
	for (unsigned k = PAGE_NODE + 1; k < PAGES; k++)
		sample->pages[k] = TAKE_PTR(state->pages[k]);
	keep_findings(state, sample);
	growth_follow(sample, state->newest);
	sample_free(state->newest);
	state->newest = sample;
	state->answered_mono_ns = sample->mono_ns;
	return true;
}

static bool take_part(struct hosts *hosts, const struct hosts_part *part, size_t n)
{
	struct host_state *state;

	if (n < offsetof(struct hosts_part, data) || part->n > HOSTS_PART_MAX ||
	    n != offsetof(struct hosts_part, data) + part->n || part->host >= hosts->list->n ||
	    part->path >= PAGES)
		return false;
	state = &hosts->states[part->host];
	strbuf_add(&state->body, part->data, part->n);
	if (state->body.failed)
		return false;
	if (part->rest > 0)
		return true;
	if (!take_page(hosts, part->host, (enum page)part->path))
		fail_host(hosts, part->host,
			  "its answer is not understood: check that it has this command's version");
	strbuf_reset(&state->body);
	return true;
}

static bool take_end(struct hosts *hosts, const struct hosts_end *end, size_t n)
{
	char words[HOSTS_WORDS_MAX];

	if (n != sizeof(*end) || end->host >= hosts->list->n)
		return false;
	snprintf(words, sizeof(words), "%.*s", HOSTS_WORDS_MAX - 1, end->words);
	if (end->failed)
		fail_host(hosts, end->host, words);
	else if (hosts->states[end->host].asked) /* what is not understood is said already */
		hosts->states[end->host].failure[0] = '\0';
	hosts->states[end->host].asked = false;
	hosts->news = true;
	forget_round(&hosts->states[end->host]);
	return true;
}

bool hosts_take(struct hosts *hosts, const void *message, size_t n)
{
	uint32_t what = 0;

	if (n >= sizeof(what))
		memcpy(&what, message, sizeof(what));
	return what == HOSTS_PART ? take_part(hosts, message, n) :
	       what == HOSTS_END  ? take_end(hosts, message, n) :
				    false;
}

static void on_hosts_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct hosts *hosts = userdata;

	closep(&fd);
	if (!hosts_take(hosts, message, n))
		helper_reject(hosts->helper);
}

static void on_hosts_lost(_unused_ bool hung, void *userdata)
{
	struct hosts *hosts = userdata;

	hosts->begun = false;
	for (uint32_t i = 0; i < hosts->list->n; i++) {
		forget_round(&hosts->states[i]);
		fail_host(hosts, i, "gpusonde-hosts, which asks it, ended");
	}
}

bool hosts_have_news(const struct hosts *hosts)
{
	return hosts->news;
}

bool hosts_are_done(const struct hosts *hosts)
{
	for (uint32_t i = 0; i < hosts->list->n; i++)
		if (hosts->states[i].asked)
			return false;
	return true;
}

int hosts_fill(struct hosts *hosts, struct sample *sample)
{
	sample->parts = calloc(hosts->list->n + 1, sizeof(*sample->parts));
	if (!sample->parts)
		return -ENOMEM;
	sample->parts_n = hosts->list->n;
	sample->from_agent = true;
	for (uint32_t i = 0; i < sample->parts_n; i++) {
		struct host_state *state = &hosts->states[i];
		struct host_part *part = &sample->parts[i];

		if (state->failure[0] && sample->mono_ns - state->answered_mono_ns > OLD_NS) {
			sample_free(state->newest);
			state->newest = NULL;
		}
		snprintf(part->name, sizeof(part->name), "%s", hosts->list->list[i].name);
		snprintf(part->failure, sizeof(part->failure), "%s", state->failure);
		part->age_ns = state->answered_mono_ns ? sample->mono_ns - state->answered_mono_ns : -1;
		part->sample = sample_ref(state->newest);
	}
	hosts->news = false;
	return 0;
}

/* ---- life ---- */

int hosts_new(sd_event *event, const struct options *options, const struct host_list *list,
	      struct hosts **ret_hosts)
{
	static const struct helper_ops ops = { on_hosts_answer, on_hosts_lost };
	const struct helper_config config = { .program = "gpusonde-hosts", .role = "hosts", .max_stuck = 1 };
	_cleanup_(hosts_freep) struct hosts *hosts = calloc(1, sizeof(*hosts));
	int r;

	if (!hosts)
		return -ENOMEM;
	hosts->options = options;
	hosts->list = list;
	hosts->states = calloc(list->n + 1, sizeof(*hosts->states));
	if (!hosts->states)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->n; i++)
		strbuf_init(&hosts->states[i].body, HOSTS_PAGE_MAX);
	r = helper_new(event, &config, &ops, hosts, &hosts->helper);
	if (r < 0)
		return r;
	*ret_hosts = TAKE_PTR(hosts);
	return 0;
}

void hosts_free(struct hosts *hosts)
{
	if (!hosts)
		return;
	helper_free(hosts->helper);
	for (uint32_t i = 0; hosts->states && i < hosts->list->n; i++) {
		forget_round(&hosts->states[i]);
		strbuf_done(&hosts->states[i].body);
		json_decref(hosts->states[i].findings);
		sample_free(hosts->states[i].newest);
	}
	free(hosts->states);
	free(hosts);
}
