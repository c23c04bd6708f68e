// SPDX-License-Identifier: Apache-2.0
/*
 * The writer's side of snapshots (the readers' is in model/snapshot.h): take one to fill, then put it up as
 * the newest.
 *
 * A snapshot that nobody refers to any more goes back to its publisher and is filled again, arrays and all.
 * One may outlive its publisher; then it is freed with its last reference.
 */
#pragma once

#include "model/snapshot.h"

struct snapshot_sizes {
	uint32_t entities, processes, exited, workloads, xids;
	uint32_t workload_names, traced_workloads, traced_places, slot_sources;
};

/*
 * A snapshot for the caller to fill, with room for what `sizes` says; its content is that of an older one.
 * *ret_exited_tag is what publisher_tag_exited() last said of it: equal to the caller's own, its `exited`
 * need not be copied again. -ENOMEM.
 */
int publisher_take(struct publisher *publisher, const struct snapshot_sizes *sizes,
		   struct snapshot **ret_snapshot, uint64_t *ret_exited_tag);
void publisher_tag_exited(struct snapshot *snapshot, uint64_t tag);

/* Makes it the newest, numbers it, and drops the publisher's reference to the one before. */
void publisher_put(struct publisher *publisher, struct snapshot *snapshot);
