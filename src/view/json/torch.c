// SPDX-License-Identifier: Apache-2.0
#include "view/torch.h"

#include "view/json/json.h"

static json_t *json_oom(struct json_maker *j, const struct torch_memory *memory)
{
	json_t *object;

	if (memory->ooms == 0)
		return json_null();
	object = json_object();
	json_put(j, object, "asked_bytes", json_count(memory->oom_asked));
	json_put(j, object, "allocated_bytes", json_count(memory->oom_allocated));
	json_put(j, object, "reserved_bytes", json_count(memory->oom_reserved));
	json_put(j, object, "operator", json_text_or_null(memory->oom_operator));
	return object;
}

static json_t *json_memory(struct json_maker *j, const struct torch_memory *memory)
{
	json_t *object = json_object();
	char device[TORCH_DEVICE_TEXT];

	torch_device_text(memory->device, device);
	json_put(j, object, "device", json_string(device));
	json_put(j, object, "allocated_bytes", json_count(memory->allocated));
	json_put(j, object, "allocated_peak_bytes", json_count(memory->allocated_peak));
	json_put(j, object, "reserved_bytes", json_count(memory->reserved));
	json_put(j, object, "reserved_peak_bytes", json_count(memory->reserved_peak));
	json_put(j, object, "allocations", json_count(memory->allocations));
	json_put(j, object, "frees", json_count(memory->frees));
	json_put(j, object, "allocations_bytes", json_count(memory->allocated_bytes));
	json_put(j, object, "out_of_memory", json_count(memory->ooms));
	json_put(j, object, "last_out_of_memory", json_oom(j, memory));
	return object;
}

static json_t *json_names(struct json_maker *j, const struct torch_count *counts, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		json_t *object = json_object();
		bool repeated = counts[i].count > 1;

		json_put(j, object, "name", json_string(counts[i].name));
		json_put(j, object, "count", json_count(counts[i].count));
		json_put(j, object, "period_seconds",
			 repeated ? json_number(counts[i].seconds / (double)(counts[i].count - 1)) :
				    json_null());
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_torch_process(struct json_maker *j, const struct torch_view *view,
				  const struct torch_process *process)
{
	json_t *object = json_object(), *list = json_array();
	uint64_t reserved, beside;
	bool known = torch_beside(view, process, &reserved, &beside);

	for (uint32_t i = 0; i < process->memories_n; i++)
		json_push(j, list, json_memory(j, &view->memories[process->memories_first + i]));
	json_put(j, object, "allocators", list);
	json_put(j, object, "nvml_bytes",
		 process->nvml_gpus > 0 ? json_count(process->nvml_bytes) : json_null());
	json_put(j, object, "beside_bytes", known ? json_count(beside) : json_null());
	json_put(j, object, "operators",
		 json_operator_list(j, &view->operators[process->operators_first], process->operators_n));
	json_put(j, object, "other_operators", json_count(process->other_operators));
	json_put(j, object, "other_operators_calls", json_number(process->other_operator_calls));
	json_put(j, object, "nodes", json_names(j, &view->counts[process->nodes_first], process->nodes_n));
	json_put(j, object, "other_nodes", json_count(process->other_nodes));
	json_put(j, object, "nodes_of_operators", json_count(process->joined));
	json_put(j, object, "ranges", json_names(j, &view->counts[process->ranges_first], process->ranges_n));
	json_put(j, object, "other_ranges", json_count(process->other_ranges));
	/* null: none was seen; in older versions they cannot be seen. */
	json_put(j, object, "optimizer_steps", process->steps > 0 ? json_count(process->steps) : json_null());
	json_put(j, object, "optimizer_period_seconds",
		 process->step_seconds > 0 ? json_number(process->step_seconds) : json_null());
	json_put(j, object, "lost", json_boolean(process->lost));
	return object;
}

json_t *json_torch_of(struct json_maker *j, const struct torch_view *view, uint32_t pid, bool exited)
{
	for (uint32_t i = 0; view && i < view->processes_n; i++)
		if (view->processes[i].pid == pid && view->processes[i].exited == exited)
			return json_torch_process(j, view, &view->processes[i]);
	return json_null();
}

json_t *json_torch_totals(struct json_maker *j, const struct torch_view *view)
{
	json_t *object;

	if (!view)
		return json_null();
	object = json_object();
	json_put(j, object, "other_processes_events", json_count(view->beyond));
	return object;
}

int json_torch(const struct torch_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *document = json_torch_totals(&j, view), *list = json_array();

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct torch_process *process = &view->processes[i];
		json_t *object = json_torch_process(&j, view, process);

		json_add_process(&j, object, process->pid, process->comm, process->exited);
		json_push(&j, list, object);
	}
	json_put(&j, document, "processes", list);
	return json_finish(&j, document, 0, out);
}
