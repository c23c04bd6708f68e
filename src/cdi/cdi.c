// SPDX-License-Identifier: Apache-2.0
#include "cdi/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

int cdi_new(struct cdi **ret_cdi)
{
	struct cdi *cdi = calloc(1, sizeof(*cdi));

	if (!cdi)
		return -ENOMEM;
	*ret_cdi = cdi;
	return 0;
}

void cdi_done(struct cdi *cdi)
{
	for (uint32_t i = 0; i < cdi->n; i++)
		free(cdi->devices[i].name);
	free(cdi->devices);
	free(cdi->refs);
	mig_caps_done(&cdi->caps);
	*cdi = (struct cdi){ 0 };
}

void cdi_free(struct cdi *cdi)
{
	if (!cdi)
		return;
	cdi_done(cdi);
	free(cdi);
}

const struct mig_caps *cdi_caps(const struct cdi *cdi)
{
	return &cdi->caps;
}

const char *cdi_error(const struct cdi *cdi)
{
	return cdi->error;
}

uint32_t cdi_dropped(const struct cdi *cdi)
{
	return cdi->dropped;
}

/* ---- a specification ---- */

static const char *spec_text(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *node = yaml_get(map, key);

	return node && node->scalar ? node->scalar : "";
}

/* The host's path is the device; the other may be any name in the container. */
static void add_node(struct gpu_nodes *nodes, const struct yaml_node *node)
{
	const char *host = spec_text(node, "hostPath");

	gpu_nodes_add(nodes, *host ? host : spec_text(node, "path"));
}

static struct gpu_nodes nodes_of(const struct yaml_node *device)
{
	const struct yaml_node *list = yaml_get(yaml_get(device, "containerEdits"), "deviceNodes");
	struct gpu_nodes nodes = { 0 };

	for (const struct yaml_node *node = list ? list->children : NULL; node; node = node->next)
		add_node(&nodes, node);
	return nodes;
}

static bool is_empty(const struct gpu_nodes *nodes)
{
	static const struct gpu_nodes none;

	return !nodes->cut && gpu_nodes_equal(nodes, &none);
}

static bool has_uuid(const char *name)
{
	return strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0;
}

static bool by_uuid(const char *name, struct device_ref *ret_ref)
{
	struct device_ref ref = DEVICE_REF(DEVICE_BY_UUID);

	if (!has_uuid(name) || strlen(name) >= sizeof(ref.uuid))
		return false;
	strcpy(ref.uuid, name);
	*ret_ref = ref;
	return true;
}

/* A device with a UUID for a name, by its nodes. */
struct namesake {
	uint64_t hash;
	const struct yaml_node *device;
};
struct namesakes {
	struct namesake *list;
	size_t n;
};

static int compare_namesakes(const void *a, const void *b)
{
	uint64_t x = ((const struct namesake *)a)->hash, y = ((const struct namesake *)b)->hash;

	return x < y ? -1 : x > y;
}

static int namesakes_of(const struct yaml_node *devices, struct namesakes *ret_names)
{
	struct namesakes names = { 0 };
	size_t n = 0;

	for (const struct yaml_node *device = devices->children; device; device = device->next)
		n += has_uuid(spec_text(device, "name"));
	names.list = calloc(n + 1, sizeof(*names.list));
	if (!names.list)
		return -ENOMEM;
	for (const struct yaml_node *device = devices->children; device; device = device->next) {
		struct gpu_nodes nodes;

		if (!has_uuid(spec_text(device, "name")))
			continue;
		nodes = nodes_of(device);
		names.list[names.n++] = (struct namesake){ gpu_nodes_hash(&nodes), device };
	}
	qsort(names.list, names.n, sizeof(names.list[0]), compare_namesakes);
	*ret_names = names;
	return 0;
}

static bool by_namesake(const struct namesakes *names, const struct gpu_nodes *nodes,
			struct device_ref *ret_ref)
{
	const struct namesake key = { .hash = gpu_nodes_hash(nodes) };
	const struct namesake *found = bsearch(&key, names->list, names->n, sizeof(key), compare_namesakes);
	struct gpu_nodes theirs;

	if (!found)
		return false;
	theirs = nodes_of(found->device);
	return gpu_nodes_equal(&theirs, nodes) && by_uuid(spec_text(found->device, "name"), ret_ref);
}

/* At least one fits in @list. */
static uint32_t refs_of(const struct namesakes *names, const struct yaml_node *device,
			const struct mig_caps *caps, struct device_ref *list, uint32_t max)
{
	const char *name = spec_text(device, "name");
	struct gpu_nodes nodes;

	if (by_uuid(name, list))
		return 1;
	nodes = nodes_of(device);
	if (is_empty(&nodes))
		return 0;
	if (by_namesake(names, &nodes, list))
		return 1;
	/* Of GPUs and instances together, which the driver's list need not be at hand for. */
	if (nodes.caps_n && STRV_EQ(name, "all")) {
		*list = DEVICE_REF(DEVICE_ALL);
		return 1;
	}
	return gpu_nodes_refs(&nodes, caps, list, max);
}

/* ---- what is known ---- */

/* Room for one more. False: the limit, or no memory. */
static bool cdi_room(struct cdi *cdi, uint32_t refs)
{
	if (cdi->n == CDI_DEVICES_MAX || cdi->refs_n + refs > CDI_REFS_MAX)
		return false;
	if (cdi->n == cdi->room) {
		uint32_t room = MAX(32u, cdi->room * 2);
		void *list = reallocarray(cdi->devices, room, sizeof(cdi->devices[0]));

		if (!list)
			return false;
		cdi->devices = list;
		cdi->room = room;
	}
	if (cdi->refs_n + refs > cdi->refs_room) {
		uint32_t room = MAX(cdi->refs_n + refs, cdi->refs_room * 2);
		void *list = reallocarray(cdi->refs, room, sizeof(cdi->refs[0]));

		if (!list)
			return false;
		cdi->refs = list;
		cdi->refs_room = room;
	}
	return true;
}

static void add_device(struct cdi *cdi, const char *kind, const char *name, const struct device_ref *refs,
		       uint32_t n)
{
	char whole[CDI_NAME_MAX], *copy;
	int written = snprintf(whole, sizeof(whole), "%s=%s", kind, name);

	if (!*name || written < 0 || (size_t)written >= sizeof(whole) || !cdi_room(cdi, n)) {
		cdi->dropped++;
		return;
	}
	copy = strdup(whole);
	if (!copy) {
		cdi->dropped++;
		return;
	}
	cdi->devices[cdi->n++] = (struct cdi_device){ .name = copy, .first = cdi->refs_n, .n = n };
	if (n)
		memcpy(cdi->refs + cdi->refs_n, refs, n * sizeof(*refs));
	cdi->refs_n += n;
}

static int add_spec_devices(struct cdi *cdi, const char *kind, const struct yaml_node *devices,
			    const struct mig_caps *caps)
{
	struct device_ref refs[GPU_NODES_MAX];
	struct namesakes names;
	int r = namesakes_of(devices, &names);

	if (r < 0)
		return r;
	for (const struct yaml_node *device = devices->children; device; device = device->next)
		add_device(cdi, kind, spec_text(device, "name"), refs,
			   refs_of(&names, device, caps, refs, GPU_NODES_MAX));
	free(names.list);
	return 0;
}

int cdi_add(struct cdi *cdi, const char *text, size_t n, const struct mig_caps *caps)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	const struct yaml_node *devices;
	struct yaml_error error;
	const char *kind;
	int r = yaml_parse_buffer("", text, n, &doc, &error);

	if (r < 0 && r != -EEXIST)
		return r == -ENOMEM || r == -E2BIG ? r : -EBADMSG;
	kind = spec_text(doc->root, "kind");
	devices = yaml_get(doc->root, "devices");
	if (!*kind || !*spec_text(doc->root, "cdiVersion") || !devices || devices->kind != YAML_LIST)
		return -EBADMSG;
	return add_spec_devices(cdi, kind, devices, caps);
}

static const struct device_ref *found(const struct cdi *cdi, const struct cdi_device *device, uint32_t *ret_n)
{
	static const struct device_ref none;

	*ret_n = device->n;
	return device->n ? cdi->refs + device->first : &none;
}

const struct device_ref *cdi_find(const struct cdi *cdi, const char *name, uint32_t *ret_n)
{
	for (uint32_t i = cdi->n; i-- > 0;)
		if (STRV_EQ(cdi->devices[i].name, name))
			return found(cdi, &cdi->devices[i], ret_n);
	return NULL;
}

/* Whether a whole name is that of a driver's device, for a claim or for all. */
static bool is_claimed(const char *name, const char *driver, const char *device)
{
	size_t n = strlen(driver), end = strlen(device), left;

	if (strncmp(name, "k8s.", 4) == 0)
		name += 4;
	if (strncmp(name, driver, n) != 0 || name[n] != '/')
		return false;
	name = strchr(name, '=') + 1;
	left = strlen(name);
	return left >= end && strcmp(name + left - end, device) == 0 &&
	       (left == end || name[left - end - 1] == '-');
}

const struct device_ref *cdi_find_claimed(const struct cdi *cdi, const char *driver, const char *device,
					  uint32_t *ret_n)
{
	const struct cdi_device *best = NULL;

	/* Of a claim's own devices some have no nodes: they only add to those of the same name for all. */
	for (uint32_t i = cdi->n; i-- > 0 && !(best && best->n);)
		if (is_claimed(cdi->devices[i].name, driver, device))
			best = &cdi->devices[i];
	return best ? found(cdi, best, ret_n) : NULL;
}
