// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <stdio.h>
#include <string.h>

#include "sim/nvml/counters.h"

enum { BYTES_PER_MS_TO_KIBPS = 1024, IDLE_GENERATION = 1, SWITCHES = 4 };

/* PCIe falls back to its first generation while there is nothing to do, on boards that save power. */
static uint32_t pcie_generation(const struct call *call)
{
	bool idle = gpu_now(call->gpu)->reasons & NVML_CLOCKS_EVENT_REASON_GPU_IDLE &&
		    call->gpu->what->model.idle_pstate > 0;

	return idle ? IDLE_GENERATION : call->gpu->what->model.pcie_generation;
}

DEVICE_U32(nvmlDeviceGetMaxPcieLinkGeneration, true, model->pcie_generation)
DEVICE_U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, true, model->pcie_generation)
DEVICE_U32(nvmlDeviceGetMaxPcieLinkWidth, true, model->pcie_width)
DEVICE_U32(nvmlDeviceGetCurrPcieLinkGeneration, true, pcie_generation(call))
DEVICE_U32(nvmlDeviceGetCurrPcieLinkWidth, true, model->pcie_width)
DEVICE_U32(nvmlDeviceGetPcieLinkMaxSpeed, true,
	   model->pcie_generation) /* the speeds are numbered like generations */
DEVICE_U32(nvmlDeviceGetPcieSpeed, true,
	   pcie_generation(call) < 3 ? 2500u * pcie_generation(call) : 1000u << pcie_generation(call))
DEVICE_U32(nvmlDeviceGetPcieReplayCounter, true,
	   (uint32_t)gpu_count(call->gpu, COUNTER_PCIE_REPLAY, call->now_ms))

enum nvml_return nvmlDeviceGetPcieThroughput(struct nvml_device *device, uint32_t counter, uint32_t *kbps)
{
	CALL(nvmlDeviceGetPcieThroughput, device);
	const uint32_t *traffic = gpu_now(call->gpu)->traffic;
	uint64_t rate = traffic[counter == NVML_PCIE_UTIL_TX_BYTES ? TRAFFIC_PCIE_TX : TRAFFIC_PCIE_RX];

	NEED(kbps && counter <= NVML_PCIE_UTIL_RX_BYTES);
	put_u32(call, kbps, (uint32_t)(rate * 1000 / BYTES_PER_MS_TO_KIBPS));
	return NVML_SUCCESS;
}

/* The last links are those that are not up. */
uint32_t active_links(const struct call *call)
{
	return call->gpu->what->model.nvlinks - call->gpu->what->inactive_links;
}

uint64_t link_bytes(const struct call *call, enum traffic traffic)
{
	uint32_t links = active_links(call);
	struct totals totals;

	if (links == 0)
		return 0;
	call_totals(call, &totals);
	return totals.traffic[traffic] / links;
}

uint64_t link_errors(const struct call *call, uint32_t link, enum counter_kind kind)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < call->gpu->what->model.nvlinks; i++) {
		if (link == i || link == UINT32_MAX)
			sum += gpu_count_since(call->gpu, kind, i, call->gpu->driver_ms, call->now_ms);
	}
	return sum;
}

#define NEED_LINK(condition)                                                \
	do {                                                                \
		NEED_SUPPORT(call->gpu->what->model.nvlinks > 0);           \
		NEED((condition) && link < call->gpu->what->model.nvlinks); \
	} while (0)
#define NEED_ACTIVE_LINK(condition)                      \
	do {                                             \
		NEED_LINK(condition);                    \
		NEED_SUPPORT(link < active_links(call)); \
	} while (0)

enum nvml_return nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *active)
{
	CALL(nvmlDeviceGetNvLinkState, device);

	NEED_LINK(active);
	put_u32(call, active, link < active_links(call) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNvLinkVersion(struct nvml_device *device, uint32_t link, uint32_t *version)
{
	CALL(nvmlDeviceGetNvLinkVersion, device);

	NEED_ACTIVE_LINK(version);
	put_u32(call, version, call->gpu->what->model.nvlink_version);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNvLinkCapability(struct nvml_device *device, uint32_t link, uint32_t capability,
					       uint32_t *result)
{
	CALL(nvmlDeviceGetNvLinkCapability, device);

	NEED_ACTIVE_LINK(result && capability < NVML_NVLINK_CAP_COUNT);
	put_u32(call, result, capability != NVML_NVLINK_CAP_SLI_BRIDGE);
	return NVML_SUCCESS;
}

/*
 * The GPU at the other end of a link that leads to no switch: those of its kind in turn, the next, the one
 * before, the next but one, and so on, so that what one says of another that one says of it. Where links are
 * left over, that begins with the one that is as far ahead as behind.
 */
static const struct scenario_gpu *link_peer(const struct call *call, uint32_t link)
{
	const struct scenario *scenario = call_node()->scenario;
	const struct scenario_gpu *us = call->gpu->what, *kind[SCENARIO_MAX_GPUS];
	uint32_t n = 0, self = 0, peers, turn, away;

	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		if (scenario->gpus[i].model.nvlink_version != us->model.nvlink_version ||
		    scenario->gpus[i].model.switched)
			continue;
		if (&scenario->gpus[i] == us)
			self = n;
		kind[n++] = &scenario->gpus[i];
	}
	if (n < 2)
		return us; /* a loop: there is no other GPU */
	peers = n - 1;
	turn = (link % peers + peers - us->model.nvlinks % peers % 2) % peers;
	away = 1 + turn / 2;
	return kind[(self + (turn % 2 ? n - away : away)) % n];
}

/* What is at the other end: a switch, or another GPU. */
static struct nvml_pci_info remote_pci(const struct call *call, uint32_t link)
{
	struct nvml_pci_info info = { 0 };

	if (call->gpu->what->model.switched) {
		info.bus = 5 + link % SWITCHES;
		info.device_id = 0x22a310de;
	} else {
		const struct scenario_gpu *peer = link_peer(call, link);

		info.domain = peer->pci_domain;
		info.bus = peer->pci_bus;
		info.device_id = peer->model.pci_device;
	}
	snprintf(info.bus_id_legacy, sizeof(info.bus_id_legacy), "%04X:%02X:00.0", info.domain & 0xffff,
		 info.bus & 0xff);
	snprintf(info.bus_id, sizeof(info.bus_id), "%08X:%02X:00.0", info.domain, info.bus & 0xff);
	return info;
}

enum nvml_return nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, uint32_t link,
						  struct nvml_pci_info *pci)
{
	CALL(nvmlDeviceGetNvLinkRemotePciInfo, device);
	struct nvml_pci_info info;

	NEED_ACTIVE_LINK(pci);
	info = remote_pci(call, link);
	memcpy(pci, &info, NVML_PCI_INFO_V1_SIZE);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, uint32_t link,
						     struct nvml_pci_info *pci)
{
	CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, device);

	NEED_ACTIVE_LINK(pci);
	*pci = remote_pci(call, link);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, uint32_t link,
						     uint32_t *type)
{
	CALL(nvmlDeviceGetNvLinkRemoteDeviceType, device);

	NEED_ACTIVE_LINK(type);
	put_u32(call, type,
		call->gpu->what->model.switched ? NVML_NVLINK_DEVICE_TYPE_SWITCH :
						  NVML_NVLINK_DEVICE_TYPE_GPU);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetNvLinkErrorCounter(struct nvml_device *device, uint32_t link, uint32_t error,
						 uint64_t *count)
{
	CALL(nvmlDeviceGetNvLinkErrorCounter, device);

	NEED_ACTIVE_LINK(count && error < NVML_NVLINK_ERROR_COUNT);
	put_u64(call, count, link_errors(call, link, COUNTER_NVLINK_REPLAY + error));
	return NVML_SUCCESS;
}

/* Counters of this kind ended with Pascal and Volta; field values took their place. */
enum nvml_return nvmlDeviceGetNvLinkUtilizationCounter(struct nvml_device *device, uint32_t link,
						       uint32_t counter, uint64_t *rx, uint64_t *tx)
{
	CALL(nvmlDeviceGetNvLinkUtilizationCounter, device);

	NEED_ACTIVE_LINK(rx && tx && counter < 2);
	NEED_SUPPORT(call->gpu->what->model.architecture <= NVML_DEVICE_ARCH_VOLTA);
	put_u64(call, rx, link_bytes(call, TRAFFIC_NVLINK_RX));
	put_u64(call, tx, link_bytes(call, TRAFFIC_NVLINK_TX));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info *info)
{
	CALL(nvmlDeviceGetGpuFabricInfo, device);

	NEED(info);
	NEED_SUPPORT(call->gpu->what->model.fabric);
	*info = (struct nvml_fabric_info){ .state = NVML_GPU_FABRIC_STATE_COMPLETED };
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_info_v3 *info)
{
	CALL(nvmlDeviceGetGpuFabricInfoV, device);
	struct nvml_fabric_info_v3 answer = { .state = NVML_GPU_FABRIC_STATE_COMPLETED };

	NEED(info);
	NEED_SUPPORT(call->gpu->what->model.fabric);
	answer.version = info->version;
	answer.health_summary = NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY;
	if (info->version == NVML_VERSION_WORD(struct nvml_fabric_info_v2, 2))
		memcpy(info, &answer, sizeof(struct nvml_fabric_info_v2));
	else if (info->version == NVML_VERSION_WORD(struct nvml_fabric_info_v3, 3) && call_knows(call, 3))
		*info = answer;
	else
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return NVML_SUCCESS;
}
