// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include <stdio.h>

#include "view/trace_summary.h"

json_t *json_incomplete(struct json_maker *j, const struct traced_process *process)
{
	json_t *reasons = json_array();
	const char *name;

	for (unsigned bit = 0; (name = traced_incomplete_name(bit)); bit++)
		if (process->incomplete & (1u << bit))
			json_push(j, reasons, json_string(name));
	return reasons;
}

static json_t *json_errors(struct json_maker *j, const struct trace_view *view,
			   const struct traced_call *call)
{
	json_t *errors = json_object();
	char code[16];

	for (uint32_t i = 0; i < call->errors_n; i++) {
		const struct traced_error *error = &view->errors[call->errors_first + i];

		snprintf(code, sizeof(code), "%d", error->code);
		json_put(j, errors, error->code == INT32_MIN ? "other" : code, json_count(error->count));
	}
	return errors;
}

static json_t *json_argument_number(const struct traced_argument *argument, uint64_t value)
{
	return argument->is_signed ? json_integer((json_int_t)value) : json_count(value);
}

static json_t *json_argument_values(struct json_maker *j, const struct traced_argument *argument)
{
	json_t *values = json_object();

	for (uint32_t i = 0; i < argument->values_n; i++)
		json_put(j, values, argument->values[i].text, json_count(argument->values[i].count));
	return values;
}

static json_t *json_argument(struct json_maker *j, const struct traced_argument *argument)
{
	bool text = argument->is_text, known = !text && argument->count > 0;
	json_t *object = json_object();

	json_put(j, object, "position", json_count(argument->position));
	json_put(j, object, "type", json_string(argument->type));
	json_put(j, object, "count", json_count(argument->count));
	json_put(j, object, "min", known ? json_argument_number(argument, argument->min) : json_null());
	json_put(j, object, "max", known ? json_argument_number(argument, argument->max) : json_null());
	json_put(j, object, "mean",
		 known ? json_number(argument->sum / (double)argument->count) : json_null());
	json_put(j, object, "values", text ? json_argument_values(j, argument) : json_null());
	json_put(j, object, "others", text ? json_count(argument->others) : json_null());
	json_put(j, object, "unread", json_count(argument->unread));
	return object;
}

/* Of a function that the user named. */
static json_t *json_arguments(struct json_maker *j, const struct trace_view *view,
			      const struct traced_call *call)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < call->arguments_n; i++)
		json_push(j, list, json_argument(j, &view->arguments[call->arguments_first + i]));
	return list;
}

static json_t *json_call(struct json_maker *j, const struct trace_view *view, const struct traced_call *call)
{
	bool timed = call->timed > 0, known = timed || call->count == 0;
	json_t *object = json_object();

	json_put(j, object, "api", json_text(call->api));
	json_put(j, object, "library", call->library ? json_text(call->library) : json_null());
	json_put(j, object, "count", json_count(call->count));
	json_put(j, object, "timed", json_count(call->timed));
	json_put(j, object, "failed", known ? json_count(call->errors) : json_null());
	json_put(j, object, "errors", known ? json_errors(j, view, call) : json_null());
	json_put(j, object, "bytes", known ? json_count(call->bytes) : json_null());
	json_put(j, object, "nested", json_count(call->nested));
	json_put(j, object, "seconds", known ? json_number(call->seconds) : json_null());
	json_put(j, object, "p50_ns", timed ? json_number(call->p50_ns) : json_null());
	json_put(j, object, "p95_ns", timed ? json_number(call->p95_ns) : json_null());
	json_put(j, object, "p99_ns", timed ? json_number(call->p99_ns) : json_null());
	json_put(j, object, "arguments", json_arguments(j, view, call));
	return object;
}

json_t *json_calls(struct json_maker *j, const struct trace_view *view, const struct traced_call *calls,
		   uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_push(j, list, json_call(j, view, &calls[i]));
	return list;
}

static json_t *json_summary_processes(struct json_maker *j, const struct trace_view *view)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct traced_process *process = &view->processes[i];
		json_t *object = json_object();

		json_put(j, object, "pid", json_integer(process->id.pid));
		json_put(j, object, "comm", json_text(process->comm));
		json_put(j, object, "calls",
			 json_calls(j, view, view->calls + process->calls_first, process->calls_n));
		json_put(j, object, "incomplete", json_incomplete(j, process));
		json_put(j, object, "ended", json_boolean(process->exited));
		json_push(j, list, object);
	}
	return list;
}

int json_trace_summary(const struct trace_summary *summary, struct strbuf *out)
{
	json_t *document = json_object(), *events = json_object(), *probes = json_object();
	struct json_maker j = { 0 };

	json_put(&j, document, "processes", json_summary_processes(&j, summary->view));
	json_put(&j, document, "calls",
		 json_calls(&j, summary->view, summary->view->all_calls, summary->view->all_calls_n));
	json_put(&j, events, "produced", json_count(summary->produced));
	json_put(&j, events, "received", json_count(summary->received));
	json_put(&j, events, "dropped", json_count(summary->dropped));
	json_put(&j, document, "events", events);
	json_put(&j, probes, "by", json_text(summary->backend));
	json_put(&j, probes, "files", json_integer(summary->files));
	json_put(&j, probes, "attached", json_integer(summary->attached));
	json_put(&j, probes, "refused", json_integer(summary->refused));
	json_put(&j, probes, "given_up", json_integer(summary->given_up));
	json_put(&j, probes, "abandoned_calls", json_count(summary->abandoned_calls));
	json_put(&j, probes, "uncounted_hits", json_count(summary->uncounted_hits));
	json_put(&j, probes, "cost_seconds", json_number(summary->cost_seconds));
	json_put(&j, document, "probes", probes);
	return json_finish(&j, document, JSON_EMBED, out);
}
