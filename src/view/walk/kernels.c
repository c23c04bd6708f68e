// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels with series of their own, the sum of the others, and totals of devices. Of processes with the same
 * PID the youngest is shown, as in traced.c; rows with equal labels (kernels.h) are added. Properties of
 * the kernel itself, its occupancy and memory, do not become stale: they are shown even if tracing delivers
 * nothing new.
 */
#include "view/walk/private.h"

#include "base/macro.h"
#include "view/kernels.h"
#include "view/shown.h"

#define DEVICE_PREFIX "gpusonde_gpu_"

struct kernel_series {
	const struct traced_kernel *first; /* that it is of */
	uint64_t id;
	const struct label_set *device, *process, *kernel;
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];
};

struct kernel_walk {
	struct walk *walk;
	const struct trace_view *view;
	struct kernel_series *series;
	uint32_t series_n;
	struct traced_totals totals;
	const struct label_set *other_kernel; /* kernel="other",id="other" */
};

static uint32_t count_series(const struct trace_view *view)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < view->kernels_n; i++)
		n += view->kernels[i].has_series;
	return n;
}

/*
 * Counters are added, except unknown ones; other values are those of the first row, which has the most time.
 */
static void add_kernel_numbers(struct kernel_series *to, const struct traced_kernel *kernel)
{
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	kernel_numbers(kernel, &kernel->series, v, p);
	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		if (!metric_is_counter(&kernel_metrics[row]))
			continue;
		to->v[row] += v[row];
		to->p[row] = presence_is(p[row]) ? to->p[row] | (p[row] & PRESENCE_ESTIMATED) : p[row];
	}
}

static struct kernel_series *find_series(struct kernel_walk *kw, uint32_t from,
					 const struct traced_kernel *kernel, uint64_t id)
{
	for (uint32_t i = from; i < kw->series_n; i++)
		if (kw->series[i].id == id && STRV_EQ(kw->series[i].first->uuid, kernel->uuid))
			return &kw->series[i];
	return NULL;
}

static void add_process_kernels(struct kernel_walk *kw, const struct traced_process *process)
{
	uint32_t from = kw->series_n;

	for (uint32_t i = process->kernels_first; i < process->kernels_first + process->kernels_n; i++) {
		const struct traced_kernel *kernel = &kw->view->kernels[i];
		struct kernel_series *series;
		uint64_t id;

		if (!kernel->has_series || !kernel->kernel)
			continue;
		id = kernel_id(kernel->kernel);
		series = find_series(kw, from, kernel, id);
		if (series) {
			add_kernel_numbers(series, kernel);
			continue;
		}
		series = &kw->series[kw->series_n++];
		series->first = kernel;
		series->id = id;
		kernel_numbers(kernel, &kernel->series, series->v, series->p);
	}
}

static void label_kernel(struct walk *walk, struct kernel_series *series)
{
	const struct traced_kernel *kernel = series->first;
	char name[KERNEL_LABEL_BYTES + 1], id[KERNEL_ID_TEXT];

	kernel_label(kernel->kernel, name);
	kernel_id_text(kernel->kernel, id);
	series->device = traced_device_set(walk, kernel->uuid);
	series->process = traced_process_set(walk, &walk->s->trace->processes[kernel->process]);
	series->kernel = WALK_SET(walk, true, { "kernel", walk_text(walk, name, "") },
				  { "id", walk_text(walk, id, "") });
}

static bool kernel_walk_init(struct kernel_walk *kw, struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;

	*kw = (struct kernel_walk){ .walk = walk, .view = view };
	kw->series = walk_zeroes(walk, count_series(view), sizeof(*kw->series));
	kw->other_kernel = WALK_SET(walk, true, { "kernel", WALK_OTHER }, { "id", WALK_OTHER });
	if (walk->failed || !traced_totals_init(walk, &kw->totals))
		return false;
	for (uint32_t first = 0, end; first < view->processes_n; first = end)
		add_process_kernels(kw, &view->processes[traced_youngest(view, first, &end)]);
	for (uint32_t i = 0; i < kw->series_n; i++)
		label_kernel(walk, &kw->series[i]);
	return true;
}

/* Additional labels of the row's own series. */
static const struct label_set *limiter_set(struct walk *walk, const struct kernel_series *series,
					   unsigned row)
{
	if (row != KERNEL_METRIC_OCCUPANCY)
		return NULL;
	return WALK_SET(walk, false, { "limiter", occupancy_limiter_name(series->first->occupancy.limiter) });
}

/* Value of the device's launches of kernels without series; false if there are none. */
static bool other_shown(const struct kernel_walk *kw, uint32_t total, unsigned row, double *ret_value,
			uint8_t *ret_presence)
{
	const struct traced_total *t = &kw->view->totals[total];
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	launches_numbers(&t->kernels_other, t->p[TRACED_LAUNCHES], v, p);
	*ret_value = v[row];
	*ret_presence = p[row];
	return presence_is(p[row]) && v[row] > 0 && kw->totals.shown[total];
}

static void walk_other_kernels(struct kernel_walk *kw, unsigned row, const struct label_set *row_set)
{
	uint8_t presence;
	double value;

	for (uint32_t i = 0; i < kw->view->totals_n; i++)
		if (other_shown(kw, i, row, &value, &presence))
			walk_series(kw->walk,
				    &(struct series){ .sets = { kw->totals.sets[i], row_set,
								kw->walk->other_process, kw->other_kernel },
						      .value = value,
						      .presence = presence,
						      .row = &kernel_metrics[row],
						      .entity = UINT32_MAX });
}

static void walk_kernel_row(struct kernel_walk *kw, unsigned row)
{
	const struct label_set *row_set = walk_row_set(kw->walk, &kernel_metrics[row]);

	for (uint32_t i = 0; i < kw->series_n; i++) {
		const struct kernel_series *k = &kw->series[i];

		if (presence_is(k->p[row]))
			walk_series(kw->walk,
				    &(struct series){ .sets = { k->device, k->process, k->kernel, row_set,
								limiter_set(kw->walk, k, row) },
						      .value = k->v[row],
						      .presence = k->p[row],
						      .row = &kernel_metrics[row],
						      .entity = UINT32_MAX });
	}
	walk_other_kernels(kw, row, row_set);
}

static void walk_kernel_rows(struct kernel_walk *kw)
{
	for (unsigned first = 0, end; first < KERNEL_METRICS; first = end) {
		if (!walk_family_rows(kw->walk, WALK_PREFIX, 0, NULL, kernel_metrics, KERNEL_METRICS, first,
				      &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_kernel_row(kw, row);
	}
}

/* Value over all kernels of a device. */
static bool total_shown(const struct kernel_walk *kw, uint32_t total, unsigned row, double *ret_value,
			uint8_t *ret_presence)
{
	const struct traced_total *t = &kw->view->totals[total];
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	launches_numbers(&t->kernels, t->p[TRACED_LAUNCHES], v, p);
	*ret_value = v[row];
	*ret_presence = p[row];
	return presence_is(p[row]) && kw->totals.shown[total];
}

/* kernel_launches_total becomes gpu_kernel_launches_total, which does not fall when a process ends. */
static void walk_total_rows(struct kernel_walk *kw)
{
	uint8_t presence;
	double value;

	for (unsigned row = 0, end; row < KERNEL_METRICS; row++) {
		if (!metric_is_counter(&kernel_metrics[row]) ||
		    !walk_family_rows(kw->walk, DEVICE_PREFIX, 0,
				      "By device, all kernels, processes that have ended included: ",
				      kernel_metrics, KERNEL_METRICS, row, &end))
			continue;
		for (uint32_t i = 0; i < kw->view->totals_n; i++)
			if (total_shown(kw, i, row, &value, &presence))
				walk_series(kw->walk, &(struct series){ .sets = { kw->totals.sets[i] },
									.value = value,
									.presence = presence,
									.row = &kernel_metrics[row],
									.entity = UINT32_MAX });
	}
}

static void walk_estimated_kernels(struct kernel_walk *kw)
{
	uint8_t presence;
	double value;

	if (!walk_family_named(kw->walk, "kernel_estimated", FAMILY_GAUGE, UNIT_NONE,
			       "1 for each metric of the kernel whose value is an estimate."))
		return;
	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		const struct metric *m = &kernel_metrics[row];
		const struct label_set *row_set = walk_row_set(kw->walk, m),
				       *metric = walk_metric_set(kw->walk, WALK_PREFIX, m->family);

		for (uint32_t i = 0; i < kw->series_n; i++) {
			const struct kernel_series *k = &kw->series[i];

			if (presence_estimated(k->p[row]))
				walk_series(kw->walk,
					    &(struct series){ .sets = { k->device, k->process, k->kernel,
									row_set, metric },
							      .value = 1,
							      .presence = PRESENCE_PRESENT,
							      .entity = UINT32_MAX });
		}
		for (uint32_t i = 0; i < kw->view->totals_n; i++)
			if (other_shown(kw, i, row, &value, &presence) && presence_estimated(presence))
				walk_series(kw->walk, &(struct series){ .sets = { kw->totals.sets[i], row_set,
										  kw->walk->other_process,
										  kw->other_kernel, metric },
									.value = 1,
									.presence = PRESENCE_PRESENT,
									.entity = UINT32_MAX });
	}
}

static void walk_estimated_totals(struct kernel_walk *kw)
{
	const struct family family = {
		.prefix = DEVICE_PREFIX,
		.name = "kernel_estimated",
		.help = "1 for each metric of kernels by device whose value is an estimate.",
		.type = FAMILY_GAUGE,
	};
	uint8_t presence;
	double value;

	if (!walk_family(kw->walk, &family))
		return;
	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		const struct metric *m = &kernel_metrics[row];
		const struct label_set *row_set = walk_row_set(kw->walk, m),
				       *metric = walk_metric_set(kw->walk, DEVICE_PREFIX, m->family);

		for (uint32_t i = 0; metric_is_counter(m) && i < kw->view->totals_n; i++)
			if (total_shown(kw, i, row, &value, &presence) && presence_estimated(presence))
				walk_series(kw->walk,
					    &(struct series){ .sets = { kw->totals.sets[i], row_set, metric },
							      .value = 1,
							      .presence = PRESENCE_PRESENT,
							      .entity = UINT32_MAX });
	}
}

void walk_kernels(struct walk *walk)
{
	struct kernel_walk kw;

	if (!walk->s->trace || !kernel_walk_init(&kw, walk))
		return;
	walk_kernel_rows(&kw);
	walk_total_rows(&kw);
	walk_estimated_kernels(&kw);
	walk_estimated_totals(&kw);
}
