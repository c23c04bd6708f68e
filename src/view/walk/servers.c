// SPDX-License-Identifier: Apache-2.0
/* Inference servers: whether their pages are read, and their figures. */
#include "view/walk/private.h"

static void walk_states(struct walk *walk, const struct label_set *const *sets)
{
	const struct servers *servers = &walk->s->servers;

	if (!walk_family_named(walk, "inference_server_up", FAMILY_GAUGE, UNIT_NONE,
			       "Whether the server's own page of metrics could be read."))
		return;
	for (uint32_t i = 0; i < servers->n; i++)
		walk_series(
			walk,
			&(struct series){
				.sets = { sets[i],
					  WALK_SET(walk, false,
						   { "state", server_states[servers->list[i].state].name }) },
				.value = servers->list[i].state == SERVER_STATE_READ,
				.presence = PRESENCE_PRESENT,
				.entity = UINT32_MAX });
}

void walk_servers(struct walk *walk)
{
	const struct servers *servers = &walk->s->servers;
	const struct label_set *sets[SERVERS_MAX];

	if (!servers->read)
		return;
	for (uint32_t i = 0; i < servers->n; i++)
		sets[i] = WALK_SET(walk, true, { "server", server_kinds[servers->list[i].kind].name },
				   { "pid", walk_number(walk, servers->list[i].id.pid) },
				   { "port", walk_number(walk, servers->list[i].port) });
	walk_states(walk, sets);
	for (unsigned first = 0, end; first < SERVER_METRICS; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, server_metrics, SERVER_METRICS, first,
				      &end))
			continue;
		for (uint32_t i = 0; i < servers->n; i++)
			for (unsigned row = first; row < end; row++)
				walk_row(walk, &server_metrics[row], sets[i], servers->list[i].v[row],
					 servers->list[i].p[row]);
	}
}
