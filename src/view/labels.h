// SPDX-License-Identifier: Apache-2.0
/*
 * Label texts made once per page: entry i belongs to the i-th entity (or process, or workload) of a snapshot.
 * Their number follows the node, not a constant, so they live on the heap; one allocation for the text, one
 * for the offsets.
 */
#pragma once

#include "base/strbuf.h"
#include "model/snapshot.h"

struct labels {
	struct strbuf text; /* NUL-terminated entries, one after the other */
	size_t *at;
	uint32_t n;
};

/* For the n entries that follow. -ENOMEM. */
int labels_init(struct labels *labels, uint32_t n);
void labels_done(struct labels *labels);
/* Appends the next entry; at most as many as labels_init() was told. */
void labels_add(struct labels *labels, const struct strbuf *entry);
/* 0, or -ENOMEM when not all entries are there. */
int labels_check(const struct labels *labels);

static inline const char *labels_get(const struct labels *labels, uint32_t i)
{
	return labels->text.data + labels->at[i];
}
