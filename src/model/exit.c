// SPDX-License-Identifier: Apache-2.0
/*
 * Records of exited processes: a ring that grows to its limit and then overwrites the oldest. Records expire
 * after EXIT_KEPT_NS.
 */
#include "model/private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"

/* a record overwritten before this age may not have been read by all clients */
#define EXIT_LOST_NS (600 * NSEC_PER_SEC)

struct exit_record *exit_at(const struct model *model, uint32_t n)
{
	return &model->exits[(model->exits_first + n) % model->exits_room];
}

static void exit_drop_oldest(struct model *model)
{
	job_unref(model, exit_at(model, 0)->p.job);
	model->exits_first = (model->exits_first + 1) % model->exits_room;
	model->exits_n--;
	model->exits_tag++;
}

void exits_expire(struct model *model, int64_t now_ns)
{
	while (model->exits_n > 0 &&
	       (model->exits_n > model->limits.exited || exit_at(model, 0)->device == NO_INDEX ||
		now_ns - exit_at(model, 0)->exit_ns > EXIT_KEPT_NS))
		exit_drop_oldest(model);
}

static bool exits_grow(struct model *model)
{
	uint32_t room = MIN(MAX(16u, model->exits_room * 2), model->limits.exited);
	struct exit_record *exits;

	if (room <= model->exits_room)
		return false;
	exits = malloc(room * sizeof(*exits));
	if (!exits)
		return false;
	for (uint32_t i = 0; i < model->exits_n; i++)
		exits[i] = *exit_at(model, i);
	free(model->exits);
	model->exits = exits;
	model->exits_room = room;
	model->exits_first = 0;
	return true;
}

void exit_add(struct model *model, const struct tracked *t, int64_t now_ns)
{
	struct exit_record *record;

	model->exit_seq++;
	model->exits_tag++;
	if (model->exits_n == model->exits_room && !exits_grow(model)) {
		if (model->exits_n == 0) {
			job_unref(model, t->p.job);
			model_agent_add(model, AGENT_DROPPED_EXITED, 1);
			return;
		}
		if (now_ns - exit_at(model, 0)->exit_ns < EXIT_LOST_NS)
			model_agent_add(model, AGENT_DROPPED_EXITED, 1);
		exit_drop_oldest(model);
	}
	record = exit_at(model, model->exits_n++);
	record->p = t->p;
	record->p.exited = true;
	record->p.exit_seq = model->exit_seq;
	record->device = t->device;
	record->workload = t->workload;
	record->exit_ns = now_ns;
}

struct exit_record *exit_find(const struct model *model, uint16_t device, uint32_t pid, int64_t since_ns)
{
	for (uint32_t i = model->exits_n; i-- > 0;) {
		struct exit_record *record = exit_at(model, i);

		if (record->exit_ns < since_ns)
			break;
		if (record->device == device && record->p.id.pid == pid)
			return record;
	}
	return NULL;
}
