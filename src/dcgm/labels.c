// SPDX-License-Identifier: Apache-2.0
#include "dcgm/labels.h"

#include <string.h>

#include "base/macro.h"
#include "dcgm/protocol.h"

#define ROOM(member_) (sizeof(((struct scraped_row *)NULL)->member_) - 1)
#define DEVICE_ROOM(member_) (sizeof(((struct dcgm_device *)NULL)->member_) - 1)

/* Bytes of a value; what is no part of a row may be as long as the line. */
static const uint32_t rooms[LABELS] = {
	[LABEL_UUID] = ROOM(uuid),
	[LABEL_GI] = ROOM(gi),
	[LABEL_GPU] = ROOM(gpu),
	[LABEL_DEVICE] = ROOM(device),
	[LABEL_PROFILE] = ROOM(mig_profile),
	[LABEL_NAMESPACE] = ROOM(namespace),
	[LABEL_POD] = ROOM(pod),
	[LABEL_CONTAINER] = ROOM(container),
	[LABEL_NODE] = ROOM(node),
	[LABEL_MODEL] = ROOM(model),
	[LABEL_BUS] = DEVICE_ROOM(pci_bus_id),
	[LABEL_DRIVER] = DEVICE_ROOM(driver_version),
	[LABEL_JOB] = UINT32_MAX,
	[LABEL_VGPU] = UINT32_MAX,
	[LABEL_NVLINK] = UINT32_MAX,
	[LABEL_METRIC] = UINT32_MAX,
	[LABEL_SIMULATED] = UINT32_MAX,
};

/*
 * Ordered by the first letter. exported_X is what a page that was read back from Prometheus has as the
 * exporter's X: X is then of the pod that the exporter itself runs in.
 */
static const struct {
	const char *name;
	enum page_label label;
	uint32_t rank;
} names[] = {
	{ "DCGM_FI_DRIVER_VERSION", LABEL_DRIVER, 2 },
	{ "DCGM_FI_SYSTEM_DRIVER_VERSION", LABEL_DRIVER, 1 },
	{ "GPU_I_ID", LABEL_GI, 1 },
	{ "GPU_I_PROFILE", LABEL_PROFILE, 1 },
	{ "Hostname", LABEL_NODE, 2 },
	{ "UUID", LABEL_UUID, 3 },
	{ "container", LABEL_CONTAINER, 2 },
	{ "container_name", LABEL_CONTAINER, 1 },
	{ "device", LABEL_DEVICE, 1 },
	{ "exported_container", LABEL_CONTAINER, 3 },
	{ "exported_namespace", LABEL_NAMESPACE, 3 },
	{ "exported_pod", LABEL_POD, 3 },
	{ "gpu", LABEL_GPU, 1 },
	{ "gpu_uuid", LABEL_UUID, 1 },
	{ "hostname", LABEL_NODE, 1 },
	{ "hpc_job", LABEL_JOB, 1 },
	{ "metric", LABEL_METRIC, 1 },
	{ "modelName", LABEL_MODEL, 2 },
	{ "model_name", LABEL_MODEL, 1 },
	{ "namespace", LABEL_NAMESPACE, 2 },
	{ "nvlink", LABEL_NVLINK, 1 },
	{ "pci_bus_id", LABEL_BUS, 1 },
	{ "pod", LABEL_POD, 2 },
	{ "pod_name", LABEL_POD, 1 },
	{ "pod_namespace", LABEL_NAMESPACE, 1 },
	{ "simulated", LABEL_SIMULATED, 1 },
	{ "uuid", LABEL_UUID, 2 },
	{ "vgpu", LABEL_VGPU, 1 },
};

/* Where the names with this first letter begin; made with the first call. */
static uint8_t first_of[256];

static void index_names(void)
{
	for (size_t i = ARRAY_SIZE(names); i-- > 0;)
		first_of[(uint8_t)names[i].name[0]] = (uint8_t)(i + 1);
}

/* The index of the name; SIZE_MAX: another one. */
static size_t find_name(const struct cursor *name)
{
	const char first = *name->p;

	if (!first_of['v'])
		index_names();
	if (!first_of[(uint8_t)first])
		return SIZE_MAX;
	for (size_t i = first_of[(uint8_t)first] - 1u; i < ARRAY_SIZE(names) && names[i].name[0] == first;
	     i++)
		if (cursor_equals(name, names[i].name))
			return i;
	return SIZE_MAX;
}

static enum scrape_line read_label(struct page_labels *labels, const struct line_label *label, size_t name)
{
	const enum page_label to = names[name].label;
	const char *p = label->value.p;
	size_t n = cursor_left(&label->value);

	/* An empty one says nothing: the next best name does. */
	if (labels->v[to].p && (labels->v[to].rank > names[name].rank || n == 0))
		return SCRAPE_LINE_TAKEN;
	if (label->escaped) {
		size_t room = LABELS_TEXT_MAX - labels->text_n;

		p = labels->text + labels->text_n;
		n = line_unescape(label, labels->text + labels->text_n, room);
		if (n > room)
			return SCRAPE_LINE_KEY;
		labels->text_n += (uint32_t)n;
	}
	if (n > rooms[to] || memchr(p, '\0', n))
		return SCRAPE_LINE_KEY;
	labels->v[to].p = p;
	labels->v[to].n = (uint32_t)n;
	labels->v[to].rank = n ? names[name].rank : 0;
	return SCRAPE_LINE_TAKEN;
}

enum scrape_line labels_read(struct page_labels *labels, const struct line *line)
{
	memset(labels->v, 0, sizeof(labels->v));
	labels->text_n = 0;
	for (uint32_t i = 0; i < line->labels_n; i++) {
		const struct line_label *label = &line->labels[i];
		size_t name = find_name(&label->name);
		enum scrape_line why = name == SIZE_MAX ? SCRAPE_LINE_TAKEN : read_label(labels, label, name);

		if (why != SCRAPE_LINE_TAKEN)
			return why;
	}
	return SCRAPE_LINE_TAKEN;
}
