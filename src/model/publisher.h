// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's interface to snapshots (the readers' is in model/snapshot.h): take one to fill, then publish
 * it as the newest.
 *
 * An unreferenced snapshot returns to its publisher and is filled again, with its arrays. A snapshot that
 * outlives its publisher is freed with its last reference.
 */
#pragma once

#include "model/snapshot.h"

struct snapshot_sizes {
	uint32_t entities, processes, exited, workloads, xids, xid_events;
	uint32_t workload_names, traced_workloads, traced_places, slot_sources, allocated, jobs, traced_uses;
};

/*
 * A snapshot for the caller to fill, with arrays large enough for `sizes`; it contains old data.
 * *ret_exited_tag is the value that publisher_tag_exited() last set on it: if it equals the caller's tag,
 * `exited` need not be copied again. -ENOMEM.
 */
int publisher_take(struct publisher *publisher, const struct snapshot_sizes *sizes,
		   struct snapshot **ret_snapshot, uint64_t *ret_exited_tag);
void publisher_tag_exited(struct snapshot *snapshot, uint64_t tag);

/* Numbers the snapshot, makes it the newest, and drops the publisher's reference to the previous one. */
void publisher_put(struct publisher *publisher, struct snapshot *snapshot);
