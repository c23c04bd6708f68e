// SPDX-License-Identifier: Apache-2.0
/*
 * Labels of the node that are wanted, by its metadata, every ten minutes. Where that is refused they are
 * absent: reading nodes is a right of its own.
 */
#pragma once

#include "base/row_list.h"
#include "kube/client.h"

struct node_labels;

/* @keys: separated by commas; "": nothing is asked. Rows, struct kube_label, are put into @table. */
int node_labels_new(struct client *client, const char *node, const char *keys, struct row_list *table,
		    struct node_labels **ret_labels);
void node_labels_free(struct node_labels *labels);
DEFINE_CLEANUP(struct node_labels *, node_labels_free, node_labels_freep)
/* Returns when to call it again at the latest. */
int64_t node_labels_step(struct node_labels *labels, int64_t now_ns);
/* Of the table; 0: not known yet. */
uint64_t node_labels_digest(const struct node_labels *labels);
/* Why they are not known; "". */
const char *node_labels_error(const struct node_labels *labels);
