// SPDX-License-Identifier: Apache-2.0
/*
 * What lists of event sinks, span sinks and other sinks have in common. Each of these has its struct sink as
 * first member.
 */
#pragma once

#include "activity/sink.h"

enum { SINKS_MAX = 8 };

struct sink_list {
	struct sink *at[SINKS_MAX];
	uint32_t n;
};

/* Before the one with index @before, at most n. -ENOSPC: there are SINKS_MAX; -EEXIST. */
int sink_list_add(struct sink_list *list, struct sink *sink, uint32_t before);
/* The index that it had; n, of the list as it is: it was not there. */
uint32_t sink_list_remove(struct sink_list *list, const struct sink *sink);
/* Number of what any sink of the list has lost. */
uint64_t sink_list_lost(const struct sink_list *list);
