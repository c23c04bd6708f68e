// SPDX-License-Identifier: Apache-2.0
/*
 * What a container, pod or job was given, whether it uses it or not: GPUs and MIG instances. A source that
 * knows this (kubelet's pod-resources, a runtime's files, Slurm) passes a whole table to
 * model_set_allocations(). The model resolves devices against its own, joins names to IDs by the owners that
 * it has, and accumulates for how long each was allocated, and idle.
 */
#pragma once

#include "model/device_ref.h"
#include "model/owner.h"

enum { ALLOCATIONS_MAX = 4096 }; /* rows of one source: as many as it may name owners */

/*
 * One device of one workload; a workload with several has a row for each, or one with DEVICE_ALL. Of two
 * sources that know a workload the one with the higher priority decides for it.
 */
struct allocation {
	/* What `id` identifies; WORKLOAD_NONE: only the names below are known. */
	enum workload_kind workload;
	char id[96];
	char pod_uid[48]; /* of a container in a pod, where it is known */
	char namespace[64], pod[254], container[64]; /* empty: not known */
	char resource[64]; /* what was asked for: "nvidia.com/gpu", "NVIDIA_VISIBLE_DEVICES", "gres/gpu" */
	struct device_ref device;
	/*
	 * Logical slots of the device that are the workload's (time slicing, MPS); 0: it is not shared.
	 * Those of several rows of one source for one device and workload are added up.
	 */
	uint32_t slots;
	uint8_t estimated; /* not 0: that it was given this device is likely, and not confirmed */
	bool claimed; /* a process says so that its user chose; who does not decides before */
	enum source_id source; /* set by model_set_allocations() */
};
