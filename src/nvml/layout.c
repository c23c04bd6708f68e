// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "nvml/abi_mig.h"

/*
 * Distances at which what could not be identified is asked for again. They grow, since opening a broken GPU
 * may take the driver seconds, and it writes to the kernel log each time.
 */
#define IDENTIFY_BACKOFF_MIN_NS (10 * NSEC_PER_SEC)
#define IDENTIFY_BACKOFF_MAX_NS (300 * NSEC_PER_SEC)

/* One directory for each GPU that the kernel module drives; a simulated driver has none. */
#define KERNEL_GPUS "/proc/driver/nvidia/gpus"

static uint32_t count_kernel_gpus(void)
{
	const struct dirent *entry;
	uint32_t n = 0;
	DIR *dir = opendir(KERNEL_GPUS);

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static struct device *add_device(struct reader *reader, struct nvml_device *handle)
{
	struct reading *reading = reader->reading;
	struct device *device;

	if (reading->entities_n == READING_ENTITIES_MAX) {
		reading->entities_dropped++;
		return NULL;
	}
	device = &reader->devices[reading->entities_n];
	memset(device, 0, sizeof(*device));
	device->handle = handle;
	device->entity = &reading->entities[reading->entities_n];
	device->parent = READING_NONE;
	for (int i = 0; i < DIRECTIONS; i++)
		device->pcie_last[i] = device->nvlink_last[i] = -1;
	for (unsigned i = 0; i < NVLINKS_MAX; i++)
		device->link_last[i] = -1;
	reading->entities_n++;
	return device;
}

static void add_gpu(struct reader *reader, uint32_t index)
{
	struct nvml_device *handle = NULL;
	struct device *device;
	uint32_t current = 0, pending = 0;
	int r;

	/* A lost or inaccessible GPU has no handle or no name; the others are still listed. */
	reader->lost = false;
	if (NVML_CALL(reader, nvmlDeviceGetHandleByIndex_v2, index, &handle) != NVML_SUCCESS) {
		reader->unlisted += reader->lost;
		return;
	}
	device = add_device(reader, handle);
	if (!device)
		return;
	r = identity_device(reader, handle, index, device->entity);
	if (r < 0) {
		reader->reading->entities_n--;
		reader->unlisted += reader->lost;
		return;
	}
	device->missing = (unsigned)r;
	device->mig = NVML_CALL(reader, nvmlDeviceGetMigMode, handle, &current, &pending) == NVML_SUCCESS &&
		      current == NVML_DEVICE_MIG_ENABLE;
	device->nvlinks = fields_links(reader, handle, NVML_FI_DEV_NVLINK_LINK_COUNT);
	device->c2c_links = fields_links(reader, handle, NVML_FI_DEV_C2C_LINK_COUNT);
	persistent_state_find(reader, device);
}

static void add_instance(struct reader *reader, uint16_t parent, uint32_t number, struct nvml_device *handle)
{
	struct device *device = add_device(reader, handle);
	const struct reading_entity *gpu = reader->devices[parent].entity;
	struct reading_entity *entity;

	if (!device)
		return;
	entity = device->entity;
	memset(entity, 0, sizeof(*entity));
	memcpy(entity, gpu, offsetof(struct reading_entity, v));
	memset(entity->mig_uuid, 0, sizeof(entity->mig_uuid));
	entity->lost = entity->process_list = entity->process_util = 0;
	entity->parent = device->parent = parent;
	entity->mig_number = (uint8_t)(number + 1);
	if (NVML_CALL(reader, nvmlDeviceGetGpuInstanceId, handle, &entity->gi) != NVML_SUCCESS ||
	    NVML_CALL(reader, nvmlDeviceGetComputeInstanceId, handle, &entity->ci) != NVML_SUCCESS) {
		reader->reading->entities_n--;
		return;
	}
	identity_instance(reader, handle, entity);
	persistent_state_find(reader, device);
}

static uint32_t instances_max(struct reader *reader, const struct device *device)
{
	uint32_t max = 0;

	if (!device->mig ||
	    NVML_CALL(reader, nvmlDeviceGetMaxMigDeviceCount, device->handle, &max) != NVML_SUCCESS)
		return 0;
	return MIN(max, 64u);
}

static void add_instances(struct reader *reader, uint16_t parent)
{
	struct device *gpu = &reader->devices[parent];
	uint32_t max = instances_max(reader, gpu);

	for (uint32_t i = 0; i < max; i++) {
		struct nvml_device *handle = NULL;

		if (NVML_CALL(reader, nvmlDeviceGetMigDeviceHandleByIndex, gpu->handle, i, &handle) ==
		    NVML_SUCCESS)
			add_instance(reader, parent, i, handle);
	}
}

/* A GPU instance's measurements apply to a compute instance only if that is the only one in it. */
static void find_sole(struct reader *reader, uint32_t gpus)
{
	uint32_t n = reader->reading->entities_n;

	for (uint32_t i = gpus; i < n; i++) {
		struct device *device = &reader->devices[i];

		device->sole_ci = true;
		for (uint32_t j = gpus; j < n; j++) {
			const struct device *other = &reader->devices[j];

			if (i != j && other->parent == device->parent &&
			    other->entity->gi == device->entity->gi)
				device->sole_ci = false;
		}
	}
}

enum nvml_return reader_enumerate(struct reader *reader)
{
	struct reading *reading = reader->reading;
	enum nvml_return result;
	uint32_t count = 0, gpus;

	events_done(reader);
	for (uint32_t i = 0; i < reading->entities_n; i++)
		gpm_done(reader, &reader->devices[i]);
	processes_forget(reader);
	reading->entities_n = reading->processes_n = reading->entities_dropped = 0;
	reading->topology_n = reading->gpus_unidentified = 0;
	memset(reading->topology, 0, sizeof(reading->topology));
	memset(reading->topology_nvlinks, 0, sizeof(reading->topology_nvlinks));
	result = NVML_CALL(reader, nvmlDeviceGetCount_v2, &count);
	if (result != NVML_SUCCESS)
		return result;
	reader->gpus = count;
	reader->unlisted = 0;
	reader->kernel_gpus = count_kernel_gpus();
	for (uint32_t i = 0; i < MIN(count, (uint32_t)READING_ENTITIES_MAX) && !reader->gone; i++)
		add_gpu(reader, i);
	gpus = reading->entities_n;
	reading->gpus_unidentified = MIN(count, (uint32_t)READING_ENTITIES_MAX) - gpus;
	for (uint32_t i = 0; i < gpus && !reader->gone; i++)
		add_instances(reader, (uint16_t)i);
	if (reader->gone)
		return reader->gone_result;
	find_sole(reader, gpus);
	for (uint32_t i = 0; i < gpus; i++)
		if (reading->entities[i].index < READING_TOPOLOGY_MAX)
			reading->topology_n = MAX(reading->topology_n, reading->entities[i].index + 1u);
	events_begin(reader);
	return NVML_SUCCESS;
}

static const struct device *find_gpu(const struct reader *reader, uint32_t index)
{
	const struct reading *reading = reader->reading;

	for (uint32_t i = 0; i < reading->entities_n; i++)
		if (reading->entities[i].parent == READING_NONE && reading->entities[i].index == index)
			return &reader->devices[i];
	return NULL;
}

/* Asks for a GPU that is not listed, or not with its whole identity. Whether there is more of it now. */
static bool identifies_better(struct reader *reader, uint32_t index, const struct device *known)
{
	struct nvml_device *handle = NULL;
	struct reading_entity entity;
	int r = -ENODEV;

	if (NVML_CALL(reader, nvmlDeviceGetHandleByIndex_v2, index, &handle) == NVML_SUCCESS)
		r = identity_device(reader, handle, index, &entity);
	return r >= 0 && (!known || (unsigned)r < known->missing);
}

/* Asks again for what could not be identified. Whether the GPUs are to be listed again. */
static bool identify_again(struct reader *reader)
{
	bool asked = reader->system_incomplete, better = false;

	if (reader->now_ns < reader->identify_retry_ns)
		return false;
	if (reader->system_incomplete)
		identity_system(reader);
	for (uint32_t i = 0; i < MIN(reader->gpus, (uint32_t)READING_ENTITIES_MAX) && !better; i++) {
		const struct device *known = find_gpu(reader, i);

		if (reader->gone || (known && known->missing == 0))
			continue;
		asked = true;
		better = identifies_better(reader, i, known);
	}
	reader->identify_backoff_ns = asked ? CLAMP(2 * reader->identify_backoff_ns, IDENTIFY_BACKOFF_MIN_NS,
						    IDENTIFY_BACKOFF_MAX_NS) :
					      0;
	reader->identify_retry_ns = reader->now_ns + reader->identify_backoff_ns;
	return better;
}

/* Compares the instances of a GPU with the known ones, which are in the same order from *at on. */
static bool instances_same(struct reader *reader, uint16_t parent, uint32_t *at)
{
	struct device *gpu = &reader->devices[parent];
	uint32_t current = 0, pending = 0, max;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetMigMode, gpu->handle, &current, &pending);

	if (result == NVML_SUCCESS && gpu->mig != (current == NVML_DEVICE_MIG_ENABLE))
		return false;
	max = instances_max(reader, gpu);
	for (uint32_t i = 0; i < max; i++) {
		struct nvml_device *handle = NULL;
		const struct device *known = &reader->devices[*at];
		char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";

		if (NVML_CALL(reader, nvmlDeviceGetMigDeviceHandleByIndex, gpu->handle, i, &handle) !=
		    NVML_SUCCESS)
			continue;
		if (*at >= reader->reading->entities_n || known->parent != parent || known->handle != handle)
			return false;
		if (NVML_CALL(reader, nvmlDeviceGetUUID, handle, uuid, sizeof(uuid)) != NVML_SUCCESS ||
		    strncmp(uuid, known->entity->mig_uuid, sizeof(uuid) - 1) != 0)
			return false;
		++*at;
	}
	return true;
}

bool reader_layout_same(struct reader *reader)
{
	uint32_t count = 0, gpus = 0, at;

	if (count_kernel_gpus() != reader->kernel_gpus) {
		reader->reattach = true;
		return false;
	}
	if (NVML_CALL(reader, nvmlDeviceGetCount_v2, &count) == NVML_SUCCESS && count != reader->gpus)
		return false;
	if (identify_again(reader))
		return false;
	while (gpus < reader->reading->entities_n && reader->devices[gpus].parent == READING_NONE)
		gpus++;
	at = gpus;
	for (uint32_t i = 0; i < gpus && !reader->gone; i++)
		if (!reader->devices[i].entity->lost && !instances_same(reader, (uint16_t)i, &at))
			return false;
	return at == reader->reading->entities_n || reader->gone;
}
