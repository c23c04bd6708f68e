// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads of the traced processes of the newest view; internal to the model. A workload retains its index,
 * which views use, while it has any traced process.
 */
#pragma once

#include "base/hashmap.h"
#include "model/snapshot.h"

struct model;
struct traced_known;

struct traced_name {
	struct workload_name name;
	uint32_t users; /* traced processes; 0: free */
};

struct traced_table {
	struct traced_known *known; /* processes, stored densely */
	uint32_t known_n, known_room;
	struct hashmap by_id; /* process_id_hash() to index in known */
	struct traced_name *names; /* fixed index while they have users */
	uint32_t names_n, names_room;
	uint64_t views; /* number of views processed */
};

/* Processes a new view, or NULL: finds the workload of each new process. */
void traced_take_view(struct model *model, const struct trace_view *view);
/* Fills the snapshot's data about traced processes; entities and processes must be filled already. */
void traced_publish(const struct model *model, struct snapshot *snapshot);
void traced_done(struct traced_table *table);
