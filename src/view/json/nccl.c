// SPDX-License-Identifier: Apache-2.0
#include "view/nccl.h"

#include <inttypes.h>
#include <stdio.h>

#include "view/json/json.h"

static json_t *json_row(struct json_maker *j, const struct nccl_row *row)
{
	json_t *object = json_object();
	bool known = row->ranks != NCCL_RANKS_UNKNOWN && row->ranks != NCCL_RANKS_OTHER;

	json_put(j, object, "operation",
		 json_string(nccl_operation_name((enum nccl_operation)row->operation)));
	json_put(j, object, "ranks", known ? json_integer(row->ranks) : json_null());
	json_put(j, object, "calls", json_count(row->calls));
	json_put(j, object, "failed", json_count(row->failed));
	json_put(j, object, "grouped", json_count(row->grouped));
	json_put(j, object, "argument_bytes", json_count(row->bytes));
	json_put(j, object, "traffic_bytes", row->unsized ? json_null() : json_count(row->traffic));
	json_put(j, object, "seconds", json_number(row->seconds));
	return object;
}

static json_t *json_rows(struct json_maker *j, const struct nccl_row *rows, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_push(j, list, json_row(j, &rows[i]));
	return list;
}

static json_t *json_communicator(struct json_maker *j, const struct nccl_communicator *c)
{
	json_t *object = json_object();
	char id[24];

	snprintf(id, sizeof(id), "0x%" PRIx64, c->id);
	json_put(j, object, "id", c->id ? json_string(id) : json_null());
	json_put(j, object, "ranks", c->ranks ? json_integer(c->ranks) : json_null());
	json_put(j, object, "rank", c->rank >= 0 ? json_integer(c->rank) : json_null());
	json_put(j, object, "sequence", json_count(c->sequence));
	json_put(j, object, "point_to_point", json_count(c->point_to_point));
	json_put(j, object, "operations_per_second", json_number(c->per_second));
	json_put(j, object, "async_error", c->async_error ? json_integer(c->async_error) : json_null());
	json_put(j, object, "late", json_boolean(c->late));
	json_put(j, object, "ended", json_boolean(c->ended));
	return object;
}

static void add_groups(struct json_maker *j, json_t *object, uint64_t groups, double seconds)
{
	json_put(j, object, "groups", json_count(groups));
	json_put(j, object, "group_seconds", json_number(seconds));
}

static json_t *json_process(struct json_maker *j, const struct nccl_view *view,
			    const struct nccl_process *process)
{
	json_t *object = json_object(), *list = json_array();

	for (uint32_t i = 0; i < process->communicators_n; i++)
		json_push(j, list,
			  json_communicator(j, &view->communicators[process->communicators_first + i]));
	json_put(j, object, "operations", json_rows(j, &view->rows[process->rows_first], process->rows_n));
	json_put(j, object, "communicators", list);
	json_put(j, object, "other_operations", json_count(process->left_out));
	add_groups(j, object, process->groups, process->group_seconds);
	json_put(j, object, "group_operations", json_count(process->group_operations));
	return object;
}

json_t *json_nccl_of(struct json_maker *j, const struct nccl_view *view, uint32_t pid, bool exited)
{
	for (uint32_t i = 0; view && i < view->processes_n; i++)
		if (view->processes[i].pid == pid && view->processes[i].exited == exited)
			return json_process(j, view, &view->processes[i]);
	return json_null();
}

json_t *json_nccl_totals(struct json_maker *j, const struct nccl_view *view)
{
	json_t *object;

	if (!view)
		return json_null();
	object = json_object();
	json_put(j, object, "operations", json_rows(j, view->totals, view->totals_n));
	json_put(j, object, "other_processes_operations", json_count(view->beyond));
	add_groups(j, object, view->groups, view->group_seconds);
	return object;
}

int json_nccl(const struct nccl_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *document = json_nccl_totals(&j, view), *list = json_array();

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct nccl_process *process = &view->processes[i];
		json_t *object = json_process(&j, view, process);

		json_add_process(&j, object, process->pid, process->comm, process->exited);
		json_push(&j, list, object);
	}
	json_put(&j, document, "processes", list);
	return json_finish(&j, document, 0, out);
}
