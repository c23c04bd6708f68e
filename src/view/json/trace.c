// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include <errno.h>

#include "base/saturated.h"
#include "view/gpu_time.h"
#include "view/names.h"
#include "view/nccl.h"
#include "view/shown.h"
#include "view/traced.h"
#include "view/view.h"

enum {
	TRACE_PROCESSES_BYTES = 12 << 20, /* no further process is written after this size */
};

json_t *json_count(uint64_t count)
{
	return json_integer((json_int_t)MIN(count, (uint64_t)INT64_MAX));
}

/* @process is NULL for all of them. */
static void add_numbers(struct json_maker *j, json_t *object, const struct traced_process *process,
			const double *v, const uint8_t *presence)
{
	uint8_t p[TRACED_METRICS];
	const struct json_rows rows = {
		.rows = traced_metrics,
		.n = TRACED_METRICS,
		.v = v,
		.p = p,
		.strip = "process_cuda_",
	};

	for (unsigned row = 0; row < TRACED_METRICS; row++)
		p[row] = traced_shows(j->s, process, &traced_metrics[row]) ? presence[row] :
									     (uint8_t)PRESENCE_ABSENT;
	json_add_rows(j, object, &rows);
}

static json_t *json_overhead(const struct json_maker *j, const struct traced_process *process)
{
	bool known = !process->exited && !j->s->trace_stale;

	return known ? json_number(process->overhead) : json_null();
}

/* Why some of its work is on a device that is not known. */
static json_t *json_unplaced(const struct traced_process *process)
{
	const char *name = traced_unplaced_name(process->unplaced);

	return name ? json_string(name) : json_null();
}

/* The traced data of a process on a device, for the process's own entry. */
static json_t *json_cuda(struct json_maker *j, const struct traced_process *process,
			 const struct traced_device *device)
{
	json_t *object = json_object();

	json_put(j, object, "incomplete", json_incomplete(j, process));
	json_put(j, object, "device_unknown", json_unplaced(process));
	json_put(j, object, "overhead_ratio", json_overhead(j, process));
	add_numbers(j, object, process, device->v, device->p);
	return object;
}

json_t *json_process_cuda(struct json_maker *j, const struct process *process)
{
	const struct traced_device *device = traced_device_of(j->s, process);

	return device ? json_cuda(j, &j->s->trace->processes[device->process], device) : json_null();
}

static void add_traced_workload(struct json_maker *j, json_t *object, const struct traced_process *process)
{
	const struct workload_name *w = traced_workload(j->s, process);

	if (w)
		json_workload(j, object, w->kind, w->id, w->pod_uid, w->owner);
	else
		json_workload(j, object, WORKLOAD_NONE, "", "", NULL);
}

static json_t *json_traced(struct json_maker *j, const struct traced_process *process,
			   const struct traced_device *device, const struct entity *e)
{
	const struct entity *gpu = e ? snapshot_gpu(j->s, e) : NULL;
	json_t *object = json_object();

	json_put(j, object, "pid", json_integer(process->id.pid));
	json_put(j, object, "ns_pid", json_positive_or_null(process->ns_pid));
	json_put(j, object, "comm", json_text_or_null(process->comm));
	json_put(j, object, "gpu", gpu ? json_integer(gpu->id.index) : json_null());
	json_put(j, object, "uuid", json_text_or_null(gpu ? gpu->id.uuid : device->uuid));
	json_put(j, object, "gi", e && entity_is_mig(e) ? json_integer(e->id.gi) : json_null());
	json_put(j, object, "ci", e && entity_is_mig(e) ? json_integer(e->id.ci) : json_null());
	json_put(j, object, "first_seen", json_time(process->first_real_ns));
	add_traced_workload(j, object, process);
	json_put(j, object, "cuda", json_cuda(j, process, device));
	return object;
}

void json_add_traced(struct json_maker *j, json_t *document)
{
	struct traced_apart apart = { .s = j->s };
	uint32_t left_out = 0;
	json_t *list;

	if (!j->s->trace || !j->s->trace->enabled) {
		json_put(j, document, "traced", json_null());
		json_put(j, document, "traced_left_out", json_integer(0));
		return;
	}
	list = json_array();
	while (traced_apart_next(&apart)) {
		if (json_array_size(list) < TRACED_SHOWN_MAX)
			json_push(j, list, json_traced(j, apart.process, apart.device, apart.entity));
		else
			left_out++;
	}
	json_put(j, document, "traced", list);
	json_put(j, document, "traced_left_out", json_integer(left_out));
}

/* Memory now allocated: absent for a process that has ended. */
static json_t *json_threads(struct json_maker *j, const struct traced_process *process)
{
	bool known = presence_is(process->threads_p) && !process->exited && !j->s->trace_stale;
	json_t *object, *list;

	if (!known)
		return json_null();
	object = json_object();
	list = json_array();
	for (uint32_t i = 0; i < process->threads_n; i++) {
		json_t *thread = json_object();

		json_put(j, thread, "tid", json_integer(process->threads[i].tid));
		json_put(j, thread, "bytes", json_count(process->threads[i].bytes));
		json_push(j, list, thread);
	}
	json_put(j, object, "threads", list);
	json_put(j, object, "other_bytes", json_count(process->other_threads_bytes));
	json_put(j, object, "estimated", json_boolean((process->threads_p & PRESENCE_ESTIMATED) != 0));
	return object;
}

json_t *json_leaked(struct json_maker *j, const struct traced_process *process)
{
	uint64_t allocations = process->leaked_allocations, bytes = process->leaked_bytes;
	json_t *object, *list;

	if (!presence_is(process->leaked_p))
		return json_null();
	object = json_object();
	list = json_array();
	json_put(j, object, "allocations", json_count(allocations));
	json_put(j, object, "bytes", json_count(bytes));
	for (uint32_t i = 0; i < process->leaked_n; i++) {
		const struct traced_size *size = &process->leaked[i];
		json_t *entry = json_object();

		json_put(j, entry, "bytes", json_count(size->bytes));
		json_put(j, entry, "allocations", json_count(size->allocations));
		json_push(j, list, entry);
		allocations -= size->allocations;
		bytes -= MIN(bytes, multiply_saturated(size->bytes, size->allocations));
	}
	json_put(j, object, "sizes", list);
	json_put(j, object, "other_allocations", json_count(allocations));
	json_put(j, object, "other_bytes", json_count(bytes));
	json_put(j, object, "estimated", json_boolean((process->leaked_p & PRESENCE_ESTIMATED) != 0));
	return object;
}

static json_t *json_trace_process(struct json_maker *j, const struct trace_view *view,
				  const struct traced_process *process)
{
	json_t *object = json_object(), *devices = json_array();

	json_put(j, object, "pid", json_integer(process->id.pid));
	json_put(j, object, "ns_pid", json_positive_or_null(process->ns_pid));
	json_put(j, object, "comm", json_text_or_null(process->comm));
	json_put(j, object, "first_seen", json_time(process->first_real_ns));
	json_put(j, object, "exited", json_boolean(process->exited));
	add_traced_workload(j, object, process);
	json_put(j, object, "incomplete", json_incomplete(j, process));
	json_put(j, object, "device_unknown", json_unplaced(process));
	json_put(j, object, "overhead_ratio", json_overhead(j, process));
	json_put(j, object, "calls",
		 json_calls(j, view, view->calls + process->calls_first, process->calls_n));
	for (uint32_t i = 0; i < process->devices_n; i++) {
		const struct traced_device *device = &view->devices[process->devices_first + i];
		json_t *entry = json_object();

		json_put(j, entry, "uuid", json_text_or_null(device->uuid));
		add_numbers(j, entry, process, device->v, device->p);
		json_push(j, devices, entry);
	}
	json_put(j, object, "devices", devices);
	json_put(j, object, "memory_by_thread", json_threads(j, process));
	json_put(j, object, "leaked", json_leaked(j, process));
	json_put(j, object, "blas", json_blas_of(j, view->blas, process->id.pid, process->exited));
	json_put(j, object, "python", json_python_of(j, view->python, process->id.pid, process->exited));
	json_put(j, object, "nccl", json_nccl_of(j, view->nccl, process->id.pid, process->exited));
	json_put(j, object, "torch", json_torch_of(j, view->torch, process->id.pid, process->exited));
	return object;
}

static json_t *json_events(struct json_maker *j, const struct trace_view *view)
{
	static const struct {
		const char *name;
		enum agent_metric row;
	} counts[] = {
		{ "produced", AGENT_TRACE_EVENTS_PRODUCED },
		{ "received", AGENT_TRACE_EVENTS_RECEIVED },
		{ "dropped", AGENT_TRACE_EVENTS_DROPPED },
	};
	json_t *events = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_put(j, events, counts[i].name,
			 presence_is(view->agent_p[counts[i].row]) ? json_number(view->agent[counts[i].row]) :
								     json_null());
	return events;
}

static json_t *json_gaps(struct json_maker *j, const struct traced_gaps *gaps)
{
	json_t *object = json_object(), *buckets = json_array();

	json_put(j, object, "count", json_count(gaps->count));
	json_put(j, object, "seconds", json_number(gaps->seconds));
	for (unsigned i = 0; i < TRACED_LE_SHOWN && gaps->within[TRACED_LE - 1] == gaps->count; i++) {
		json_t *bucket = json_object();

		json_put(j, bucket, "le", json_number(traced_le[i]));
		json_put(j, bucket, "count", json_count(gaps->within[i]));
		json_push(j, buckets, bucket);
	}
	json_put(j, object, "buckets", buckets);
	return object;
}

/* What containers, pods, jobs and units did on each device. */
static json_t *json_uses(struct json_maker *j)
{
	const struct snapshot *s = j->s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->traced_uses_n; i++) {
		const struct traced_use *use = &s->traced_uses[i];
		const struct workload_name *w =
			use->name < s->workload_names_n ? &s->workload_names[use->name] : NULL;
		const struct json_rows rows = { .rows = traced_metrics,
						.n = TRACED_METRICS,
						.v = use->v,
						.p = use->p,
						.strip = "process_cuda_" };
		json_t *object = json_object();

		json_put(j, object, "kind", json_string(workload_kind_name(w ? w->kind : WORKLOAD_NONE)));
		json_workload(j, object, w ? w->kind : WORKLOAD_NONE, w ? w->id : "", w ? w->pod_uid : "",
			      w ? w->owner : NULL);
		json_put(j, object, "uuid", json_text_or_null(use->uuid));
		json_put(j, object, "processes_live", json_integer(use->live));
		json_add_rows(j, object, &rows);
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_totals(struct json_maker *j, const struct trace_view *view)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < view->totals_n; i++) {
		const struct traced_total *total = &view->totals[i];
		json_t *entry = json_object();

		json_put(j, entry, "uuid", json_text_or_null(total->uuid));
		add_numbers(j, entry, NULL, total->v, total->p);
		json_put(j, entry, "launch_gaps", json_gaps(j, &total->gaps));
		json_push(j, list, entry);
	}
	return list;
}

/* The object without the processes. */
static json_t *make_trace(struct json_maker *j, const struct trace_view *view)
{
	const struct snapshot *s = j->s;
	double age = s->boot_ns > view->boot_ns ? (double)(s->boot_ns - view->boot_ns) * 1e-9 : 0;
	json_t *trace = json_object();

	json_put(j, trace, "enabled", json_boolean(view->enabled));
	json_put(j, trace, "why", json_text_or_null(view->why));
	json_put(j, trace, "backend", json_text_or_null(view->backend));
	json_put(j, trace, "stale", json_boolean(s->trace_stale));
	json_put(j, trace, "age_seconds", json_number(age));
	json_put(j, trace, "events", json_events(j, view));
	json_put(j, trace, "calls", json_calls(j, view, view->all_calls, view->all_calls_n));
	json_put(j, trace, "operators", json_operators(j, view));
	json_put(j, trace, "devices", json_totals(j, view));
	json_put(j, trace, "workloads", json_uses(j));
	json_put(j, trace, "blas", json_blas_totals(j, view->blas));
	json_put(j, trace, "python", json_python_totals(j, view->python));
	json_put(j, trace, "torch", json_torch_totals(j, view->torch));
	json_put(j, trace, "nccl", json_nccl_totals(j, view->nccl));
	return trace;
}

/*
 * Writes processes one by one, since a jansson document of all would need about 100 MB. Processes with a
 * series come first; those that do not fit the page are only counted.
 */
static int write_processes(struct json_maker *j, struct strbuf *out)
{
	const struct trace_view *view = j->s->trace;
	size_t end = out->len + TRACE_PROCESSES_BYTES;
	uint32_t written = 0;
	int r = 0;

	strbuf_adds(out, ",\"processes\":[");
	for (int series = 1; series >= 0; series--)
		for (uint32_t i = 0; r >= 0 && out->len < end && i < view->processes_n; i++) {
			if (view->processes[i].has_series != series)
				continue;
			if (written++ > 0)
				strbuf_addc(out, ',');
			r = json_write(json_trace_process(j, view, &view->processes[i]), 0, out);
		}
	strbuf_addf(out, "],\"processes_left_out\":%u", view->processes_n - written);
	return j->failed ? -ENOMEM : r;
}

int json_trace_write(const struct snapshot *s, struct strbuf *out)
{
	struct json_maker j = { .s = s };
	json_t *trace;
	int r;

	strbuf_adds(out, ",\"nccl_measured\":");
	r = s->measured ? json_measured(s->measured, out) : 0;
	strbuf_adds(out, s->measured ? ",\"nccl_measured_totals\":" : "null,\"nccl_measured_totals\":");
	if (r == 0 && s->measured)
		r = json_measured_totals(s->measured, out);
	strbuf_adds(out, s->measured ? ",\"cupti\":" : "null,\"cupti\":");
	if (r == 0 && s->gpu_times)
		r = json_gpu_times(s->gpu_times, out);
	if (r < 0)
		return r;
	strbuf_adds(out, s->gpu_times ? ",\"trace\":" : "null,\"trace\":");
	if (!s->trace) {
		strbuf_adds(out, "null");
		return 0;
	}
	strbuf_addc(out, '{');
	trace = make_trace(&j, s->trace);
	if (j.failed) {
		json_decref(trace);
		return -ENOMEM;
	}
	r = json_write(trace, JSON_EMBED, out);
	if (r >= 0)
		r = write_processes(&j, out);
	strbuf_addc(out, '}');
	return r;
}
