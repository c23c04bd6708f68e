// SPDX-License-Identifier: Apache-2.0
#include "view/gpu_summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* A GPU or instance: its rows together. */
struct gpu_use {
	const struct container_row *row; /* the first of them */
	bool same_gpu; /* as the device before */
	uint32_t present;
	double v[CONTRACT_METRICS];
};

struct summary {
	struct gpu_use *devices;
	uint32_t n;
	unsigned gpus, instances;
	bool whole; /* there are GPUs that are not partitioned */
};

enum how { SUM, AVERAGE, MAXIMUM };

/* The members that are numbers, in their order. */
static const struct {
	const char *member;
	enum contract_metric metric;
	enum how how;
} figures[] = {
	{ "gpu_utilization_avg", CONTRACT_gpu_utilization, AVERAGE },
	{ "gpu_utilization_max", CONTRACT_gpu_utilization, MAXIMUM },
	{ "gpu_memory_used_total", CONTRACT_framebuffer_used, SUM },
	{ "gpu_memory_free_total", CONTRACT_framebuffer_free, SUM },
	{ "gpu_power_usage_total", CONTRACT_power_usage, SUM },
	{ "gpu_temperature_avg", CONTRACT_temperature, AVERAGE },
	{ "gpu_temperature_max", CONTRACT_temperature, MAXIMUM },
	{ "gpu_memory_temperature_avg", CONTRACT_memory_temperature, AVERAGE },
	{ "gpu_memory_temperature_max", CONTRACT_memory_temperature, MAXIMUM },
	{ "gpu_tensor_utilization_avg", CONTRACT_tensor_active, AVERAGE },
	{ "gpu_dram_utilization_avg", CONTRACT_dram_active, AVERAGE },
	{ "gpu_pcie_tx_bytes_total", CONTRACT_pcie_tx_bytes, SUM },
	{ "gpu_pcie_rx_bytes_total", CONTRACT_pcie_rx_bytes, SUM },
	{ "gpu_graphics_utilization_avg", CONTRACT_graphics_engine_active, AVERAGE },
};

/* Numbers by value, since none begins with 0. */
static int compare_instances(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static int compare_devices(const void *a, const void *b)
{
	const struct container_row *x = *(const struct container_row *const *)a;
	const struct container_row *y = *(const struct container_row *const *)b;
	int order = strcmp(x->uuid, y->uuid);

	if (order == 0)
		order = compare_instances(x->mig_instance, y->mig_instance);
	return order ? order : x < y ? -1 : x > y;
}

static void take_row(struct gpu_use *device, const struct container_row *row)
{
	for (unsigned m = 0; m < CONTRACT_METRICS; m++)
		if (container_row_has(row, m))
			device->v[m] += row->v[m];
	device->present |= row->present;
}

/* Adds the row to the device before, if it is of that. */
static void take_device_row(struct summary *s, const struct container_row *row)
{
	struct gpu_use *last = s->n > 0 ? &s->devices[s->n - 1] : NULL;
	bool same_gpu = last && row->uuid[0] && STRV_EQ(last->row->uuid, row->uuid);

	if (!same_gpu || !STRV_EQ(last->row->mig_instance, row->mig_instance)) {
		last = &s->devices[s->n++];
		last->row = row;
		last->same_gpu = same_gpu;
		s->gpus += !same_gpu;
		s->instances += !row->partitioned;
		s->whole |= !row->partitioned && !row->mig_instance[0];
	}
	take_row(last, row);
}

static int summary_init(struct summary *s, const struct container_rows *rows)
{
	uint32_t n;
	const struct container_row *list = container_rows_list(rows, &n);
	const struct container_row **order = calloc(n + 1u, sizeof(*order));

	*s = (struct summary){ .devices = calloc(n + 1u, sizeof(*s->devices)) };
	if (!order || !s->devices) {
		free(order);
		free(s->devices);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = &list[i];
	qsort(order, n, sizeof(*order), compare_devices);
	for (uint32_t i = 0; i < n; i++)
		take_device_row(s, order[i]);
	free(order);
	return 0;
}

/* Utilisation is that of whole GPUs where there are any. */
static bool counts(const struct summary *s, const struct gpu_use *d, enum contract_metric metric)
{
	if (!(d->present >> metric & 1))
		return false;
	return metric != CONTRACT_gpu_utilization || !s->whole ||
	       (!d->row->mig_instance[0] && !d->row->partitioned);
}

/* False: no device has it. */
static bool figure(const struct summary *s, enum contract_metric metric, enum how how, double *ret_value)
{
	double sum = 0, most = 0;
	unsigned n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct gpu_use *d = &s->devices[i];

		if (!counts(s, d, metric))
			continue;
		most = n++ > 0 ? MAX(most, d->v[metric]) : d->v[metric];
		sum += d->v[metric];
	}
	if (n == 0)
		return false;
	*ret_value = how == SUM ? sum : how == MAXIMUM ? most : sum / n;
	return true;
}

static void add_figure(struct go_writer *w, const char *member, bool known, double value)
{
	/* Of sums of decimals not more decimals than these have. */
	if (known)
		go_number(w, member, round(value * 1e6) / 1e6);
	else
		go_null(w, member);
}

static void add_figures(struct go_writer *w, const struct summary *s)
{
	double used = 0, free_mib = 0, utilization = 0;
	bool known;

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		double value = 0;
		bool has = figure(s, figures[i].metric, figures[i].how, &value);

		add_figure(w, figures[i].member, has, value);
	}
	known = figure(s, CONTRACT_framebuffer_used, SUM, &used);
	known &= figure(s, CONTRACT_framebuffer_free, SUM, &free_mib);
	add_figure(w, "gpu_memory_total_mb", known, used + free_mib);
	known = figure(s, CONTRACT_gpu_utilization, SUM, &utilization);
	add_figure(w, "gpu_usage", known, utilization / 100);
}

/* "8x NVIDIA A100-SXM4-40GB", each model once, by GPU. */
static void add_models(struct go_writer *w, const struct summary *s)
{
	go_open(w, "gpu_models", '[');
	for (uint32_t i = 0; i < s->n; i++) {
		const char *model = s->devices[i].row->model;
		unsigned n = 0;
		bool before = false;
		char text[128];

		for (uint32_t k = 0; k < s->n && !before; k++) {
			if (s->devices[k].same_gpu || !STRV_EQ(s->devices[k].row->model, model))
				continue;
			before = k < i;
			n++;
		}
		if (before || s->devices[i].same_gpu || !model[0])
			continue;
		snprintf(text, sizeof(text), "%ux %s", n, model);
		go_text(w, NULL, text);
	}
	go_close(w, ']');
}

static void add_uuids(struct go_writer *w, const struct summary *s)
{
	go_open(w, "gpu_uuids", '[');
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->devices[i].same_gpu && s->devices[i].row->uuid[0])
			go_text(w, NULL, s->devices[i].row->uuid);
	go_close(w, ']');
}

static void add_instance(struct go_writer *w, const struct gpu_use *d)
{
	static const enum contract_metric metrics[] = {
		CONTRACT_tensor_active,
		CONTRACT_dram_active,
		CONTRACT_graphics_engine_active,
		CONTRACT_framebuffer_used,
	};
	bool used = d->present >> CONTRACT_framebuffer_used & 1,
	     free = d->present >> CONTRACT_framebuffer_free & 1;

	go_open(w, NULL, '{');
	go_text(w, "device_uuid", d->row->uuid);
	go_text(w, "device_id", d->row->gpu);
	go_text(w, "mig_profile", d->row->mig_profile);
	go_text(w, "mig_instance_id", d->row->mig_instance);
	go_text(w, "model_name", d->row->model);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		add_figure(w, contract_rows[metrics[i]].member, d->present >> metrics[i] & 1,
			   d->v[metrics[i]]);
	add_figure(w, "framebuffer_total", used && free,
		   d->v[CONTRACT_framebuffer_used] + d->v[CONTRACT_framebuffer_free]);
	go_close(w, '}');
}

static void add_instances(struct go_writer *w, const struct summary *s)
{
	bool any = false;

	for (uint32_t i = 0; i < s->n; i++) {
		if (!s->devices[i].row->mig_instance[0])
			continue;
		if (!any)
			go_open(w, "gpu_mig_instances", '[');
		any = true;
		add_instance(w, &s->devices[i]);
	}
	if (any)
		go_close(w, ']');
}

int gpu_summary_add(struct go_writer *w, const struct container_rows *rows)
{
	struct summary s;
	int r = summary_init(&s, rows);

	if (r < 0)
		return r;
	go_number(w, "gpu_count", s.gpus);
	go_number(w, "gpu_instance_count", s.instances);
	add_figures(w, &s);
	add_models(w, &s);
	add_uuids(w, &s);
	add_instances(w, &s);
	free(s.devices);
	return 0;
}
