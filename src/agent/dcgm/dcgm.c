// SPDX-License-Identifier: Apache-2.0
#include "agent/dcgm/dcgm.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/dcgm/reading.h"
#include "agent/dcgm/targets.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "config/exporter.h"
#include "helper/helper.h"

#define CYCLE_NS (30 * NSEC_PER_SEC)
#define ANSWER_NS (CYCLE_NS + 5 * NSEC_PER_SEC)
#define STALE_MIN_NS (20 * NSEC_PER_SEC)

/*
 * After a cycle it rests for so many times the CPU time of it: an exporter's operator chooses its page. A
 * page has a share of the CPU time after which the rest makes nobody's rows stale.
 */
enum { RESTS = 4 };
#define LOST_NS (2 * NSEC_PER_SEC) /* after its process was lost; then twice as long each time */
#define LOST_LATEST_NS (60 * NSEC_PER_SEC)
enum { MAX_STUCK = 2 };

_Static_assert(DCGM_TARGETS_MAX <= 512, "src/dcgm/serve.c takes no more");

struct dcgm {
	struct model *model;
	struct helper *helper;
	char *path, *ca_file;
	unsigned port;
	bool fixed; /* one exporter, which is configured: its GPUs are this node's */
	bool strict;
	uint8_t left_out[FAMILY_NUMBERS];
	int64_t refresh_ns, stale_after_ns;
	char nodes[2][DCGM_NODE_MAX]; /* what this node is called */
	struct dcgm_targets targets; /* those that are asked */
	struct dcgm_target *next; /* NULL: the same; else those that are there from the next cycle on */
	uint32_t next_n;
	bool asked; /* a cycle runs */
	bool listed; /* somebody has said which exporters there are */
	int64_t asked_ns; /* boot clock; 0: never */
	int64_t rests_until_ns; /* boot clock */
	unsigned lost; /* its processes, in a row */
	int64_t good_ns; /* when a page was read last; 0: never */
	bool here; /* it has known GPUs of this node */
	char logged[256]; /* the trouble with the process that was logged last */
	struct reading *reading; /* scratch */
};

static void log_trouble(struct dcgm *d, const char *text)
{
	if (*text && !STRV_EQ(text, d->logged))
		log_warning("DCGM exporters cannot be read: %s", text);
	snprintf(d->logged, sizeof(d->logged), "%s", text);
}

/* ---- what the model gets ---- */

static int give_rows(struct dcgm *d)
{
	uint32_t n = dcgm_targets_rows(&d->targets), at = 0;
	struct scraped_row *rows = calloc(n + 1u, sizeof(*rows));
	int r;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->targets.n; i++) {
		const struct exporter *e = &d->targets.list[i];

		for (uint32_t k = 0; k < e->rows_n; k++) {
			rows[at] = e->rows[k];
			rows[at++].target = i;
		}
	}
	r = model_set_scraped(d->model, rows, n, d->stale_after_ns);
	if (n > SCRAPED_ROWS_MAX)
		model_agent_add(d->model, AGENT_DROPPED_SCRAPED, n - SCRAPED_ROWS_MAX);
	model_agent_set(d->model, AGENT_DCGM_ROWS, MIN(n, (uint32_t)SCRAPED_ROWS_MAX));
	model_agent_set(d->model, AGENT_DCGM_EXPORTERS, d->targets.n);
	free(rows);
	return r;
}

/*
 * The newest page's GPUs of this node. XIDs are taken from pages only where neither the driver nor the kernel
 * log gives them: a page has the last one alone, and much later.
 */
static void give_reading(struct dcgm *d, int64_t begin_ns, int64_t end_ns)
{
	bool xids = !model_source_delivers(d->model, SOURCE_NVML) &&
		    !model_source_delivers(d->model, SOURCE_KMSG);

	dcgm_reading_make(d->reading, &d->targets, xids);
	d->reading->begin_ns = begin_ns;
	d->reading->end_ns = end_ns;
	d->here |= d->reading->entities_n > 0;
	if (!d->here)
		model_set_source(d->model, SOURCE_DCGM, READING_OK, "");
	else if (reading_check(d->reading) == 0)
		(void)model_apply(d->model, SOURCE_DCGM, d->reading);
}

/* A page that could not be read once is none to speak of; what it said is not stale yet. */
static void say_failed(struct dcgm *d, const char *why)
{
	char text[sizeof(((struct source *)NULL)->error)];

	if (d->good_ns && clock_boot_ns() - d->good_ns <= d->stale_after_ns)
		return;
	snprintf(text, sizeof(text), "DCGM: %.240s", why);
	model_set_source(d->model, SOURCE_DCGM, READING_FAILED, text);
}

static void end_cycle(struct dcgm *d, const struct dcgm_end *end)
{
	const struct exporter *failed = NULL;
	int64_t now_ns = clock_boot_ns(), good_ns = 0;

	d->asked = false;
	d->lost = 0;
	d->rests_until_ns = now_ns + RESTS * CLAMP(end->cpu_ns, INT64_C(0), (int64_t)ANSWER_NS);
	helper_deadline(d->helper, 0);
	log_trouble(d, "");
	for (uint32_t i = 0; i < d->targets.n; i++) {
		const struct exporter *e = &d->targets.list[i];

		if (e->failure != SCRAPE_READ)
			failed = failed ? failed : e;
		else
			good_ns = MAX(good_ns, e->boot_ns);
	}
	(void)give_rows(d);
	if (good_ns) {
		d->good_ns = MIN(good_ns, now_ns);
		give_reading(d, MIN(end->begin_ns, d->good_ns), d->good_ns);
	} else if (failed) {
		say_failed(d, failed->error);
	}
}

/* ---- answers ---- */

static void count_outcome(struct dcgm *d, const struct dcgm_outcome *outcome)
{
	model_agent_add(d->model, AGENT_DCGM_SCRAPES, 1);
	for (unsigned i = SCRAPE_READ + 1; i < SCRAPE_FAILURES; i++)
		model_agent_add(d->model, AGENT_DCGM_FAILED_CONNECT + (i - SCRAPE_FAILED_CONNECT),
				outcome->failure == i);
	model_agent_add(d->model, AGENT_DCGM_BYTES, (double)outcome->bytes);
	for (unsigned i = SCRAPE_LINE_TAKEN + 1; i < SCRAPE_LINES; i++)
		model_agent_add(d->model, AGENT_DCGM_LINE_NAME + (i - SCRAPE_LINE_NAME),
				(double)outcome->dropped[i]);
}

static bool outcome_is_valid(const struct dcgm_outcome *outcome)
{
	if (outcome->failure >= SCRAPE_FAILURES || outcome->boot_ns <= 0 ||
	    outcome->bytes > UINT64_C(1) << 40)
		return false;
	for (unsigned i = 0; i < SCRAPE_LINES; i++)
		if (outcome->dropped[i] > outcome->bytes)
			return false;
	return true;
}

static bool take_outcome(struct dcgm *d, struct dcgm_outcome *outcome)
{
	if (!outcome_is_valid(outcome) || !dcgm_targets_end(&d->targets, outcome, clock_boot_ns()))
		return false;
	count_outcome(d, outcome);
	return true;
}

static void take_answer(const void *message, size_t n, int fd, void *userdata)
{
	static union {
		uint32_t message;
		struct dcgm_part part;
		struct dcgm_outcome outcome;
		struct dcgm_end end;
	} answer;
	struct dcgm *d = userdata;
	bool valid = false;

	closep(&fd);
	memcpy(&answer, message, MIN(n, sizeof(answer)));
	if (n < sizeof(answer.message) || n > sizeof(answer) || !d->asked)
		valid = false;
	else if (answer.message == DCGM_PART_ROWS || answer.message == DCGM_PART_DEVICES)
		valid = dcgm_targets_take(&d->targets, &answer.part, n);
	else if (answer.message == DCGM_TARGET && n == sizeof(answer.outcome))
		valid = take_outcome(d, &answer.outcome);
	else if (answer.message == DCGM_END && n == sizeof(answer.end))
		valid = dcgm_targets_are_whole(&d->targets);
	if (!valid)
		helper_reject(d->helper);
	else if (answer.message == DCGM_END)
		end_cycle(d, &answer.end);
}

/* It has told no CPU time: all of the cycle's may have been. */
static void rest_after_loss(struct dcgm *d)
{
	const int64_t now_ns = clock_boot_ns();
	const int64_t cycle_ns = CLAMP(now_ns - d->asked_ns, INT64_C(0), (int64_t)ANSWER_NS);

	d->rests_until_ns = now_ns + MAX(RESTS * cycle_ns, MIN(LOST_NS << MIN(d->lost, 6u), LOST_LATEST_NS));
	d->lost++;
}

static void on_helper_lost(bool hung, void *userdata)
{
	struct dcgm *d = userdata;
	const char *why = hung ? "the process that reads them, gpusonde-dcgm, does not answer" :
				 "the process that reads them, gpusonde-dcgm, ended";

	if (!d->asked)
		return;
	d->asked = false;
	rest_after_loss(d);
	dcgm_targets_drop_coming(&d->targets);
	log_trouble(d, why);
	say_failed(d, why);
}

/* ---- questions ---- */

/* As dcgm_set_targets() has said meanwhile; what is known of those that stay is kept. */
static void take_next(struct dcgm *d)
{
	struct dcgm_targets targets = { 0 };

	if (!d->next)
		return;
	for (uint32_t i = 0; i < d->next_n; i++) {
		char url[DCGM_URL_MAX];

		if (!d->next[i].address[0])
			continue;
		if (exporter_url(d->next[i].address, d->port, d->path, url, sizeof(url)) < 0)
			log_warning("\"%.80s\" is no address of a DCGM exporter", d->next[i].address);
		else if (dcgm_targets_add(&targets, &d->targets, url, d->next[i].node) < 0)
			log_error("no memory for a DCGM exporter");
	}
	dcgm_targets_done(&d->targets);
	d->targets = targets;
	free(TAKE_PTR(d->next));
}

static int send_part(struct dcgm *d, uint32_t at)
{
	static struct dcgm_question question;

	memset(&question, 0, offsetof(struct dcgm_question, asked));
	snprintf(question.version, sizeof(question.version), "%s", GPUSONDE_VERSION);
	question.n = MIN(d->targets.n - at, (uint32_t)DCGM_ASKED_MAX);
	question.more = at + question.n < d->targets.n;
	question.strict = d->strict;
	question.here = d->fixed;
	snprintf(question.ca_file, sizeof(question.ca_file), "%s", d->ca_file);
	question.page_cpu_ns = d->stale_after_ns / 2 / RESTS / d->targets.n;
	memcpy(question.nodes, d->nodes, sizeof(question.nodes));
	memcpy(question.left_out, d->left_out, sizeof(question.left_out));
	for (uint32_t i = 0; i < question.n; i++) {
		const struct exporter *e = &d->targets.list[at + i];

		memcpy(question.asked[i].url, e->url, sizeof(e->url));
		memcpy(question.asked[i].node, e->node, sizeof(e->node));
	}
	return helper_send(d->helper, &question,
			   offsetof(struct dcgm_question, asked) + question.n * sizeof(question.asked[0]),
			   -1);
}

static void ask_helper(struct dcgm *d, int64_t now_ns)
{
	int r = 0;

	for (uint32_t at = 0; r == 0 && at < d->targets.n; at += DCGM_ASKED_MAX) {
		r = send_part(d, at);
		if (r == -EAGAIN && at == 0)
			return; /* with the next tick */
	}
	d->asked_ns = now_ns;
	if (r < 0) {
		const char *why = r == -EBUSY ? "too many processes that read them hang" : strerror(-r);

		helper_stop(d->helper); /* it may have a part of the question */
		log_trouble(d, why);
		say_failed(d, why);
		return;
	}
	d->asked = true;
	dcgm_targets_begin(&d->targets);
	helper_deadline(d->helper, ANSWER_NS);
}

/* Nobody is to be read: what was said is forgotten. */
static void be_without_exporters(struct dcgm *d, int64_t now_ns)
{
	d->asked_ns = now_ns;
	(void)give_rows(d);
	if (d->good_ns)
		say_failed(d, "no exporter is left");
	helper_stop(d->helper);
}

void dcgm_tick(struct dcgm *d)
{
	int64_t now_ns = clock_boot_ns();
	bool first = d->next && d->targets.n == 0;

	if (d->asked || !d->listed || now_ns < d->rests_until_ns ||
	    (d->asked_ns && !first && now_ns - d->asked_ns < d->refresh_ns))
		return;
	take_next(d);
	if (d->targets.n == 0)
		be_without_exporters(d, now_ns);
	else
		ask_helper(d, now_ns);
}

void dcgm_set_targets(struct dcgm *d, const struct dcgm_target *list, uint32_t n)
{
	uint32_t taken = MIN(n, (uint32_t)DCGM_TARGETS_MAX);
	struct dcgm_target *next;

	if (d->fixed)
		return;
	next = calloc(taken + 1u, sizeof(*next));
	if (!next)
		return; /* those of before stay */
	for (uint32_t i = 0; i < taken; i++) {
		snprintf(next[i].address, sizeof(next[i].address), "%s", list[i].address);
		snprintf(next[i].node, sizeof(next[i].node), "%s", list[i].node);
	}
	free(d->next);
	d->next = next;
	d->next_n = taken;
	d->listed = true;
	if (n > taken)
		model_agent_add(d->model, AGENT_DROPPED_SCRAPED, n - taken);
}

/* ---- life ---- */

static int set_host(struct dcgm *d, const char *host)
{
	char url[DCGM_URL_MAX];
	int r = exporter_url(host, d->port, d->path, url, sizeof(url));

	if (r == 0)
		r = dcgm_targets_add(&d->targets, NULL, url, d->nodes[0]);
	d->fixed = d->listed = true;
	return r;
}

/* The names by which pages may call this node. */
static void set_nodes(struct dcgm *d, const char *node)
{
	snprintf(d->nodes[0], sizeof(d->nodes[0]), "%s", node);
	if (gethostname(d->nodes[1], sizeof(d->nodes[1]) - 1) < 0)
		d->nodes[1][0] = '\0';
}

static void choose_numbers(struct dcgm *d, const struct dcgm_fields *fields)
{
	for (unsigned i = 0; fields && i < GPU_METRICS; i++)
		d->left_out[i] = !fields->rows[i].name.name;
	d->left_out[GPU_METRICS] = fields && !fields->extras[DCGM_EXTRA_XID].name.name;
}

int dcgm_new(sd_event *event, struct model *model, const struct dcgm_config *config, struct dcgm **ret_dcgm)
{
	static const struct helper_ops ops = { take_answer, on_helper_lost };
	const struct helper_config helper = {
		.program = config->program ? config->program : "gpusonde-dcgm",
		.role = "dcgm",
		.max_stuck = MAX_STUCK,
	};
	_cleanup_(dcgm_freep) struct dcgm *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->model = model;
	d->port = config->port;
	d->path = strdup(config->path);
	d->ca_file = strdup(config->ca_file ? config->ca_file : "");
	d->reading = calloc(1, sizeof(*d->reading));
	d->strict = config->strict;
	choose_numbers(d, config->fields);
	d->refresh_ns = config->refresh_ns;
	d->stale_after_ns = MAX(2 * config->refresh_ns, STALE_MIN_NS);
	if (!d->path || !d->ca_file || !d->reading)
		return -ENOMEM;
	set_nodes(d, config->node ? config->node : "");
	r = config->host && *config->host ? set_host(d, config->host) : 0;
	if (r == 0)
		r = helper_new(event, &helper, &ops, d, &d->helper);
	if (r < 0)
		return r;
	/* The model takes data of 2.5 intervals for stale. */
	model_set_source_period(model, SOURCE_DCGM, d->stale_after_ns * 2 / 5);
	*ret_dcgm = TAKE_PTR(d);
	return 0;
}

void dcgm_free(struct dcgm *d)
{
	if (!d)
		return;
	helper_free(d->helper);
	dcgm_targets_done(&d->targets);
	free(d->next);
	free(d->reading);
	free(d->path);
	free(d->ca_file);
	free(d);
}

pid_t dcgm_pid(const struct dcgm *d)
{
	struct helper_stats stats;

	helper_stats(d->helper, &stats);
	return stats.pid;
}
