// SPDX-License-Identifier: Apache-2.0
#include "activity/sink_list.h"

#include <errno.h>
#include <string.h>

int sink_list_add(struct sink_list *list, struct sink *sink, uint32_t before)
{
	if (list->n == SINKS_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < list->n; i++)
		if (list->at[i] == sink)
			return -EEXIST;
	memmove(&list->at[before + 1], &list->at[before], (list->n - before) * sizeof(list->at[0]));
	list->at[before] = sink;
	list->n++;
	return 0;
}

uint32_t sink_list_remove(struct sink_list *list, const struct sink *sink)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->at[i] != sink)
			continue;
		list->n--;
		memmove(&list->at[i], &list->at[i + 1], (list->n - i) * sizeof(list->at[0]));
		return i;
	}
	return list->n;
}

uint64_t sink_list_lost(const struct sink_list *list)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < list->n; i++)
		lost += list->at[i]->lost;
	return lost;
}
