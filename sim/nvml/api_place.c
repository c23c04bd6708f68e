// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/call.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where a GPU sits: on PCI, at which processors, and how near to the others. */

enum { PCI_CLASS_DISPLAY = 3, PCI_SUBCLASS_3D = 2, BITS_PER_WORD = 8 * sizeof(unsigned long) };

/* Older versions of the call know less of the struct. */
static enum nvml_return get_pci(const struct call *call, struct nvml_pci_info *pci, size_t size)
{
	const struct scenario_gpu *what = call->gpu->what;
	struct nvml_pci_info info = {
		.domain = what->pci_domain,
		.bus = what->pci_bus,
		.device_id = what->model.pci_device,
		.subsystem_id = what->model.pci_subsystem,
	};

	NEED(pci);
	snprintf(info.bus_id_legacy, sizeof(info.bus_id_legacy), "%04X:%02X:00.0", what->pci_domain & 0xffff,
		 what->pci_bus & 0xff);
	snprintf(info.bus_id, sizeof(info.bus_id), "%08X:%02X:00.0", what->pci_domain, what->pci_bus & 0xff);
	memcpy(pci, &info, size);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci)
{
	CALL(nvmlDeviceGetPciInfo, device);

	return get_pci(call, pci, NVML_PCI_INFO_V1_SIZE);
}

enum nvml_return nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info *pci)
{
	CALL(nvmlDeviceGetPciInfo_v2, device);

	return get_pci(call, pci, NVML_PCI_INFO_V2_SIZE);
}

enum nvml_return nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	CALL(nvmlDeviceGetPciInfo_v3, device);

	return get_pci(call, pci, sizeof(*pci));
}

enum nvml_return nvmlDeviceGetPciInfoExt(struct nvml_device *device, struct nvml_pci_info_ext *pci)
{
	CALL(nvmlDeviceGetPciInfoExt, device);
	struct nvml_pci_info info;

	NEED(pci);
	NEED_VERSION(pci, 1);
	get_pci(call, &info, sizeof(info));
	*pci = (struct nvml_pci_info_ext){
		.version = pci->version,
		.domain = info.domain,
		.bus = info.bus,
		.device = info.device,
		.device_id = info.device_id,
		.subsystem_id = info.subsystem_id,
		.base_class = PCI_CLASS_DISPLAY,
		.sub_class = call->gpu->what->model.display ? 0 : PCI_SUBCLASS_3D,
	};
	memcpy(pci->bus_id, info.bus_id, sizeof(pci->bus_id));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNumaNodeId(struct nvml_device *device, uint32_t *node)
{
	CALL(nvmlDeviceGetNumaNodeId, device);

	/* Where memory of the GPU is a node of its own, as on Grace Hopper. */
	NEED(node);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Processors in two halves, one for each node; on a machine with one, all. */
static enum nvml_return get_cpus(const struct call *call, uint32_t words, unsigned long *cpus)
{
	long online = sysconf(_SC_NPROCESSORS_CONF), half = (online + 1) / 2;
	bool split = call_node()->scenario->gpu_count > SCENARIO_MAX_GPUS / 4 && online > 1;

	NEED(cpus && words > 0);
	memset(cpus, 0, words * sizeof(*cpus));
	for (long cpu = 0; cpu < online && cpu < (long)words * BITS_PER_WORD; cpu++) {
		if (!split || (cpu >= half) == (call->gpu->what->numa_node == 1))
			cpus[cpu / BITS_PER_WORD] |= 1UL << cpu % BITS_PER_WORD;
	}
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetCpuAffinity(struct nvml_device *device, uint32_t words, unsigned long *cpus)
{
	CALL(nvmlDeviceGetCpuAffinity, device);

	return get_cpus(call, words, cpus);
}

enum nvml_return nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, uint32_t words,
						     unsigned long *cpus, uint32_t scope)
{
	CALL(nvmlDeviceGetCpuAffinityWithinScope, device);

	NEED(scope <= NVML_AFFINITY_SCOPE_SOCKET);
	return get_cpus(call, words, cpus);
}

enum nvml_return nvmlDeviceGetMemoryAffinity(struct nvml_device *device, uint32_t words, unsigned long *nodes,
					     uint32_t scope)
{
	CALL(nvmlDeviceGetMemoryAffinity, device);

	NEED(nodes && words > 0 && scope <= NVML_AFFINITY_SCOPE_SOCKET);
	memset(nodes, 0, words * sizeof(*nodes));
	nodes[0] = 1UL << call->gpu->what->numa_node;
	return NVML_SUCCESS;
}

/* Two GPUs share a switch, four a processor. */
static uint32_t common_level(const struct gpu *a, const struct gpu *b)
{
	if (a == b)
		return NVML_TOPOLOGY_INTERNAL;
	if (a->index / 2 == b->index / 2)
		return NVML_TOPOLOGY_SINGLE;
	return a->what->numa_node == b->what->numa_node ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
}

/* The second GPU of a call for two. */
static const struct gpu *other_gpu(const struct nvml_device *device)
{
	const struct scenario *scenario = call_node()->scenario;

	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		if (device == device_handle(i, -1))
			return &call_node()->gpus[i];
	}
	return NULL;
}

enum nvml_return nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b,
						     uint32_t *level)
{
	CALL(nvmlDeviceGetTopologyCommonAncestor, a);
	const struct gpu *other = other_gpu(b);

	NEED(level && other);
	put_u32(call, level, common_level(call->gpu, other));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, uint32_t level, uint32_t *count,
						  struct nvml_device **devices)
{
	CALL(nvmlDeviceGetTopologyNearestGpus, device);
	uint8_t gpus[SCENARIO_MAX_GPUS];
	uint32_t found = 0, present;

	NEED(count && (devices || *count == 0));
	present = present_gpus(call, gpus);
	for (uint32_t i = 0; i < present; i++) {
		const struct gpu *other = &call_node()->gpus[gpus[i]];

		if (other == call->gpu || common_level(call->gpu, other) > level)
			continue;
		if (found < *count)
			devices[found] = device_handle(gpus[i], -1);
		found++;
	}
	*count = *count > 0 ? MIN(found, *count) : found;
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, uint32_t caps,
					uint32_t *status)
{
	CALL(nvmlDeviceGetP2PStatus, a);
	const struct gpu *other = other_gpu(b);
	bool linked;

	NEED(status && other && caps < NVML_P2P_CAPS_INDEX_UNKNOWN);
	/* No switch joins generations. */
	linked = call->gpu->what->model.nvlinks > 0 &&
		 call->gpu->what->model.nvlink_version == other->what->model.nvlink_version;
	if (call->gpu->what->model.display)
		put_u32(call, status, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
	else if (caps == NVML_P2P_CAPS_INDEX_NVLINK && !linked)
		put_u32(call, status, NVML_P2P_STATUS_NOT_SUPPORTED);
	else
		put_u32(call, status, NVML_P2P_STATUS_OK);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceOnSameBoard(struct nvml_device *a, struct nvml_device *b, int *same)
{
	CALL(nvmlDeviceOnSameBoard, a);
	const struct gpu *other = other_gpu(b);

	NEED(same && other);
	*same = call->gpu == other;
	return NVML_SUCCESS;
}
