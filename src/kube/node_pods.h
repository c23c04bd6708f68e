// SPDX-License-Identifier: Apache-2.0
/*
 * The node's pods, as the API server's v1.Pod tells: who they are, who controls them, the IDs of their
 * containers. Filled by a watch (kube/watch.h). A pod that is gone stays for a minute, so that its owner can
 * still be found; the IDs of a container that was restarted are replaced at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_reader.h"
#include "selector/selector.h"

enum {
	NODE_PODS_MAX = 1024, /* twice as many as Kubernetes is tested with */
	POD_CONTAINERS_MAX = 256, /* of one pod, of all kinds */
	POD_DEVICES_MAX = 64, /* MIG instances of eight GPUs, and some */
	POD_LABELS_MAX = 16, /* keys of kube.workload_labels */
};

/* An object that controls another one, by its reference. */
struct owner_ref {
	char api_version[128]; /* "apps/v1" */
	char kind[64];
	char name[254];
	char uid[64]; /* "": there is none */
};

struct pod_container {
	char name[64];
	char id[72]; /* without "containerd://" */
	unsigned list; /* which of the pod's lists of statuses */
};

struct pod_device {
	char id[56]; /* as its device plugin calls it */
	uint8_t health; /* enum health */
};

struct node_pod {
	char uid[48];
	char static_uid[48]; /* of a static pod: what its cgroup and log folder are named after; else "" */
	char namespace[64];
	char name[254];
	char address[48]; /* "": none yet */
	struct pod_device devices[POD_DEVICES_MAX]; /* of whose health its status tells; id "": no more */
	char run[128], group[128]; /* values of the configured label or annotation; "": none, or too long */
	char label[64]; /* of the first of the configured keys that it has; "": none */
	struct owner_ref owner; /* uid "": nothing controls it */
	bool running; /* its phase */
	bool ready;
	bool selected; /* its labels are those that are looked for */
	int64_t gone_ns; /* when it was deleted, monotonic clock; 0: it is there */
	uint32_t seen; /* number of the list that had it last */
	uint32_t containers_n;
	struct pod_container containers[];
};

struct node_pods {
	struct node_pod **list;
	uint32_t n;
	uint64_t dropped; /* beyond the limits above, since the last list began */
	uint64_t unreadable; /* that are no v1.Pod, the same */
	uint64_t changes; /* counts up with each */
	/* private */
	struct selector *selector; /* NULL: no pod is looked for */
	char *labels; /* keys, each ended by NUL, then an empty one */
	const char *run, *group, *resources; /* as in struct kube_settings */
	uint32_t round; /* number of the list that comes */
	struct pod_reading *reading; /* the object at hand */
};

extern const struct json_path node_pod_paths[];
extern const size_t node_pod_paths_n;
extern const struct json_ops node_pod_ops; /* with a struct node_pods * */

/*
 * @labels: keys, separated by commas, of which the first that a pod has names its workload. Takes @selector.
 */
int node_pods_init(struct node_pods *pods, const char *labels, struct selector *selector);
/* What names a pod's training run and its group, and GPUs, as in struct kube_settings; borrowed. */
void node_pods_name(struct node_pods *pods, const char *run, const char *group, const char *resources);
void node_pods_done(struct node_pods *pods);
/* For struct watch_config, with a struct node_pods *. */
void node_pods_list_begins(void *pods);
void node_pods_list_ended(void *pods);
void node_pods_object_begins(void *pods);
void node_pods_object_ended(bool gone, void *pods);
/* Forgets what has been gone for a minute. */
void node_pods_forget(struct node_pods *pods, int64_t now_ns);
