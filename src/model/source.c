// SPDX-License-Identifier: Apache-2.0
/*
 * States of the sources, and the node's state derived from them: whether the data are current and if not,
 * why.
 */
#include "model/private.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

const struct source_row source_rows[SOURCES] = {
#define SOURCE(id_, name_, kind_, priority_, ...) \
	[SOURCE_##id_] = { .name = (name_), .kind = SOURCE_##kind_, .priority = (priority_), __VA_ARGS__ },
#include "model/sources.def"
};

void model_set_period(struct model *model, int64_t period_ns)
{
	model->period_ns = period_ns;
}

void model_set_clock_window(struct model *model, int64_t window_ns)
{
	model->clock_window_ns = window_ns;
}

void model_set_source_period(struct model *model, enum source_id source, int64_t period_ns)
{
	model->sources[source].period_ns = period_ns;
}

void model_set_outage(struct model *model, enum source_id source, const char *text, const char *cause)
{
	struct source_state *state = &model->sources[source];

	snprintf(state->outage, sizeof(state->outage), "%s", text ? text : "");
	snprintf(state->outage_cause, sizeof(state->outage_cause), "%s", text ? cause : "");
	if (text)
		state->s.in_use = true;
}

void model_set_source(struct model *model, enum source_id source, enum reading_state state, const char *error)
{
	struct source *s = &model->sources[source].s;
	int64_t now_ns = clock_boot_ns();

	s->in_use = true;
	s->state = state;
	s->heard_ns = now_ns;
	snprintf(s->error, sizeof(s->error), "%s", error);
	if (state != READING_OK)
		return;
	s->fresh_ns = now_ns;
	s->fresh_real_ns = clock_real_ns();
	if (source_rows[source].last_success != AGENT_METRICS)
		model_agent_set(model, source_rows[source].last_success,
				(double)s->fresh_real_ns / NSEC_PER_SEC);
}

bool source_before(const struct metric *metric, enum source_id a, enum source_id b)
{
	if (metric && metric->preferred_source &&
	    (a + 1 == metric->preferred_source || b + 1 == metric->preferred_source))
		return a + 1 == metric->preferred_source && a != b;
	return source_rows[a].priority > source_rows[b].priority;
}

bool source_is_first(const struct model *model, enum source_id source)
{
	for (unsigned i = 0; i < SOURCES; i++)
		if (source_rows[i].kind == SOURCE_DEVICES && model->sources[i].s.in_use &&
		    source_before(NULL, i, source))
			return false;
	return true;
}

/* Processing a reading */

/* The number of phrases; a truncated rest counts as one more. */
static unsigned count_unrecognised(const char *text)
{
	unsigned n = *text != '\0';

	for (; (text = strchr(text, ';')); text++)
		n++;
	return n;
}

/* Data about the driver as a whole. Versions remain known when the driver is gone. */
static void take_driver(struct model *model, enum source_id source, const struct reading *reading)
{
	struct source_state *state = &model->sources[source];
	struct source *s = &state->s;

	s->state = reading->state;
	memcpy(s->error, reading->error, sizeof(s->error));
	/* The shown numbers come from the last driver that gave any, even if it has been replaced since. */
	if (reading->state == READING_OK)
		state->simulated_numbers = reading->simulated;
	/* A reading without a library cannot name it. */
	if (reading->state != READING_RELEASED) {
		s->simulated = reading->simulated || state->simulated_numbers;
		memcpy(s->library, reading->library, sizeof(s->library));
	}
	if (reading->state != READING_OK)
		return;
	memcpy(s->driver_version, reading->driver_version, sizeof(s->driver_version));
	memcpy(s->library_version, reading->nvml_version, sizeof(s->library_version));
	memcpy(s->unrecognised, reading->unrecognised, sizeof(s->unrecognised));
	s->cuda_version = reading->cuda_version;
	if (source == SOURCE_NVML)
		model_agent_set(model, AGENT_DRIVER_UNRECOGNISED, count_unrecognised(s->unrecognised));
}

void source_apply(struct model *model, enum source_id source, const struct reading *reading, int64_t now_ns,
		  int64_t end_ns)
{
	const struct source_row *row = &source_rows[source];
	struct source *s = &model->sources[source].s;

	s->in_use = true;
	s->heard_ns = end_ns;
	take_driver(model, source, reading);
	if (row->collect_seconds != AGENT_METRICS)
		model_agent_set(model, row->collect_seconds,
				(double)(reading->end_ns - reading->begin_ns) / NSEC_PER_SEC);
	for (unsigned i = 0; source == SOURCE_NVML && i < READING_GROUPS; i++)
		model_agent_add(model, AGENT_COLLECT_GROUP_MEMORY + i, reading->group_seconds[i]);
	if (reading->state != READING_OK)
		return;
	model->sources[source].here = true;
	s->fresh_ns = end_ns;
	s->fresh_real_ns = clock_real_ns() - (now_ns - end_ns);
	if (row->last_success != AGENT_METRICS)
		model_agent_set(model, row->last_success, (double)s->fresh_real_ns / NSEC_PER_SEC);
}

/* Freshness */

int64_t source_stale_after(const struct model *model, enum source_id source)
{
	int64_t period_ns = model->sources[source].period_ns;

	return MAX((period_ns ? period_ns : model->period_ns) * 5 / 2, 3 * NSEC_PER_SEC);
}

bool source_recent(const struct model *model, enum source_id source, int64_t when_ns, int64_t now_ns)
{
	return when_ns != 0 && now_ns - when_ns <= source_stale_after(model, source);
}

bool model_source_delivers(const struct model *model, enum source_id source)
{
	const struct source *s = &model->sources[source].s;

	return s->in_use && s->state == READING_OK &&
	       source_recent(model, source, s->fresh_ns, clock_boot_ns());
}

/* The source has reported recently that there is no driver, and the node shows no GPU either. */
static bool source_has_no_gpu(const struct model *model, enum source_id source, int64_t now_ns)
{
	const struct source_state *state = &model->sources[source];

	return (state->s.state == READING_NO_LIBRARY || state->s.state == READING_NO_DRIVER) &&
	       model->devices_n == 0 && !state->outage[0] &&
	       source_recent(model, source, state->s.heard_ns, now_ns);
}

/*
 * While the driver is released, readings have the state "released". If those stop, the driver has been
 * resumed and has not answered yet; it is then shown as available, with nothing fresh.
 */
static void publish_source(const struct model *model, enum source_id source, struct snapshot *snapshot)
{
	struct source *s = &snapshot->sources[source];
	int64_t now_ns = snapshot->boot_ns;

	*s = model->sources[source].s;
	s->id = source;
	if (s->state == READING_RELEASED && !source_recent(model, source, s->heard_ns, now_ns)) {
		s->state = READING_OK;
		s->error[0] = '\0';
		return;
	}
	s->fresh = s->state == READING_OK && source_recent(model, source, s->fresh_ns, now_ns);
}

/* `cause` is `why` without times; NULL if `why` contains none. */
static void set_reason(struct snapshot *s, const char *why, const char *cause)
{
	snprintf(s->not_fresh_reason, sizeof(s->not_fresh_reason), "%s", why);
	snprintf(s->not_fresh_cause, sizeof(s->not_fresh_cause), "%s", cause ? cause : why);
}

static void publish_reason(const struct model *model, struct snapshot *snapshot)
{
	const struct source_state *state = &model->sources[snapshot->device_source];
	const struct source *s = &snapshot->sources[snapshot->device_source];
	char old[96];

	if (state->outage[0]) {
		set_reason(snapshot, state->outage, state->outage_cause);
	} else if (s->heard_ns == 0) {
		set_reason(snapshot, "the driver has not been queried yet; wait for the first collection",
			   NULL);
	} else if (s->state != READING_OK && s->error[0]) {
		set_reason(snapshot, s->error, NULL);
	} else if (s->state == READING_RELEASED) {
		set_reason(snapshot,
			   "the driver was released on request; \"gpusonde resume\" attaches "
			   "to it again",
			   NULL);
	} else {
		snprintf(old, sizeof(old),
			 "the newest collection is %.1f s old; \"gpusonde doctor\" says why",
			 (double)(snapshot->boot_ns - s->heard_ns) / NSEC_PER_SEC);
		set_reason(snapshot, old, "the newest collection is old; \"gpusonde doctor\" says why");
	}
}

/*
 * One of devices that says whether this node has any: not if all is well, and what it delivers is of others.
 */
static bool speaks_for_node(const struct model *model, const struct snapshot *snapshot, enum source_id source)
{
	const struct source *s = &snapshot->sources[source];

	return source_rows[source].kind == SOURCE_DEVICES && s->in_use &&
	       (model->sources[source].here || s->state != READING_OK);
}

/* Of the device sources in use: fresh ones before others, then by priority. */
static enum source_id first_device_source(const struct model *model, const struct snapshot *snapshot)
{
	const struct source *first = &snapshot->sources[SOURCE_NVML];

	for (unsigned i = 0; i < SOURCES; i++) {
		const struct source *s = &snapshot->sources[i];

		if (!speaks_for_node(model, snapshot, i))
			continue;
		if (!first->in_use || s->fresh > first->fresh ||
		    (s->fresh == first->fresh && source_rows[i].priority > source_rows[first->id].priority))
			first = s;
	}
	return first->id;
}

/* Fresh: a device source delivers, or all that are in use have reported recently that the node has no GPU. */
static bool node_is_fresh(const struct model *model, const struct snapshot *snapshot)
{
	bool used = false, no_gpu = true;

	for (unsigned i = 0; i < SOURCES; i++) {
		const struct source *s = &snapshot->sources[i];

		if (!speaks_for_node(model, snapshot, i))
			continue;
		if (s->fresh)
			return true;
		used = true;
		no_gpu &= source_has_no_gpu(model, i, snapshot->boot_ns);
	}
	return used && no_gpu;
}

void sources_publish(struct model *model, struct snapshot *snapshot)
{
	snapshot->simulated = false;
	for (unsigned i = 0; i < SOURCES; i++) {
		publish_source(model, i, snapshot);
		snapshot->simulated |= snapshot->sources[i].simulated;
		if (source_rows[i].up != AGENT_METRICS && snapshot->sources[i].in_use)
			model_agent_set(model, source_rows[i].up, snapshot->sources[i].fresh);
	}
	if (!snapshot->sources[SOURCE_NVML].in_use)
		model_agent_set(model, AGENT_SOURCE_UP_NVML, 0);
	snapshot->device_source = first_device_source(model, snapshot);
	snapshot->fresh = node_is_fresh(model, snapshot);
	if (snapshot->fresh)
		set_reason(snapshot, "", NULL);
	else
		publish_reason(model, snapshot);
}
