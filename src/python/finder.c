// SPDX-License-Identifier: Apache-2.0
#include "python/finder.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "helper/helper.h"
#include "proc/proc.h"
#include "proc/user.h"
#include "python/finder_private.h"

enum { PENALTIES = 16, SHARE = 7 };

struct waiting {
	struct process_id id;
	uint64_t user; /* who answers for it */
	int64_t asked_ns;
	bool dropped; /* it is not told */
};

struct python_finder {
	struct helper *helper;
	python_found *found;
	void *userdata;
	struct waiting waiting[FINDER_WAITING]; /* a ring; the first one is asked about */
	uint32_t first, n;
	bool asked;
	struct {
		uint64_t user;
		int64_t until_ns;
	} penalties[PENALTIES]; /* a ring */
	uint32_t penalties_next;
};

static struct waiting *waiting_at(struct python_finder *finder, uint32_t i)
{
	return &finder->waiting[(finder->first + i) % FINDER_WAITING];
}

static bool is_penalised(const struct python_finder *finder, uint64_t user)
{
	int64_t now = clock_mono_ns();

	for (unsigned i = 0; i < PENALTIES; i++)
		if (finder->penalties[i].user == user && now < finder->penalties[i].until_ns)
			return true;
	return false;
}

/* Takes the first one from the ring; it is told only if it is still that process. */
static void tell(struct python_finder *finder, int r, uint32_t version, const struct trace_python *python)
{
	struct process_id id = waiting_at(finder, 0)->id, now;
	bool dropped = waiting_at(finder, 0)->dropped;

	finder->first = (finder->first + 1) % FINDER_WAITING;
	finder->n--;
	finder->asked = false;
	helper_deadline(finder->helper, 0);
	if (dropped || proc_process_id("/proc", id.pid, &now) < 0 || !process_id_equal(id, now))
		return;
	finder->found((pid_t)id.pid, r, version, python, finder->userdata);
}

/* Asks about the first one. What cannot be asked now is tried with the next one that is added. */
static void ask_next(struct python_finder *finder)
{
	struct finder_question question = { .version = GPUSONDE_VERSION };

	while (finder->n > 0 && !finder->asked) {
		if (is_penalised(finder, waiting_at(finder, 0)->user)) {
			tell(finder, -EIO, 0, NULL);
			continue;
		}
		question.pid = (int32_t)waiting_at(finder, 0)->id.pid;
		if (helper_send(finder->helper, &question, sizeof(question), -1) < 0)
			return;
		finder->asked = true;
		helper_deadline(finder->helper, FINDER_PATIENCE_NS);
	}
}

static void finder_answered(const void *message, size_t n, int fd, void *userdata)
{
	struct python_finder *finder = userdata;
	struct finder_answer answer;

	closep(&fd);
	if (!finder->asked || n != sizeof(answer)) {
		helper_reject(finder->helper);
		return;
	}
	memcpy(&answer, message, sizeof(answer));
	tell(finder, answer.error > 0 ? -EIO : answer.error, answer.version,
	     answer.error == 0 ? &answer.python : NULL);
	ask_next(finder);
}

static void finder_lost(_unused_ bool hung, void *userdata)
{
	struct python_finder *finder = userdata;
	unsigned i = finder->penalties_next++ % PENALTIES;

	if (!finder->asked)
		return;
	finder->penalties[i].user = waiting_at(finder, 0)->user;
	finder->penalties[i].until_ns = clock_mono_ns() + FINDER_PENALTY_NS;
	tell(finder, -EIO, 0, NULL);
	ask_next(finder);
}

int python_finder_ask(struct python_finder *finder, pid_t pid)
{
	struct waiting new = { .user = UINT64_MAX, .asked_ns = clock_mono_ns() };
	uint32_t own = 0, uid;
	int r = proc_process_id("/proc", (uint32_t)pid, &new.id);

	if (r < 0)
		return r;
	proc_answers_for("/proc", (uint32_t)pid, &new.user, &uid);
	for (uint32_t i = 0; i < finder->n; i++) {
		own += waiting_at(finder, i)->user == new.user;
		if (process_id_equal(waiting_at(finder, i)->id, new.id) && !waiting_at(finder, i)->dropped)
			return 0;
	}
	if (finder->n == FINDER_WAITING || own >= SHARE * (FINDER_WAITING - finder->n) ||
	    is_penalised(finder, new.user))
		return -EAGAIN;
	*waiting_at(finder, finder->n++) = new;
	ask_next(finder);
	return 0;
}

void python_finder_exec(struct python_finder *finder, pid_t pid, uint64_t time_ns)
{
	for (uint32_t i = 0; i < finder->n; i++) {
		struct waiting *waiting = waiting_at(finder, i);

		if (waiting->id.pid == (uint32_t)pid && (uint64_t)waiting->asked_ns < time_ns)
			waiting->dropped = true;
	}
}

int python_finder_new(sd_event *event, const char *program, python_found *found, void *userdata,
		      struct python_finder **ret_finder)
{
	const struct helper_config config = {
		.program = program,
		.role = "python",
		.capabilities = FINDER_CAPABILITIES,
		.max_stuck = 2,
		.idle_ns = 10 * NSEC_PER_SEC,
	};
	static const struct helper_ops ops = { .answer = finder_answered, .lost = finder_lost };
	_cleanup_(python_finder_freep) struct python_finder *finder = calloc(1, sizeof(*finder));
	int r;

	if (!finder)
		return -ENOMEM;
	finder->found = found;
	finder->userdata = userdata;
	r = helper_new(event, &config, &ops, finder, &finder->helper);
	if (r < 0)
		return r;
	*ret_finder = TAKE_PTR(finder);
	return 0;
}

void python_finder_stats(const struct python_finder *finder, struct helper_stats *ret_stats)
{
	helper_stats(finder->helper, ret_stats);
}

void python_finder_free(struct python_finder *finder)
{
	if (!finder)
		return;
	helper_free(finder->helper);
	free(finder);
}
