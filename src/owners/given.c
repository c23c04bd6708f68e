// SPDX-License-Identifier: Apache-2.0
#include "owners/given.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

#define VISIBLE "NVIDIA_VISIBLE_DEVICES"
/* Mounts below it name devices, where administrators do not trust the variable. */
#define VISIBLE_MOUNTS "/var/run/nvidia-container-devices"

static const char *given_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* ---- devices by their names ---- */

static void given_add(struct given *given, const struct device_ref *ref)
{
	if (given->n == GIVEN_MAX)
		given->dropped++;
	else
		given->list[given->n++] = *ref;
}

static bool add_by_cdi(struct given *given, const struct cdi *cdi, const char *name)
{
	uint32_t n = 0;
	const struct device_ref *refs = cdi ? cdi_find(cdi, name, &n) : NULL;

	for (uint32_t i = 0; i < n; i++)
		given_add(given, &refs[i]);
	return refs && n > 0;
}

/* One of a list: an index, a UUID, GPU:MIG, or a whole name of CDI. */
static void add_name(struct given *given, const struct cdi *cdi, const char *name)
{
	struct device_ref ref;

	if (strchr(name, '=') && add_by_cdi(given, cdi, name))
		return;
	if (device_ref_parse(name, &ref, NULL) < 0)
		given->dropped++;
	else if (ref.kind != DEVICE_NOT)
		given_add(given, &ref);
}

static void add_names(struct given *given, const struct cdi *cdi, const char *list)
{
	char name[CDI_NAME_MAX];

	for (;;) {
		size_t n = strcspn(list, ",");

		if (n >= sizeof(name)) {
			given->dropped++;
		} else if (n > 0) {
			memcpy(name, list, n);
			name[n] = '\0';
			add_name(given, cdi, name);
		}
		if (!list[n])
			return;
		list += n + 1;
	}
}

/* The name of what was asked for, unless there is one. */
static void set_resource(struct given *given, const char *name, size_t n)
{
	if (!given->resource[0])
		snprintf(given->resource, sizeof(given->resource), "%.*s", (int)MIN(n, (size_t)INT_MAX),
			 name);
}

/* ---- the environment ---- */

/* NULL: not set. The last of equal names is what the toolkit's map of them has. */
static const char *variable_of(const json_t *environment, const char *name)
{
	const char *found = NULL;
	const json_t *entry;
	size_t i, n = strlen(name);

	json_array_foreach(environment, i, entry) {
		const char *text = json_string_value(entry);

		if (text && strncmp(text, name, n) == 0 && text[n] == '=')
			found = text + n + 1;
	}
	return found;
}

/*
 * What NVIDIA's hook does with it. Not set: all, for images of CUDA from before the variable, which have
 * CUDA_VERSION and no NVIDIA_REQUIRE_CUDA.
 */
static void add_visible(struct given *given, const struct given_by *by, const json_t *environment,
			bool privileged)
{
	const char *list = variable_of(environment, VISIBLE);

	if (!list && variable_of(environment, "CUDA_VERSION") &&
	    !variable_of(environment, "NVIDIA_REQUIRE_CUDA"))
		list = "all";
	/* Then mounts say it. */
	if (!list || strncmp(list, VISIBLE_MOUNTS, sizeof(VISIBLE_MOUNTS) - 1) == 0)
		return;
	if (!privileged && !by->toolkit.variable)
		return;
	add_names(given, by->cdi, list);
	set_resource(given, VISIBLE, sizeof(VISIBLE) - 1);
	given->estimated = !privileged && !by->toolkit.known;
}

/* ---- bundles ---- */

static bool is_toolkit(const json_t *hook)
{
	static const char *const names[] = { "nvidia-container-runtime-hook", "nvidia-container-toolkit" };
	const char *path = given_text(hook, "path"), *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (STRV_EQ(path, names[i]))
			return true;
	return false;
}

static bool has_hook(const json_t *hooks)
{
	static const char *const kinds[] = { "prestart", "createRuntime", "createContainer" };
	const json_t *hook;
	size_t k;

	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++)
		json_array_foreach(json_object_get(hooks, kinds[i]), k, hook)
			if (is_toolkit(hook))
				return true;
	return false;
}

/* A rule that allows all devices. */
static bool has_all_devices(const json_t *rules)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(rules, i, rule) {
		const char *type = given_text(rule, "type");

		if (json_is_true(json_object_get(rule, "allow")) && (!*type || STRV_EQ(type, "a")) &&
		    !json_object_get(rule, "major") && !json_object_get(rule, "minor"))
			return true;
	}
	return false;
}

static struct gpu_nodes nodes_of_bundle(const json_t *part)
{
	struct gpu_nodes nodes = { 0 };
	const json_t *device;
	size_t i;

	if (has_all_devices(json_object_get(json_object_get(part, "resources"), "devices")))
		return nodes;
	json_array_foreach(json_object_get(part, "devices"), i, device) {
		const json_t *major = json_object_get(device, "major"),
			     *minor = json_object_get(device, "minor");

		/* The path is the container's own: the numbers are the device. */
		if (json_integer_value(major) == NVIDIA_MAJOR && json_is_integer(minor))
			gpu_nodes_add_number(&nodes, NVIDIA_MAJOR, (uint64_t)json_integer_value(minor));
		else if (strncmp(given_text(device, "path"), "/dev/nvidia-caps/", 17) == 0)
			gpu_nodes_add(&nodes, given_text(device, "path"));
	}
	return nodes;
}

/* "nvidia.com/gpu" of "nvidia.com/gpu=0,nvidia.com/gpu=1" */
static void set_kind(struct given *given, const char *list)
{
	set_resource(given, list, strcspn(list, "="));
}

/* The devices that containerd, CRI-O or Podman was told by annotations. False: there are none. */
static bool add_annotated(struct given *given, const struct cdi *cdi, json_t *annotations)
{
	const char *key;
	json_t *value;

	json_object_foreach(annotations, key, value) {
		const char *list = json_string_value(value);

		if (strncmp(key, "cdi.k8s.io/", 11) != 0 || !list || !strchr(list, '='))
			continue;
		add_names(given, cdi, list);
		set_kind(given, list);
	}
	return given->n > 0;
}

/* As NVIDIA's hook has it: by the bounding set. Early versions of OCI have one set. */
static bool is_privileged(const json_t *process)
{
	const json_t *sets = json_object_get(process, "capabilities"), *name;
	size_t i;

	json_array_foreach(json_is_array(sets) ? sets : json_object_get(sets, "bounding"), i, name)
		if (json_is_string(name) && STRV_EQ(json_string_value(name), "CAP_SYS_ADMIN"))
			return true;
	return false;
}

/*
 * Nodes show which devices were given; annotations, which a pod's user may choose, only what was asked for,
 * if they name as many.
 */
static void add_nodes(struct given *given, const struct cdi *cdi, const struct gpu_nodes *nodes,
		      json_t *annotations)
{
	struct device_ref refs[GIVEN_MAX + 1];
	struct given named = { 0 };
	uint32_t n = gpu_nodes_refs(nodes, cdi ? cdi_caps(cdi) : NULL, refs, GIVEN_MAX + 1);
	bool annotated = add_annotated(&named, cdi, annotations);

	if (n == 0 && annotated) { /* instances that the driver's list does not know */
		memcpy(named.pod_uid, given->pod_uid, sizeof(named.pod_uid));
		*given = named;
		given->estimated = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		given_add(given, &refs[i]);
	given->dropped += n == 0;
	if (annotated && (named.n == n || named.list[0].kind == DEVICE_ALL))
		set_resource(given, named.resource, strlen(named.resource));
	set_resource(given, "devices", 7);
}

/*
 * The device that a mount stands for, as NVIDIA's hook reads it: of /dev/null, below its folder; one of CDI
 * is cdi/nvidia.com/gpu/0 or cdi/nvidia.com/gpu=0. NULL: it is none.
 */
static const char *mounted_name(const json_t *mount, char name[static CDI_NAME_MAX])
{
	const size_t n = sizeof(VISIBLE_MOUNTS) - 1;
	const char *at = given_text(mount, "destination");
	char *slash;

	if (!STRV_EQ(given_text(mount, "source"), "/dev/null") || strncmp(at, VISIBLE_MOUNTS "/", n + 1) != 0)
		return NULL;
	at += n + strspn(at + n, "/");
	if (!*at || strncmp(at, "imex/", 5) == 0 || strlen(at) >= CDI_NAME_MAX)
		return NULL;
	strcpy(name, at);
	while (name[strlen(name) - 1] == '/') /* it does not begin with one */
		name[strlen(name) - 1] = '\0';
	if (strncmp(name, "cdi/", 4) != 0)
		return name;
	slash = strchr(name + 4, '/');
	slash = slash && !strchr(name, '=') ? strchr(slash + 1, '/') : NULL;
	if (slash)
		*slash = '=';
	return name + 4;
}

static void add_mounts(struct given *given, const struct given_by *by, const json_t *mounts)
{
	const json_t *mount;
	size_t i;

	json_array_foreach(mounts, i, mount) {
		char buf[CDI_NAME_MAX];
		const char *name = mounted_name(mount, buf);

		if (!name)
			continue;
		add_name(given, by->cdi, name);
		set_resource(given, VISIBLE_MOUNTS, sizeof(VISIBLE_MOUNTS) - 1);
		given->estimated = !by->toolkit.known;
	}
}

static void take_pod(struct given *given, const json_t *annotations)
{
	static const char *const keys[] = { "io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid" };

	for (unsigned i = 0; i < ARRAY_SIZE(keys) && !given->pod_uid[0]; i++)
		snprintf(given->pod_uid, sizeof(given->pod_uid), "%s", given_text(annotations, keys[i]));
}

static void add_hooked(struct given *given, const struct given_by *by, const json_t *root)
{
	const json_t *process = json_object_get(root, "process");

	if (by->toolkit.mounts)
		add_mounts(given, by, json_object_get(root, "mounts"));
	if (given->n == 0)
		add_visible(given, by, json_object_get(process, "env"), is_privileged(process));
}

int given_by_bundle(const char *json, size_t n, const struct given_by *by, struct given *ret_given)
{
	json_t *root = json_loadb(json, n, 0, NULL), *annotations = json_object_get(root, "annotations");
	static const struct gpu_nodes none;
	struct given given = { 0 };
	struct gpu_nodes nodes;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	take_pod(&given, annotations);
	nodes = nodes_of_bundle(json_object_get(root, "linux"));
	if (!gpu_nodes_equal(&nodes, &none))
		add_nodes(&given, by->cdi, &nodes, annotations);
	else if (has_hook(json_object_get(root, "hooks")))
		add_hooked(&given, by, root);
	*ret_given = given;
	json_decref(root);
	return 0;
}

/* ---- Docker ---- */

static bool asks_for_gpus(const json_t *request)
{
	const json_t *sets = json_object_get(request, "Capabilities"), *set, *word;
	const char *driver = given_text(request, "Driver");
	size_t i, k;

	if (STRV_EQ(driver, "nvidia"))
		return true;
	if (*driver)
		return false;
	json_array_foreach(sets, i, set)
		json_array_foreach(set, k, word)
			if (json_is_string(word) && (STRV_EQ(json_string_value(word), "gpu") ||
						     STRV_EQ(json_string_value(word), "nvidia")))
				return true;
	return false;
}

/* The first devices, as Docker passes a count on: "0,1,..." */
static void add_count(struct given *given, json_int_t count)
{
	struct device_ref ref = DEVICE_REF(count < 0 ? DEVICE_ALL : DEVICE_BY_INDEX);

	if (count < 0) {
		given_add(given, &ref);
		return;
	}
	count = MIN(count, (json_int_t)UINT32_MAX);
	for (json_int_t i = 0; i < MIN(count, (json_int_t)GIVEN_MAX); i++) {
		ref.index = (uint32_t)i;
		given_add(given, &ref);
	}
	if (count > GIVEN_MAX)
		given->dropped += (uint64_t)count - GIVEN_MAX;
}

static void add_request(struct given *given, const struct cdi *cdi, const json_t *request)
{
	const json_t *ids = json_object_get(request, "DeviceIDs"), *id;
	bool by_cdi = STRV_EQ(given_text(request, "Driver"), "cdi");
	size_t i;

	if (!by_cdi && !asks_for_gpus(request))
		return;
	json_array_foreach(ids, i, id) {
		if (!json_is_string(id))
			continue;
		add_name(given, cdi, json_string_value(id));
		if (by_cdi)
			set_kind(given, json_string_value(id));
	}
	if (!by_cdi && json_array_size(ids) == 0)
		add_count(given, json_integer_value(json_object_get(request, "Count")));
	set_resource(given, "DeviceRequests", 14);
}

static struct gpu_nodes nodes_of_docker(const json_t *host)
{
	struct gpu_nodes nodes = { 0 };
	const json_t *device;
	size_t i;

	json_array_foreach(json_object_get(host, "Devices"), i, device)
		gpu_nodes_add(&nodes, given_text(device, "PathOnHost"));
	return nodes;
}

/* Docker's flags that give a container CAP_SYS_ADMIN. */
static bool is_privileged_docker(const json_t *host)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(host, "CapAdd"), i, name) {
		const char *text = json_is_string(name) ? json_string_value(name) : "";

		if (STRV_EQ(text, "ALL") || STRV_EQ(text, "SYS_ADMIN") || STRV_EQ(text, "CAP_SYS_ADMIN"))
			return true;
	}
	return json_is_true(json_object_get(host, "Privileged"));
}

static void add_docker(struct given *given, const struct given_by *by, const json_t *host,
		       const json_t *config)
{
	const json_t *requests = json_object_get(host, "DeviceRequests"), *request;
	struct gpu_nodes nodes = nodes_of_docker(host);
	struct device_ref refs[GIVEN_MAX + 1];
	uint32_t n;
	size_t i;

	json_array_foreach(requests, i, request)
		add_request(given, by->cdi, request);
	if (given->resource[0])
		return;
	n = gpu_nodes_refs(&nodes, by->cdi ? cdi_caps(by->cdi) : NULL, refs, GIVEN_MAX + 1);
	for (i = 0; i < n; i++)
		given_add(given, &refs[i]);
	if (n > 0)
		set_resource(given, "devices", 7);
	else if (strstr(given_text(host, "Runtime"), "nvidia"))
		add_visible(given, by, json_object_get(json_object_get(config, "Config"), "Env"),
			    is_privileged_docker(host));
}

int given_by_docker(const char *host, size_t host_n, const char *config, size_t config_n,
		    const struct given_by *by, struct given *ret_given)
{
	json_t *host_root = json_loadb(host, host_n, 0, NULL);
	json_t *config_root = json_loadb(config, config_n, 0, NULL);
	bool good = json_is_object(host_root) && json_is_object(config_root);

	if (good) {
		*ret_given = (struct given){ 0 };
		add_docker(ret_given, by, host_root, config_root);
	}
	json_decref(host_root);
	json_decref(config_root);
	return good ? 0 : -EBADMSG;
}

uint32_t docker_init(const char *config, size_t n)
{
	json_t *root = json_loadb(config, n, 0, NULL);
	const json_t *state = json_object_get(root, "State");
	json_int_t pid = json_is_true(json_object_get(state, "Running")) ?
				 json_integer_value(json_object_get(state, "Pid")) :
				 0;

	json_decref(root);
	return pid > 0 && pid <= INT32_MAX ? (uint32_t)pid : 0;
}
