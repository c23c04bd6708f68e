// SPDX-License-Identifier: Apache-2.0
#include "view/python.h"

#include "view/json/json.h"

static void add_sum(struct json_maker *j, json_t *object, const struct python_sum *sum)
{
	json_put(j, object, "count", json_count(sum->count));
	json_put(j, object, "seconds", json_number((double)sum->total_ns / 1e9));
	json_put(j, object, "longest_seconds", json_number((double)sum->longest_ns / 1e9));
}

static json_t *json_sum(struct json_maker *j, const struct python_sum *sum)
{
	json_t *object = json_object();

	add_sum(j, object, sum);
	return object;
}

static json_t *json_collections(struct json_maker *j,
				const struct python_sum collections[static PYTHON_COLLECTIONS])
{
	json_t *list = json_array();

	for (unsigned i = 0; i < PYTHON_COLLECTIONS; i++) {
		json_t *object;

		if (collections[i].count == 0)
			continue;
		object = json_object();
		json_put(j, object, "generation", json_string(python_generation_name(i)));
		add_sum(j, object, &collections[i]);
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_python_process(struct json_maker *j, const struct python_view *view,
				   const struct python_process *process)
{
	json_t *object = json_object(), *list = json_array();

	json_put(j, object, "gil_waits", process->known ? json_sum(j, &process->waits) : json_null());
	json_put(j, object, "collections", json_collections(j, process->collections));
	for (uint32_t i = 0; i < process->waiters_n; i++) {
		const struct python_waiter *waiter = &view->waiters[process->waiters_first + i];
		json_t *thread = json_object();

		json_put(j, thread, "tid", json_integer(waiter->tid));
		add_sum(j, thread, &waiter->waits);
		json_push(j, list, thread);
	}
	json_put(j, object, "waiting_threads", list);
	json_put(j, object, "other_waiting_threads", json_count(process->more_waiters));
	json_put(j, object, "waits_of_other_threads", json_count(process->more_waits));
	json_put(j, object, "incomplete", json_boolean(process->incomplete));
	return object;
}

json_t *json_python_of(struct json_maker *j, const struct python_view *view, uint32_t pid, bool exited)
{
	for (uint32_t i = 0; view && i < view->processes_n; i++)
		if (view->processes[i].pid == pid && view->processes[i].exited == exited)
			return json_python_process(j, view, &view->processes[i]);
	return json_null();
}

json_t *json_python_totals(struct json_maker *j, const struct python_view *view)
{
	json_t *object;

	if (!view)
		return json_null();
	object = json_object();
	json_put(j, object, "gil_waits", json_sum(j, &view->waits));
	json_put(j, object, "collections", json_collections(j, view->collections));
	json_put(j, object, "unknown_interpreters", json_count(view->unknown));
	return object;
}

int json_python(const struct python_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *document = json_python_totals(&j, view), *list = json_array();

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct python_process *process = &view->processes[i];
		json_t *object = json_python_process(&j, view, process);

		json_add_process(&j, object, process->pid, process->comm, process->exited);
		json_push(&j, list, object);
	}
	json_put(&j, document, "processes", list);
	return json_finish(&j, document, 0, out);
}
