// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads of the traced processes of the newest view: a part of the model's inside. A workload that traced
 * processes belong to keeps its place, the index that views see, for as long as there are any.
 */
#pragma once

#include "base/hashmap.h"
#include "model/snapshot.h"

struct model;
struct traced_known;

struct traced_name {
	struct workload_name name;
	uint32_t users; /* traced processes; 0: a free place */
};

struct traced_table {
	struct traced_known *known; /* processes, dense */
	uint32_t known_n, known_room;
	struct hashmap by_id; /* process_id_hash() to index in known */
	struct traced_name *names; /* keep their index while they have users */
	uint32_t names_n, names_room;
	uint64_t views; /* taken in */
};

/* A new view, or NULL: finds the workload of each process that was not there before. */
void traced_take_view(struct model *model, const struct trace_view *view);
/* Fills what the snapshot says of its trace's processes; entities and processes are there already. */
void traced_publish(const struct model *model, struct snapshot *snapshot);
void traced_done(struct traced_table *table);
