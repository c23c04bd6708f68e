// SPDX-License-Identifier: Apache-2.0
#include "agent/inference.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "config.h"
#include "inference/find.h"

#define FIND_EVERY_NS (10 * NSEC_PER_SEC)
#define FIND_NS (5 * NSEC_PER_SEC) /* by then an answer is there */
#define PAGES_NS (SERVERS_MAX * 3 * NSEC_PER_SEC)
#define WITHOUT_ARGUMENTS_NS (600 * NSEC_PER_SEC)
#define RETRY_MAX_NS (60 * NSEC_PER_SEC)
enum { MAX_STUCK = 2 };

/* When a server may be asked again, whose page could not be read. */
struct delay {
	struct process_id id;
	unsigned failures; /* in a row */
	int64_t until_ns;
};

struct inference {
	struct model *model;
	struct helper *finder, *reader;
	int64_t refresh_ns;
	int64_t find_ns, pages_ns; /* boot clock: when it is time again */
	int64_t without_arguments_until_ns;
	bool finding, reading;
	uint32_t found_n, asked_n, answered_n;
	struct found_server found[SERVERS_MAX];
	struct process_id asked_ids[SERVERS_MAX]; /* in the order of the question */
	struct delay delays[SERVERS_MAX]; /* of those that were found */
};

/* ---- finding ---- */

static bool found_is_valid(const struct found_server *s)
{
	return s->kind < SERVER_KINDS && s->state < SERVER_STATES && s->state != SERVER_STATE_READ &&
	       s->state != SERVER_STATE_FAILED && s->port <= UINT16_MAX &&
	       s->members_n <= SERVER_MEMBERS_MAX && s->is_ipv6 <= 1 &&
	       (s->state != SERVER_STATE_NEW || s->port > 0);
}

static bool answer_is_valid(const struct find_answer *answer, size_t n)
{
	if (n < offsetof(struct find_answer, list) || answer->n > SERVERS_MAX ||
	    n != offsetof(struct find_answer, list) + answer->n * sizeof(answer->list[0]))
		return false;
	for (uint32_t i = 0; i < answer->n; i++)
		if (!found_is_valid(&answer->list[i]))
			return false;
	return true;
}

static void keep_delays(struct inference *inference, const struct find_answer *answer)
{
	struct delay before[SERVERS_MAX];

	memcpy(before, inference->delays, sizeof(before));
	memset(inference->delays, 0, sizeof(inference->delays));
	for (uint32_t i = 0; i < answer->n; i++) {
		inference->delays[i].id = answer->list[i].id;
		for (uint32_t k = 0; k < SERVERS_MAX; k++)
			if (process_id_equal(before[k].id, answer->list[i].id))
				inference->delays[i] = before[k];
	}
}

static void take_found(const void *message, size_t n, int fd, void *userdata)
{
	static struct find_answer answer;
	struct inference *inference = userdata;

	closep(&fd);
	memcpy(&answer, message, MIN(n, sizeof(answer)));
	if (!inference->finding || n > sizeof(answer) || !answer_is_valid(&answer, n)) {
		helper_reject(inference->finder);
		return;
	}
	inference->finding = false;
	helper_deadline(inference->finder, 0);
	keep_delays(inference, &answer);
	inference->found_n = answer.n;
	memcpy(inference->found, answer.list, answer.n * sizeof(answer.list[0]));
	if (answer.left_out > 0)
		model_agent_add(inference->model, AGENT_DROPPED_SERVERS, (double)answer.left_out);
	model_set_servers(inference->model, answer.list, answer.n, answer.left_out);
}

static void finder_lost(bool hung, void *userdata)
{
	struct inference *inference = userdata;

	if (!inference->finding)
		return;
	inference->finding = false;
	inference->without_arguments_until_ns = clock_boot_ns() + WITHOUT_ARGUMENTS_NS;
	log_warning("the process that looks for inference servers %s: for ten minutes they are found without "
		    "command lines",
		    hung ? "does not answer, since one's memory is withheld" : "ended");
}

static void find_servers_now(struct inference *inference, int64_t now_ns)
{
	struct find_question question = { .version = GPUSONDE_VERSION,
					  .arguments = now_ns >= inference->without_arguments_until_ns };

	if (inference->finding || now_ns < inference->find_ns ||
	    helper_send(inference->finder, &question, sizeof(question), -1) < 0)
		return;
	inference->find_ns = now_ns + FIND_EVERY_NS;
	inference->finding = true;
	helper_deadline(inference->finder, FIND_NS);
}

/* ---- pages ---- */

static void note_page(struct inference *inference, struct process_id id, bool read)
{
	for (uint32_t i = 0; i < inference->found_n; i++) {
		struct delay *delay = &inference->delays[i];

		if (!process_id_equal(delay->id, id))
			continue;
		delay->failures = read ? 0 : delay->failures + 1;
		delay->until_ns =
			read ? 0 :
			       clock_boot_ns() +
					MIN(inference->refresh_ns << MIN(delay->failures, 6u), RETRY_MAX_NS);
	}
}

static bool page_is_valid(const struct page_answer *answer)
{
	if (answer->read > 1 || !memchr(answer->error, '\0', sizeof(answer->error)))
		return false;
	for (unsigned row = 0; row < SERVER_METRICS; row++)
		if (answer->page.p[row] > PRESENCE_PRESENT ||
		    (presence_is(answer->page.p[row]) &&
		     (row >= SERVER_TOLD || !metric_plausible(&server_metrics[row], answer->page.v[row]))))
			return false;
	return true;
}

static void take_page(const void *message, size_t n, int fd, void *userdata)
{
	struct inference *inference = userdata;
	struct page_answer answer;

	closep(&fd);
	memcpy(&answer, message, MIN(n, sizeof(answer)));
	if (!inference->reading || n != sizeof(answer) || answer.index != inference->answered_n ||
	    !page_is_valid(&answer)) {
		helper_reject(inference->reader);
		return;
	}
	model_set_server_page(inference->model, inference->asked_ids[answer.index],
			      answer.read ? &answer.page : NULL, answer.error);
	note_page(inference, inference->asked_ids[answer.index], answer.read);
	inference->answered_n++;
	if (inference->answered_n < inference->asked_n)
		return;
	inference->reading = false;
	helper_deadline(inference->reader, 0);
}

/* Over the page of the one that is not answered. */
static void reader_lost(bool hung, void *userdata)
{
	struct inference *inference = userdata;
	struct process_id id;

	if (!inference->reading)
		return;
	inference->reading = false;
	id = inference->asked_ids[inference->answered_n];
	model_set_server_page(inference->model, id, NULL,
			      hung ? "the process that reads it did not end" :
				     "the process that reads it ended");
	note_page(inference, id, false);
}

static void add_asked(struct inference *inference, struct pages_question *question, uint32_t i)
{
	const struct found_server *server = &inference->found[i];
	struct page_asked *asked = &question->asked[question->n];

	*asked =
		(struct page_asked){ .kind = server->kind, .port = server->port, .is_ipv6 = server->is_ipv6 };
	memcpy(asked->address, server->address, sizeof(asked->address));
	inference->asked_ids[question->n++] = server->id;
}

static void read_pages(struct inference *inference, int64_t now_ns)
{
	struct pages_question question = { .version = GPUSONDE_VERSION };

	if (inference->reading || now_ns < inference->pages_ns)
		return;
	for (uint32_t i = 0; i < inference->found_n; i++)
		if (inference->found[i].state == SERVER_STATE_NEW && now_ns >= inference->delays[i].until_ns)
			add_asked(inference, &question, i);
	inference->pages_ns = now_ns + inference->refresh_ns;
	if (question.n == 0 || helper_send(inference->reader, &question, sizeof(question), -1) < 0)
		return;
	inference->asked_n = question.n;
	inference->answered_n = 0;
	inference->reading = true;
	helper_deadline(inference->reader, PAGES_NS);
}

void inference_tick(struct inference *inference)
{
	const int64_t now_ns = clock_boot_ns();

	find_servers_now(inference, now_ns);
	read_pages(inference, now_ns);
}

/* ---- life ---- */

int inference_new(sd_event *event, struct model *model, const struct inference_config *config,
		  struct inference **ret_inference)
{
	static const struct helper_ops finder_ops = { take_found, finder_lost };
	static const struct helper_ops reader_ops = { take_page, reader_lost };
	const struct helper_config finder = { .program = config->finder,
					      .role = "servers",
					      .capabilities = SERVERS_FIND_CAPABILITIES,
					      .max_stuck = MAX_STUCK };
	const struct helper_config reader = { .program =
						      config->reader ? config->reader : "gpusonde-inference",
					      .role = "inference",
					      .max_stuck = MAX_STUCK };
	_cleanup_(inference_freep) struct inference *inference = calloc(1, sizeof(*inference));
	int r;

	if (!inference)
		return -ENOMEM;
	inference->model = model;
	inference->refresh_ns = config->refresh_ns;
	r = helper_new(event, &finder, &finder_ops, inference, &inference->finder);
	if (r == 0)
		r = helper_new(event, &reader, &reader_ops, inference, &inference->reader);
	if (r < 0)
		return r;
	model_set_servers(model, NULL, 0, 0);
	*ret_inference = TAKE_PTR(inference);
	return 0;
}

void inference_free(struct inference *inference)
{
	if (!inference)
		return;
	helper_free(inference->finder);
	helper_free(inference->reader);
	free(inference);
}

static pid_t pid_of(const struct helper *helper)
{
	struct helper_stats stats;

	helper_stats(helper, &stats);
	return stats.pid;
}

pid_t inference_finder_pid(const struct inference *inference)
{
	return pid_of(inference->finder);
}

pid_t inference_reader_pid(const struct inference *inference)
{
	return pid_of(inference->reader);
}
