// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns a workload: the pod and the container that a cgroup's ID belongs to, and the pod's controller. A
 * source that knows this (an API server, files of the node) passes a whole table to model_set_owners(); the
 * model joins it to the workloads of its processes.
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

enum { OWNERS_MAX = 4096 }; /* rows of one source: several times what a node of 500 pods needs */

/* Sizes are those of Kubernetes' names (63 and 253 bytes) plus NUL. */
struct owner {
	enum workload_kind workload; /* kind of workload that `id` identifies, mostly container or pod */
	char id[96]; /* as in struct workload */
	char namespace[64];
	char pod[254];
	char container[64]; /* empty: the whole pod */
	char owner_kind[64]; /* controller: "Deployment", "Job"; empty: none */
	char owner_name[254];
	char run[128], group[128]; /* a training run and its group, by the pod's label or annotation */
	enum source_id source; /* set by model_set_owners() */
};

/* Immutable, reference counted: snapshots share it. */
struct owners;
/*
 * A table of @n zeroed rows, in *ret_list, for code that builds snapshots otherwise, from an agent's document
 * for example. NULL: no memory.
 */
struct owners *owners_new(uint32_t n, struct owner **ret_list);
struct owners *owners_ref(struct owners *owners);
void owners_unref(struct owners *owners);
/*
 * The row that says of which training run or group a workload is, its own or its pod's; NULL: none.
 */
const struct owner *owners_run(const struct owners *owners, enum workload_kind kind, const char *id,
			       const char *pod_uid);
/* The rows, borrowed; NULL has none. Those of one workload stand together, the best source's first. */
const struct owner *owners_list(const struct owners *owners, uint32_t *ret_n);
