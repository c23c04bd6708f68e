// SPDX-License-Identifier: Apache-2.0
/* Who is meant by "0", "4711", "GPU-27c9", "job:4711"; and what is of it in the document. */
#include "cmd/explain/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cmd/top/columns.h"
#include "view/fields/select.h"

const char *const about_names[ABOUTS] = {
	[ABOUT_ALL] = "all", [ABOUT_GPU] = "gpu", [ABOUT_PROCESS] = "pid", [ABOUT_JOB] = "job"
};

static bool is_number(const json_t *member, const char *text)
{
	uint64_t number;

	return json_is_integer(member) && parse_u64(text, &number) == 0 &&
	       json_integer_value(member) == (json_int_t)number;
}

static bool begins(const char *text, const char *with)
{
	return *with && strncmp(text, with, strlen(with)) == 0;
}

static bool gpu_is(const json_t *gpu, const char *name)
{
	const json_t *instance;
	size_t i;

	if (is_number(json_object_get(gpu, "gpu"), name) || begins(text_member(gpu, "uuid"), name))
		return true;
	json_array_foreach(json_object_get(gpu, "mig"), i, instance)
		if (begins(text_member(instance, "mig_uuid"), name))
			return true;
	return false;
}

static bool job_is(const json_t *process, const char *name)
{
	const struct selection selection = { .job = name, .uid = UINT32_MAX };

	return selection_has(process, &selection);
}

static bool process_is(const json_t *process, enum about about, const char *name)
{
	return about == ABOUT_JOB ? job_is(process, name) : is_number(json_object_get(process, "pid"), name);
}

static bool any_process(const struct explain *explain, enum about about, const char *name)
{
	static const char *const lists[] = { "processes", "traced" };
	const json_t *process;
	size_t k;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		json_array_foreach(json_object_get(explain->document, lists[i]), k, process)
			if (process_is(process, about, name))
				return true;
	return false;
}

static bool exists(const struct explain *explain, enum about about, const char *name)
{
	const json_t *gpu;
	size_t i;

	if (about != ABOUT_GPU)
		return any_process(explain, about, name);
	json_array_foreach(json_object_get(explain->document, "gpus"), i, gpu)
		if (gpu_is(gpu, name))
			return true;
	return false;
}

/* The kind that is written before a colon, or as in its own sentences: "GPU 3". ABOUT_ALL: none is. */
static enum about prefix_of(const char *operand, const char **ret_name)
{
	for (enum about about = ABOUT_GPU; about < ABOUTS; about++) {
		size_t n = strlen(about_names[about]);

		if (strncasecmp(operand, about_names[about], n) == 0 &&
		    (operand[n] == ':' || operand[n] == ' ')) {
			*ret_name = operand + n + 1;
			return about;
		}
	}
	*ret_name = operand;
	return ABOUT_ALL;
}

bool subject_is_kind(const char *word)
{
	for (enum about about = ABOUT_GPU; about < ABOUTS; about++)
		if (strcasecmp(word, about_names[about]) == 0)
			return true;
	return false;
}

int subject_find(struct explain *explain, const char *operand, char *ret_why, size_t size)
{
	enum about given, found = ABOUT_ALL;
	unsigned n = 0;

	*ret_why = '\0';
	explain->about = ABOUT_ALL;
	if (!operand)
		return 0;
	given = prefix_of(operand, &explain->name);
	for (enum about about = ABOUT_GPU; about < ABOUTS; about++) {
		if ((given != ABOUT_ALL && given != about) || !exists(explain, about, explain->name))
			continue;
		found = about;
		n++;
	}
	explain->about = found;
	if (n == 1)
		return 0;
	if (n > 1)
		snprintf(ret_why, size,
			 "\"%.80s\" has several meanings here: say gpu:%.80s, pid:%.80s or job:%.80s",
			 explain->name, explain->name, explain->name, explain->name);
	else
		snprintf(ret_why, size,
			 "no %s \"%.80s\" is known here: gpusonde gpus and ps show those that are; "
			 "gpusonde doctor --pid PID says what can be seen of a process",
			 given == ABOUT_GPU     ? "GPU" :
			 given == ABOUT_PROCESS ? "process on a GPU" :
			 given == ABOUT_JOB     ? "job on a GPU" :
						  "GPU, process on a GPU, or job",
			 explain->name);
	return n > 1 ? -ENOTUNIQ : -ESRCH;
}

bool subject_has_process(const struct explain *explain, const json_t *process)
{
	return (explain->about == ABOUT_PROCESS || explain->about == ABOUT_JOB) &&
	       process_is(process, explain->about, explain->name);
}

bool subject_is_on(const json_t *process, const json_t *gpu)
{
	const char *uuid = text_member(gpu, "uuid");

	return *uuid && STRV_EQ(text_member(process, "uuid"), uuid);
}

bool subject_has_gpu(const struct explain *explain, const json_t *gpu)
{
	const json_t *process;
	size_t i;

	if (explain->about == ABOUT_ALL)
		return true;
	if (explain->about == ABOUT_GPU)
		return gpu_is(gpu, explain->name);
	json_array_foreach(json_object_get(explain->document, "processes"), i, process)
		if (subject_has_process(explain, process) && subject_is_on(process, gpu))
			return true;
	return false;
}
