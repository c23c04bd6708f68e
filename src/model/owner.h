// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns a workload: the pod and the container that a cgroup's ID stands for, and what made the pod. A
 * source that can know (an API server, the node's own files) hands a whole table of these to
 * model_set_owners(); the model joins them to the workloads that its processes run in.
 */
#pragma once

#include "model/source.h"

enum workload_kind {
	WORKLOAD_NONE,
	WORKLOAD_CONTAINER,
	WORKLOAD_POD,
	WORKLOAD_JOB,
	WORKLOAD_UNIT,
	WORKLOAD_KINDS
};

enum { OWNERS_MAX = 4096 }; /* rows of one source: what a node of 500 pods has several times over */

/* Sizes are those of Kubernetes' names (63 and 253 bytes) and their end. */
struct owner {
	enum workload_kind workload; /* of what `id` is: a container or a pod, mostly */
	char id[96]; /* as in struct workload */
	char namespace[64];
	char pod[254];
	char container[64]; /* empty: of the pod as a whole */
	char owner_kind[64]; /* "Deployment", "Job"; empty: nothing made it */
	char owner_name[254];
	enum source_id source; /* who says so; set by model_set_owners() */
};

/* Immutable, reference counted: snapshots share it. */
struct owners;
struct owners *owners_ref(struct owners *owners);
void owners_unref(struct owners *owners);
