// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "kube/kubeconfig.h"
#include "kube/node_pods.h"
#include "selector/selector.h"

#define ENDS(member_) (memchr(member_, 0, sizeof(member_)) != NULL)

static void check_pod(const struct node_pod *pod)
{
	if (!pod->uid[0] || !ENDS(pod->uid) || !ENDS(pod->static_uid) || !ENDS(pod->namespace) ||
	    !ENDS(pod->name) || !ENDS(pod->address) || !ENDS(pod->label) || !ENDS(pod->owner.name) ||
	    !ENDS(pod->owner.uid) || pod->containers_n > POD_CONTAINERS_MAX)
		abort();
	for (uint32_t i = 0; i < pod->containers_n; i++)
		if (strlen(pod->containers[i].id) != 64 || !ENDS(pod->containers[i].name))
			abort();
}

/* The stream of pods that a server sends, in pieces. */
static void read_pods(const uint8_t *data, size_t size)
{
	const size_t piece = 1 + data[0];
	struct selector *selector = NULL;
	struct json_reader *reader = NULL;
	struct node_pods pods;
	char error[64];
	int r = selector_new("a=b,!c", error, sizeof(error), &selector);

	if (r < 0 || node_pods_init(&pods, "app,x", selector) < 0)
		abort();
	r = json_reader_new(&node_pod_ops, &pods, &reader);
	if (r == 0)
		r = json_reader_add(reader, "", node_pod_paths, node_pod_paths_n);
	node_pods_list_begins(&pods);
	node_pods_object_begins(&pods);
	for (size_t at = 1; r == 0 && at < size; at += piece)
		r = json_feed(reader, (const char *)data + at, MIN(size - at, piece));
	node_pods_object_ended(false, &pods);
	node_pods_list_ended(&pods);
	for (uint32_t i = 0; i < pods.n; i++)
		check_pod(pods.list[i]);
	json_reader_free(reader);
	node_pods_done(&pods);
}

static void read_config(const uint8_t *data, size_t size)
{
	struct access access = { 0 };
	char error[256];

	if (kubeconfig_parse("/a/b", (const char *)data, size, "", &access, error, sizeof(error)) < 0 &&
	    !ENDS(error))
		abort();
	access_done(&access);
}

static void read_text(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size), *decoded = NULL;
	_cleanup_(selector_freep) struct selector *selector = NULL;
	char error[64];
	size_t n;

	if (!text)
		return;
	is_certificate(text);
	decoded = base64_decode(text, &n);
	if (selector_new(text, error, sizeof(error), &selector) < 0)
		return;
	selector_begin(selector);
	selector_label(selector, "a", "b", 1);
	selector_matches(selector);
}

/* The first byte chooses: pods, a kubeconfig, other texts. */
int fuzz_one(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	switch (data[0] % 3) {
	case 0:
		read_pods(data + 1, size - 1);
		break;
	case 1:
		read_config(data + 1, size - 1);
		break;
	case 2:
		read_text(data + 1, size - 1);
		break;
	}
	return 0;
}
