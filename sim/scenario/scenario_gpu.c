// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nvml/abi_mig.h"

/* The entry being read; what is the GPU's own follows once it is known how many there are of it. */
struct gpu_entry {
	struct scenario_gpu gpu;
	uint32_t count;
};

enum { MIG_COMPUTE_SLICES = 7, MIG_MEMORY_SLICES = 8 };

/*
 * The number that the driver gives the first GPU instance of so many slices, as on A100 and H100, and its
 * profile.
 */
static const struct {
	uint32_t first_id, profile;
} instance_kinds[MIG_COMPUTE_SLICES + 1] = {
	[1] = { 7, NVML_GPU_INSTANCE_PROFILE_1_SLICE }, [2] = { 3, NVML_GPU_INSTANCE_PROFILE_2_SLICE },
	[3] = { 1, NVML_GPU_INSTANCE_PROFILE_3_SLICE }, [4] = { 1, NVML_GPU_INSTANCE_PROFILE_4_SLICE },
	[7] = { 0, NVML_GPU_INSTANCE_PROFILE_7_SLICE },
};

static bool id_taken(const struct scenario_gpu *gpu, uint32_t id)
{
	for (uint32_t i = 0; i < gpu->instance_count; i++) {
		if (gpu->instances[i].gpu_instance == id)
			return true;
	}
	return false;
}

/* "3g.40gb": slices of compute, and gigabytes, which stand for slices of memory. */
static int add_instance(struct schema *schema, const struct yaml_node *node, struct scenario_gpu *gpu)
{
	struct scenario_instance *instance = &gpu->instances[gpu->instance_count];
	const char *text = schema_scalar(schema, node);
	unsigned slices, gigabytes;
	uint32_t compute = 0, memory = 0, slice_gb, id;
	char rest;

	if (!text)
		return -EINVAL;
	if (gpu->instance_count == SCENARIO_MAX_INSTANCES ||
	    sscanf(text, "%1ug.%3ugb%c", &slices, &gigabytes, &rest) != 2 || slices > MIG_COMPUTE_SLICES ||
	    (instance_kinds[slices].profile == 0 && slices != 1))
		return schema_fail(schema, node,
				   "\"%.40s\" is no MIG profile: write 1g.10gb, 2g.20gb, 3g.40gb or the like",
				   text);
	for (uint32_t i = 0; i < gpu->instance_count; i++) {
		compute += gpu->instances[i].slices;
		memory += gpu->instances[i].memory_slices;
	}
	slice_gb = MAX((gpu->model.memory_mib + 512) / 1024 / MIG_MEMORY_SLICES, 1u);
	instance->slices = slices;
	instance->memory_slices = MIN(MAX(gigabytes / slice_gb, 1u), (unsigned)MIG_MEMORY_SLICES);
	instance->start = memory;
	if (compute + slices > gpu->model.mig_slices || memory + instance->memory_slices > MIG_MEMORY_SLICES)
		return schema_fail(schema, node,
				   "%s does not fit: a GPU has %u slices of compute and %d of memory", text,
				   gpu->model.mig_slices, MIG_MEMORY_SLICES);
	instance->memory_mib = gpu->model.memory_mib / MIG_MEMORY_SLICES * instance->memory_slices;
	instance->profile = instance_kinds[slices].profile;
	if (slices == 1 && instance->memory_slices > 1)
		instance->profile = NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2;
	for (id = instance_kinds[slices].first_id; id_taken(gpu, id); id++)
		;
	instance->gpu_instance = id;
	gpu->instance_count++;
	return schema_text(schema, node, instance->name, sizeof(instance->name));
}

/* false, true (MIG mode without an instance), or a list of profiles */
static int parse_mig(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct scenario_gpu *gpu = dst;
	int r = 0;

	if (node->kind != YAML_LIST)
		return schema_bool(schema, node, &gpu->mig, sizeof(gpu->mig));
	if (gpu->model.mig_slices == 0)
		return schema_fail(schema, node,
				   "this model is not capable of MIG; \"model\" stands before \"mig\"");
	gpu->mig = true;
	for (const struct yaml_node *child = node->children; child && r == 0; child = child->next)
		r = add_instance(schema, child, gpu);
	return r;
}

static int parse_model(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const struct model *model = node->kind == YAML_SCALAR_N ? model_find(node->scalar) : NULL;
	char known[200] = "";
	size_t used = 0;

	if (model) {
		memcpy(dst, model, size);
		return 0;
	}
	for (unsigned i = 0; model_id(i) && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
					 model_id(i));
	return schema_fail(schema, node, "this model is not known; choose one of: %s", known);
}

static const struct schema_key traffic_keys[] = {
	SCHEMA_KEY(struct scenario_gpu, traffic[TRAFFIC_PCIE_TX], "pcie_tx", schema_curve_number),
	SCHEMA_KEY(struct scenario_gpu, traffic[TRAFFIC_PCIE_RX], "pcie_rx", schema_curve_number),
	SCHEMA_KEY(struct scenario_gpu, traffic[TRAFFIC_NVLINK_TX], "nvlink_tx", schema_curve_number),
	SCHEMA_KEY(struct scenario_gpu, traffic[TRAFFIC_NVLINK_RX], "nvlink_rx", schema_curve_number),
};

static int parse_traffic(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct scenario_gpu *gpu = dst;
	int r = schema_map(schema, node, traffic_keys, ARRAY_SIZE(traffic_keys), gpu);

	for (size_t i = 0; i < ARRAY_SIZE(traffic_keys) && r == 0; i++)
		gpu->traffic_set[i] = yaml_get(node, traffic_keys[i].name);
	return r;
}

static int parse_vgpu_license(struct schema *schema, const struct yaml_node *node, void *dst,
			      _unused_ size_t size)
{
	static const char *const names[] = {
		[VGPU_LICENSE_NONE] = "none",
		[VGPU_LICENSE_MISSING] = "missing",
		[VGPU_LICENSE_VALID] = "valid",
	};
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));

	if (choice < 0)
		return choice;
	*(enum vgpu_license *)dst = (enum vgpu_license)choice;
	return 0;
}

#define GPU_KEY(member, name, parse) SCHEMA_KEY(struct gpu_entry, gpu.member, name, parse)

static const struct schema_key gpu_keys[] = {
	GPU_KEY(model, "model", parse_model),
	SCHEMA_KEY(struct gpu_entry, count, "count", schema_u32),
	{ "mig", parse_mig, offsetof(struct gpu_entry, gpu), 0 },
	{ "traffic", parse_traffic, offsetof(struct gpu_entry, gpu), 0 },
	GPU_KEY(unsupported, "unsupported", schema_globs),
	GPU_KEY(display_active, "display_active", schema_bool),
	GPU_KEY(persistence, "persistence", schema_bool),
	GPU_KEY(compute_mode, "compute_mode", schema_u32),
	GPU_KEY(vgpu_license, "vgpu_license", parse_vgpu_license),
	GPU_KEY(application_sm_mhz, "application_sm_mhz", schema_u32),
	GPU_KEY(inactive_links, "inactive_links", schema_u32),
	GPU_KEY(remap_pending, "remap_pending", schema_bool),
	GPU_KEY(remap_failed, "remap_failed", schema_bool),
	GPU_KEY(retire_pending, "retire_pending", schema_bool),
	GPU_KEY(model.name, "name", schema_text),
	GPU_KEY(model.part_number, "part_number", schema_text),
	GPU_KEY(model.vbios, "vbios", schema_text),
	GPU_KEY(model.architecture, "architecture", schema_u32),
	GPU_KEY(model.memory_mib, "memory", schema_mib),
	GPU_KEY(model.reserved_mib, "reserved", schema_mib),
	GPU_KEY(model.bar1_mib, "bar1", schema_mib),
	GPU_KEY(model.limit_mw, "power_limit", schema_mw),
	GPU_KEY(model.idle_mw, "power_idle", schema_mw),
	GPU_KEY(model.demand_mw, "power_demand", schema_mw),
	GPU_KEY(model.ambient_c, "ambient", schema_i32),
	GPU_KEY(model.hot_c, "hot", schema_i32),
	GPU_KEY(model.fans, "fans", schema_u32),
	GPU_KEY(model.nvlinks, "nvlinks", schema_u32),
	GPU_KEY(model.pcie_width, "pcie_width", schema_u32),
	GPU_KEY(model.ecc, "ecc", schema_bool),
	GPU_KEY(model.retired_pages, "retired_pages", schema_bool),
	GPU_KEY(model.row_remapping, "row_remapping", schema_bool),
	GPU_KEY(model.gpm, "gpm", schema_bool),
	GPU_KEY(model.accounting, "accounting", schema_bool),
	GPU_KEY(model.energy, "energy", schema_bool),
	GPU_KEY(model.memory_temperature, "memory_temperature", schema_bool),
	GPU_KEY(model.process_utilization, "process_utilization", schema_bool),
	GPU_KEY(model.samples, "samples", schema_bool),
};

/* Names in UUIDs and serial numbers depend on nothing but the seed and the number of the GPU. */
static void make_uuid(char *uuid, size_t size, const char *prefix, uint64_t what)
{
	uint32_t a = mix32(what * 4), b = mix32(what * 4 + 1), c = mix32(what * 4 + 2),
		 d = mix32(what * 4 + 3);

	snprintf(uuid, size, "%s-%08x-%04x-4%03x-%04x-%04x%08x", prefix, a, b >> 16, b & 0xfff,
		 0x8000 | (c >> 16 & 0x3fff), c & 0xffff, d);
}

static void identify(const struct scenario *scenario, struct scenario_gpu *gpu, uint32_t index)
{
	uint64_t what = (uint64_t)scenario->seed << 32 | index << 8;

	make_uuid(gpu->uuid, sizeof(gpu->uuid), "GPU", what);
	for (uint32_t i = 0; i < gpu->instance_count; i++)
		make_uuid(gpu->instances[i].uuid, sizeof(gpu->instances[i].uuid), "MIG", what + 1 + i);
	snprintf(gpu->serial, sizeof(gpu->serial), "165%010u", mix32(what));
	gpu->minor = index;
	gpu->pci_bus = 0x1b + index * 0x18 % 0xe0;
	gpu->numa_node = index >= SCENARIO_MAX_GPUS / 4 ? 1 : 0;
}

/* What the calls would divide by, or index with. */
static int check(struct schema *schema, const struct yaml_node *node, const struct scenario_gpu *gpu)
{
	const struct model *model = &gpu->model;

	if (model->limit_mw <= model->idle_mw || model->demand_mw <= model->idle_mw)
		return schema_fail(schema, node, "power_limit and power_demand must exceed power_idle");
	if (model->memory_mib <= model->reserved_mib)
		return schema_fail(schema, node, "memory must exceed what is reserved of it");
	if (model->nvlinks > 18 || gpu->inactive_links > model->nvlinks || model->fans > 8)
		return schema_fail(schema, node,
				   "at most 18 NVLinks, no more inactive ones than there are, and 8 fans");
	if (model->ambient_c < -40 || model->ambient_c > 100 || model->hot_c < model->ambient_c ||
	    model->hot_c > 150)
		return schema_fail(schema, node, "ambient is -40 to 100, hot from there to 150 degrees");
	return 0;
}

int scenario_parse_gpu(struct schema *schema, const struct yaml_node *node)
{
	struct scenario *scenario = schema->scenario;
	struct gpu_entry entry = { .count = 1 };
	int r;

	if (!yaml_get(node, "model"))
		return schema_fail(schema, node, "a GPU needs a model, such as model: h100-sxm");
	entry.gpu.persistence = true;
	r = schema_map(schema, node, gpu_keys, ARRAY_SIZE(gpu_keys), &entry);
	if (r == 0)
		r = check(schema, node, &entry.gpu);
	if (r < 0)
		return r;
	if (entry.count == 0 || entry.count > SCENARIO_MAX_GPUS - scenario->gpu_count)
		return schema_fail(schema, node, "a scenario has at most %d GPUs, and a count at least 1",
				   SCENARIO_MAX_GPUS);
	for (uint32_t i = 0; i < entry.count; i++) {
		scenario->gpus[scenario->gpu_count] = entry.gpu;
		identify(scenario, &scenario->gpus[scenario->gpu_count], scenario->gpu_count);
		scenario->gpu_count++;
	}
	return 0;
}
