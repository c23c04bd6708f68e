// SPDX-License-Identifier: Apache-2.0
#include "kubelet/pods.h"

#include <string.h>

#include "base/macro.h"
#include "kubelet/pod.pb-c.h"
#include "kubelet/unpack.h"
#include "model/gpu_resource.h"
#include "model/health_rows.h"

enum {
	ID_DIGITS = 64, /* of a container's, of all runtimes */
	PODS_MAX = 4096,
};

/*
 * Of a static pod: what its cgroup and log folder are named after, while the API server's copy has another
 * UID.
 */
static const char config_hash[] = "kubernetes.io/config.hash";
/* The user who makes a pod chooses its annotations; kubelet deletes one with this unless it is a copy. */
static const char config_mirror[] = "kubernetes.io/config.mirror";

static int on_element(const uint8_t *data, size_t n, void *userdata)
{
	return pods_take(userdata, data, n);
}

void pods_init(struct pods *pods)
{
	*pods = (struct pods){
		.owners = { .size = sizeof(struct owner), .max = OWNERS_MAX },
		.list = { .size = sizeof(struct pod_state), .max = PODS_MAX },
		.health = { .size = sizeof(struct device_health), .max = DEVICE_HEALTH_MAX },
		.elements = { .element = on_element, .userdata = pods },
	};
}

void pods_done(struct pods *pods)
{
	row_list_done(&pods->owners);
	row_list_done(&pods->list);
	row_list_done(&pods->health);
	elements_done(&pods->elements);
}

void pods_clear(struct pods *pods)
{
	row_list_clear(&pods->owners);
	row_list_clear(&pods->list);
	row_list_clear(&pods->health);
	elements_done(&pods->elements);
	pods->unreadable = 0;
}

static const Kubelet__OwnerReference *controller_of(const Kubelet__ObjectMeta *meta)
{
	for (size_t i = 0; i < meta->n_owner_references; i++)
		if (meta->owner_references[i]->controller)
			return meta->owner_references[i];
	return NULL;
}

static struct owner *add_owner(struct pods *pods, const Kubelet__ObjectMeta *meta, enum workload_kind kind,
			       const char *id)
{
	const Kubelet__OwnerReference *controller = controller_of(meta);
	struct owner *owner = row_list_add(&pods->owners);

	if (!owner)
		return NULL;
	owner->workload = kind;
	PUT_TEXT(owner->id, id);
	PUT_TEXT(owner->namespace, meta->namespace_);
	PUT_TEXT(owner->pod, meta->name);
	if (controller) {
		PUT_TEXT(owner->owner_kind, controller->kind);
		PUT_TEXT(owner->owner_name, controller->name);
	}
	return owner;
}

/* "containerd://ID"; NULL: not started yet. */
static const char *container_id(const Kubelet__ContainerStatus *status)
{
	const char *at = strstr(status->container_id, "://");
	const char *id = at ? at + strlen("://") : status->container_id;

	return strspn(id, "0123456789abcdef") == ID_DIGITS && !id[ID_DIGITS] ? id : NULL;
}

static void add_containers(struct pods *pods, const Kubelet__ObjectMeta *meta,
			   Kubelet__ContainerStatus *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *id = container_id(list[i]);
		struct owner *owner = id ? add_owner(pods, meta, WORKLOAD_CONTAINER, id) : NULL;

		if (owner)
			PUT_TEXT(owner->container, list[i]->name);
	}
}

/* "": it has none. */
static const char *annotation_of(const Kubelet__ObjectMeta *meta, const char *key)
{
	for (size_t i = 0; i < meta->n_annotations; i++)
		if (STRV_EQ(meta->annotations[i]->key, key))
			return meta->annotations[i]->value;
	return "";
}

static void add_pod(struct pods *pods, const Kubelet__ObjectMeta *meta, const char *phase)
{
	const char *hash = annotation_of(meta, config_hash);
	struct pod_state *state = row_list_add(&pods->list);
	uint32_t row = pods->owners.n;

	if (!add_owner(pods, meta, WORKLOAD_POD, meta->uid))
		row = UINT32_MAX;
	if (!state)
		return;
	state->row = row;
	if (STRV_EQ(hash, annotation_of(meta, config_mirror)) && !STRV_EQ(hash, meta->uid))
		PUT_TEXT(state->static_uid, hash);
	PUT_TEXT(state->namespace, meta->namespace_);
	PUT_TEXT(state->pod, meta->name);
	PUT_TEXT(state->uid, meta->uid);
	state->ended = STRV_EQ(phase, "Succeeded") || STRV_EQ(phase, "Failed");
}

static void add_health(struct pods *pods, Kubelet__ContainerStatus *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < list[i]->n_allocated_resources_status; k++) {
			const Kubelet__ResourceStatus *status = list[i]->allocated_resources_status[k];

			if (!resource_is_gpu(status->name, pods->names))
				continue;
			for (size_t d = 0; d < status->n_resources; d++)
				health_note(&pods->health, status->resources[d]->resource_id,
					    health_named(status->resources[d]->health));
		}
	}
}

/* Of a pod that has ended nothing is known any more. */
static void add_healths(struct pods *pods, const Kubelet__PodStatus *status)
{
	if (STRV_EQ(status->phase, "Succeeded") || STRV_EQ(status->phase, "Failed"))
		return;
	add_health(pods, status->container_statuses, status->n_container_statuses);
	add_health(pods, status->init_container_statuses, status->n_init_container_statuses);
	add_health(pods, status->ephemeral_container_statuses, status->n_ephemeral_container_statuses);
}

int pods_take(struct pods *pods, const uint8_t *data, size_t n)
{
	Kubelet__Pod *pod = unpack(&kubelet__pod__descriptor, data, n);
	const Kubelet__ObjectMeta *meta = pod ? pod->metadata : NULL;
	const Kubelet__PodStatus *status = pod ? pod->status : NULL;

	if (!meta || !*meta->name || !*meta->namespace_ || !*meta->uid) {
		pods->unreadable++;
		unpack_free(pod);
		return 0;
	}
	add_pod(pods, meta, status ? status->phase : "");
	if (status) {
		add_containers(pods, meta, status->container_statuses, status->n_container_statuses);
		add_containers(pods, meta, status->init_container_statuses,
			       status->n_init_container_statuses);
		add_containers(pods, meta, status->ephemeral_container_statuses,
			       status->n_ephemeral_container_statuses);
	}
	if (status)
		add_healths(pods, status);
	unpack_free(pod);
	return 0;
}

/* Whether the UID that @pod has beside its own means another pod: users choose annotations. */
static bool is_of_another(const struct pods *pods, const struct pod_state *pod)
{
	const struct pod_state *list = pods->list.list;

	for (uint32_t i = 0; i < pods->list.n; i++) {
		const struct pod_state *other = &list[i];
		bool same = STRV_EQ(other->pod, pod->pod) && STRV_EQ(other->namespace, pod->namespace);

		if (other != pod && (STRV_EQ(other->uid, pod->static_uid) ||
				     (!same && STRV_EQ(other->static_uid, pod->static_uid))))
			return true;
	}
	return false;
}

void pods_end(struct pods *pods)
{
	const struct pod_state *list = pods->list.list;

	for (uint32_t i = 0; i < pods->list.n; i++) {
		struct owner *row;

		if (!list[i].static_uid[0] || list[i].row == UINT32_MAX || is_of_another(pods, &list[i]))
			continue;
		row = row_list_add(&pods->owners);
		if (!row)
			continue;
		*row = ((const struct owner *)pods->owners.list)[list[i].row];
		memset(row->id, 0, sizeof(row->id));
		PUT_TEXT(row->id, list[i].static_uid);
	}
}

const struct pod_state *pods_find(const struct pods *pods, const char *namespace, const char *pod)
{
	const struct pod_state *list = pods->list.list;

	for (uint32_t i = 0; i < pods->list.n; i++)
		if (STRV_EQ(list[i].pod, pod) && STRV_EQ(list[i].namespace, namespace))
			return &list[i];
	return NULL;
}
