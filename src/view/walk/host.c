// SPDX-License-Identifier: Apache-2.0
/* The machine's own figures, and those of its disks and network interfaces. */
#include "view/walk/private.h"

void walk_row(struct walk *walk, const struct metric *row, const struct label_set *subject, double value,
	      uint8_t presence)
{
	if (presence_is(presence))
		walk_series(walk, &(struct series){ .sets = { subject, walk_row_set(walk, row) },
						    .value = value,
						    .presence = presence,
						    .row = row,
						    .entity = UINT32_MAX });
}

static void walk_machine(struct walk *walk)
{
	const struct host *host = &walk->s->host;

	for (unsigned first = 0, end; first < HOST_METRICS; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, host_metrics, HOST_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_row(walk, &host_metrics[row], NULL, host->v[row], host->p[row]);
	}
}

static void walk_devices(struct walk *walk, const struct host_list_row *list,
			 const struct host_devices *devices)
{
	const struct label_set *sets[HOST_DEVICES_MAX];

	for (uint32_t i = 0; i < devices->n; i++)
		sets[i] = WALK_SET(walk, true, { list->label, devices->list[i].name });
	for (unsigned first = 0, end; first < list->n; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, list->rows, list->n, first, &end))
			continue;
		for (uint32_t i = 0; i < devices->n; i++)
			for (unsigned row = first; row < end; row++)
				walk_row(walk, &list->rows[row], sets[i], devices->list[i].v[row],
					 devices->list[i].p[row]);
	}
}

void walk_host(struct walk *walk)
{
	walk_machine(walk);
	for (unsigned k = 0; k < HOST_LISTS; k++)
		walk_devices(walk, &host_lists[k], &walk->s->host.devices[k]);
}
