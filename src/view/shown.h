// SPDX-License-Identifier: Apache-2.0
/*
 * What a view shows, decided once for all of them.
 *
 *  - A number only where its row says it is measured, and only with presence_is().
 *  - A GPU that is gone shows its identity and its counters, no gauge: nothing can be said of its present.
 *  - A MIG instance that is gone shows nothing: instances are made and destroyed by the dozen, and none comes back.
 *  - Stale values are shown, beside the mark that says so and their age.
 */
#pragma once

#include "model/snapshot.h"

static inline bool entity_is_mig(const struct entity *e)
{
	return e->id.parent != READING_NONE;
}

static inline bool entity_shown(const struct entity *e)
{
	return e->present || !entity_is_mig(e);
}

/* Does the number only grow (until its source starts anew)? */
static inline bool metric_is_counter(const struct metric *m)
{
	return m->kind == METRIC_COUNTER || m->kind == METRIC_INCREMENT;
}

static inline bool entity_shows(const struct entity *e, const struct metric *m)
{
	if (!(m->levels & (entity_is_mig(e) ? LEVEL_MIG : LEVEL_GPU)))
		return false;
	return e->present || (!entity_is_mig(e) && metric_is_counter(m));
}

/* Seconds since the newest good reading ended; negative when there never was one. */
static inline double entity_age_seconds(const struct snapshot *s, const struct entity *e)
{
	if (e->sampled_boot_ns == 0)
		return -1;
	return s->boot_ns > e->sampled_boot_ns ? (double)(s->boot_ns - e->sampled_boot_ns) * 1e-9 : 0;
}
