// SPDX-License-Identifier: Apache-2.0
/*
 * Which pods still have cgroups: kubelets up to 1.33 list what a pod was given also after it has ended.
 * From kubelet's folders of logs, which name each pod's UID, and the cgroups.
 */
#pragma once

#include <stdbool.h>

#include "base/row_list.h"

enum liveness {
	POD_UNKNOWN, /* it has no folder of logs, or kubelet's cgroups cannot be seen */
	POD_LIVES,
	POD_ENDED, /* its folders are there, and no cgroup of it */
};

struct live_pods {
	struct row_list logged; /* struct logged_pod (live_pods.c) */
	struct row_list uids; /* char[48]: of the pods with a cgroup, sorted */
	bool seen; /* kubelet's cgroups were found */
};

void live_pods_init(struct live_pods *live);
void live_pods_done(struct live_pods *live);
/* @root: the folder in which the host's root file system is mounted. */
void live_pods_read(struct live_pods *live, int root);
/* *ret_uid is "" if it is not known for certain: of two pods of one name the one that lives. */
enum liveness live_pods_find(const struct live_pods *live, const char *namespace, const char *pod,
			     char ret_uid[48]);
/* The UID in the name of a pod's cgroup: "pod<uid>", "kubepods-burstable-pod<uid with _>.slice". */
bool pod_uid_of_cgroup(const char *name, char ret_uid[48]);
