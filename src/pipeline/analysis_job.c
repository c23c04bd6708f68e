// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis_job.h"

#include <stdio.h>
#include <string.h>

#include "proc/proc.h"

enum { KNOWN_MAX = 1 << 16, DEVICES_MAX = 256 };

struct analysis_job_device {
	char name[FINDING_DEVICE];
};

void analysis_job_done(struct analysis_job *job)
{
	hashmap_done(&job->known);
	hashmap_done(&job->members);
	row_list_done(&job->devices);
}

bool analysis_job_has(struct analysis_job *job, uint32_t pid)
{
	struct proc_identity identity;
	uint32_t is;

	if (!job->id || hashmap_get(&job->known, pid, &is))
		return !job->id || is;
	is = proc_identify(job->proc_root, pid, &identity) == 0 &&
	     identity.cgroup.job.manager != PROC_JOB_NONE && STRV_EQ(identity.cgroup.job.id, job->id);
	if (job->known.count >= KNOWN_MAX)
		hashmap_clear(&job->known);
	hashmap_put(&job->known, pid, is);
	if (is && job->members.count < KNOWN_MAX)
		hashmap_put(&job->members, pid, 1);
	return is;
}

void analysis_job_over(struct analysis_job *job, uint32_t pid)
{
	hashmap_del(&job->known, pid);
}

static bool has_device(const struct analysis_job *job, const char *name)
{
	const struct analysis_job_device *list = job->devices.list;

	for (uint32_t i = 0; i < job->devices.n; i++)
		if (STRV_EQ(list[i].name, name))
			return true;
	return false;
}

void analysis_job_node(struct analysis_job *job, const struct snapshot *node)
{
	for (uint32_t i = 0; job->id && i < node->processes_n; i++) {
		const struct process *p = &node->processes[i];
		const struct entity *e = &node->entities[p->entity];
		const char *name = e->id.parent != READING_NONE ? e->id.mig_uuid : e->id.uuid;
		struct analysis_job_device *device;

		if (!analysis_job_has(job, p->id.pid) || has_device(job, name))
			continue;
		job->devices.size = sizeof(*device);
		job->devices.max = DEVICES_MAX;
		device = row_list_add(&job->devices);
		if (device)
			snprintf(device->name, sizeof(device->name), "%s", name);
	}
}

/* Of no single process: by its GPU; of ranks elsewhere, by nothing. */
static bool is_of_job(const struct analysis_job *job, const struct finding *f)
{
	uint32_t is;

	return f->pid ? hashmap_get(&job->members, f->pid, &is) : has_device(job, f->device);
}

void analysis_job_filter(const struct analysis_job *job, struct findings *findings)
{
	uint32_t kept = 0;

	if (!job->id || !findings)
		return;
	for (uint32_t i = 0; i < findings->n; i++)
		if (is_of_job(job, &findings->list[i]))
			findings->list[kept++] = findings->list[i];
	findings->n = kept;
	findings_count(findings);
}
