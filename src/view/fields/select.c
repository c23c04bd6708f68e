// SPDX-License-Identifier: Apache-2.0
#include "view/fields/select.h"

#include <string.h>

#include "base/macro.h"
#include "base/text.h"

enum { ID_DIGITS_MIN = 12 }; /* what Docker and kubectl show of a container's ID */

static bool member_is(const json_t *process, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(process, key));

	return text && STRV_EQ(text, wanted);
}

static bool member_begins(const json_t *process, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(process, key));

	return text && strncmp(text, wanted, strlen(wanted)) == 0;
}

static bool is_of_pod(const json_t *process, const char *wanted)
{
	const char *namespace = json_string_value(json_object_get(process, "namespace"));
	const char *slash = strchr(wanted, '/');

	if (slash)
		return namespace && strlen(namespace) == (size_t)(slash - wanted) &&
		       strncmp(namespace, wanted, strlen(namespace)) == 0 &&
		       member_is(process, "pod", slash + 1);
	return member_is(process, "pod", wanted) || member_is(process, "pod_uid", wanted);
}

static bool is_of_container(const json_t *process, const char *wanted)
{
	return member_is(process, "container", wanted) ||
	       (strlen(wanted) >= ID_DIGITS_MIN && member_begins(process, "container_id", wanted));
}

static bool names_job(const json_t *process, const char *wanted, bool claimed)
{
	const json_t *job = json_object_get(process, "batch_job");

	return member_is(job, "id", wanted) && json_is_true(json_object_get(job, "claimed")) == claimed;
}

/* One that only claims to be of the job is not meant by the job's ID. */
static bool is_of_job(const json_t *process, const char *wanted)
{
	size_t prefix = strlen(JOB_CLAIMED);

	if (strncmp(wanted, JOB_CLAIMED, prefix) == 0)
		return names_job(process, wanted + prefix, true);
	return member_is(process, "job", wanted) || names_job(process, wanted, false);
}

static bool is_on_gpu(const json_t *process, const char *wanted)
{
	const json_t *index = json_object_get(process, "gpu");
	uint64_t number;

	if (parse_u64(wanted, &number) == 0)
		return json_is_integer(index) && json_integer_value(index) == (json_int_t)number;
	return member_begins(process, "uuid", wanted);
}

static bool is_of_user(const json_t *process, uint32_t uid)
{
	const json_t *number = json_object_get(process, "uid");

	return json_is_integer(number) && json_integer_value(number) == uid;
}

bool selection_has(const json_t *process, const struct selection *selection)
{
	return (!selection->pod || is_of_pod(process, selection->pod)) &&
	       (!selection->container || is_of_container(process, selection->container)) &&
	       (!selection->job || is_of_job(process, selection->job)) &&
	       (!selection->gpu || is_on_gpu(process, selection->gpu)) &&
	       (selection->uid == UINT32_MAX || is_of_user(process, selection->uid));
}

static void remove_others(json_t *processes, const struct selection *selection)
{
	for (size_t i = json_array_size(processes); i-- > 0;)
		if (!selection_has(json_array_get(processes, i), selection))
			json_array_remove(processes, i);
}

void document_select(json_t *document, const struct selection *selection)
{
	remove_others(json_object_get(document, "processes"), selection);
	remove_others(json_object_get(document, "traced"), selection);
	remove_others(json_object_get(document, "allocations"), selection);
	remove_others(json_object_get(json_object_get(document, "node"), "workloads"), selection);
}

uint32_t document_claimants(const json_t *document, const char *job)
{
	const json_t *processes = json_object_get(document, "processes");
	uint32_t n = 0;

	for (size_t i = 0; i < json_array_size(processes); i++)
		n += names_job(json_array_get(processes, i), job, true);
	return n;
}
