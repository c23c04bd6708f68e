// SPDX-License-Identifier: Apache-2.0
#include "kubelet/resources.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "kubelet/pod_resources.pb-c.h"
#include "kubelet/unpack.h"
#include "model/gpu_resource.h"
#include "model/health_rows.h"

static int on_element(const uint8_t *data, size_t n, void *userdata)
{
	return pod_resources_take(userdata, data, n);
}

void pod_resources_init(struct pod_resources *resources)
{
	*resources = (struct pod_resources){
		.rows = { .size = sizeof(struct allocation), .max = ALLOCATIONS_MAX },
		.given = { .size = sizeof(struct device_ref), .max = ALLOCATIONS_MAX },
		.listed = { .size = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX },
		.elements = { .element = on_element, .userdata = resources },
	};
}

void pod_resources_done(struct pod_resources *resources)
{
	row_list_done(&resources->rows);
	row_list_done(&resources->given);
	row_list_done(&resources->listed);
	elements_done(&resources->elements);
}

void pod_resources_clear(struct pod_resources *resources)
{
	row_list_clear(&resources->rows);
	row_list_clear(&resources->given);
	elements_done(&resources->elements);
	resources->unreadable = 0;
	resources->pods = 0;
	resources->unmatched = 0;
	resources->claimed = 0;
	resources->unmatched_example[0] = '\0';
}

/* ---- rows ---- */

/* The container that is read, and where its rows begin. */
struct place {
	struct pod_resources *resources;
	struct allocation row; /* all but the device */
	uint32_t first;
};

static void row_add(struct place *place, const char *resource, const struct device_ref *device, bool shared)
{
	struct allocation *list = place->resources->rows.list, *row;

	for (uint32_t i = place->first; i < place->resources->rows.n; i++)
		if (memcmp(&list[i].device, device, sizeof(*device)) == 0 &&
		    strncmp(list[i].resource, resource, sizeof(list[i].resource) - 1) == 0) {
			list[i].slots += shared;
			return;
		}
	row = row_list_add(&place->resources->rows);
	if (!row)
		return;
	memcpy(row, &place->row, sizeof(*row));
	PUT_TEXT(row->resource, resource);
	row->device = *device;
	row->slots = shared;
}

static void count_unmatched(struct pod_resources *resources, const char *of, const char *device)
{
	char *example = resources->unmatched_example;

	if (resources->unmatched++ > 0)
		return;
	snprintf(example, sizeof(resources->unmatched_example), "%.60s of %.56s", device, of);
	utf8_sanitize(example);
}

/* Unused members of the structure are 0, so that two can be compared. */
static bool parse_device(const char *text, struct device_ref *ret_device, bool *ret_shared)
{
	struct device_ref device;
	bool shared = false;

	memset(&device, 0, sizeof(device));
	if (device_ref_parse(text, &device, &shared) < 0 || device.kind == DEVICE_NOT)
		return false;
	*ret_device = device;
	*ret_shared = shared;
	return true;
}

/* ---- device plugins ---- */

static void note_given(struct pod_resources *resources, const struct device_ref *device)
{
	struct device_ref *given = row_list_add(&resources->given);

	if (given)
		*given = *device;
}

static void take_devices(struct place *place, const Kubelet__ContainerDevices *devices)
{
	for (size_t i = 0; i < devices->n_device_ids; i++) {
		struct device_ref device;
		bool shared;

		if (parse_device(devices->device_ids[i], &device, &shared)) {
			row_add(place, devices->resource_name, &device, shared);
			note_given(place->resources, &device);
		} else {
			count_unmatched(place->resources, devices->resource_name, devices->device_ids[i]);
		}
	}
}

/* ---- DRA ---- */

static bool row_add_refs(struct place *place, const Kubelet__ClaimResource *claim,
			 const struct device_ref *refs, uint32_t n)
{
	for (uint32_t i = 0; refs && i < n; i++)
		row_add(place, claim->driver_name, &refs[i], *claim->share_id);
	return refs && n > 0;
}

/* A device of the Container Device Interface: named after its UUID, or as its specification says. */
static bool take_cdi_device(struct place *place, const Kubelet__ClaimResource *claim, const char *name)
{
	const struct device_ref *refs;
	struct device_ref device;
	uint32_t n;
	bool shared;

	if (parse_device(name, &device, &shared) && device.kind == DEVICE_BY_UUID)
		return row_add_refs(place, claim, &device, 1);
	refs = place->resources->cdi ? cdi_find(place->resources->cdi, name, &n) : NULL;
	return refs && row_add_refs(place, claim, refs, n);
}

static void take_claim(struct place *place, const Kubelet__ClaimResource *claim)
{
	const struct device_ref *refs;
	struct device_ref device;
	bool found = false, shared;
	char name[256];
	uint32_t n;

	for (size_t i = 0; i < claim->n_cdi_devices; i++)
		found |= take_cdi_device(place, claim, claim->cdi_devices[i]->name);
	if (found)
		return;
	refs = place->resources->cdi ?
		       cdi_find_claimed(place->resources->cdi, claim->driver_name, claim->device_name, &n) :
		       NULL;
	if ((refs && row_add_refs(place, claim, refs, n)) ||
	    (parse_device(claim->device_name, &device, &shared) && row_add_refs(place, claim, &device, 1)))
		return;
	device_ref_claimed(claim->driver_name, claim->pool_name, claim->device_name, &device);
	(void)row_add_refs(place, claim, &device, 1);
	place->resources->claimed++;
	snprintf(name, sizeof(name), "%.60s/%.60s", claim->pool_name, claim->device_name);
	count_unmatched(place->resources, claim->driver_name, name);
}

/* ---- pods ---- */

static void take_container(struct place *place, const Kubelet__ContainerResources *container)
{
	const char *names = place->resources->names;

	place->first = place->resources->rows.n;
	PUT_TEXT(place->row.container, container->name);
	for (size_t i = 0; i < container->n_devices; i++)
		if (resource_is_gpu(container->devices[i]->resource_name, names))
			take_devices(place, container->devices[i]);
	for (size_t i = 0; i < container->n_dynamic_resources; i++) {
		const Kubelet__DynamicResource *dynamic = container->dynamic_resources[i];

		for (size_t k = 0; k < dynamic->n_claim_resources; k++)
			if (resource_is_gpu(dynamic->claim_resources[k]->driver_name, names))
				take_claim(place, dynamic->claim_resources[k]);
	}
}

/* What was there before a pod. */
struct before {
	uint32_t rows, given, unmatched, claimed;
	uint64_t dropped;
};

static struct before before_of(const struct pod_resources *resources)
{
	return (struct before){ .rows = resources->rows.n,
				.given = resources->given.n,
				.unmatched = resources->unmatched,
				.claimed = resources->claimed,
				.dropped = resources->rows.dropped };
}

/* What a pod that has ended has added is taken back, rows that did not fit included. */
static void check_pod(struct place *place, const struct before *before)
{
	struct pod_resources *resources = place->resources;
	const struct allocation *pod = &place->row;
	struct allocation *list = resources->rows.list;
	char uid[sizeof(pod->pod_uid)] = "";

	if (!resources->counts ||
	    (resources->rows.n == before->rows && resources->unmatched == before->unmatched &&
	     resources->rows.dropped == before->dropped))
		return;
	if (!resources->counts(pod->namespace, pod->pod, uid, resources->userdata)) {
		resources->rows.n = before->rows;
		resources->given.n = before->given;
		resources->rows.dropped = before->dropped;
		resources->unmatched = before->unmatched;
		resources->claimed = before->claimed;
	}
	for (uint32_t i = before->rows; i < resources->rows.n; i++)
		PUT_TEXT(list[i].pod_uid, uid);
}

int pod_resources_take(struct pod_resources *resources, const uint8_t *data, size_t n)
{
	Kubelet__PodResources *pod = unpack(&kubelet__pod_resources__descriptor, data, n);
	const struct before before = before_of(resources);
	struct place place;

	resources->pods++;
	if (!pod || !*pod->name || !*pod->namespace_) {
		resources->unreadable++;
		unpack_free(pod);
		return 0;
	}
	memset(&place, 0, sizeof(place)); /* rows are compared byte by byte */
	place.resources = resources;
	PUT_TEXT(place.row.namespace, pod->namespace_);
	PUT_TEXT(place.row.pod, pod->name);
	for (size_t i = 0; i < pod->n_containers; i++)
		take_container(&place, pod->containers[i]);
	check_pod(&place, &before);
	unpack_free(pod);
	return 0;
}

int pod_resources_take_allocatable(struct pod_resources *resources, const uint8_t *data, size_t n)
{
	Kubelet__ContainerDevices *devices = unpack(&kubelet__container_devices__descriptor, data, n);

	if (!devices)
		resources->unreadable++;
	else if (resource_is_gpu(devices->resource_name, resources->names))
		resources->allocatable += (uint32_t)devices->n_device_ids;
	for (size_t i = 0; devices && i < devices->n_device_ids; i++)
		if (resource_is_gpu(devices->resource_name, resources->names))
			health_note(&resources->listed, devices->device_ids[i], HEALTH_GOOD);
	unpack_free(devices);
	return 0;
}

void pod_resources_compare(struct pod_resources *resources)
{
	const struct device_ref *given = resources->given.list;

	for (uint32_t i = 0; i < resources->given.n; i++) {
		struct device_health *row =
			health_has(&resources->listed, &given[i]) ? NULL : row_list_add(&resources->listed);

		if (row)
			*row = (struct device_health){ given[i], HEALTH_BAD };
	}
}
