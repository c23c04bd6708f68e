// SPDX-License-Identifier: Apache-2.0
#include "view/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

enum { SHORT_ID = 12 };

static const struct {
	const char *kind, *id;
} workload_names[WORKLOAD_KINDS] = {
	[WORKLOAD_NONE] = { "none", "id" },    [WORKLOAD_CONTAINER] = { "container", "container_id" },
	[WORKLOAD_POD] = { "pod", "pod_uid" }, [WORKLOAD_JOB] = { "job", "job" },
	[WORKLOAD_UNIT] = { "unit", "unit" },
};

static const char *const state_names[READING_STATES] = {
	[READING_OK] = "ok",         [READING_NO_LIBRARY] = "no_library", [READING_NO_DRIVER] = "no_driver",
	[READING_FAILED] = "failed", [READING_RELEASED] = "released",
};

/* Indexed by the level in struct snapshot's topology: NVML's common ancestor / 10 + 1. */
const char *const recent_names[RECENT_FIGURES] = {
	[RECENT_UTILIZATION] = "utilization_ratio",
	[RECENT_MEMORY_UTILIZATION] = "memory_utilization_ratio",
	[RECENT_MEMORY] = "memory_bytes",
};

static const char *const link_names[] = { "", "INT", "PIX", "PXB", "PHB", "NODE", "SYS" };

const char *workload_kind_name(enum workload_kind kind)
{
	return workload_names[kind < WORKLOAD_KINDS ? kind : WORKLOAD_NONE].kind;
}

const char *workload_id_name(enum workload_kind kind)
{
	return workload_names[kind < WORKLOAD_KINDS ? kind : WORKLOAD_NONE].id;
}

int container_short_length(const char *id)
{
	const char *slash = strrchr(id, '/');

	return (slash ? (int)(slash + 1 - id) : 0) + SHORT_ID;
}

const char *job_manager_name(enum job_manager manager)
{
	static const char *const names[JOB_MANAGERS] = {
		[JOB_MANAGER_NONE] = "none",         [JOB_MANAGER_SLURM] = "slurm",
		[JOB_MANAGER_HTCONDOR] = "htcondor", [JOB_MANAGER_LSF] = "lsf",
		[JOB_MANAGER_PBS] = "pbs",
	};

	return names[manager < JOB_MANAGERS ? manager : JOB_MANAGER_NONE];
}

const struct owner *run_owner(const struct snapshot *s, const struct workload *workload)
{
	const struct owner *owner = workload->owner;

	if (owner && (owner->run[0] || owner->group[0]))
		return owner;
	return owners_run(s->owners, workload->kind, workload->id, workload->pod_uid); /* of another source */
}

struct run_names run_of(const struct snapshot *s, const struct process *process)
{
	const struct owner *pod =
		process->workload < s->workloads_n ? run_owner(s, &s->workloads[process->workload]) : NULL;
	const struct job *job = snapshot_job(s, process->job);
	struct run_names names = { "", "", false };

	if (pod)
		names = (struct run_names){ pod->run, pod->group, false };
	if (!names.run[0] && job && job->run[0]) {
		names.run = job->run;
		names.claimed = true;
	}
	if (!names.group[0] && job && job->group[0]) {
		names.group = job->group;
		names.claimed = true;
	}
	return names;
}

const char *outage_reason(const struct snapshot *s)
{
	if (!s->fresh)
		return s->not_fresh_reason;
	return snapshot_driver(s)->state == READING_OK ? "" : snapshot_driver(s)->error;
}

const char *driver_state_name(const struct snapshot *s)
{
	enum reading_state state = snapshot_driver(s)->state;

	return state == READING_OK && !s->fresh ? "stale" : state_name(state);
}

const char *driver_state_reason(const struct snapshot *s)
{
	return s->fresh ? outage_reason(s) : s->not_fresh_cause;
}

const char *state_name(enum reading_state state)
{
	return state < READING_STATES ? state_names[state] : "unknown";
}

const char *process_type_name(unsigned i)
{
	static const char *const names[] = { "compute", "graphics", "mps" };

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

void rejected_field_name(const struct metric *metric, bool process, char buf[static FIELD_NAME_MAX])
{
	snprintf(buf, FIELD_NAME_MAX, "%s%s", process ? "process_" : "", metric->id);
	for (char *c = buf; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

bool rejected_next(const struct snapshot *s, unsigned *i, struct rejected_field *ret_field)
{
	for (; *i < GPU_METRICS + PROCESS_METRICS; (*i)++) {
		bool process = *i >= GPU_METRICS;
		unsigned row = process ? *i - GPU_METRICS : *i;
		uint64_t count = process ? s->rejected_process[row] : s->rejected[row];

		if (count == 0)
			continue;
		rejected_field_name(process ? &process_metrics[row] : &gpu_metrics[row], process,
				    ret_field->name);
		ret_field->count = count;
		(*i)++;
		return true;
	}
	return false;
}

void cuda_version_text(uint32_t version, char buf[static 16])
{
	buf[0] = '\0';
	if (version > 0)
		snprintf(buf, 16, "%u.%u", version / 1000, version % 1000 / 10);
}

void link_text(uint8_t level, uint8_t nvlinks, char buf[static 8])
{
	if (nvlinks > 0)
		snprintf(buf, 8, "NV%u", nvlinks);
	else
		snprintf(buf, 8, "%s", level < ARRAY_SIZE(link_names) ? link_names[level] : "");
}

void link_parse(const char *text, uint8_t *ret_level, uint8_t *ret_nvlinks)
{
	unsigned nvlinks = 0;

	*ret_level = *ret_nvlinks = 0;
	if (sscanf(text, "NV%3u", &nvlinks) == 1 && nvlinks <= UINT8_MAX)
		*ret_nvlinks = (uint8_t)nvlinks;
	for (uint8_t level = 1; nvlinks == 0 && level < ARRAY_SIZE(link_names); level++)
		if (STRV_EQ(link_names[level], text))
			*ret_level = level;
}
