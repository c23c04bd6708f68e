// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels with series of their own, what the others add up to, and devices with all of theirs. Of one PID the
 * younger process is shown, as in prometheus_trace.c; rows that would be one series (kernels.h) are added up.
 * What is of the kernel itself, its occupancy and memory, does not age: it is shown even when tracing
 * delivers nothing new.
 */
#include "view/prometheus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/kernels.h"
#include "view/shown.h"

#define PREFIX "gpusonde_"
#define DEVICE_PREFIX "gpusonde_gpu_"

struct kernel_series {
	const struct traced_kernel *first; /* that it is of */
	uint64_t id;
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];
};

struct kernel_page {
	struct exposition_page *p;
	const struct trace_view *view;
	struct kernel_series *series;
	uint32_t series_n;
	struct labels labels; /* of these */
	struct labels totals; /* gpu, uuid, gi, ci */
	struct strbuf tail, last; /* label texts of the sample at hand */
};

static uint32_t count_series(const struct trace_view *view)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < view->kernels_n; i++)
		n += view->kernels[i].has_series;
	return n;
}

/*
 * Counters add up, but for one that is not known; of the rest the first is shown, which has taken most time.
 */
static void add_numbers(struct kernel_series *to, const struct traced_kernel *kernel)
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

static struct kernel_series *find_series(struct kernel_page *kp, uint32_t from,
					 const struct traced_kernel *kernel, uint64_t id)
{
	for (uint32_t i = from; i < kp->series_n; i++)
		if (kp->series[i].id == id && STRV_EQ(kp->series[i].first->uuid, kernel->uuid))
			return &kp->series[i];
	return NULL;
}

static void add_process(struct kernel_page *kp, const struct traced_process *process)
{
	uint32_t from = kp->series_n;

	for (uint32_t i = process->kernels_first; i < process->kernels_first + process->kernels_n; i++) {
		const struct traced_kernel *kernel = &kp->view->kernels[i];
		struct kernel_series *series;
		uint64_t id;

		if (!kernel->has_series || !kernel->kernel)
			continue;
		id = kernel_id(kernel->kernel);
		series = find_series(kp, from, kernel, id);
		if (series) {
			add_numbers(series, kernel);
			continue;
		}
		series = &kp->series[kp->series_n++];
		series->first = kernel;
		series->id = id;
		kernel_numbers(kernel, &kernel->series, series->v, series->p);
	}
}

static int make_labels(struct kernel_page *kp, struct strbuf *entry)
{
	int r = labels_init(&kp->labels, kp->series_n);

	for (uint32_t i = 0; r >= 0 && i < kp->series_n; i++) {
		const struct traced_kernel *kernel = kp->series[i].first;
		const struct traced_process *process = &kp->view->processes[kernel->process];
		char name[KERNEL_LABEL_BYTES + 1], id[KERNEL_ID_TEXT];

		kernel_label(kernel->kernel, name);
		kernel_id_text(kernel->kernel, id);
		strbuf_reset(entry);
		traced_device_labels(kp->p, kernel->uuid, entry);
		label_add_u64(entry, "pid", process->pid);
		label_add(entry, "comm", process->comm);
		label_add(entry, "kernel", name);
		label_add(entry, "id", id);
		labels_add(&kp->labels, entry);
	}
	return r < 0 ? r : labels_check(&kp->labels);
}

/* Of two devices with equal labels the first. */
static bool total_shown(const struct kernel_page *kp, uint32_t total)
{
	for (uint32_t before = 0; before < total; before++)
		if (STRV_EQ(labels_get(&kp->totals, before), labels_get(&kp->totals, total)))
			return false;
	return true;
}

static int make_total_labels(struct kernel_page *kp, struct strbuf *entry)
{
	int r = labels_init(&kp->totals, kp->view->totals_n);

	for (uint32_t i = 0; r >= 0 && i < kp->view->totals_n; i++) {
		strbuf_reset(entry);
		traced_device_labels(kp->p, kp->view->totals[i].uuid, entry);
		labels_add(&kp->totals, entry);
	}
	return r < 0 ? r : labels_check(&kp->totals);
}

static int kernel_page_init(struct kernel_page *kp, struct exposition_page *p)
{
	const struct trace_view *view = p->s->trace;
	struct strbuf entry;
	int r;

	*kp = (struct kernel_page){ .p = p, .view = view };
	strbuf_init(&kp->tail, 0);
	strbuf_init(&kp->last, 0);
	kp->series = calloc(count_series(view) + 1, sizeof(*kp->series));
	if (!kp->series)
		return -ENOMEM;
	for (uint32_t first = 0, end; first < view->processes_n; first = end)
		add_process(kp, &view->processes[traced_youngest(view, first, &end)]);
	strbuf_init(&entry, 0);
	r = make_labels(kp, &entry);
	if (r >= 0)
		r = make_total_labels(kp, &entry);
	strbuf_done(&entry);
	return r;
}

static void kernel_page_done(struct kernel_page *kp)
{
	labels_done(&kp->labels);
	labels_done(&kp->totals);
	free(kp->series);
	strbuf_done(&kp->tail);
	strbuf_done(&kp->last);
}

/* Leaves in kp->tail the labels that the row's own series have besides the kernel's. */
static void series_tail(struct kernel_page *kp, uint32_t i, unsigned row)
{
	row_labels(&kernel_metrics[row], &kp->tail);
	if (row == KERNEL_METRIC_OCCUPANCY)
		label_add(&kp->tail, "limiter",
			  occupancy_limiter_name(kp->series[i].first->occupancy.limiter));
}

static void other_labels(struct kernel_page *kp)
{
	label_add(&kp->tail, "pid", "other");
	label_add(&kp->tail, "comm", "other");
	label_add(&kp->tail, "kernel", "other");
	label_add(&kp->tail, "id", "other");
}

/* Has the device launches of kernels without series? */
static bool other_shown(const struct kernel_page *kp, uint32_t total, unsigned row, double *ret_value,
			bool *ret_estimated)
{
	const struct traced_total *t = &kp->view->totals[total];
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	launches_numbers(&t->kernels_other, t->p[TRACED_LAUNCHES], v, p);
	*ret_value = v[row];
	*ret_estimated = p[row] & PRESENCE_ESTIMATED;
	return presence_is(p[row]) && v[row] > 0 && total_shown(kp, total);
}

static void add_others(struct kernel_page *kp, unsigned row)
{
	bool estimated;
	double value;

	row_labels(&kernel_metrics[row], &kp->tail);
	other_labels(kp);
	for (uint32_t i = 0; i < kp->view->totals_n; i++)
		if (other_shown(kp, i, row, &value, &estimated))
			page_sample(&kp->p->page, labels_get(&kp->totals, i), kp->tail.data, value);
}

static void add_rows(struct kernel_page *kp)
{
	for (unsigned first = 0, end; first < KERNEL_METRICS; first = end) {
		struct family family;

		end = family_end(kernel_metrics, KERNEL_METRICS, first);
		family_of(&kernel_metrics[first], PREFIX, kernel_metrics[first].family, &family);
		page_family(&kp->p->page, &family);
		for (unsigned row = first; row < end; row++) {
			for (uint32_t i = 0; i < kp->series_n; i++) {
				if (!presence_is(kp->series[i].p[row]))
					continue;
				series_tail(kp, i, row);
				page_sample(&kp->p->page, labels_get(&kp->labels, i), kp->tail.data,
					    kp->series[i].v[row]);
			}
			add_others(kp, row);
		}
	}
}

/* kernel_launches_total becomes gpu_kernel_launches_total, which does not fall when a process ends. */
static void add_device_rows(struct kernel_page *kp)
{
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		struct family family;

		if (!metric_is_counter(&kernel_metrics[row]))
			continue;
		family_of(&kernel_metrics[row], DEVICE_PREFIX, kernel_metrics[row].family, &family);
		family.help = "By device, all kernels, processes that have ended included: ";
		family.help_more = kernel_metrics[row].help;
		page_family(&kp->p->page, &family);
		for (uint32_t i = 0; i < kp->view->totals_n; i++) {
			launches_numbers(&kp->view->totals[i].kernels, kp->view->totals[i].p[TRACED_LAUNCHES],
					 v, p);
			if (presence_is(p[row]) && total_shown(kp, i))
				page_sample(&kp->p->page, labels_get(&kp->totals, i), "", v[row]);
		}
	}
}

/* Leaves in kp->tail the labels that say which metric is one. */
static void estimated_labels(struct kernel_page *kp, unsigned row, const char *prefix, bool other)
{
	strbuf_reset(&kp->last);
	strbuf_adds(&kp->last, prefix);
	strbuf_adds(&kp->last, kernel_metrics[row].family);
	row_labels(&kernel_metrics[row], &kp->tail);
	if (other)
		other_labels(kp);
	label_add(&kp->tail, "metric", kp->last.data);
}

static void add_estimated_totals(struct kernel_page *kp)
{
	double v[KERNEL_METRICS];
	uint8_t p[KERNEL_METRICS];

	page_family(&kp->p->page,
		    &(struct family){ DEVICE_PREFIX, "kernel_estimated",
				      "1 for each metric of kernels by device whose value is an estimate.",
				      NULL, FAMILY_GAUGE, UNIT_NONE });
	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		if (!metric_is_counter(&kernel_metrics[row]))
			continue;
		estimated_labels(kp, row, DEVICE_PREFIX, false);
		for (uint32_t i = 0; i < kp->view->totals_n; i++) {
			launches_numbers(&kp->view->totals[i].kernels, kp->view->totals[i].p[TRACED_LAUNCHES],
					 v, p);
			if (presence_is(p[row]) && (p[row] & PRESENCE_ESTIMATED) && total_shown(kp, i))
				page_sample(&kp->p->page, labels_get(&kp->totals, i), kp->tail.data, 1);
		}
	}
}

static void add_estimated(struct kernel_page *kp)
{
	bool estimated;
	double value;

	page_family(&kp->p->page,
		    &(struct family){ PREFIX, "kernel_estimated",
				      "1 for each metric of the kernel whose value is an estimate.", NULL,
				      FAMILY_GAUGE, UNIT_NONE });
	for (unsigned row = 0; row < KERNEL_METRICS; row++) {
		estimated_labels(kp, row, PREFIX, false);
		for (uint32_t i = 0; i < kp->series_n; i++)
			if (presence_is(kp->series[i].p[row]) && (kp->series[i].p[row] & PRESENCE_ESTIMATED))
				page_sample(&kp->p->page, labels_get(&kp->labels, i), kp->tail.data, 1);
		estimated_labels(kp, row, PREFIX, true);
		for (uint32_t i = 0; i < kp->view->totals_n; i++)
			if (other_shown(kp, i, row, &value, &estimated) && estimated)
				page_sample(&kp->p->page, labels_get(&kp->totals, i), kp->tail.data, 1);
	}
	add_estimated_totals(kp);
}

int prometheus_kernels(struct exposition_page *p)
{
	struct kernel_page kp;
	int r;

	if (!p->s->trace)
		return 0;
	r = kernel_page_init(&kp, p);
	if (r >= 0) {
		add_rows(&kp);
		add_device_rows(&kp);
		add_estimated(&kp);
		if (kp.tail.failed || kp.last.failed)
			r = -ENOMEM;
	}
	kernel_page_done(&kp);
	return r;
}
