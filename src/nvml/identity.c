// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nvml/report.h"

/* Our names of NVML's architecture numbers. */
static const char *const architectures[] = {
	[NVML_DEVICE_ARCH_KEPLER] = "kepler",
	[NVML_DEVICE_ARCH_MAXWELL] = "maxwell",
	[NVML_DEVICE_ARCH_PASCAL] = "pascal",
	[NVML_DEVICE_ARCH_VOLTA] = "volta",
	[NVML_DEVICE_ARCH_TURING] = "turing",
	[NVML_DEVICE_ARCH_AMPERE] = "ampere",
	[NVML_DEVICE_ARCH_ADA] = "ada",
	[NVML_DEVICE_ARCH_HOPPER] = "hopper",
	[NVML_DEVICE_ARCH_BLACKWELL] = "blackwell",
	[NVML_DEVICE_ARCH_RUBIN] = "rubin",
};

/* Of a part without which an identity is still one: counts it in @missing where it may be known later. */
static bool part_read(enum nvml_return result, unsigned *missing)
{
	*missing += result != NVML_SUCCESS && !nvml_unsupported(result);
	return result == NVML_SUCCESS;
}

void identity_system(struct reader *reader)
{
	struct reading *reading = reader->reading;
	char text[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
	unsigned missing = 0;
	int cuda = 0;

	reading->driver_version[0] = reading->nvml_version[0] = '\0';
	reading->cuda_version = 0;
	if (part_read(NVML_CALL(reader, nvmlSystemGetDriverVersion, text, sizeof(text)), &missing))
		snprintf(reading->driver_version, sizeof(reading->driver_version), "%.*s",
			 (int)sizeof(text) - 1, text);
	reader->driver = (unsigned)strtoul(reading->driver_version, NULL, 10);
	text[0] = '\0';
	if (part_read(NVML_CALL(reader, nvmlSystemGetNVMLVersion, text, sizeof(text)), &missing))
		snprintf(reading->nvml_version, sizeof(reading->nvml_version), "%.*s", (int)sizeof(text) - 1,
			 text);
	if (part_read(NVML_CALL(reader, nvmlSystemGetCudaDriverVersion_v2, &cuda), &missing) && cuda > 0)
		reading->cuda_version = (uint32_t)cuda;
	reader->system_incomplete = missing > 0;
}

/* The old calls fill only the front of the struct, which has the bus id with a 4-digit domain. */
static int read_bus_id(struct reader *reader, struct nvml_device *handle, struct reading_entity *entity)
{
	struct nvml_pci_info pci = { .bus = 0 };

	if (NVML_CALL(reader, nvmlDeviceGetPciInfo_v3, handle, &pci) == NVML_SUCCESS && pci.bus_id[0]) {
		snprintf(entity->pci_bus_id, sizeof(entity->pci_bus_id), "%.*s", (int)sizeof(pci.bus_id) - 1,
			 pci.bus_id);
		return 0;
	}
	if (NVML_CALL(reader, nvmlDeviceGetPciInfo_v2, handle, &pci) == NVML_SUCCESS) {
		snprintf(entity->pci_bus_id, sizeof(entity->pci_bus_id), "%08X:%02X:%02X.0", pci.domain,
			 pci.bus & 0xff, pci.device & 0x1f);
		return 0;
	}
	return -ENODEV;
}

static void read_architecture(struct reader *reader, struct nvml_device *handle,
			      struct reading_entity *entity, unsigned *missing)
{
	uint32_t architecture = 0;
	int major = 0, minor = 0;

	if (part_read(NVML_CALL(reader, nvmlDeviceGetArchitecture, handle, &architecture), missing)) {
		if (architecture < ARRAY_SIZE(architectures) && architectures[architecture])
			snprintf(entity->architecture, sizeof(entity->architecture), "%s",
				 architectures[architecture]);
		else if (architecture != NVML_DEVICE_ARCH_UNKNOWN)
			reader_unrecognised(reader, "architecture %u", architecture);
	}
	if (part_read(NVML_CALL(reader, nvmlDeviceGetCudaComputeCapability, handle, &major, &minor),
		      missing) &&
	    major > 0 && major < 100 && minor >= 0 && minor < 100)
		snprintf(entity->compute_capability, sizeof(entity->compute_capability), "%d.%d", major,
			 minor);
}

/* The NUMA node whose memory is nearest to the GPU. */
static int32_t read_numa_node(struct reader *reader, struct nvml_device *handle, unsigned *missing)
{
	unsigned long nodes[8] = { 0 };

	if (!part_read(NVML_CALL(reader, nvmlDeviceGetMemoryAffinity, handle, ARRAY_SIZE(nodes), nodes,
				 NVML_AFFINITY_SCOPE_NODE),
		       missing))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		if (nodes[i])
			return (int32_t)(i * 64) + __builtin_ctzl(nodes[i]);
	return -1;
}

int identity_device(struct reader *reader, struct nvml_device *handle, uint32_t index,
		    struct reading_entity *entity)
{
	char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
	unsigned missing = 0;

	memset(entity, 0, sizeof(*entity));
	entity->index = index;
	entity->parent = READING_NONE;
	entity->gi = entity->ci = UINT32_MAX;
	if (NVML_CALL(reader, nvmlDeviceGetUUID, handle, text, sizeof(text)) != NVML_SUCCESS || !text[0])
		return -ENODEV;
	snprintf(entity->uuid, sizeof(entity->uuid), "%.*s", (int)sizeof(text) - 1, text);
	if (read_bus_id(reader, handle, entity) < 0)
		return -ENODEV;
	text[0] = '\0';
	if (part_read(NVML_CALL(reader, nvmlDeviceGetName, handle, text, sizeof(text)), &missing))
		snprintf(entity->name, sizeof(entity->name), "%.*s", (int)sizeof(text) - 1, text);
	text[0] = '\0';
	if (part_read(NVML_CALL(reader, nvmlDeviceGetSerial, handle, text, NVML_DEVICE_SERIAL_BUFFER_SIZE),
		      &missing))
		snprintf(entity->serial, sizeof(entity->serial), "%.*s", NVML_DEVICE_SERIAL_BUFFER_SIZE - 1,
			 text);
	text[0] = '\0';
	if (part_read(NVML_CALL(reader, nvmlDeviceGetVbiosVersion, handle, text,
				NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE),
		      &missing))
		snprintf(entity->vbios, sizeof(entity->vbios), "%.*s",
			 NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE - 1, text);
	if (!part_read(NVML_CALL(reader, nvmlDeviceGetMinorNumber, handle, &entity->minor), &missing))
		entity->minor = UINT32_MAX;
	entity->numa_node = read_numa_node(reader, handle, &missing);
	read_architecture(reader, handle, entity, &missing);
	return (int)missing;
}

/*
 * "1g.10gb": the end of the instance's name ("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), else derived from its
 * size.
 */
static void read_profile(struct reader *reader, struct nvml_device *handle, const char *name, char *profile,
			 size_t size)
{
	struct nvml_device_attributes a = { .memory_mb = 0 };
	const char *suffix = strstr(name, " MIG ");

	if (suffix) {
		snprintf(profile, size, "%s", suffix + strlen(" MIG "));
		return;
	}
	if (NVML_CALL(reader, nvmlDeviceGetAttributes_v2, handle, &a) != NVML_SUCCESS)
		return;
	if (a.compute_instance_slices && a.compute_instance_slices < a.gpu_instance_slices)
		snprintf(profile, size, "%uc.%ug.%ugb", a.compute_instance_slices & 0xff,
			 a.gpu_instance_slices & 0xff, (unsigned)((a.memory_mb + 1023) / 1024) & 0xffff);
	else
		snprintf(profile, size, "%ug.%ugb", a.gpu_instance_slices & 0xff,
			 (unsigned)((a.memory_mb + 1023) / 1024) & 0xffff);
}

void identity_instance(struct reader *reader, struct nvml_device *handle, struct reading_entity *entity)
{
	char text[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";

	if (NVML_CALL(reader, nvmlDeviceGetUUID, handle, text, sizeof(text)) == NVML_SUCCESS)
		snprintf(entity->mig_uuid, sizeof(entity->mig_uuid), "%.*s", (int)sizeof(text) - 1, text);
	text[0] = '\0';
	if (NVML_CALL(reader, nvmlDeviceGetName, handle, text, sizeof(text)) == NVML_SUCCESS)
		snprintf(entity->name, sizeof(entity->name), "%.*s", (int)sizeof(text) - 1, text);
	text[sizeof(text) - 1] = '\0';
	read_profile(reader, handle, text, entity->mig_profile, sizeof(entity->mig_profile));
}
