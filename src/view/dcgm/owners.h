// SPDX-License-Identifier: Apache-2.0
/*
 * Whose the GPUs of DCGM's page are: the containers, pods and jobs that were given a device or use it, with
 * the exporter's label names (container, hpc_job, namespace, pod, pod_uid), and what each of them has of
 * it.
 *
 * If one has the whole device, its labels stand on the device's series. If several share it, what is known
 * by process has a series for each of them with its own value, and one without owner for what is nobody's,
 * so that a sum over them is the device's figure; what is known of the device alone stands there once,
 * without owner.
 */
#pragma once

#include "view/walk/walk.h"

enum { SHARER_LABELS = 5 };

struct dcgm_sharer {
	struct label labels[SHARER_LABELS];
	struct label_set set;
	double v[PROCESS_METRICS]; /* sums over its processes on the device */
	bool unknown[PROCESS_METRICS]; /* one of them lacks it */
};

struct dcgm_owners {
	const struct snapshot *s;
	struct dcgm_sharer *list; /* by entity */
	uint32_t *first; /* by entity, and one more: index of its first sharer */
};

/* -ENOMEM: nothing is to be freed. */
int dcgm_owners_init(struct dcgm_owners *owners, const struct snapshot *s);
void dcgm_owners_done(struct dcgm_owners *owners);

/* Labels of the one that has all of the device; NULL: nobody, or several. */
const struct label_set *dcgm_sole_owner(const struct dcgm_owners *owners, uint32_t entity);
/*
 * Those who share the device, if this number of it is known for each: *ret_list and how many; 0 else.
 * *ret_metric: the number of theirs.
 */
uint32_t dcgm_sharers(const struct dcgm_owners *owners, uint32_t entity, const struct metric *row,
		      const struct dcgm_sharer **ret_list, enum process_metric *ret_metric);
