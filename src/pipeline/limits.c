// SPDX-License-Identifier: Apache-2.0
/*
 * Which of the node's devices a process's container or job was given, for src/cuda. In this order:
 *
 *   1. What the model knows to be allocated (pod-resources, the runtimes' files, Slurm) and has a node in the
 *      process's own /dev: what has none it cannot open, and a node that it has made itself opens nothing.
 *      The devices together, whatever their order: CUDA sees them in its own.
 *   2. What is allocated, if the nodes do not tell: there are none (WSL; instances have others), they are
 *      other GPUs', or all, as in a privileged container. An estimate; so is what a job's processes say.
 *   3. The nodes, if nothing is known to be allocated and some GPUs have none. All nodes: all devices.
 *   4. NVIDIA_VISIBLE_DEVICES, as the process was started with it: an estimate. The runtime makes devices by
 *      it, but the program may have been started with another value, and an image set it to anything. "void",
 *      or nothing, tells the runtime to leave devices to others.
 *   5. All devices: an estimate. Until the runtimes' files have been read once since the process began it is
 *      not known.
 *
 * A job's processes: whether Slurm hides the other devices from them (ConstrainDevices) shows in
 * CUDA_VISIBLE_DEVICES, which counts within what is not hidden.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hashmap.h"
#include "model/device_ref.h"
#include "pipeline/private.h"
#include "proc/device_nodes.h"

enum { ENVIRONMENT_MAX = 128 << 10, GIVEN_MAX = 16384 };

/* A device of one container, pod or job. */
struct given {
	enum workload_kind kind;
	char id[96];
	char uuid[TRACED_UUID];
	bool claimed;
};

struct limits {
	struct given *list;
	uint32_t n;
	uint64_t digest;
	int64_t read_ns; /* boot time of when the runtimes' files were read last; 0: they are not */
	bool waiting; /* somebody waits for them to be read again */
};

/* ---- what was given ---- */

static bool is_id_known(const struct allocated *a)
{
	return a->kind != WORKLOAD_NONE && a->id[0];
}

static uint64_t digest_of(const struct snapshot *snapshot)
{
	uint64_t digest = 1;

	for (uint32_t i = 0; i < snapshot->allocated_n; i++) {
		const struct allocated *a = &snapshot->allocated[i];
		const char *uuid = pipeline_uuid(&snapshot->entities[a->entity]);

		if (!is_id_known(a))
			continue;
		digest = digest * 31 + hash_bytes(a->id, strlen(a->id)) + a->kind + (a->claimed ? 64 : 0);
		digest = digest * 31 + hash_bytes(uuid, strlen(uuid));
	}
	return digest;
}

static bool take_given(struct limits *limits, const struct snapshot *snapshot)
{
	uint64_t digest = digest_of(snapshot);
	uint32_t most = MIN(snapshot->allocated_n, (uint32_t)GIVEN_MAX);
	struct given *list;

	if (digest == limits->digest)
		return false;
	list = calloc(most + 1, sizeof(*list));
	if (!list)
		return false; /* with the next snapshot */
	free(limits->list);
	limits->list = list;
	limits->n = 0;
	limits->digest = digest;
	for (uint32_t i = 0; i < most; i++) {
		const struct allocated *a = &snapshot->allocated[i];

		if (!is_id_known(a))
			continue;
		list[limits->n].kind = a->kind;
		list[limits->n].claimed = a->claimed;
		snprintf(list[limits->n].id, sizeof(list->id), "%s", a->id);
		snprintf(list[limits->n].uuid, sizeof(list->uuid), "%s",
			 pipeline_uuid(&snapshot->entities[a->entity]));
		limits->n++;
	}
	return true;
}

void pipeline_set_limits(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	const struct source *files = &snapshot->sources[SOURCE_FILES];
	struct limits *limits = pipeline->limits;
	bool changed, again;

	if (!limits)
		limits = pipeline->limits = calloc(1, sizeof(*limits));
	if (!limits)
		return;
	changed = take_given(limits, snapshot);
	again = limits->waiting && (!files->in_use || files->heard_ns > limits->read_ns);
	limits->read_ns = files->in_use ? files->heard_ns : 0;
	if (!changed && !again)
		return;
	limits->waiting = false;
	cuda_limits_changed(pipeline->cuda);
}

void pipeline_limits_done(struct pipeline *pipeline)
{
	if (pipeline->limits)
		free(pipeline->limits->list);
	free(TAKE_PTR(pipeline->limits));
}

/* ---- devices of a process ---- */

/* What is being found. */
struct allowing {
	struct pipeline *pipeline;
	char (*uuids)[TRACED_UUID];
	size_t max, n;
	bool claimed; /* some of it, so all is an estimate */
};

static void allow(struct allowing *to, const char *uuid)
{
	for (size_t i = 0; i < to->n; i++)
		if (strncmp(to->uuids[i], uuid, TRACED_UUID) == 0)
			return;
	if (to->n < to->max)
		snprintf(to->uuids[to->n++], TRACED_UUID, "%s", uuid);
}

static bool is_gpu(const struct cuda_device *d)
{
	return d->parent[0] == '\0';
}

/* The container's own, or those of all of its pod. */
static bool allow_given(struct allowing *to, const struct proc_cgroup *cgroup)
{
	const struct limits *limits = to->pipeline->limits;
	enum workload_kind kind = cgroup->kind == PROC_CGROUP_JOB ? WORKLOAD_JOB :
				  cgroup->kind == PROC_CGROUP_POD ? WORKLOAD_POD :
								    WORKLOAD_CONTAINER;

	for (uint32_t i = 0; limits && i < limits->n; i++) {
		const struct given *g = &limits->list[i];

		if ((g->kind == kind && STRV_EQ(g->id, cgroup->id)) ||
		    (g->kind == WORKLOAD_POD && kind == WORKLOAD_CONTAINER &&
		     STRV_EQ(g->id, cgroup->pod_uid))) {
			allow(to, g->uuid);
			to->claimed |= g->claimed;
		}
	}
	return to->n > 0;
}

/* What the nodes in a process's /dev are. */
enum nodes {
	NODES_UNKNOWN, /* nothing can be concluded, for instances neither, which have other nodes */
	NODES_SOME, /* of some of the GPUs */
	NODES_ALL,
};

/* @list: minor numbers, "0,2". *ret_here: by the GPU's place in the pipeline's list. */
static enum nodes read_nodes(const struct pipeline *pipeline, struct cursor list,
			     bool ret_here[static PIPELINE_DEVICES_MAX])
{
	bool minors[PIPELINE_DEVICES_MAX] = { false };
	uint32_t n = 0;
	uint64_t minor;

	for (; cursor_u64(&list, &minor) == 0; cursor_literal(&list, ","))
		if (minor < PIPELINE_DEVICES_MAX)
			minors[minor] = true;
	for (uint32_t i = 0; i < pipeline->devices_n; i++) {
		const struct cuda_device *d = &pipeline->devices[i];

		if (d->mig || !is_gpu(d) || d->minor >= PIPELINE_DEVICES_MAX)
			return NODES_UNKNOWN;
		ret_here[i] = minors[d->minor];
		n += ret_here[i];
	}
	if (n == 0)
		return NODES_UNKNOWN;
	return n == pipeline->devices_n ? NODES_ALL : NODES_SOME;
}

static void allow_nodes(struct allowing *to, const bool *here)
{
	for (uint32_t i = 0; i < to->pipeline->devices_n; i++)
		if (here[i])
			allow(to, to->pipeline->devices[i].uuid);
}

static bool has_node(const struct pipeline *pipeline, const bool *here, const char *uuid)
{
	for (uint32_t i = 0; i < pipeline->devices_n; i++)
		if (here[i] && strncmp(pipeline->devices[i].uuid, uuid, TRACED_UUID) == 0)
			return true;
	return false;
}

/* Leaves of what is allocated what has a node; all of it, an estimate, if the nodes do not tell. */
static enum cuda_allowed keep_nodes(struct allowing *to, enum nodes nodes, const bool *here)
{
	size_t kept = 0;

	for (size_t i = 0; i < to->n && nodes != NODES_UNKNOWN; i++)
		kept += has_node(to->pipeline, here, to->uuids[i]);
	if (kept == 0 || (nodes == NODES_ALL && kept < to->pipeline->devices_n))
		return CUDA_ALLOWED_GIVEN;
	kept = 0;
	for (size_t i = 0; i < to->n; i++)
		if (has_node(to->pipeline, here, to->uuids[i]))
			memmove(to->uuids[kept++], to->uuids[i], TRACED_UUID);
	to->n = kept;
	return CUDA_ALLOWED_KNOWN;
}

/* ---- the variable ---- */

/* GPUs and instances are counted in the driver's order. */
static bool is_meant(const struct pipeline *pipeline, uint32_t device, const struct device_ref *ref)
{
	const struct cuda_device *d = &pipeline->devices[device];
	uint32_t index = 0, mig = 0;

	if (ref->kind == DEVICE_BY_UUID && ref->gi != DEVICE_REF_NO)
		return STRV_EQ(d->parent, ref->uuid) && d->gi == ref->gi && d->ci == ref->ci;
	if (ref->kind == DEVICE_BY_UUID)
		return strncmp(d->uuid, ref->uuid, strlen(ref->uuid)) == 0;
	if (ref->kind == DEVICE_BY_MINOR)
		return is_gpu(d) && d->minor == ref->index;
	if (ref->kind != DEVICE_BY_INDEX || is_gpu(d) != (ref->mig == DEVICE_REF_NO))
		return false;
	for (uint32_t i = 0; i < device; i++) {
		const struct cuda_device *before = &pipeline->devices[i];

		if (is_gpu(before))
			index += is_gpu(d) || !STRV_EQ(before->uuid, d->parent);
		else
			mig += STRV_EQ(before->parent, d->parent);
	}
	if (d->number != UINT32_MAX)
		mig = d->number;
	return index == ref->index && (is_gpu(d) || mig == ref->mig);
}

/* False: it may be any of several, as the beginning of a UUID that they share. */
static bool allow_word(struct allowing *to, const struct cursor *word)
{
	uint32_t meant = 0, n = 0;
	struct device_ref ref;
	char text[TRACED_UUID];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(cursor_left(word), sizeof(text)), word->p);
	if (cursor_left(word) >= sizeof(text) || device_ref_parse(text, &ref, NULL) < 0)
		return true;
	for (uint32_t i = 0; i < to->pipeline->devices_n; i++) {
		if (!is_meant(to->pipeline, i, &ref))
			continue;
		meant = i;
		n++;
	}
	if (n == 1)
		allow(to, to->pipeline->devices[meant].uuid);
	return n <= 1;
}

static int allow_variable(struct allowing *to, struct cursor list)
{
	struct cursor word;

	if (cursor_equals(&list, "all"))
		return -ENODATA;
	/* A path: mounts name the devices. */
	if (cursor_equals(&list, "void") || cursor_eof(&list) || *list.p == '/')
		return -ENXIO;
	if (cursor_equals(&list, "none"))
		return CUDA_ALLOWED_GUESSED;
	while (!cursor_eof(&list)) {
		word = list;
		if (cursor_until(&list, ',', &word) < 0)
			list.p = list.end;
		if (!allow_word(to, &word)) {
			to->n = 0;
			return -ENXIO;
		}
	}
	return CUDA_ALLOWED_GUESSED;
}

/* ---- all of it ---- */

static bool find_text(struct cursor all, const char *name, struct cursor *ret_value)
{
	while (cursor_until(&all, 0, ret_value) == 0)
		if (cursor_literal(ret_value, name))
			return true;
	return false;
}

/* Whether the runtimes' files may soon tell more of a process: they were read before it began. */
static bool may_learn(struct limits *limits, const struct proc_identity *identity)
{
	if (!limits || !limits->read_ns || limits->read_ns > process_boot_ns(identity->id.start_ticks))
		return false;
	limits->waiting = true;
	return true;
}

/* The text is what is known of the process's environment. */
static int allow_contained(struct allowing *to, const struct proc_identity *identity, struct cursor text)
{
	bool here[PIPELINE_DEVICES_MAX] = { false };
	enum nodes nodes = NODES_UNKNOWN;
	struct cursor value;

	if (find_text(text, PROC_DEVICE_NODES, &value))
		nodes = read_nodes(to->pipeline, value, here);
	if (allow_given(to, &identity->cgroup))
		return keep_nodes(to, nodes, here);
	if (nodes == NODES_SOME) {
		allow_nodes(to, here);
		return CUDA_ALLOWED_KNOWN;
	}
	if (nodes == NODES_ALL)
		return -ENOENT;
	if (find_text(text, "NVIDIA_VISIBLE_DEVICES=", &value))
		return allow_variable(to, value);
	return may_learn(to->pipeline->limits, identity) ? -ENXIO : -ENODATA;
}

/*
 * Whether each word of a list, counted on the node, is a device that was given; *ret_same: and the same one
 * counted among these.
 */
static bool counts_all(const struct allowing *given, struct cursor list, bool *ret_same)
{
	struct cursor word;
	uint64_t index;

	*ret_same = true;
	while (!cursor_eof(&list)) {
		struct allowing one = { .pipeline = given->pipeline, .max = 1 };
		char uuid[1][TRACED_UUID];
		bool found = false;

		one.uuids = uuid;
		word = list;
		if (cursor_until(&list, ',', &word) < 0)
			list.p = list.end;
		allow_word(&one, &word);
		for (size_t i = 0; i < given->n && one.n; i++)
			found |= strncmp(given->uuids[i], uuid[0], TRACED_UUID) == 0;
		if (!found)
			return false;
		if (cursor_u64(&word, &index) == 0)
			*ret_same &=
				index < given->n && strncmp(given->uuids[index], uuid[0], TRACED_UUID) == 0;
	}
	return true;
}

/*
 * With ConstrainDevices the job sees its devices alone, and its variable counts them; without, it sees all,
 * and the variable names those that are its own. Where both readings are possible and differ, it is not
 * known. What a process of the job says that it was given is an estimate.
 */
static int allow_job(struct allowing *to, const struct proc_identity *identity, struct cursor text)
{
	struct cursor value;
	bool same;

	if (!allow_given(to, &identity->cgroup))
		return -ENOENT;
	if (!find_text(text, "CUDA_VISIBLE_DEVICES=", &value))
		return -ENXIO;
	if (!counts_all(to, value, &same))
		return to->claimed ? CUDA_ALLOWED_GIVEN : CUDA_ALLOWED_KNOWN;
	return !same ? -ENXIO : to->claimed ? -ENODATA : -ENOENT;
}

int limits_allow(struct pipeline *pipeline, const struct proc_identity *identity, const char *text, size_t n,
		 char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n)
{
	struct allowing to = { .pipeline = pipeline, .uuids = uuids, .max = max };
	struct cursor all = cursor_over(text, n);
	int r;

	if (identity->cgroup.kind == PROC_CGROUP_NONE || identity->cgroup.kind == PROC_CGROUP_UNIT)
		return -ENOENT;
	r = identity->cgroup.kind == PROC_CGROUP_JOB ? allow_job(&to, identity, all) :
						       allow_contained(&to, identity, all);
	*ret_n = to.n;
	return r;
}

int pipeline_allowed(uint32_t tgid, char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n, void *userdata)
{
	_cleanup_free_ char *text = malloc(ENVIRONMENT_MAX);
	struct proc_identity identity;
	size_t n = 0;
	int r = pipeline_identity(userdata, tgid, &identity);

	if (r < 0)
		return r;
	if (identity.cgroup.kind == PROC_CGROUP_NONE || identity.cgroup.kind == PROC_CGROUP_UNIT)
		return -ENOENT;
	if (!text)
		return -ENOMEM;
	r = pipeline_environment(tgid, text, ENVIRONMENT_MAX, &n, userdata);
	return r == -EAGAIN ? r : limits_allow(userdata, &identity, text, n, uuids, max, ret_n);
}
