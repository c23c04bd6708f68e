// SPDX-License-Identifier: Apache-2.0
#include "view/snapshot/read_job.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "view/names.h"

static void copy_member(char *to, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text)
		snprintf(to, size, "%.*s", (int)size - 1, text);
}
#define TAKE_TEXT(to_, object_, key_) copy_member(to_, sizeof(to_), object_, key_)

static void take_batch_job(struct job *job, const json_t *object)
{
	const char *manager = json_string_value(json_object_get(object, "manager"));

	for (unsigned i = JOB_MANAGER_NONE + 1; manager && i < JOB_MANAGERS; i++)
		if (STRV_EQ(job_manager_name(i), manager))
			job->manager = i;
	if (job->manager == JOB_MANAGER_NONE)
		return;
	TAKE_TEXT(job->id, object, "id");
	TAKE_TEXT(job->step, object, "step");
	TAKE_TEXT(job->name, object, "name");
	TAKE_TEXT(job->user, object, "user");
	job->claimed = json_is_true(json_object_get(object, "claimed"));
}

uint32_t snapshot_read_job(struct snapshot *s, uint32_t max, const json_t *object)
{
	struct job job;

	memset(&job, 0, sizeof(job));
	take_batch_job(&job, json_object_get(object, "batch_job"));
	/* What the pod says is read with its names. */
	if (!json_is_false(json_object_get(object, "run_claimed"))) {
		TAKE_TEXT(job.run, object, "run");
		TAKE_TEXT(job.group, object, "run_group");
	}
	if (job.manager == JOB_MANAGER_NONE && !job.run[0] && !job.group[0])
		return JOB_NONE;
	/* Equal ones have equal bytes. */
	for (uint32_t i = 0; i < s->jobs_n; i++)
		if (memcmp(&s->jobs[i], &job, sizeof(job)) == 0)
			return i;
	if (s->jobs_n >= max)
		return JOB_NONE;
	s->jobs[s->jobs_n] = job;
	return s->jobs_n++;
}
