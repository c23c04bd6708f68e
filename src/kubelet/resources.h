// SPDX-License-Identifier: Apache-2.0
/*
 * Which container was given which GPU, as kubelet's pod-resources tell: device plugins' devices and those
 * of dynamic resource allocation (DRA).
 */
#pragma once

#include <stdbool.h>

#include "cdi/cdi.h"
#include "kubelet/elements.h"
#include "base/row_list.h"
#include "model/allocation.h"

struct pod_resources {
	struct row_list rows; /* struct allocation */
	struct elements elements; /* of the reply */
	uint32_t pods; /* that are listed, with devices or without */
	const char *names; /* further ones, separated by commas: patterns of fnmatch() */
	const struct cdi *cdi;
	/*
	 * Whether a pod's devices count, and its UID if it is known. Asked of pods with devices alone; may
	 * be NULL.
	 */
	bool (*counts)(const char *namespace, const char *pod, char ret_uid[48], void *userdata);
	void *userdata;
	uint64_t unreadable; /* pods that are no PodResources */
	uint32_t unmatched; /* devices that name no GPU as far as can be told */
	uint32_t claimed; /* of these: devices of DRA, whose rows are DEVICE_CLAIMED */
	char unmatched_example[128]; /* the first of them */
	uint32_t allocatable; /* devices, of GetAllocatableResources */
	struct row_list given; /* struct device_ref: of device plugins, in this list of pods */
	/*
	 * struct device_health: those of GetAllocatableResources, and those that were given and are not
	 * among them
	 */
	struct row_list listed;
};

void pod_resources_init(struct pod_resources *resources);
void pod_resources_done(struct pod_resources *resources);
void pod_resources_clear(struct pod_resources *resources);
/* Takes the PodResources of one pod; always 0: one that cannot be read is counted. */
int pod_resources_take(struct pod_resources *resources, const uint8_t *data, size_t n);
/* Takes one ContainerDevices of AllocatableResourcesResponse. */
int pod_resources_take_allocatable(struct pod_resources *resources, const uint8_t *data, size_t n);
/* Once all of it has been taken, after the list of pods: what was given, and cannot be any more, is bad. */
void pod_resources_compare(struct pod_resources *resources);
