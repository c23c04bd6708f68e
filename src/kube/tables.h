// SPDX-License-Identifier: Apache-2.0
/* What is sent to the agent, made of pods and the walk. */
#pragma once

#include "base/row_list.h"
#include "kube/protocol.h"
#include "kube/walk.h"

struct tables {
	struct row_list list[KUBE_TABLES];
	uint64_t digest[KUBE_TABLES];
	uint32_t exporters_skipped, fallbacks;
	uint32_t exporters_foreign; /* of the skipped: of namespaces that are not to be believed */
	char foreign[64]; /* one of these namespaces */
	const char *exporter_namespaces; /* borrowed: names, separated by commas, or "*"; NULL: none */
};

void tables_init(struct tables *tables);
void tables_done(struct tables *tables);
/* Makes KUBE_OWNERS, KUBE_EXPORTERS and KUBE_HEALTH anew. */
void tables_make(struct tables *tables, const struct node_pods *pods, struct walk *walk, int64_t now_ns);
