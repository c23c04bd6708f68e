// SPDX-License-Identifier: Apache-2.0
#include "model/health_rows.h"

#include <string.h>

#include "base/macro.h"
#include "base/text.h"

enum health health_named(const char *text)
{
	if (STRV_EQ(text, "Healthy"))
		return HEALTH_GOOD;
	return STRV_EQ(text, "Unhealthy") ? HEALTH_BAD : HEALTH_UNKNOWN;
}

static struct device_health *row_of(const struct row_list *list, const struct device_ref *device)
{
	struct device_health *rows = list->list;

	for (uint32_t i = 0; i < list->n; i++)
		if (memcmp(&rows[i].device, device, sizeof(*device)) == 0)
			return &rows[i];
	return NULL;
}

bool health_has(const struct row_list *list, const struct device_ref *device)
{
	return row_of(list, device) != NULL;
}

void health_note(struct row_list *list, const char *device, enum health health)
{
	struct device_ref ref;
	struct device_health *row;

	/* Unused members are 0, so that two can be compared. */
	memset(&ref, 0, sizeof(ref));
	if (device_ref_parse(device, &ref, NULL) < 0 || ref.kind == DEVICE_NOT || ref.kind == DEVICE_ALL)
		return;
	row = row_of(list, &ref);
	if (!row)
		row = row_list_add(list);
	if (!row)
		return;
	row->device = ref;
	row->health = MAX(row->health, (uint32_t)health);
}
