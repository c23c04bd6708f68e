// SPDX-License-Identifier: Apache-2.0
#include "push/otlp_pack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "push/gzip.h"
#include "push/otlp_resource.h"

enum {
	LABELS_MAX = 64,
	MORE_ATTRIBUTES = 3, /* hw.type, hw.parent, and the convention's own */
	NAME_BYTES = 256,
	TEXT_BYTES = 192, /* of one that is put together */
	NO_RECORDED_VALUE = 1, /* DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK of the protocol */
};

/* A metric of the request: points [first, first + n). */
struct metric_message {
	Otlp__Metric metric;
	Otlp__Gauge gauge;
	Otlp__Sum sum;
	Otlp__Histogram histogram;
	char name[NAME_BYTES];
};

/* The request, and all that hangs on it. */
struct otlp_tree {
	const struct otlp_page *page;
	struct otlp_attributes attributes;
	Otlp__NumberDataPoint *numbers, **number_list;
	Otlp__HistogramDataPoint *histograms, **histogram_list;
	struct metric_message *metrics;
	Otlp__Metric **metric_list;
	uint32_t metrics_n;
	double *bounds; /* of histograms */
	size_t bounds_n;
	struct otlp_resource resource;
	char (*texts)[TEXT_BYTES]; /* one for each point at most */
	size_t texts_n;
};

static void otlp_tree_done(struct otlp_tree *tree)
{
	otlp_attributes_done(&tree->attributes);
	free(tree->numbers);
	free(tree->number_list);
	free(tree->histograms);
	free(tree->histogram_list);
	free(tree->metrics);
	free(tree->metric_list);
	free(tree->bounds);
	otlp_resource_done(&tree->resource);
	free(tree->texts);
}

/* ---- attributes ---- */

/* The values of two labels of a point: those of its part, or of what the attribute's text is made of. */
struct chosen_labels {
	const char *uuid, *value;
};

_printf_(2, 3) static const char *put_together(struct otlp_tree *tree, const char *fmt, ...)
{
	char *text = tree->texts[tree->texts_n++];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, TEXT_BYTES, fmt, ap);
	va_end(ap);
	return text;
}

/* What a part is called: "GPU-1/fan0". */
static void add_part(struct otlp_tree *tree, const char *part, const struct chosen_labels *chosen)
{
	otlp_add_text(&tree->attributes, "hw.type", part);
	otlp_add_text(&tree->attributes, "hw.id",
		      put_together(tree, "%s/%s%s", chosen->uuid, part, chosen->value));
	otlp_add_text(&tree->attributes, "hw.parent", chosen->uuid);
}

/* Attributes that the convention has in place of labels, or besides them. */
static void add_of_metric(struct otlp_tree *tree, const struct otlp_metric *metric,
			  const struct chosen_labels *chosen)
{
	if (metric->part)
		add_part(tree, metric->part, chosen);
	else
		otlp_add_text(&tree->attributes, "hw.type", "gpu");
	if (metric->attribute)
		otlp_add_text(&tree->attributes, metric->attribute,
			      metric->label && !metric->value ?
				      put_together(tree, "%s%s", metric->text, chosen->value) :
				      metric->text);
}

/* Of @metric, which may be NULL: no attribute is made of a label by its name alone. */
static bool replaces_label(const struct otlp_metric *metric, const char *name)
{
	return metric &&
	       ((metric->label && STRV_EQ(name, metric->label)) ||
		(metric->label2 && STRV_EQ(name, metric->label2)) || (metric->part && STRV_EQ(name, "uuid")));
}

/* Returns how many there are, from *ret_list on. */
static size_t add_point_attributes(struct otlp_tree *tree, const struct otlp_point *point,
				   Otlp__KeyValue ***ret_list)
{
	const struct samples *samples = tree->page->samples;
	const struct otlp_metric *metric = point->metric;
	struct chosen_labels chosen = { "", "" };
	struct page_label labels[LABELS_MAX];
	uint32_t n = samples_labels(samples, point->series, labels, LABELS_MAX);
	size_t first = tree->attributes.n;

	for (uint32_t i = 0; i < n; i++) {
		const char *name = samples_text(samples, labels[i].name);
		const char *value = samples_text(samples, labels[i].value);

		if (!replaces_label(metric, name))
			otlp_add_text(&tree->attributes, otlp_attribute(name), value);
		if (metric && metric->label && STRV_EQ(name, metric->label))
			chosen.value = value;
		if (STRV_EQ(name, "uuid"))
			chosen.uuid = value;
	}
	if (metric)
		add_of_metric(tree, metric, &chosen);
	*ret_list = &tree->attributes.pairs[first];
	return tree->attributes.n - first;
}

/* ---- points ---- */

static void set_number(struct otlp_tree *tree, const struct otlp_point *point, uint32_t at)
{
	Otlp__NumberDataPoint *number = &tree->numbers[at];

	otlp__number_data_point__init(number);
	number->start_time_unix_nano = (uint64_t)point->start_real_ns;
	number->time_unix_nano = (uint64_t)tree->page->real_ns;
	if (tree->page->ended) {
		number->flags = NO_RECORDED_VALUE;
	} else {
		number->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		number->as_double = point->value;
	}
	number->n_attributes = add_point_attributes(tree, point, &number->attributes);
	tree->number_list[at] = number;
}

static void set_histogram(struct otlp_tree *tree, const struct otlp_point *point, uint32_t at)
{
	const struct samples *samples = tree->page->samples;
	const struct page_histogram *h = &samples->histograms[point->series->histogram - 1];
	Otlp__HistogramDataPoint *histogram = &tree->histograms[at];

	otlp__histogram_data_point__init(histogram);
	histogram->start_time_unix_nano = (uint64_t)point->start_real_ns;
	histogram->time_unix_nano = (uint64_t)tree->page->real_ns;
	histogram->flags = tree->page->ended ? NO_RECORDED_VALUE : 0;
	histogram->sum_of_all_case = OTLP__HISTOGRAM_DATA_POINT__SUM_OF_ALL_SUM;
	histogram->sum = point->value;
	histogram->bucket_counts = (uint64_t *)point->counts;
	histogram->n_bucket_counts = h->n + 1;
	histogram->explicit_bounds = tree->bounds + tree->bounds_n;
	histogram->n_explicit_bounds = h->n;
	for (uint32_t i = 0; i < h->n; i++)
		tree->bounds[tree->bounds_n++] = samples->bounds[h->bounds + i].value;
	for (uint32_t i = 0; i <= h->n; i++)
		histogram->count += point->counts[i];
	histogram->n_attributes = add_point_attributes(tree, point, &histogram->attributes);
	tree->histogram_list[at] = histogram;
}

/* ---- metrics ---- */

/* "gpusonde_gpu_busy_seconds_total" is gpusonde.gpu_busy_seconds: what a counter is, its type says. */
static void set_own_name(const char *family, bool is_counter, char ret_name[static NAME_BYTES])
{
	const char *prefix = "gpusonde_";
	size_t n = strlen(prefix);

	if (strncmp(family, prefix, n) == 0)
		snprintf(ret_name, NAME_BYTES, "gpusonde.%s", family + n);
	else
		snprintf(ret_name, NAME_BYTES, "%s", family);
	n = strlen(ret_name);
	if (is_counter && n > 6 && STRV_EQ(ret_name + n - 6, "_total"))
		ret_name[n - 6] = '\0';
}

static enum otlp_type type_of_point(const struct otlp_point *point)
{
	if (point->metric)
		return point->metric->type;
	return point->family->type == PAGE_COUNTER ? OTLP_SUM : OTLP_GAUGE;
}

static void set_sum(struct metric_message *m, enum otlp_type type, bool delta)
{
	otlp__sum__init(&m->sum);
	m->sum.is_monotonic = type == OTLP_SUM;
	/* What goes up and down has no beginning. */
	m->sum.aggregation_temporality =
		delta && type == OTLP_SUM ? OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA :
					    OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
	m->metric.data_case = OTLP__METRIC__DATA_SUM;
	m->metric.sum = &m->sum;
}

static struct metric_message *begin_metric(struct otlp_tree *tree, const struct otlp_point *point)
{
	const struct samples *samples = tree->page->samples;
	const struct page_family *family = point->family;
	struct metric_message *m = &tree->metrics[tree->metrics_n];

	otlp__metric__init(&m->metric);
	if (point->metric)
		snprintf(m->name, sizeof(m->name), "%s", point->metric->name);
	else
		set_own_name(samples_text(samples, family->name), family->type == PAGE_COUNTER, m->name);
	m->metric.name = m->name;
	m->metric.description = (char *)(point->metric && otlp_description(point->metric->name) ?
						 otlp_description(point->metric->name) :
						 samples_text(samples, family->help));
	m->metric.unit = (char *)(point->metric ? point->metric->unit :
						  otlp_unit(samples_text(samples, family->unit)));
	tree->metric_list[tree->metrics_n++] = &m->metric;
	return m;
}

static void add_histograms(struct otlp_tree *tree, struct metric_message *m, const struct otlp_point *points,
			   uint32_t first, uint32_t n)
{
	otlp__histogram__init(&m->histogram);
	for (uint32_t i = first; i < first + n; i++)
		set_histogram(tree, &points[i], i);
	m->histogram.data_points = &tree->histogram_list[first];
	m->histogram.n_data_points = n;
	m->histogram.aggregation_temporality =
		tree->page->delta ? OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA :
				    OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
	m->metric.data_case = OTLP__METRIC__DATA_HISTOGRAM;
	m->metric.histogram = &m->histogram;
}

static void add_number_points(struct otlp_tree *tree, struct metric_message *m,
			      const struct otlp_point *points, uint32_t first, uint32_t n)
{
	enum otlp_type type = type_of_point(&points[first]);

	for (uint32_t i = first; i < first + n; i++)
		set_number(tree, &points[i], i);
	if (type != OTLP_GAUGE) {
		set_sum(m, type, tree->page->delta);
		m->sum.data_points = &tree->number_list[first];
		m->sum.n_data_points = n;
		return;
	}
	otlp__gauge__init(&m->gauge);
	m->gauge.data_points = &tree->number_list[first];
	m->gauge.n_data_points = n;
	m->metric.data_case = OTLP__METRIC__DATA_GAUGE;
	m->metric.gauge = &m->gauge;
}

static bool is_of_one_metric(const struct otlp_point *a, const struct otlp_point *b)
{
	if (a->metric && b->metric)
		return STRV_EQ(a->metric->name, b->metric->name);
	return a->metric == b->metric && a->family == b->family;
}

static void add_metrics(struct otlp_tree *tree, const struct otlp_point *points, uint32_t n)
{
	for (uint32_t first = 0, end; first < n; first = end) {
		const struct otlp_point *point = &points[first];
		struct metric_message *m = begin_metric(tree, point);

		for (end = first + 1; end < n && is_of_one_metric(&points[end], point);)
			end++;
		if (point->family->type == PAGE_HISTOGRAM)
			add_histograms(tree, m, points, first, end - first);
		else
			add_number_points(tree, m, points, first, end - first);
	}
}

/* ---- the request ---- */

static int otlp_make_room(struct otlp_tree *tree, const struct otlp_point *points, uint32_t n)
{
	const struct samples *samples = tree->page->samples;
	size_t attributes = otlp_resource_attributes(tree->page->resource), bounds = 0;
	struct page_label labels[LABELS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		attributes += samples_labels(samples, points[i].series, labels, LABELS_MAX) + MORE_ATTRIBUTES;
		if (points[i].series->histogram)
			bounds += samples->histograms[points[i].series->histogram - 1].n;
	}
	tree->numbers = calloc(n + 1u, sizeof(*tree->numbers));
	tree->number_list = calloc(n + 1u, sizeof(*tree->number_list));
	tree->histograms = calloc(n + 1u, sizeof(*tree->histograms));
	tree->histogram_list = calloc(n + 1u, sizeof(*tree->histogram_list));
	tree->metrics = calloc(n + 1u, sizeof(*tree->metrics));
	tree->metric_list = calloc(n + 1u, sizeof(*tree->metric_list));
	tree->bounds = calloc(bounds + 1, sizeof(*tree->bounds));
	tree->texts = calloc(n + 1u, sizeof(*tree->texts));
	return otlp_attributes_init(&tree->attributes, attributes) == 0 && tree->numbers &&
			       tree->number_list && tree->histograms && tree->histogram_list &&
			       tree->metrics && tree->metric_list && tree->bounds && tree->texts ?
		       0 :
		       -ENOMEM;
}

static int pack_request(struct otlp_tree *tree, struct batch *ret_batch)
{
	Otlp__ExportMetricsServiceRequest request = OTLP__EXPORT_METRICS_SERVICE_REQUEST__INIT;
	Otlp__ResourceMetrics of_resource = OTLP__RESOURCE_METRICS__INIT, *resources[] = { &of_resource };
	Otlp__ScopeMetrics of_scope = OTLP__SCOPE_METRICS__INIT, *scopes[] = { &of_scope };
	int r = otlp_resource_init(&tree->resource, tree->page->resource, &tree->attributes);

	if (r < 0)
		return r;
	of_scope.scope = &tree->resource.scope;
	of_scope.metrics = tree->metric_list;
	of_scope.n_metrics = tree->metrics_n;
	of_resource.resource = &tree->resource.resource;
	of_resource.scope_metrics = scopes;
	of_resource.n_scope_metrics = 1;
	of_resource.schema_url = (char *)OTLP_SCHEMA_URL;
	request.resource_metrics = resources;
	request.n_resource_metrics = 1;
	return gzip_message(&request.base, ret_batch);
}

int otlp_pack(const struct otlp_page *page, const struct otlp_point *points, uint32_t n,
	      struct batch *ret_batch)
{
	struct otlp_tree tree = { .page = page };
	struct batch batch = { .real_ns = page->real_ns, .samples = n };
	int r = otlp_make_room(&tree, points, n);

	if (r == 0) {
		add_metrics(&tree, points, n);
		r = pack_request(&tree, &batch);
	}
	otlp_tree_done(&tree);
	if (r == 0)
		*ret_batch = batch;
	return r;
}
