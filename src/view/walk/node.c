// SPDX-License-Identifier: Apache-2.0
#include "view/walk/private.h"

#include "base/macro.h"
#include "config.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/tags.h"

/* A series with only the labels of @set. */
static void walk_alone(struct walk *walk, const struct label_set *set, double value)
{
	walk_series(walk, &(struct series){ .sets = { set },
					    .value = value,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

static void walk_tags(struct walk *walk)
{
	struct tag *tags;
	uint32_t n;

	if (!walk_family_named(walk, "node_tag_info", FAMILY_INFO, UNIT_NONE, NODE_TAG_HELP))
		return;
	tags = walk_zeroes(walk, TAGS_MAX + 1, sizeof(*tags));
	n = tags ? tags_of(walk->s, tags) : 0;
	for (uint32_t i = 0; i < n; i++)
		walk_alone(walk, WALK_SET(walk, false, { "key", tags[i].key }, { "value", tags[i].value }),
			   1);
}

static void walk_infos(struct walk *walk)
{
	const struct snapshot *s = walk->s;
	const struct source *driver = snapshot_driver(s);
	char cuda[16];

	if (walk_family_named(walk, "build_info", FAMILY_INFO, UNIT_NONE, "Version of gpusonde."))
		walk_alone(walk, WALK_SET(walk, false, { "version", GPUSONDE_VERSION }), 1);
	cuda_version_text(driver->cuda_version, cuda);
	if (walk_family_named(walk, "node_info", FAMILY_INFO, UNIT_NONE,
			      "What drives the GPUs of this node."))
		walk_alone(walk,
			   WALK_SET(walk, false, { "driver", driver->driver_version },
				    { "nvml", driver->library_version },
				    { "cuda", walk_text(walk, cuda, "") },
				    { "simulated", s->simulated ? "true" : "false" }),
			   1);
	walk_tags(walk);
	if (walk_family_named(walk, "driver_state", FAMILY_GAUGE, UNIT_NONE, DRIVER_STATE_HELP))
		walk_alone(walk,
			   WALK_SET(walk, false, { "state", driver_state_name(s) },
				    { "reason", driver_state_reason(s) }),
			   1);
}

void walk_node(struct walk *walk)
{
	struct gpu_counts counts;

	walk_infos(walk);
	if (walk_family_named(walk, "up", FAMILY_GAUGE, UNIT_NONE,
			      "1 while the agent's data are fresh, on a node without GPUs too."))
		walk_alone(walk, NULL, walk->s->fresh);
	if (!walk_family_named(
		    walk, "node_gpus", FAMILY_GAUGE, UNIT_NONE,
		    "GPUs of the node, by state; unidentified: the driver counts it, but it was lost "
		    "or inaccessible from the start."))
		return;
	count_gpus(walk->s, &counts);
	walk_alone(walk, WALK_SET(walk, false, { "state", "present" }), counts.present);
	walk_alone(walk, WALK_SET(walk, false, { "state", "absent" }), counts.absent);
	walk_alone(walk, WALK_SET(walk, false, { "state", "unidentified" }), counts.unidentified);
}

static void walk_agent_rows(struct walk *walk)
{
	for (unsigned first = 0, end; first < AGENT_METRICS; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, agent_metrics, AGENT_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			if (presence_is(walk->s->agent_p[row]))
				walk_series(walk, &(struct series){
							  .sets = { walk_row_set(walk, &agent_metrics[row]) },
							  .value = walk->s->agent[row],
							  .presence = walk->s->agent_p[row],
							  .row = &agent_metrics[row],
							  .entity = UINT32_MAX });
	}
}

static void walk_rejected(struct walk *walk)
{
	struct rejected_field field;

	if (!walk_family_named(walk, "rejected_samples_total", FAMILY_COUNTER, UNIT_NONE,
			       "Implausible values from the driver that were left out, by field."))
		return;
	for (unsigned i = 0; rejected_next(walk->s, &i, &field);)
		walk_alone(walk, WALK_SET(walk, false, { "field", walk_text(walk, field.name, "") }),
			   (double)field.count);
}

void walk_agent(struct walk *walk)
{
	walk_agent_rows(walk);
	walk_rejected(walk);
}
