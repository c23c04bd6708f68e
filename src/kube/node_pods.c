// SPDX-License-Identifier: Apache-2.0
#include "kube/node_pods.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/row_list.h"
#include "base/text.h"
#include "model/gpu_resource.h"
#include "model/health_rows.h"

#define GONE_NS (60 * NSEC_PER_SEC)

enum { ID_DIGITS = 64 /* of a container's ID, of all runtimes */ };

enum {
	ID_UID = 1,
	ID_NAMESPACE,
	ID_NAME,
	ID_LABEL,
	ID_ANNOTATION,
	ID_HASH,
	ID_MIRROR,
	ID_OWNERS,
	ID_OWNER,
	ID_OWNER_API,
	ID_OWNER_KIND,
	ID_OWNER_NAME,
	ID_OWNER_UID,
	ID_OWNER_CONTROLS,
	ID_PHASE,
	ID_ADDRESS,
	ID_CONDITION,
	ID_CONDITION_TYPE,
	ID_CONDITION_STATUS,
	ID_CONTAINERS, /* of three kinds, each of them with CONTAINER_IDS */
};

enum {
	CONTAINER_LIST,
	CONTAINER,
	CONTAINER_NAME,
	CONTAINER_ID,
	CONTAINER_RESOURCE, /* of its `allocatedResourcesStatus` */
	CONTAINER_RESOURCE_NAME,
	CONTAINER_DEVICE,
	CONTAINER_DEVICE_ID,
	CONTAINER_DEVICE_HEALTH,
	CONTAINER_IDS
};

#define CONTAINER_STATUS(name_) "status " name_ " []"
#define CONTAINER_RESOURCES(name_) CONTAINER_STATUS(name_) " allocatedResourcesStatus []"
#define CONTAINER_PATH(list_, path_, id_)                            \
	{                                                            \
		path_, ID_CONTAINERS + (list_)*CONTAINER_IDS + (id_) \
	}
#define CONTAINER_PATHS(list_, name_)                                                                \
	CONTAINER_PATH(list_, "status " name_, CONTAINER_LIST),                                      \
		CONTAINER_PATH(list_, CONTAINER_STATUS(name_), CONTAINER),                           \
		CONTAINER_PATH(list_, CONTAINER_STATUS(name_) " name", CONTAINER_NAME),              \
		CONTAINER_PATH(list_, CONTAINER_STATUS(name_) " containerID", CONTAINER_ID),         \
		CONTAINER_PATH(list_, CONTAINER_RESOURCES(name_), CONTAINER_RESOURCE),               \
		CONTAINER_PATH(list_, CONTAINER_RESOURCES(name_) " name", CONTAINER_RESOURCE_NAME),  \
		CONTAINER_PATH(list_, CONTAINER_RESOURCES(name_) " resources []", CONTAINER_DEVICE), \
		CONTAINER_PATH(list_, CONTAINER_RESOURCES(name_) " resources [] resourceID",         \
			       CONTAINER_DEVICE_ID),                                                 \
		CONTAINER_PATH(list_, CONTAINER_RESOURCES(name_) " resources [] health",             \
			       CONTAINER_DEVICE_HEALTH)

const struct json_path node_pod_paths[] = {
	{ "metadata uid", ID_UID },
	{ "metadata namespace", ID_NAMESPACE },
	{ "metadata name", ID_NAME },
	{ "metadata labels *", ID_LABEL },
	{ "metadata annotations *", ID_ANNOTATION },
	/* Of a static pod, whose copy in the API server has another UID than its cgroup. */
	{ "metadata annotations kubernetes.io/config.hash", ID_HASH },
	{ "metadata annotations kubernetes.io/config.mirror", ID_MIRROR },
	{ "metadata ownerReferences", ID_OWNERS },
	{ "metadata ownerReferences []", ID_OWNER },
	{ "metadata ownerReferences [] apiVersion", ID_OWNER_API },
	{ "metadata ownerReferences [] kind", ID_OWNER_KIND },
	{ "metadata ownerReferences [] name", ID_OWNER_NAME },
	{ "metadata ownerReferences [] uid", ID_OWNER_UID },
	{ "metadata ownerReferences [] controller", ID_OWNER_CONTROLS },
	{ "status phase", ID_PHASE },
	{ "status podIP", ID_ADDRESS },
	{ "status conditions []", ID_CONDITION },
	{ "status conditions [] type", ID_CONDITION_TYPE },
	{ "status conditions [] status", ID_CONDITION_STATUS },
	CONTAINER_PATHS(0, "containerStatuses"),
	CONTAINER_PATHS(1, "initContainerStatuses"), /* sidecars are of these */
	CONTAINER_PATHS(2, "ephemeralContainerStatuses"),
};
const size_t node_pod_paths_n = ARRAY_SIZE(node_pod_paths);

/* The object at hand. */
struct pod_reading {
	struct pod_container containers[POD_CONTAINERS_MAX];
	uint32_t left_out;
	size_t label_at; /* of the label that was taken, among the keys; SIZE_MAX: none */
	char mirror[sizeof(((struct node_pod *)NULL)->static_uid)];
	/* the owner, condition and container at hand */
	struct owner_ref owner;
	bool controls;
	char condition[32], status[16];
	char resource[128], health[16];
	struct pod_device device;
	struct pod_container container;
	struct node_pod pod; /* without containers of its own, so the last */
};

/* ---- values ---- */

#define TAKE_TEXT(member_, value_) json_copy_text(member_, sizeof(member_), value_)

/* Whether @wanted, "KIND:KEY" or "KEY" of a label, is this one. No key has a colon. */
static bool is_wanted(const char *wanted, const char *kind, const char *key)
{
	const char *colon = wanted ? strchr(wanted, ':') : NULL;

	if (!wanted)
		return false;
	if (!colon)
		return STRV_EQ(kind, "label") && STRV_EQ(wanted, key);
	return strncmp(wanted, kind, (size_t)(colon - wanted)) == 0 && !kind[colon - wanted] &&
	       STRV_EQ(colon + 1, key);
}

static void take_run(struct node_pods *pods, const char *kind, const struct json_value *value)
{
	if (is_wanted(pods->run, kind, value->key))
		TAKE_TEXT(pods->reading->pod.run, value);
	if (is_wanted(pods->group, kind, value->key))
		TAKE_TEXT(pods->reading->pod.group, value);
}

/* Of the configured keys the first that the pod has, unless its value is empty. */
static void take_label(struct node_pods *pods, const struct json_value *value)
{
	char label[sizeof(((struct node_pod *)NULL)->label)];
	struct pod_reading *reading = pods->reading;
	size_t at = 0;

	if (value->kind != JSON_VALUE_TEXT)
		return;
	take_run(pods, "label", value);
	if (pods->selector)
		selector_label(pods->selector, value->key, value->text, value->n);
	for (const char *key = pods->labels; *key; key += strlen(key) + 1, at++) {
		if (!STRV_EQ(key, value->key) || at > reading->label_at)
			continue;
		TAKE_TEXT(label, value);
		if (!label[0])
			continue;
		memcpy(reading->pod.label, label, sizeof(label));
		reading->label_at = at;
	}
}

/* "containerd://ID"; of one that has not started there is none. */
static void take_container_id(char *to, size_t size, const struct json_value *value)
{
	static const char scheme[] = "://";
	const char *at = value->kind == JSON_VALUE_TEXT ? memmem(value->text, value->n, scheme, 3) : NULL;
	const char *id = at ? at + 3 : value->text;
	size_t n = value->kind == JSON_VALUE_TEXT ? value->n - (size_t)(id - value->text) : 0;

	to[0] = '\0';
	if (n != ID_DIGITS || n >= size)
		return;
	memcpy(to, id, n);
	to[n] = '\0';
	if (strspn(to, "0123456789abcdef") != n)
		to[0] = '\0';
}

static void take_owner_value(struct pod_reading *reading, int id, const struct json_value *value)
{
	switch (id) {
	case ID_OWNER_API:
		TAKE_TEXT(reading->owner.api_version, value);
		break;
	case ID_OWNER_KIND:
		TAKE_TEXT(reading->owner.kind, value);
		break;
	case ID_OWNER_NAME:
		TAKE_TEXT(reading->owner.name, value);
		break;
	case ID_OWNER_UID:
		TAKE_TEXT(reading->owner.uid, value);
		break;
	case ID_OWNER_CONTROLS:
		reading->controls = value->kind == JSON_VALUE_BOOL && value->yes;
		break;
	}
}

static void take_status_value(struct pod_reading *reading, int id, const struct json_value *value)
{
	char phase[16];

	switch (id) {
	case ID_PHASE:
		TAKE_TEXT(phase, value);
		reading->pod.running = STRV_EQ(phase, "Running");
		break;
	case ID_ADDRESS:
		TAKE_TEXT(reading->pod.address, value);
		break;
	case ID_CONDITION_TYPE:
		TAKE_TEXT(reading->condition, value);
		break;
	case ID_CONDITION_STATUS:
		TAKE_TEXT(reading->status, value);
		break;
	}
}

static void take_container_value(struct pod_reading *reading, int id, const struct json_value *value)
{
	switch ((id - ID_CONTAINERS) % CONTAINER_IDS) {
	case CONTAINER_NAME:
		TAKE_TEXT(reading->container.name, value);
		break;
	case CONTAINER_ID:
		take_container_id(reading->container.id, sizeof(reading->container.id), value);
		break;
	case CONTAINER_RESOURCE_NAME:
		TAKE_TEXT(reading->resource, value);
		break;
	case CONTAINER_DEVICE_ID:
		TAKE_TEXT(reading->device.id, value);
		break;
	case CONTAINER_DEVICE_HEALTH:
		TAKE_TEXT(reading->health, value);
		break;
	}
}

static int on_pod_value(int id, const struct json_value *value, void *userdata)
{
	struct node_pods *pods = userdata;
	struct pod_reading *reading = pods->reading;

	if (id == ID_UID)
		TAKE_TEXT(reading->pod.uid, value);
	else if (id == ID_NAMESPACE)
		TAKE_TEXT(reading->pod.namespace, value);
	else if (id == ID_NAME)
		TAKE_TEXT(reading->pod.name, value);
	else if (id == ID_LABEL)
		take_label(pods, value);
	else if (id == ID_ANNOTATION)
		take_run(pods, "annotation", value);
	else if (id == ID_HASH)
		TAKE_TEXT(reading->pod.static_uid, value);
	else if (id == ID_MIRROR)
		TAKE_TEXT(reading->mirror, value);
	else if (id >= ID_CONTAINERS)
		take_container_value(reading, id, value);
	else if (id >= ID_PHASE)
		take_status_value(reading, id, value);
	else
		take_owner_value(reading, id, value);
	return 0;
}

/* ---- lists within a pod; one that comes again replaces the one before ---- */

static void forget_containers(struct pod_reading *reading, unsigned list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < reading->pod.containers_n; i++)
		if (reading->containers[i].list != list)
			reading->containers[kept++] = reading->containers[i];
	reading->pod.containers_n = kept;
}

static int on_pod_begin(int id, void *userdata)
{
	struct node_pods *pods = userdata;
	struct pod_reading *reading = pods->reading;
	int kind = id < ID_CONTAINERS ? -1 : (id - ID_CONTAINERS) % CONTAINER_IDS;

	if (id == ID_OWNERS) {
		memset(&reading->pod.owner, 0, sizeof(reading->pod.owner));
	} else if (id == ID_OWNER) {
		memset(&reading->owner, 0, sizeof(reading->owner));
		reading->controls = false;
	} else if (id == ID_CONDITION) {
		reading->condition[0] = reading->status[0] = '\0';
	} else if (kind == CONTAINER_LIST) {
		forget_containers(reading, (unsigned)(id - ID_CONTAINERS) / CONTAINER_IDS);
	} else if (kind == CONTAINER) {
		memset(&reading->container, 0, sizeof(reading->container));
	} else if (kind == CONTAINER_RESOURCE) {
		reading->resource[0] = '\0';
	} else if (kind == CONTAINER_DEVICE) {
		reading->device.id[0] = reading->health[0] = '\0';
	}
	return 0;
}

static void end_container(struct pod_reading *reading, unsigned list)
{
	if (!reading->container.id[0] || !reading->container.name[0])
		return;
	if (reading->pod.containers_n == POD_CONTAINERS_MAX) {
		reading->left_out++;
		return;
	}
	reading->container.list = list;
	reading->containers[reading->pod.containers_n++] = reading->container;
}

/* Of a device that several containers have, the worse health: enum health has them in that order. */
static void end_device(struct node_pods *pods)
{
	struct pod_reading *reading = pods->reading;
	struct pod_device *to = reading->pod.devices, *end = to + POD_DEVICES_MAX;

	if (!reading->device.id[0] || !resource_is_gpu(reading->resource, pods->resources))
		return;
	while (to < end && to->id[0] && strcmp(to->id, reading->device.id) != 0)
		to++;
	if (to == end) {
		reading->left_out++;
		return;
	}
	PUT_TEXT(to->id, reading->device.id);
	to->health = (uint8_t)MAX((int)to->health, (int)health_named(reading->health));
}

static int on_pod_end(int id, void *userdata)
{
	struct node_pods *pods = userdata;
	struct pod_reading *reading = pods->reading;
	int kind = id < ID_CONTAINERS ? -1 : (id - ID_CONTAINERS) % CONTAINER_IDS;

	if (id == ID_OWNER && reading->controls && reading->owner.uid[0] && reading->owner.name[0])
		reading->pod.owner = reading->owner;
	else if (id == ID_CONDITION && STRV_EQ(reading->condition, "Ready"))
		reading->pod.ready = STRV_EQ(reading->status, "True");
	else if (kind == CONTAINER)
		end_container(reading, (unsigned)(id - ID_CONTAINERS) / CONTAINER_IDS);
	else if (kind == CONTAINER_DEVICE)
		end_device(pods);
	return 0;
}

const struct json_ops node_pod_ops = { on_pod_value, on_pod_begin, on_pod_end };

/* ---- the list of pods ---- */

static uint32_t place_of(const struct node_pods *pods, const char *uid)
{
	uint32_t i = 0;

	while (i < pods->n && !STRV_EQ(pods->list[i]->uid, uid))
		i++;
	return i;
}

static struct node_pod *pod_as_read(const struct pod_reading *reading)
{
	size_t n = sizeof(reading->containers[0]) * reading->pod.containers_n;
	struct node_pod *pod = malloc(sizeof(*pod) + n);

	if (!pod)
		return NULL;
	memcpy(pod, &reading->pod, sizeof(*pod));
	memcpy(pod->containers, reading->containers, n);
	return pod;
}

static bool same_pod(const struct node_pod *a, const struct node_pod *b)
{
	return a->containers_n == b->containers_n && memcmp(a, b, offsetof(struct node_pod, gone_ns)) == 0 &&
	       a->gone_ns == b->gone_ns &&
	       memcmp(a->containers, b->containers, sizeof(a->containers[0]) * a->containers_n) == 0;
}

static void put_pod(struct node_pods *pods, uint32_t at)
{
	struct node_pod *pod = pod_as_read(pods->reading);

	if (!pod || at == NODE_PODS_MAX) {
		pods->dropped++;
		free(pod);
		return;
	}
	if (at == pods->n)
		pods->list[pods->n++] = NULL;
	pods->changes += !pods->list[at] || !same_pod(pods->list[at], pod);
	free(pods->list[at]);
	pods->list[at] = pod;
}

static void lose_pod(struct node_pods *pods, uint32_t at)
{
	if (pods->list[at]->gone_ns)
		return;
	pods->list[at]->gone_ns = clock_mono_ns();
	pods->changes++;
}

void node_pods_object_begins(void *userdata)
{
	struct node_pods *pods = userdata;

	/* Padding is zero, too: pods are compared by their bytes. */
	memset(pods->reading, 0, sizeof(*pods->reading));
	pods->reading->label_at = SIZE_MAX;
	selector_begin(pods->selector);
}

void node_pods_object_ended(bool gone, void *userdata)
{
	struct node_pods *pods = userdata;
	struct node_pod *pod = &pods->reading->pod;
	uint32_t at;

	if (!pod->uid[0] || !pod->name[0] || !pod->namespace[0]) {
		pods->unreadable++;
		return;
	}
	at = place_of(pods, pod->uid);
	if (gone) {
		if (at < pods->n)
			lose_pod(pods, at);
		return;
	}
	/*
	 * The user who makes a pod chooses its annotations. One that says that it is a static pod's copy is
	 * deleted by kubelet unless it is.
	 */
	if (!STRV_EQ(pod->static_uid, pods->reading->mirror))
		pod->static_uid[0] = '\0';
	pod->selected = selector_matches(pods->selector);
	pod->seen = pods->round;
	pods->dropped += pods->reading->left_out;
	put_pod(pods, at);
}

void node_pods_list_begins(void *userdata)
{
	struct node_pods *pods = userdata;

	pods->round++;
	pods->dropped = pods->unreadable = 0;
}

void node_pods_list_ended(void *userdata)
{
	struct node_pods *pods = userdata;

	for (uint32_t i = 0; i < pods->n; i++)
		if (pods->list[i]->seen != pods->round)
			lose_pod(pods, i);
}

void node_pods_forget(struct node_pods *pods, int64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pods->n; i++) {
		if (pods->list[i]->gone_ns && now_ns - pods->list[i]->gone_ns >= GONE_NS)
			free(pods->list[i]);
		else
			pods->list[kept++] = pods->list[i];
	}
	pods->changes += kept != pods->n;
	pods->n = kept;
}

/* ---- life ---- */

/* "a, b" becomes "a\0b\0\0". */
static char *split_keys(const char *text)
{
	char *keys = calloc(1, strlen(text) + 2), *to = keys;

	for (unsigned n = 0; keys && *text && n < POD_LABELS_MAX; text += *text == ',') {
		size_t length = strcspn(text, ",");
		const char *end = text + length;

		while (length && (text[0] == ' '))
			text++, length--;
		while (length && text[length - 1] == ' ')
			length--;
		if (length) {
			memcpy(to, text, length);
			to += length + 1;
			n++;
		}
		text = end;
	}
	return keys;
}

int node_pods_init(struct node_pods *pods, const char *labels, struct selector *selector)
{
	*pods = (struct node_pods){ .selector = selector };
	pods->labels = split_keys(labels);
	pods->list = calloc(NODE_PODS_MAX, sizeof(struct node_pod *));
	pods->reading = calloc(1, sizeof(*pods->reading));
	return pods->labels && pods->list && pods->reading ? 0 : -ENOMEM;
}

void node_pods_name(struct node_pods *pods, const char *run, const char *group, const char *resources)
{
	pods->resources = resources;
	pods->run = run;
	pods->group = group;
}

void node_pods_done(struct node_pods *pods)
{
	for (uint32_t i = 0; i < pods->n; i++)
		free(pods->list[i]);
	selector_free(pods->selector);
	free(pods->list);
	free(pods->labels);
	free(pods->reading);
	*pods = (struct node_pods){ 0 };
}
