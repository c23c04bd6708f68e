// SPDX-License-Identifier: Apache-2.0
#include "view/gpu_time.h"

#include "view/json/json.h"

static json_t *json_row(struct json_maker *j, const struct gpu_time *row)
{
	json_t *object = json_object();
	bool device = row->device != GPU_TIME_NO_DEVICE;
	char reason[200];

	gpu_time_reason(row, reason, sizeof(reason));
	json_put(j, object, "pid", json_integer(row->pid));
	json_put(j, object, "comm", json_text_or_null(row->comm));
	json_put(j, object, "uid", json_integer(row->uid));
	json_put(j, object, "device", device ? json_integer(row->device) : json_null());
	json_put(j, object, "uuid", json_text_or_null(row->uuid));
	json_put(j, object, "state", json_text_or_null(gpu_time_state(row)));
	json_put(j, object, "reason", json_text_or_null(reason));
	json_put(j, object, "error", row->error ? json_integer(row->error) : json_null());
	json_put(j, object, "cupti_api", row->api ? json_integer(row->api) : json_null());
	json_put(j, object, "clock", json_string(row->clock == CUPTI_CLOCK_OURS ? "monotonic" : "offset"));
	json_put(j, object, "kernels", json_count(row->kernels));
	json_put(j, object, "graphs", json_count(row->graphs));
	json_put(j, object, "copies", json_count(row->copies));
	json_put(j, object, "sets", json_count(row->sets));
	json_put(j, object, "bytes", json_count(row->bytes));
	json_put(j, object, "kernel_seconds", json_number(row->kernel_seconds));
	json_put(j, object, "copy_seconds", json_number(row->copy_seconds));
	json_put(j, object, "busy_seconds", json_number(row->busy_seconds));
	json_put(j, object, "busy_estimated_seconds",
		 row->estimated_seconds > 0 ? json_number(row->estimated_seconds) : json_null());
	json_put(j, object, "busy_estimate_error", json_number(gpu_time_estimate_error(row)));
	json_put(j, object, "observed_seconds", json_number(row->observed_seconds));
	json_put(j, object, "lost", json_count(row->lost));
	json_put(j, object, "dropped", json_count(row->dropped));
	json_put(j, object, "unknown", json_count(row->unknown));
	json_put(j, object, "bad", json_count(row->bad));
	json_put(j, object, "ended", json_boolean(row->gone));
	return object;
}

static json_t *json_kernel(struct json_maker *j, const struct timed_kernel *k)
{
	json_t *object = json_object();

	json_put(j, object, "pid", json_integer(k->pid));
	json_put(j, object, "uuid", json_text_or_null(k->uuid));
	json_put(j, object, "name", json_text_or_null(k->name));
	json_put(j, object, "symbol", json_text_or_null(k->symbol));
	json_put(j, object, "count", json_count(k->count));
	json_put(j, object, "seconds", json_number(k->seconds));
	json_put(j, object, "least_seconds", json_number((double)k->least_ns / 1e9));
	json_put(j, object, "most_seconds", json_number((double)k->most_ns / 1e9));
	json_put(j, object, "correlated", json_count(k->correlated));
	return object;
}

static json_t *json_rows(struct json_maker *j, const struct gpu_time *rows, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_push(j, list, json_row(j, &rows[i]));
	return list;
}

int json_gpu_times(const struct gpu_times *times, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *object = json_object();

	json_put(&j, object, "processes", json_rows(&j, times->rows, times->n));
	json_put(&j, object, "left_out", json_count(times->left_out));
	json_put(&j, object, "refused", json_count(times->refused));
	json_put(&j, object, "lost", json_count(times->lost));
	json_put(&j, object, "dropped", json_count(times->dropped));
	return json_finish(&j, object, 0, out);
}

int json_gpu_time(const struct gpu_time_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *object = json_object(), *kernels = json_array();

	for (uint32_t i = 0; i < view->kernels_n; i++)
		json_push(&j, kernels, json_kernel(&j, &view->kernels[i]));
	json_put(&j, object, "processes", json_rows(&j, view->rows, view->rows_n));
	json_put(&j, object, "kernels", kernels);
	json_put(&j, object, "left_out", json_count(view->left_out));
	return json_finish(&j, object, 0, out);
}
