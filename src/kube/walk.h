// SPDX-License-Identifier: Apache-2.0
/*
 * What controls a pod in the end: Deployment above ReplicaSet, CronJob above Job, whatever is above those.
 * Each object is asked for once, its metadata alone, and kept by its UID, so that the pods of one ReplicaSet
 * cost one question, and a name that is used again meets nothing of before. No reader waits for it: what is
 * not known yet is absent, and a known answer stays until there is a better one.
 *
 *   found                    asked again after 10 minutes
 *   could not be asked for   after 30 seconds; a pod whose first owner is an intermediate one (ReplicaSet,
 *                            Job) stands for itself meanwhile, else the last owner that its reference names
 *   not there                after 60 seconds; the same
 */
#pragma once

#include "kube/kinds.h"

enum {
	WALK_DEPTH_MAX = 8,
	WALK_RATE = 5, /* questions a second */
	WALK_BURST = 10,
};

struct walk;

struct workload_owner {
	const char *kind, *name; /* "Deployment", "train"; borrowed from the walk or the pod */
	bool fallback; /* its owners could not be read */
};

/* @room: objects that are kept. */
int walk_new(struct client *client, uint32_t room, struct walk **ret_walk);
void walk_free(struct walk *walk);
DEFINE_CLEANUP(struct walk *, walk_free, walk_freep)
/*
 * The owner of @pod as far as it is known; false: not yet. Notes what is to be asked for.
 */
bool walk_find(struct walk *walk, const struct node_pod *pod, int64_t now_ns,
	       struct workload_owner *ret_owner);
/* Asks for what is to be. Returns when to call it again at the latest; INT64_MAX: it is told when to. */
int64_t walk_step(struct walk *walk, const struct node_pods *pods, int64_t now_ns);
/* Counts up with each answer. */
uint64_t walk_changes(const struct walk *walk);

struct walk_figures {
	uint32_t objects; /* that are kept */
	uint32_t waiting; /* that there was no room for, as of the newest step */
	uint64_t asked, failed; /* since it began */
	char error[256]; /* of the newest that failed; "" */
};
void walk_figures(const struct walk *walk, struct walk_figures *ret_figures);
