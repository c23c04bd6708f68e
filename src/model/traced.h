// SPDX-License-Identifier: Apache-2.0
/*
 * Workloads of the traced processes of the newest view; internal to the model. A workload retains its index,
 * which views use, while it has any traced process.
 */
#pragma once

#include "base/hashmap.h"
#include "model/share.h"
#include "model/snapshot.h"

struct model;
struct traced_known;

struct traced_name {
	struct workload_name name;
	uint64_t key;
	uint32_t users; /* traced processes */
	uint32_t uses; /* sums of it; free without both */
};

static inline bool name_is_used(const struct traced_name *name)
{
	return name->users > 0 || name->uses > 0;
}

/* What the traced processes of a workload did on a device. */
struct tracked_use {
	struct traced_use u; /* as published */
	double kept[TRACED_METRICS]; /* counters of those that have ended */
	uint8_t kept_p[TRACED_METRICS];
	bool any; /* one has ended */
	uint64_t view; /* number of the newest view with a process of it */
};

struct traced_table {
	struct traced_known *known; /* processes, stored densely */
	uint32_t known_n, known_room;
	struct hashmap by_id; /* process_id_hash() to index in known */
	struct traced_name *names; /* fixed index while they have users */
	uint32_t names_n, names_room;
	struct tracked_use *uses;
	uint32_t uses_n, uses_room;
	uint64_t views; /* number of views processed */
	uint32_t retry_at; /* place of the processes whose workload is tried again next */
};

/* Processes a new view, or NULL: finds the workload of each new process. */
void traced_take_view(struct model *model, const struct trace_view *view);
/*
 * Of a traced process: index of its workload in names; NO_INDEX: none, or not known. *ret_wants: there was no
 * place for it.
 */
uint16_t traced_name_of(const struct model *model, struct process_id id, bool *ret_wants);

/* traced_use.c */

/* To be called before traced_take_view(): keeps the figures of those that @view has no longer. */
void traced_keep_ended(struct model *model, const struct trace_view *former, const struct trace_view *view);
/* And after it. */
void traced_sum_uses(struct model *model, const struct trace_view *view);
/*
 * Adds the use that has been without processes for longest, of those that may make room, to its device's
 * "other". False: all have some.
 */
bool traced_evict_use(struct model *model, const struct share *share, enum share_room room);
void traced_publish_uses(const struct model *model, struct snapshot *s);

/* traced.c */

/* Fills the snapshot's data about traced processes; entities and processes must be filled already. */
void traced_publish(const struct model *model, struct snapshot *snapshot);
/* The workload that a traced process was first seen in; NULL: not traced, or in none. */
const struct workload_name *traced_workload_of(const struct model *model, struct process_id id);
/* After a change of the owners. */
void traced_find_owners(struct model *model);
bool traced_wants_owners(const struct model *model);
void traced_done(struct traced_table *table);
