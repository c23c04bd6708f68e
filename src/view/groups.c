// SPDX-License-Identifier: Apache-2.0
#include "view/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "view/shown.h"
#include "view/traced.h"

const enum process_metric group_metrics[GROUP_FIGURES] = {
	[GROUP_UTILIZATION] = PROCESS_UTILIZATION,
	[GROUP_MEMORY] = PROCESS_MEMORY,
	[GROUP_BUSY] = PROCESS_BUSY,
};

const enum traced_metric group_call_metrics[GROUP_CALLS] = {
	[GROUP_LAUNCHES] = TRACED_LAUNCHES,
	[GROUP_ERRORS] = TRACED_ERRORS,
};

static const char *const by_names[GROUPS_BY] = {
	[GROUP_NONE] = "process", [GROUP_CONTAINER] = "container", [GROUP_POD] = "pod",
	[GROUP_JOB] = "job",      [GROUP_USER] = "user",
};

const char *group_by_name(enum group_by by)
{
	return by < GROUPS_BY ? by_names[by] : NULL;
}

/*
 * What the members of one group have in common. Of a container or pod that was given a GPU, and runs nothing,
 * only the names may be known.
 */
struct group_key {
	const char *id; /* of a container, pod or job; "": none, or not known */
	const char *namespace, *pod, *container; /* if the ID is not known; else "" */
	uint32_t uid; /* of a user, or of those who claim to be of a job */
	bool claimed; /* a job that no cgroup tells */
};

/* A process on a device, what all processes of a workload did on one, or an allocation of one. */
struct member {
	struct group_key key;
	const struct process *process;
	const struct workload *workload;
	const struct allocated *given;
};

static const char *workload_key(const struct workload *w, enum group_by by)
{
	if (by == GROUP_CONTAINER && w->kind == WORKLOAD_CONTAINER)
		return w->id;
	if (by == GROUP_POD && w->kind == WORKLOAD_CONTAINER)
		return w->pod_uid;
	if ((by == GROUP_POD && w->kind == WORKLOAD_POD) || (by == GROUP_JOB && w->kind == WORKLOAD_JOB))
		return w->id;
	return "";
}

static struct group_key key_of_process(const struct snapshot *s, const struct process *p, enum group_by by)
{
	struct group_key key = { .id = "", .namespace = "", .pod = "", .container = "" };
	const struct job *job = by == GROUP_JOB ? snapshot_job(s, p->job) : NULL;

	if (by != GROUP_USER && p->workload < s->workloads_n)
		key.id = workload_key(&s->workloads[p->workload], by);
	/* It claims to be of a job, or is in a container in one. */
	if (!*key.id && job && job->manager != JOB_MANAGER_NONE) {
		key.id = job->id;
		key.claimed = job->claimed;
	}
	if (by == GROUP_USER || key.claimed)
		key.uid = p->uid;
	return key;
}

/* The ID by which workloads of the same names are grouped; "": there are none. */
static const char *id_of_names(const struct snapshot *s, const struct allocated *a, enum group_by by)
{
	for (uint32_t i = 0; a->pod[0] && i < s->workloads_n; i++) {
		const struct workload *w = &s->workloads[i];
		const struct owner *owner = w->owner;

		if (owner && STRV_EQ(owner->pod, a->pod) && STRV_EQ(owner->namespace, a->namespace) &&
		    (by == GROUP_POD || STRV_EQ(owner->container, a->container)) && *workload_key(w, by))
			return workload_key(w, by);
	}
	return "";
}

/* False: it is of no such group. */
static bool key_of_allocation(const struct snapshot *s, const struct allocated *a, enum group_by by,
			      struct group_key *ret_key)
{
	const enum workload_kind kind = a->kind;
	struct group_key key = { .id = "", .namespace = "", .pod = "", .container = "" };

	if (by == GROUP_JOB ? kind != WORKLOAD_JOB :
			      kind != WORKLOAD_CONTAINER && (by != GROUP_POD || kind != WORKLOAD_POD))
		return false;
	key.id = by == GROUP_POD && kind == WORKLOAD_CONTAINER ? a->pod_uid : a->id;
	if (!*key.id)
		key.id = id_of_names(s, a, by);
	if (!*key.id) {
		key.namespace = a->namespace;
		key.pod = a->pod;
		key.container = by == GROUP_POD ? "" : a->container;
	}
	*ret_key = key;
	return *key.id || *key.pod;
}

static int compare_keys(const struct group_key *a, const struct group_key *b)
{
	int order = a->uid < b->uid ? -1 : a->uid > b->uid;

	if (order == 0)
		order = (a->claimed ? 1 : 0) - (b->claimed ? 1 : 0);
	if (order == 0)
		order = strcmp(a->id, b->id);
	if (order == 0)
		order = strcmp(a->namespace, b->namespace);
	if (order == 0)
		order = strcmp(a->pod, b->pod);
	return order ? order : strcmp(a->container, b->container);
}

/* A group's processes come first, then its workloads, then its allocations. */
static unsigned member_rank(const struct member *m)
{
	return m->process ? 0 : m->workload ? 1 : 2;
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = compare_keys(&x->key, &y->key);

	if (order != 0)
		return order;
	if (member_rank(x) != member_rank(y))
		return member_rank(x) < member_rank(y) ? -1 : 1;
	if (!x->process && x->workload != y->workload)
		return x->workload < y->workload ? -1 : 1;
	if (!x->process)
		return x->given < y->given ? -1 : x->given > y->given;
	if (x->process->id.pid != y->process->id.pid)
		return x->process->id.pid < y->process->id.pid ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static void group_add_gpu(struct group *group, uint32_t index)
{
	uint32_t at = group->gpus_n;

	for (uint32_t i = 0; i < group->gpus_n; i++)
		if (group->gpus[i] == index)
			return;
	if (group->gpus_n == READING_ENTITIES_MAX)
		return;
	for (; at > 0 && group->gpus[at - 1] > index; at--)
		group->gpus[at] = group->gpus[at - 1];
	group->gpus[at] = index;
	group->gpus_n++;
}

static void group_begin(struct group *group, const struct member *first, enum group_by by)
{
	group->any = first->process;
	group->none = by == GROUP_USER ? first->key.uid == UINT32_MAX : !*first->key.id && !*first->key.pod;
	group->idle_known = true;
	for (unsigned i = 0; i < GROUP_FIGURES; i++)
		group->known[i] = true;
	for (unsigned i = 0; i < GROUP_CALLS; i++)
		group->calls_known[i] = first->process;
}

static void add_figure(struct group *group, enum group_figure figure, const double *v, const uint8_t *p)
{
	uint8_t presence = p[group_metrics[figure]];

	group->known[figure] &= presence_is(presence);
	group->estimated[figure] |= (presence & PRESENCE_ESTIMATED) != 0;
	group->v[figure] += v[group_metrics[figure]];
}

/* Whether what a process did is in the sum of a workload of its group. */
static bool is_counted(const struct snapshot *s, const struct member *m, enum group_by by)
{
	return *m->key.id && !m->key.claimed && m->process->workload < s->workloads_n &&
	       STRV_EQ(workload_key(&s->workloads[m->process->workload], by), m->key.id);
}

static void add_calls(struct group *group, const struct traced_device *traced)
{
	for (unsigned i = 0; i < GROUP_CALLS; i++) {
		uint8_t presence = traced ? traced->p[group_call_metrics[i]] : (uint8_t)PRESENCE_ABSENT;

		group->calls_known[i] &= presence_is(presence);
		group->calls_estimated[i] |= (presence & PRESENCE_ESTIMATED) != 0;
		group->calls[i] += traced ? traced->v[group_call_metrics[i]] : 0;
	}
}

/* A process is a member once for each of its devices. */
static void group_add_process(struct group *group, const struct snapshot *s, const struct process *p,
			      bool again, bool counted)
{
	const struct entity *gpu = snapshot_gpu(s, &s->entities[p->entity]);
	bool old = !gpu->present || gpu->stale;

	group->processes += !again;
	group->stale |= old;
	group_add_gpu(group, gpu->id.index);
	for (unsigned i = 0; i < GROUP_FIGURES; i++)
		if (i != GROUP_BUSY || !counted)
			add_figure(group, i, p->v, p->p);
	group->known[GROUP_UTILIZATION] &= !old;
	add_calls(group, traced_device_of(s, p));
}

static void group_add_workload(struct group *group, const struct snapshot *s, const struct workload *w)
{
	group->workload = w;
	group->exited += w->exited;
	group_add_gpu(group, snapshot_gpu(s, &s->entities[w->entity])->id.index);
	/* Without, nobody has worked. */
	if (w->p[PROCESS_BUSY] != PRESENCE_ABSENT)
		add_figure(group, GROUP_BUSY, w->v, w->p);
}

/* Where processes cannot be listed it may have some. */
static void group_add_allocation(struct group *group, const struct snapshot *s, const struct allocated *a)
{
	const struct entity *gpu = snapshot_gpu(s, &s->entities[a->entity]);
	bool old = !gpu->present || gpu->stale, unlisted = gpu_unlisted(s, (uint32_t)(gpu - s->entities));

	group->given = a;
	group->gpus_estimated |= a->estimated;
	group->stale |= old;
	group_add_gpu(group, gpu->id.index);
	for (unsigned i = 0; i < GROUP_FIGURES; i++)
		group->known[i] &= !unlisted && !(old && i == GROUP_UTILIZATION);
	group->allocations++;
	group->allocations_claimed += a->claimed;
	group->allocated_seconds += a->seconds;
	group->idle_seconds += a->idle_seconds;
	group->idle_known &= presence_is(a->idle_p);
	group->idle_estimated |= (a->idle_p & PRESENCE_ESTIMATED) != 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->none != y->none)
		return x->none ? 1 : -1;
	if (!x->any != !y->any)
		return x->any ? -1 : 1;
	if (x->known[GROUP_MEMORY] != y->known[GROUP_MEMORY])
		return x->known[GROUP_MEMORY] ? -1 : 1;
	if (x->known[GROUP_MEMORY] && x->v[GROUP_MEMORY] != y->v[GROUP_MEMORY])
		return x->v[GROUP_MEMORY] > y->v[GROUP_MEMORY] ? -1 : 1;
	if (x->any)
		return x->any < y->any ? -1 : x->any > y->any;
	if (x->workload != y->workload)
		return x->workload && (!y->workload || x->workload < y->workload) ? -1 : 1;
	return x->given < y->given ? -1 : x->given > y->given;
}

static uint32_t members_of(const struct snapshot *s, enum group_by by, struct member *members)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->processes_n; i++)
		members[n++] = (struct member){ .key = key_of_process(s, &s->processes[i], by),
						.process = &s->processes[i] };
	for (uint32_t i = 0; by != GROUP_USER && i < s->workloads_n; i++) {
		const struct group_key key = {
			.id = workload_key(&s->workloads[i], by), .namespace = "", .pod = "", .container = ""
		};

		if (*key.id)
			members[n++] = (struct member){ .key = key, .workload = &s->workloads[i] };
	}
	for (uint32_t i = 0; by != GROUP_USER && i < s->allocated_n; i++) {
		const struct allocated *a = &s->allocated[i];

		if (entity_shown(&s->entities[a->entity]) && key_of_allocation(s, a, by, &members[n].key))
			members[n++].given = a;
	}
	qsort(members, n, sizeof(*members), compare_members);
	return n;
}

int groups_make(const struct snapshot *s, enum group_by by, struct group **ret_groups, uint32_t *ret_n)
{
	_cleanup_free_ struct member *members =
		calloc((size_t)s->processes_n + s->workloads_n + s->allocated_n + 1, sizeof(*members));
	_cleanup_free_ struct group *groups = NULL;
	uint32_t n = 0, members_n;

	if (!members)
		return -ENOMEM;
	members_n = members_of(s, by, members);
	for (uint32_t i = 0; i < members_n; i++)
		n += i == 0 || compare_keys(&members[i].key, &members[i - 1].key) != 0;
	groups = calloc(n + 1, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < members_n; i++) {
		const struct member *m = &members[i];
		bool first = i == 0 || compare_keys(&m->key, &members[i - 1].key) != 0;

		if (first)
			group_begin(&groups[n++], m, by);
		if (m->process)
			group_add_process(&groups[n - 1], s, m->process,
					  !first && members[i - 1].process->id.pid == m->process->id.pid,
					  is_counted(s, m, by));
		else if (m->workload)
			group_add_workload(&groups[n - 1], s, m->workload);
		else
			group_add_allocation(&groups[n - 1], s, m->given);
	}
	qsort(groups, n, sizeof(*groups), compare_groups);
	*ret_groups = TAKE_PTR(groups);
	*ret_n = n;
	return 0;
}

/* A group by its key. */
struct keyed_group {
	struct group_key key;
	uint32_t index;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed_group *x = a, *y = b;

	return compare_keys(&x->key, &y->key);
}

int groups_of_processes(const struct snapshot *s, enum group_by by, const struct group *groups, uint32_t n,
			uint32_t *of)
{
	_cleanup_free_ struct keyed_group *keyed = calloc(n + 1, sizeof(*keyed));
	uint32_t keyed_n = 0;

	if (!keyed)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (groups[i].any)
			keyed[keyed_n++] = (struct keyed_group){ key_of_process(s, groups[i].any, by), i };
	qsort(keyed, keyed_n, sizeof(*keyed), compare_keyed);
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct keyed_group wanted = { .key = key_of_process(s, &s->processes[i], by) };
		const struct keyed_group *found =
			bsearch(&wanted, keyed, keyed_n, sizeof(*keyed), compare_keyed);

		/* Each process is in one: groups_make() has the same keys. */
		of[i] = found ? found->index : UINT32_MAX;
	}
	return 0;
}

uint32_t groups_left_out(const struct snapshot *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->allocated_n; i++)
		if (s->allocated[i].kind == WORKLOAD_NONE)
			n += s->allocated[i].count;
	return n;
}

static struct group_names names_of_workload(const struct workload *w, enum group_by by)
{
	bool container = by == GROUP_CONTAINER, in_pod = container || by == GROUP_POD;
	const char *uid = w->kind == WORKLOAD_POD ? w->id : w->pod_uid;

	return (struct group_names){
		.container_id = container ? w->id : "",
		.pod_uid = in_pod ? uid : "",
		.job = by == GROUP_JOB && w->kind == WORKLOAD_JOB ? w->id : "",
		.job_name = "",
		.uid = by == GROUP_JOB && w->kind == WORKLOAD_JOB ? w->uid : UINT32_MAX,
		.namespace = in_pod && w->owner ? w->owner->namespace : "",
		.pod = in_pod && w->owner ? w->owner->pod : "",
		.container = container && w->owner ? w->owner->container : "",
	};
}

static void add_job(const struct snapshot *s, const struct group *group, struct group_names *names)
{
	const struct job *claimed = group->any && !*names->job ? snapshot_job(s, group->any->job) : NULL;
	/* HTCondor's slot runs one job after the other, and has no name. */
	const struct job *job = group->workload ? snapshot_job(s, group->workload->job) : NULL;

	if (!job && claimed && claimed->manager != JOB_MANAGER_NONE) {
		job = claimed;
		names->job = job->id;
		names->claimed = job->claimed;
		names->uid = job->claimed ? group->any->uid : UINT32_MAX;
	}
	if (job)
		names->job_name = job->name;
}

/* Who allocates may know names that the node's files do not have. */
static void add_given(const struct allocated *a, enum group_by by, bool more, struct group_names *names)
{
	if (!*names->pod) {
		names->namespace = a->namespace;
		names->pod = a->pod;
	}
	if (!*names->container && by == GROUP_CONTAINER)
		names->container = a->container;
	if (!more)
		return;
	names->container_id = by == GROUP_CONTAINER ? a->id : "";
	names->pod_uid = a->kind == WORKLOAD_POD ? a->id : a->pod_uid;
	names->job = by == GROUP_JOB ? a->id : "";
}

struct group_names group_names(const struct snapshot *s, const struct group *group, enum group_by by)
{
	const struct workload *w = group->workload;
	struct group_names names = { "", "", "", "", "", "", "", false, UINT32_MAX };

	if (by == GROUP_USER && group->any)
		names.uid = group->any->uid;
	if (group->none || by == GROUP_USER)
		return names;
	if (!w && group->any && group->any->workload < s->workloads_n)
		w = &s->workloads[group->any->workload];
	if (w)
		names = names_of_workload(w, by);
	if (by == GROUP_JOB)
		add_job(s, group, &names);
	if (group->given)
		add_given(group->given, by, !w, &names);
	return names;
}
