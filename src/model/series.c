// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes have a series of their own in /metrics. While there are free ones, whoever comes has one.
 * When all are taken, recent use decides: a process that was much busier than the least busy of those with a
 * series takes it over. Much: half as much again and a tenth of a GPU, so that two like each other do not
 * take turns. Whoever loses its series keeps what was credited to it and goes on from there if it gets one
 * again.
 */
#include "model/private.h"

#include "base/macro.h"

#define SCORE_SECONDS 60.0
#define TAKEOVER_FACTOR 1.5
#define TAKEOVER_MARGIN 0.1
enum { TAKEOVERS_MAX = 4 }; /* per reading */

/*
 * Recent use: busy share of time plus share of the device's memory, each 0..1, averaged over about a minute.
 */
void series_use(struct model *model, struct tracked *t, double busy_seconds, double elapsed_seconds)
{
	double total = model->devices[t->device]->memory_total;
	double busy = elapsed_seconds > 0 ? MIN(busy_seconds / elapsed_seconds, 1.0) : 0;
	double memory = presence_is(t->p.p[PROCESS_MEMORY]) && total > 0 ?
				MIN(t->p.v[PROCESS_MEMORY] / total, 1.0) :
				0;
	double weight = elapsed_seconds > 0 ? elapsed_seconds / (elapsed_seconds + SCORE_SECONDS) : 1;

	t->score += weight * (busy + memory - t->score);
}

void series_give_up(struct model *model, struct tracked *t)
{
	if (!t->p.has_series)
		return;
	t->p.has_series = false;
	model->series_n--;
}

static void series_take(struct model *model, struct tracked *t)
{
	t->p.has_series = true;
	model->series_n++;
}

/* The busiest without a series, or the least busy with one; NULL if there is none. */
static struct tracked *series_extreme(struct model *model, bool with_series)
{
	struct tracked *found = NULL;

	for (uint32_t i = 0; i < model->processes_n; i++) {
		struct tracked *t = &model->processes[i];

		if (t->p.has_series != with_series)
			continue;
		if (!found || (with_series ? t->score < found->score : t->score > found->score))
			found = t;
	}
	return found;
}

void series_balance(struct model *model)
{
	struct tracked *out, *in;

	while (model->series_n > model->limits.series) {
		series_give_up(model, series_extreme(model, true));
		model_agent_add(model, AGENT_DROPPED_SERIES, 1);
	}
	while (model->series_n < model->limits.series && model->series_n < model->processes_n)
		series_take(model, series_extreme(model, false));
	if (model->series_n == model->processes_n || model->series_n == 0)
		return;
	for (unsigned i = 0; i < TAKEOVERS_MAX; i++) {
		in = series_extreme(model, false);
		out = series_extreme(model, true);
		if (in->score <= out->score * TAKEOVER_FACTOR + TAKEOVER_MARGIN)
			break;
		series_give_up(model, out);
		series_take(model, in);
		model_agent_add(model, AGENT_DROPPED_SERIES, 1);
	}
}
