// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "kubelet/grpc.h"
#include "kubelet/live_pods.h"
#include "kubelet/pods.h"
#include "kubelet/resources.h"

#define ENDS(member_) (memchr(member_, 0, sizeof(member_)) != NULL)

static int feed(const uint8_t *data, size_t n, void *userdata)
{
	return elements_feed(userdata, data, n);
}

static void check_pods(struct pods *pods)
{
	const struct owner *list = pods->owners.list;

	row_list_digest(&pods->owners);
	for (uint32_t i = 0; i < pods->owners.n; i++)
		if (!list[i].id[0] || !ENDS(list[i].id) || !ENDS(list[i].namespace) || !ENDS(list[i].pod) ||
		    !ENDS(list[i].container) || !ENDS(list[i].owner_kind) || !ENDS(list[i].owner_name))
			abort();
}

static void check_resources(struct pod_resources *resources)
{
	const struct allocation *list = resources->rows.list;

	row_list_digest(&resources->rows);
	for (uint32_t i = 0; i < resources->rows.n; i++)
		if (!ENDS(list[i].pod) || !ENDS(list[i].container) || !ENDS(list[i].resource) ||
		    !ENDS(list[i].device.uuid) || list[i].device.kind == DEVICE_NOT || !list[i].pod[0])
			abort();
}

/* What a server sends, in pieces, to one call. */
static void serve(const uint8_t *data, size_t size, struct elements *elements)
{
	const struct grpc_call call = { .path = "/v1.PodResourcesLister/List",
					.data = feed,
					.userdata = elements };
	const size_t piece = 1 + data[0];
	struct grpc_answer answer;
	struct grpc *grpc;
	const uint8_t *out;
	size_t n;
	int r = grpc_new(&grpc);

	if (r < 0)
		return;
	r = grpc_begin(grpc, &call);
	for (size_t at = 1; r == 0 && at < size; at += piece) {
		while ((r = grpc_take(grpc, &out, &n)) == 0 && n > 0)
			;
		if (r == 0)
			r = grpc_feed(grpc, data + at, size - at < piece ? size - at : piece);
	}
	if (grpc_ended(grpc, &answer) && !ENDS(answer.message))
		abort();
	grpc_free(grpc);
}

/* The first byte chooses: what a server sends, a list of either kind, the name of a cgroup. */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct pod_resources resources;
	struct pods pods;
	char name[256] = "", uid[48];

	if (size < 2)
		return 0;
	pod_resources_init(&resources);
	pods_init(&pods);
	switch (data[0] % 5) {
	case 0:
		serve(data + 1, size - 1, &resources.elements);
		break;
	case 1:
		serve(data + 1, size - 1, &pods.elements);
		break;
	case 2:
		elements_feed(&resources.elements, data + 1, size - 1);
		break;
	case 3:
		elements_feed(&pods.elements, data + 1, size - 1);
		break;
	case 4:
		memcpy(name, data + 1, size - 1 < sizeof(name) ? size - 1 : sizeof(name) - 1);
		if (pod_uid_of_cgroup(name, uid) && (!ENDS(uid) || strlen(uid) < 32))
			abort();
		break;
	}
	check_resources(&resources);
	check_pods(&pods);
	pod_resources_done(&resources);
	pods_done(&pods);
	return 0;
}
