// SPDX-License-Identifier: Apache-2.0
#include "view/select.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

enum { ID_DIGITS_MIN = 12 }; /* what Docker and kubectl show of a container's ID */

/* ---- which ---- */

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

static bool is_selected(const json_t *process, const struct selection *selection)
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
		if (!is_selected(json_array_get(processes, i), selection))
			json_array_remove(processes, i);
}

/* ---- in what order ---- */

static const struct {
	const char *name, *object, *member; /* in this object of the process; NULL: of itself */
	bool upwards;
} orders[PROCESS_ORDERS] = {
	[ORDER_NONE] = { .name = "gpu" },
	[ORDER_PID] = { .name = "pid", .member = "pid", .upwards = true },
	[ORDER_USER] = { .name = "user", .member = "uid", .upwards = true },
	[ORDER_SM] = { .name = "sm", .member = "utilization_ratio" },
	[ORDER_MEMORY] = { .name = "memory", .member = "memory_bytes" },
	[ORDER_BUSY] = { .name = "busy", .member = "busy_seconds_total" },
	[ORDER_LAUNCHES] = { .name = "launches", .object = "cuda", .member = "launches_total" },
};

struct sorted {
	json_t *process;
	double rank; /* ascending */
	size_t at;
};

const char *process_order_name(enum process_order order)
{
	return order < PROCESS_ORDERS ? orders[order].name : NULL;
}

static double rank_of(const json_t *process, enum process_order order)
{
	const json_t *object =
		orders[order].object ? json_object_get(process, orders[order].object) : process;
	const json_t *number = json_object_get(object, orders[order].member);

	if (!json_is_number(number))
		return INFINITY;
	return orders[order].upwards ? json_number_value(number) : -json_number_value(number);
}

static int compare_rank(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int sort_document(json_t *processes, enum process_order order)
{
	size_t n = json_array_size(processes);
	_cleanup_free_ struct sorted *sorted = calloc(n + 1, sizeof(*sorted));
	int r = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *process = json_incref(json_array_get(processes, i));

		sorted[i] = (struct sorted){ process, rank_of(process, order), i };
	}
	qsort(sorted, n, sizeof(*sorted), compare_rank);
	for (size_t i = 0; i < n; i++)
		if (json_array_set_new(processes, i, sorted[i].process) < 0)
			r = -ENOMEM;
	return r;
}

int document_select(json_t *document, const struct selection *selection)
{
	json_t *processes = json_object_get(document, "processes");

	remove_others(processes, selection);
	remove_others(json_object_get(document, "traced"), selection);
	remove_others(json_object_get(document, "allocations"), selection);
	remove_others(json_object_get(json_object_get(document, "node"), "workloads"), selection);
	return selection->order == ORDER_NONE ? 0 : sort_document(processes, selection->order);
}

uint32_t document_claimants(const json_t *document, const char *job)
{
	const json_t *processes = json_object_get(document, "processes");
	uint32_t n = 0;

	for (size_t i = 0; i < json_array_size(processes); i++)
		n += names_job(json_array_get(processes, i), job, true);
	return n;
}
