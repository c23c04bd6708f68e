// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of /container/metrics, on the finished page: the page is made once for all clients, in a process
 * that no text of theirs reaches (agent/web/pages.h). It has one line for each member, and no line end
 * within one, so a member equals a value exactly if its line does.
 */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"

/* A filter's argument in a query, and the member that it is compared with. */
struct container_filter {
	const char *argument, *member;
};
enum { CONTAINER_FILTERS = 4 };
extern const struct container_filter container_filters[CONTAINER_FILTERS];

/*
 * Appends to @out the page that has only those objects of @page (@n bytes, from view_container_metrics())
 * whose members equal all @values, by filter; NULL or "": any. What is no such page has no objects.
 * -ENOMEM.
 */
int container_filter(const char *page, size_t n, const char *const values[static CONTAINER_FILTERS],
		     struct strbuf *out);
