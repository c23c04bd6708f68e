// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of a snapshot added up by container, pod, job or user: `gpusonde ps --by`. What a container,
 * pod or job has done includes what its ended processes did, as gpusonde_workload_... does; of users, and of
 * jobs that processes only claim to be of, the processes that run now are all that is known. Who claims to be
 * of a job is in no group with the job's own, nor with other users who claim it. A container, pod
 * or job that was given a GPU and runs no process there is a group, too.
 */
#pragma once

#include "model/snapshot.h"

enum group_by { GROUP_NONE, GROUP_CONTAINER, GROUP_POD, GROUP_JOB, GROUP_USER, GROUPS_BY };

/* "pod"; NULL: there is no such grouping. GROUP_NONE is "process". */
const char *group_by_name(enum group_by by);

/* What is summed up: by process_metrics. */
enum group_figure { GROUP_UTILIZATION, GROUP_MEMORY, GROUP_BUSY, GROUP_FIGURES };
extern const enum process_metric group_metrics[GROUP_FIGURES];
/* What its processes that run now have called, where calls are traced: by traced_metrics. */
enum group_calls { GROUP_LAUNCHES, GROUP_ERRORS, GROUP_CALLS };
extern const enum traced_metric group_call_metrics[GROUP_CALLS];

struct group {
	const struct process *any; /* one of its processes, which tells whose they all are; NULL: none runs */
	/* one of its workloads; NULL: none, or it is not known as one */
	const struct workload *workload;
	const struct allocated *given; /* one of its allocations; NULL: nobody says that there is any */
	bool none; /* of those that are in no container, pod or job, or whose user is not known */
	uint32_t processes;
	uint32_t exited; /* once for each GPU that they used; with a workload */
	uint32_t gpus_n;
	uint32_t gpus[READING_ENTITIES_MAX]; /* indexes, ascending, of those that it uses or was given */
	/* sums; utilisation: 1 is one GPU. Of a figure that one process lacks there is no sum. */
	double v[GROUP_FIGURES];
	bool known[GROUP_FIGURES], estimated[GROUP_FIGURES];
	double calls[GROUP_CALLS]; /* of these, too, there is no sum without all of them */
	bool calls_known[GROUP_CALLS], calls_estimated[GROUP_CALLS];
	bool stale; /* one of its GPUs has no new data; then it has no utilisation */
	uint32_t allocations, allocations_claimed; /* of which a process alone says so */
	double allocated_seconds, idle_seconds; /* sums over its allocations */
	bool idle_known, idle_estimated;
	bool gpus_estimated; /* of some it is likely that they were given, and not confirmed */
};

/*
 * *ret_groups, owned by the caller: with most memory first, those of nothing last. -ENOMEM.
 */
int groups_make(const struct snapshot *s, enum group_by by, struct group **ret_groups, uint32_t *ret_n);
/* Fills @of with the group of each of the snapshot's processes, by its index in @groups. -ENOMEM. */
int groups_of_processes(const struct snapshot *s, enum group_by by, const struct group *groups, uint32_t n,
			uint32_t *of);
/* Allocations that are in no group since several did not fit in the model. */
uint32_t groups_left_out(const struct snapshot *s);

/* What is known of the container, pod or job that all of a group share; each may be "". */
struct group_names {
	/* job_name is what a process of the job says */
	const char *container_id, *pod_uid, *job, *job_name, *namespace, *pod, *container;
	bool claimed; /* the job: no cgroup says so */
	uint32_t uid; /* whose processes they are: of a user or job; UINT32_MAX: not known, or several */
};
struct group_names group_names(const struct snapshot *s, const struct group *group, enum group_by by);
