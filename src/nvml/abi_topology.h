// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: the location of devices in the machine, and the paths between them. See nvml/abi.h. */

#include "nvml/abi_base.h"

/* The path between two devices: the lowest part of the machine that both are connected to. */
enum nvml_topology_level {
	NVML_TOPOLOGY_INTERNAL = 0,
	NVML_TOPOLOGY_SINGLE = 10,
	NVML_TOPOLOGY_MULTIPLE = 20,
	NVML_TOPOLOGY_HOSTBRIDGE = 30,
	NVML_TOPOLOGY_NODE = 40,
	NVML_TOPOLOGY_SYSTEM = 50,
};

enum nvml_p2p_caps {
	NVML_P2P_CAPS_INDEX_READ = 0,
	NVML_P2P_CAPS_INDEX_WRITE = 1,
	NVML_P2P_CAPS_INDEX_NVLINK = 2,
	NVML_P2P_CAPS_INDEX_ATOMICS = 3,
	NVML_P2P_CAPS_INDEX_PCI = 4,
	NVML_P2P_CAPS_INDEX_UNKNOWN = 5,
};

enum nvml_p2p_status {
	NVML_P2P_STATUS_OK = 0,
	NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
	NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
	NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
	NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
	NVML_P2P_STATUS_NOT_SUPPORTED = 5,
	NVML_P2P_STATUS_UNKNOWN = 6,
};

enum nvml_affinity_scope {
	NVML_AFFINITY_SCOPE_NODE = 0,
	NVML_AFFINITY_SCOPE_SOCKET = 1,
};

enum nvml_return nvmlDeviceGetNumaNodeId(struct nvml_device *device, uint32_t *node);
enum nvml_return nvmlDeviceGetCpuAffinity(struct nvml_device *device, uint32_t words, unsigned long *cpus);
enum nvml_return nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, uint32_t words,
						     unsigned long *cpus, uint32_t scope);
enum nvml_return nvmlDeviceGetMemoryAffinity(struct nvml_device *device, uint32_t words, unsigned long *nodes,
					     uint32_t scope);
enum nvml_return nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b,
						     uint32_t *level);
enum nvml_return nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, uint32_t level, uint32_t *count,
						  struct nvml_device **devices);
enum nvml_return nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, uint32_t caps,
					uint32_t *status);
enum nvml_return nvmlDeviceOnSameBoard(struct nvml_device *a, struct nvml_device *b, int *same);
