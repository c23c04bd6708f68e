// SPDX-License-Identifier: Apache-2.0
/*
 * Every kernel of every traced process, written row by row, since a jansson document of all of them would
 * need too much memory. If they do not fit the page, the space is divided between the processes, so that one
 * with thousands of kernels does not displace the others.
 */
#include "view/json/json.h"

#include <errno.h>
#include <string.h>

#include "view/kernels.h"
#include "view/view.h"

enum {
	ROW_BYTES = 1000, /* approximate size of a row without texts and shapes */
	SHAPE_BYTES = 90,
};

/* ---- one row ---- */

static void add_figures(struct json_maker *j, json_t *object, const struct kernel *kernel)
{
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		bool known = kernel && kernel->figures[i] >= 0;

		json_put(j, object, kernel_figures[i].json,
			 known ? json_integer((json_int_t)kernel->figures[i]) : json_null());
	}
}

static void add_text(struct json_maker *j, json_t *object, const char *key, const char *text)
{
	json_put(j, object, key, text && *text ? json_long_text(text) : json_null());
}

/* Every member is null for launches of kernels beyond the limit. */
static void add_kernel(struct json_maker *j, json_t *object, const struct kernel *kernel)
{
	char id[KERNEL_ID_TEXT] = "", arch[KERNEL_ARCH_TEXT] = "";

	if (kernel) {
		kernel_id_text(kernel, id);
		kernel_arch_text(kernel->arch, arch);
	}
	add_text(j, object, "name", kernel ? kernel->name : NULL);
	add_text(j, object, "brief", kernel ? kernel->brief : NULL);
	add_text(j, object, "symbol", kernel ? kernel->symbol : NULL);
	add_text(j, object, "id", id);
	json_put(j, object, "other", json_boolean(!kernel));
	add_text(j, object, "source", kernel ? kernel_source_name(kernel->source) : NULL);
	add_text(j, object, "file", kernel ? kernel->file : NULL);
	json_put(j, object, "offset",
		 kernel && kernel->source == KERNEL_SOURCE_UNRESOLVED && *kernel->file ?
			 json_count(kernel->offset) :
			 json_null());
	add_text(j, object, "arch", arch);
	json_put(j, object, "jit", kernel ? json_boolean(kernel->jit) : json_null());
	add_figures(j, object, kernel);
}

static json_t *json_size(struct json_maker *j, const uint32_t size[3])
{
	json_t *array = json_array();

	for (unsigned i = 0; i < 3; i++)
		json_push(j, array, json_integer(size[i]));
	return array;
}

static json_t *json_shapes(struct json_maker *j, const struct traced_kernel *kernel)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < kernel->shapes_n; i++) {
		const struct traced_shape *shape = &kernel->shapes[i];
		json_t *object = json_object();

		json_put(j, object, "grid", json_size(j, shape->grid));
		json_put(j, object, "block", json_size(j, shape->block));
		json_put(j, object, "dynamic_shared_bytes", json_count(shape->shared_bytes));
		json_put(j, object, "launches", json_count(shape->launches));
		json_push(j, list, object);
	}
	return list;
}

_Static_assert(KERNEL_METRIC_LAUNCHES < KERNEL_METRIC_OCCUPANCY &&
		       KERNEL_METRIC_THREADS < KERNEL_METRIC_OCCUPANCY &&
		       KERNEL_METRIC_BUSY < KERNEL_METRIC_OCCUPANCY && KERNEL_METRIC_OCCUPANCY == 3,
	       "what launches add up to comes first");

/* The first @n rows of the table. */
static void add_rows(struct json_maker *j, json_t *object, unsigned n, const double *v, const uint8_t *p)
{
	const struct json_rows rows = {
		.rows = kernel_metrics,
		.n = n,
		.v = v,
		.p = p,
		.strip = "kernel_",
	};

	json_add_rows(j, object, &rows);
}

static json_t *json_kernel(struct json_maker *j, const struct traced_kernel *kernel)
{
	bool known = kernel->kernel && kernel->occupancy_known;
	const struct occupancy *o = &kernel->occupancy;
	json_t *object = json_object();
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	add_kernel(j, object, kernel->kernel);
	add_text(j, object, "uuid", kernel->uuid);
	kernel_numbers(kernel, &kernel->all, v, p);
	add_rows(j, object, KERNEL_METRICS, v, p);
	add_text(j, object, "occupancy_limiter", known ? occupancy_limiter_name(o->limiter) : NULL);
	json_put(j, object, "blocks_per_sm", known ? json_integer(o->blocks) : json_null());
	json_put(j, object, "warps_per_sm", known ? json_integer(o->warps) : json_null());
	json_put(j, object, "warps_per_sm_max", known ? json_integer(o->warps_max) : json_null());
	json_put(j, object, "shapes", json_shapes(j, kernel));
	json_put(j, object, "other_shapes", json_count(kernel->other_shapes));
	return object;
}

/* ---- one process ---- */

struct kernel_writer {
	struct json_maker j;
	const struct trace_view *view;
	struct strbuf *out;
	size_t end; /* end of this process's part of the page */
};

static int write_row(struct kernel_writer *w, const struct traced_kernel *kernel, bool first)
{
	json_t *row = json_kernel(&w->j, kernel);

	if (w->j.failed) {
		json_decref(row);
		return -ENOMEM;
	}
	if (!first)
		strbuf_addc(w->out, ',');
	return json_write(row, 0, w->out);
}

static int write_rows(struct kernel_writer *w, const struct traced_process *process)
{
	const struct traced_kernel *kernels = &w->view->kernels[process->kernels_first];
	uint64_t launches = 0;
	uint32_t i = 0;
	int r = 0;

	strbuf_adds(w->out, ",\"kernels\":[");
	for (; r >= 0 && i < process->kernels_n && (w->out->len < w->end || i == 0); i++)
		r = write_row(w, &kernels[i], i == 0);
	strbuf_addf(w->out, "],\"kernels_left_out\":%u", process->kernels_n - i);
	for (; i < process->kernels_n; i++)
		launches += kernels[i].all.launches;
	strbuf_addf(w->out, ",\"launches_left_out\":%llu}",
		    (unsigned long long)MIN(launches, (uint64_t)INT64_MAX));
	return r;
}

static int write_process(struct kernel_writer *w, const struct traced_process *process)
{
	json_t *object = json_object();
	int r;

	json_put(&w->j, object, "pid", json_integer(process->id.pid));
	json_put(&w->j, object, "comm", json_text_or_null(process->comm));
	json_put(&w->j, object, "first_seen", json_time(process->first_real_ns));
	json_put(&w->j, object, "exited", json_boolean(process->exited));
	json_put(&w->j, object, "incomplete", json_incomplete(&w->j, process));
	json_put(&w->j, object, "leaked", json_leaked(&w->j, process));
	if (w->j.failed) {
		json_decref(object);
		return -ENOMEM;
	}
	strbuf_addc(w->out, '{');
	r = json_write(object, JSON_EMBED, w->out);
	return r < 0 ? r : write_rows(w, process);
}

/* ---- the page ---- */

static size_t row_bytes(const struct traced_kernel *kernel)
{
	const struct kernel *k = kernel->kernel;
	size_t texts = k ? strlen(k->name) + strlen(k->brief) + strlen(k->symbol) + strlen(k->file) : 0;

	return ROW_BYTES + kernel->shapes_n * SHAPE_BYTES + texts;
}

/* Space for each process in @bytes: unlimited if everything fits, else an equal part. */
static size_t part_of(const struct trace_view *view, size_t bytes, uint32_t *ret_n)
{
	size_t wanted = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < view->kernels_n; i++)
		wanted += row_bytes(&view->kernels[i]);
	for (uint32_t i = 0; i < view->processes_n; i++)
		n += view->processes[i].kernels_n > 0;
	*ret_n = n;
	return wanted <= bytes || n == 0 ? bytes : bytes / n;
}

/* Processes with series first; space that one does not need is available to the next. */
static int write_processes(struct kernel_writer *w, size_t bytes)
{
	const struct trace_view *view = w->view;
	size_t end = bytes > 0 ? w->out->len + bytes : SIZE_MAX, part;
	uint32_t written = 0, n;
	int r = 0;

	part = part_of(view, bytes > 0 ? bytes : SIZE_MAX / 2, &n);
	w->end = w->out->len;
	strbuf_adds(w->out, ",\"processes\":[");
	for (int series = 1; series >= 0; series--)
		for (uint32_t i = 0; r >= 0 && w->out->len < end && i < view->processes_n; i++) {
			const struct traced_process *process = &view->processes[i];

			if (process->has_series != series || process->kernels_n == 0)
				continue;
			w->end = part < end - w->end ? w->end + part : end;
			if (written++ > 0)
				strbuf_addc(w->out, ',');
			r = write_process(w, process);
		}
	strbuf_addf(w->out, "],\"processes_left_out\":%u", n - written);
	return r;
}

/* Sums over all kernels of a device, and over those launched while they had no series. */
static json_t *json_device(struct json_maker *j, const struct traced_total *total)
{
	json_t *object = json_object(), *others = json_object();
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	add_text(j, object, "uuid", total->uuid);
	launches_numbers(&total->kernels, total->p[TRACED_LAUNCHES], v, p);
	add_rows(j, object, KERNEL_METRIC_OCCUPANCY, v, p);
	launches_numbers(&total->kernels_other, total->p[TRACED_LAUNCHES], v, p);
	add_rows(j, others, KERNEL_METRIC_OCCUPANCY, v, p);
	json_put(j, object, "without_series", others);
	return object;
}

/* The page without the processes. */
static json_t *make_page(struct json_maker *j, const struct trace_view *view)
{
	const struct snapshot *s = j->s;
	double age = s->boot_ns > view->boot_ns ? (double)(s->boot_ns - view->boot_ns) * 1e-9 : 0;
	json_t *page = json_object(), *devices = json_array();

	json_put(j, page, "enabled", json_boolean(view->enabled));
	json_put(j, page, "why", json_text_or_null(view->why));
	json_put(j, page, "stale", json_boolean(s->trace_stale));
	json_put(j, page, "age_seconds", json_number(age));
	for (uint32_t i = 0; i < view->totals_n; i++)
		json_push(j, devices, json_device(j, &view->totals[i]));
	json_put(j, page, "devices", devices);
	return page;
}

int view_kernels(const struct snapshot *s, size_t bytes, struct strbuf *out)
{
	struct kernel_writer w = { .j = { .s = s }, .view = s->trace, .out = out };
	json_t *page;
	int r;

	if (!s->trace) {
		strbuf_adds(out, "null");
		return 0;
	}
	strbuf_addc(out, '{');
	page = make_page(&w.j, s->trace);
	if (w.j.failed) {
		json_decref(page);
		return -ENOMEM;
	}
	r = json_write(page, JSON_EMBED, out);
	if (r >= 0)
		r = write_processes(&w, bytes);
	strbuf_addc(out, '}');
	return r < 0 || !out->failed ? r : -E2BIG;
}
