// SPDX-License-Identifier: Apache-2.0
/*
 * Which GPU is which device of DRA: the attribute "uuid" in the ResourceSlices that drivers publish for this
 * node (resource.k8s.io), every minute while the agent wants it. Where that is refused they are not known:
 * listing them is a right of its own.
 */
#pragma once

#include "base/row_list.h"
#include "kube/client.h"

struct slices;

/* Rows, struct kube_device, are put into @table. */
int slices_new(struct client *client, const char *node, struct row_list *table, struct slices **ret_slices);
void slices_free(struct slices *slices);
DEFINE_CLEANUP(struct slices *, slices_free, slices_freep)
/* Whether they are to be asked for: at once, the first time. */
void slices_want(struct slices *slices, bool wanted);
/* Returns when to call it again at the latest. */
int64_t slices_step(struct slices *slices, int64_t now_ns);
/* Of the table; 0: not known yet. */
uint64_t slices_digest(const struct slices *slices);
/* Why they are not known; "". */
const char *slices_error(const struct slices *slices);
