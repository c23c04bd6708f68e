// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <strings.h>

/* The other ends of a GPU's links, by NVML's index of the GPU. */
struct ends {
	uint8_t peers[READING_TOPOLOGY_MAX]; /* direct links to that GPU */
	uint8_t switched;
};

/* The GPU's index; topology_n or more: none, or beyond the matrices. */
static unsigned find_by_bus(const struct reader *reader, const char *bus_id)
{
	for (uint32_t i = 0; i < reader->reading->entities_n; i++)
		if (strcasecmp(reader->reading->entities[i].pci_bus_id, bus_id) == 0)
			return reader->reading->entities[i].index;
	return READING_TOPOLOGY_MAX;
}

static void follow_link(struct reader *reader, struct device *device, uint32_t link, struct ends *ends)
{
	uint32_t active = 0, type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
	struct nvml_pci_info pci = { .bus = 0 };
	unsigned peer;

	if (NVML_CALL(reader, nvmlDeviceGetNvLinkState, device->handle, link, &active) != NVML_SUCCESS ||
	    !active)
		return;
	if (NVML_CALL(reader, nvmlDeviceGetNvLinkRemoteDeviceType, device->handle, link, &type) ==
		    NVML_SUCCESS &&
	    type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
		ends->switched++;
		return;
	}
	if (NVML_CALL(reader, nvmlDeviceGetNvLinkRemotePciInfo_v2, device->handle, link, &pci) !=
	    NVML_SUCCESS)
		return;
	pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
	peer = find_by_bus(reader, pci.bus_id);
	if (peer < READING_TOPOLOGY_MAX)
		ends->peers[peer]++;
}

static uint8_t distance(struct reader *reader, struct device *a, struct device *b)
{
	uint32_t level = 0;

	if (NVML_CALL(reader, nvmlDeviceGetTopologyCommonAncestor, a->handle, b->handle, &level) !=
		    NVML_SUCCESS ||
	    level > NVML_TOPOLOGY_SYSTEM)
		return 0;
	return (uint8_t)(level / 10 + 1);
}

/*
 * Links between two GPUs through switches: as many as the one with fewer has. No switch connects different
 * generations of NVLink, which have separate switches.
 */
static uint8_t through_switches(const struct device *a, const struct device *b)
{
	return STRV_EQ(a->entity->compute_capability, b->entity->compute_capability) ?
		       MIN(a->switched, b->switched) :
		       0;
}

/* One GPU's row of the matrices, by NVML's index; links through switches are symmetric. */
void topology_read(struct reader *reader, struct device *device)
{
	struct reading *reading = reader->reading;
	unsigned row = device->entity->index;
	struct ends ends = { .switched = 0 };

	if (!device->due[CADENCE_STATIC] || device->parent != READING_NONE || row >= reading->topology_n)
		return;
	for (uint32_t link = 0; link < MIN(device->nvlinks, (uint32_t)NVLINKS_MAX) && !reader->lost; link++)
		follow_link(reader, device, link, &ends);
	device->switched = ends.switched;
	for (uint32_t i = 0; i < reading->entities_n && !reader->gone; i++) {
		struct device *other = &reader->devices[i];
		unsigned column = other->entity->index;

		if (other == device || other->parent != READING_NONE || column >= reading->topology_n)
			continue;
		reading->topology[row][column] = distance(reader, device, other);
		reading->topology_nvlinks[row][column] =
			MAX(ends.peers[column], through_switches(device, other));
		if (other->switched)
			reading->topology_nvlinks[column][row] = reading->topology_nvlinks[row][column];
	}
}
