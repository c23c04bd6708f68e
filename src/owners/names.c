// SPDX-License-Identifier: Apache-2.0
#include "owners/names.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macro.h"

bool is_container_id(const char *name)
{
	return strspn(name, "0123456789abcdef") == CONTAINER_ID_DIGITS && !name[CONTAINER_ID_DIGITS];
}

/* Cuts @from to the size of an owner's member. */
static void cut_to(char *to, size_t size, const char *from, size_t n)
{
	n = MIN(n, size - 1);
	memcpy(to, from, n);
	to[n] = '\0';
}
#define PUT(member_, text_) cut_to(member_, sizeof(member_), text_, strlen(text_))
#define PUT_TOKEN(member_, token_) cut_to(member_, sizeof(member_), (token_).p, cursor_left(&(token_)))

static bool strip_end(struct cursor *c, const char *end)
{
	size_t n = strlen(end);

	if (cursor_left(c) < n || memcmp(c->end - n, end, n) != 0)
		return false;
	c->end -= n;
	return true;
}

/* ---- kubelet's log files ---- */

/* The three parts that '_' separates; it is in no name of Kubernetes. */
static bool three_parts(struct cursor c, struct cursor part[static 3])
{
	if (cursor_until(&c, '_', &part[0]) < 0 || cursor_until(&c, '_', &part[1]) < 0)
		return false;
	part[2] = c;
	return !cursor_eof(&part[0]) && !cursor_eof(&part[1]) && !cursor_eof(&part[2]) &&
	       !memchr(c.p, '_', cursor_left(&c));
}

bool owner_of_log_link(const char *name, struct owner *ret_owner)
{
	struct cursor c = cursor_over(name, strlen(name)), part[3];
	char id[CONTAINER_ID_DIGITS + 1];

	if (!strip_end(&c, ".log") || cursor_left(&c) < CONTAINER_ID_DIGITS + 2)
		return false;
	cut_to(id, sizeof(id), c.end - CONTAINER_ID_DIGITS, CONTAINER_ID_DIGITS);
	c.end -= CONTAINER_ID_DIGITS;
	if (!is_container_id(id) || !strip_end(&c, "-") || !three_parts(c, part))
		return false;
	*ret_owner = (struct owner){ .workload = WORKLOAD_CONTAINER };
	PUT(ret_owner->id, id);
	PUT_TOKEN(ret_owner->pod, part[0]);
	PUT_TOKEN(ret_owner->namespace, part[1]);
	PUT_TOKEN(ret_owner->container, part[2]);
	return true;
}

bool owner_of_log_folder(const char *name, struct owner *ret_owner)
{
	struct cursor part[3];

	if (!three_parts(cursor_over(name, strlen(name)), part))
		return false;
	*ret_owner = (struct owner){ .workload = WORKLOAD_POD };
	PUT_TOKEN(ret_owner->namespace, part[0]);
	PUT_TOKEN(ret_owner->pod, part[1]);
	PUT_TOKEN(ret_owner->id, part[2]);
	return true;
}

/* ---- the runtimes' files ---- */

/* The keys under which a runtime notes what kubelet told it. */
struct keys {
	const char *namespace, *pod, *container;
};

/* containerd's and CRI-O's annotations, kubelet's labels. */
static const struct keys known_keys[] = {
	{ "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name",
	  "io.kubernetes.cri.container-name" },
	{ "io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name" },
};

static const char *member_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool take_keys(const json_t *map, struct owner *owner)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_keys); i++) {
		const struct keys *keys = &known_keys[i];

		if (!*member_of(map, keys->pod) || !*member_of(map, keys->namespace))
			continue;
		PUT(owner->namespace, member_of(map, keys->namespace));
		PUT(owner->pod, member_of(map, keys->pod));
		PUT(owner->container, member_of(map, keys->container));
		return true;
	}
	return false;
}

bool owner_of_bundle(const char *id, const char *json, size_t n, struct owner *ret_owner)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	bool found;

	*ret_owner = (struct owner){ .workload = WORKLOAD_CONTAINER };
	PUT(ret_owner->id, id);
	found = take_keys(json_object_get(root, "annotations"), ret_owner);
	json_decref(root);
	return found;
}

bool owner_of_docker(const char *json, size_t n, struct owner *ret_owner)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	const char *id = member_of(root, "ID"), *name = member_of(root, "Name");

	name += *name == '/'; /* as Docker writes every name */
	bool found = is_container_id(id) && *name;

	*ret_owner = (struct owner){ .workload = WORKLOAD_CONTAINER };
	PUT(ret_owner->id, id);
	if (found && !take_keys(json_object_get(json_object_get(root, "Config"), "Labels"), ret_owner))
		PUT(ret_owner->container, name);
	json_decref(root);
	return found;
}

/* CRI-O's names of kubelet's containers: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT; "POD": the sandbox. */
static bool take_kubernetes_name(const char *name, struct owner *owner)
{
	struct cursor c = cursor_over(name, strlen(name)), container, pod, namespace;

	if (!cursor_literal(&c, "k8s_") || cursor_until(&c, '_', &container) < 0 ||
	    cursor_until(&c, '_', &pod) < 0 || cursor_until(&c, '_', &namespace) < 0 || cursor_eof(&pod) ||
	    cursor_eof(&namespace))
		return false;
	PUT_TOKEN(owner->namespace, namespace);
	PUT_TOKEN(owner->pod, pod);
	if (!cursor_equals(&container, "POD"))
		PUT_TOKEN(owner->container, container);
	return true;
}

int owners_of_storage(const char *json, size_t n, owner_fn *found, void *userdata)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	const json_t *entry;
	size_t i;

	if (!json_is_array(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	json_array_foreach(root, i, entry) {
		const char *name = json_string_value(json_array_get(json_object_get(entry, "names"), 0));
		struct owner owner = { .workload = WORKLOAD_CONTAINER };

		if (!name || !*name || !is_container_id(member_of(entry, "id")))
			continue;
		PUT(owner.id, member_of(entry, "id"));
		if (!take_kubernetes_name(name, &owner))
			PUT(owner.container, name);
		found(&owner, userdata);
	}
	json_decref(root);
	return 0;
}
