// SPDX-License-Identifier: Apache-2.0
/*
 * Whose the node's containers are, as kubelet's Pods API tells: a list of v1.Pod. Names with no API server.
 */
#pragma once

#include <stdbool.h>

#include "kubelet/elements.h"
#include "base/row_list.h"
#include "model/owner.h"

/* A pod of the node. */
struct pod_state {
	char namespace[64], pod[254], uid[48];
	char static_uid[48]; /* of a static pod: what its cgroup and log folder are named after; else "" */
	uint32_t row; /* of the pod among the owners, until they are whole; UINT32_MAX: it did not fit */
	bool ended; /* Succeeded or Failed: it has no container any more, and will have none */
};

struct pods {
	struct row_list
		owners; /* struct owner: a row for each container that was started, and for each pod */
	struct row_list list; /* struct pod_state */
	struct row_list health; /* struct device_health: of GPUs that pods have */
	const char *names; /* further names of resources, as in struct pod_resources */
	struct elements elements; /* of the reply */
	uint64_t unreadable; /* pods that are no v1.Pod */
};

void pods_init(struct pods *pods);
void pods_done(struct pods *pods);
void pods_clear(struct pods *pods);
/* Takes one v1.Pod; always 0: one that cannot be read is counted. */
int pods_take(struct pods *pods, const uint8_t *data, size_t n);
/* All have been taken: adds the second UIDs of static pods, but those that another pod has. */
void pods_end(struct pods *pods);
/* Of this name; NULL: not known. */
const struct pod_state *pods_find(const struct pods *pods, const char *namespace, const char *pod);
