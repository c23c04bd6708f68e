// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

static uint64_t gpu_speed(const struct scenario_gpu *gpu)
{
	return (uint64_t)gpu->model.cores * gpu->model.sm_mhz;
}

/* Insertion sort, which keeps the order of the bus among equals. */
static uint32_t all_devices(const struct scenario *scenario, bool by_bus, struct visible *ret_devices)
{
	uint32_t count = 0, at;

	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		const struct scenario_gpu *gpu = &scenario->gpus[i];

		if (gpu->mig)
			continue;
		for (at = count++; at > 0 && !by_bus; at--) {
			if (gpu_speed(&scenario->gpus[ret_devices[at - 1].gpu]) >= gpu_speed(gpu))
				break;
			ret_devices[at] = ret_devices[at - 1];
		}
		ret_devices[at] = (struct visible){ .gpu = (int)i, .instance = -1 };
	}
	for (uint32_t i = 0; i < scenario->gpu_count && count == 0; i++) {
		if (scenario->gpus[i].instance_count > 0)
			ret_devices[count++] = (struct visible){ .gpu = (int)i, .instance = 0 };
	}
	return count;
}

/* "MIG-UUID", or as older drivers name it, "MIG-GPU-UUID/GPU INSTANCE/COMPUTE INSTANCE" */
static bool is_instance(const char *word, const struct scenario_gpu *gpu,
			const struct scenario_instance *instance)
{
	char old[96];

	snprintf(old, sizeof(old), "MIG-%s/%u/%u", gpu->uuid, instance->gpu_instance,
		 instance->compute_instance);
	return STRV_EQ(word, instance->uuid) || STRV_EQ(word, old);
}

static bool find_instance(const struct scenario *scenario, const char *word, struct visible *ret_device)
{
	for (uint32_t i = 0; i < scenario->gpu_count; i++) {
		const struct scenario_gpu *gpu = &scenario->gpus[i];

		for (uint32_t j = 0; j < gpu->instance_count; j++) {
			if (is_instance(word, gpu, &gpu->instances[j])) {
				*ret_device = (struct visible){ .gpu = (int)i, .instance = (int)j };
				return true;
			}
		}
	}
	return false;
}

static bool find_gpu(const struct scenario *scenario, const struct visible *all, uint32_t count,
		     const char *word, struct visible *ret_device)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (strncmp(scenario->gpus[all[i].gpu].uuid, word, strlen(word)) == 0) {
			*ret_device = all[i];
			found++;
		}
	}
	return found == 1;
}

/* As CUDA parses it, with atoi: "1abc" is 1; text that does not begin with a digit is invalid. */
static bool find_index(const struct visible *all, uint32_t count, const char *word,
		       struct visible *ret_device)
{
	char *end;
	unsigned long index = strtoul(word, &end, 10);

	if (end == word || *word == '-' || index >= count)
		return false;
	*ret_device = all[index];
	return true;
}

uint32_t visible_devices(const struct scenario *scenario, const char *visible, const char *order,
			 struct visible ret_devices[static SCENARIO_MAX_GPUS])
{
	bool by_bus = order && STRV_EQ(order, "PCI_BUS_ID"), found;
	struct visible all[SCENARIO_MAX_GPUS], device;
	uint32_t all_count = all_devices(scenario, by_bus, all), count = 0;
	char word[96];

	if (!visible) {
		memcpy(ret_devices, all, all_count * sizeof(all[0]));
		return all_count;
	}
	for (const char *at = visible; *at && count < SCENARIO_MAX_GPUS; at += *at == ',') {
		at += strspn(at, " ");
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
		at += strcspn(at, ",");
		word[strcspn(word, " ")] = '\0';
		if (strncmp(word, "MIG-", 4) == 0)
			found = find_instance(scenario, word, &device);
		else if (strncmp(word, "GPU-", 4) == 0)
			found = find_gpu(scenario, all, all_count, word, &device);
		else
			found = find_index(all, all_count, word, &device);
		for (uint32_t i = 0; i < count && found; i++)
			found = ret_devices[i].gpu != device.gpu;
		if (!found || (device.instance >= 0 && count > 0))
			break;
		ret_devices[count++] = device;
		if (device.instance >= 0)
			break;
	}
	return count;
}
