// SPDX-License-Identifier: Apache-2.0
#include "push/otlp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "base/strbuf.h"
#include "push/otlp.pb-c.h"
#include "push/otlp_pack.h"
#include "push/post.h"

enum { LABELS_MAX = 64 };

/* Sums as they were on a page: of a series how many buckets it has, its value and their counts. */
struct sums {
	struct hashmap map; /* of a series to the first of these numbers */
	double *numbers;
	size_t n, room;
};

struct otlp {
	char resource[sizeof(((struct push_settings *)NULL)->labels)];
	uint32_t points_max;
	bool delta;
	struct sums known;
	int64_t known_real_ns; /* of that page; 0: there was none */
	void *before; /* the page before, as it came; NULL: there was none */
	size_t before_n;
};

/* The points of a page. */
struct otlp_points {
	struct otlp_point *list;
	uint32_t n;
	uint64_t *counts; /* of all histograms */
	size_t counts_n;
	struct sums next;
};

static void sums_done(struct sums *sums)
{
	hashmap_done(&sums->map);
	free(sums->numbers);
	*sums = (struct sums){ 0 };
}

static void points_end(struct otlp_points *points)
{
	free(points->list);
	free(points->counts);
	sums_done(&points->next);
}

/* ---- what was added ---- */

static uint64_t series_key(const struct samples *samples, const struct page_family *family,
			   const struct page_series *series)
{
	struct page_label labels[LABELS_MAX];
	uint32_t n = samples_labels(samples, series, labels, LABELS_MAX);
	const char *name = samples_text(samples, family->name);
	uint64_t key = hash_bytes_secret(name, strlen(name));

	for (uint32_t i = 0; i < n; i++) {
		const char *text[] = { samples_text(samples, labels[i].name),
				       samples_text(samples, labels[i].value) };
		uint64_t parts[] = { key, hash_bytes_secret(text[0], strlen(text[0])),
				     hash_bytes_secret(text[1], strlen(text[1])) };

		key = hash_bytes_secret(parts, sizeof(parts));
	}
	return key;
}

static int append_sum(struct sums *sums, double number)
{
	if (sums->n == sums->room) {
		size_t room = MAX(sums->room * 2, (size_t)1024);
		double *numbers = reallocarray(sums->numbers, room, sizeof(*numbers));

		if (!numbers)
			return -ENOMEM;
		sums->numbers = numbers;
		sums->room = room;
	}
	sums->numbers[sums->n++] = number;
	return 0;
}

static uint32_t buckets_of(const struct samples *samples, const struct otlp_point *point)
{
	return point->counts ? samples->histograms[point->series->histogram - 1].n + 1 : 0;
}

static int remember_sums(struct sums *next, const struct samples *samples, const struct otlp_point *point,
			 uint64_t key)
{
	uint32_t buckets = buckets_of(samples, point);
	int r = hashmap_put(&next->map, key, (uint32_t)next->n);

	if (r == 0)
		r = append_sum(next, buckets);
	if (r == 0)
		r = append_sum(next, point->value);
	for (uint32_t i = 0; i < buckets && r == 0; i++)
		r = append_sum(next, (double)point->counts[i]);
	return r;
}

/* False: it has begun anew since, so that all of it was added. @before: from its value on. */
static bool has_grown(const double *before, const struct otlp_point *point, uint32_t buckets)
{
	bool grown = point->value >= before[0];

	for (uint32_t i = 0; i < buckets; i++)
		grown &= (double)point->counts[i] >= before[1 + i];
	return grown;
}

/* Makes of what there is what was added. False: that is not known. */
static bool take_added(const struct otlp *otlp, const struct samples *samples, struct otlp_point *point,
		       uint64_t *counts, uint64_t key)
{
	uint32_t buckets = buckets_of(samples, point), at;
	const double *before;

	if (!hashmap_get(&otlp->known.map, key, &at) || otlp->known.numbers[at] != buckets)
		return otlp->known_real_ns && point->start_real_ns > otlp->known_real_ns;
	point->start_real_ns = otlp->known_real_ns;
	before = &otlp->known.numbers[at + 1];
	if (!has_grown(before, point, buckets))
		return true;
	point->value -= before[0];
	for (uint32_t i = 0; i < buckets; i++)
		counts[i] -= (uint64_t)before[1 + i];
	return true;
}

/* ---- points ---- */

static bool is_sum(const struct otlp_point *point)
{
	return point->family->type == PAGE_HISTOGRAM || point->family->type == PAGE_COUNTER;
}

/* Counts of a page are of all up to a bound. */
static uint64_t *take_counts(struct otlp_points *points, const struct samples *samples,
			     const struct page_series *series)
{
	const struct page_histogram *h = &samples->histograms[series->histogram - 1];
	const uint64_t *up_to = samples->counts + h->counts;
	uint64_t *counts = points->counts + points->counts_n, before = 0;

	for (uint32_t i = 0; i <= h->n; i++) {
		uint64_t here = i < h->n ? up_to[i] : samples_count(samples, h);

		counts[i] = here - MIN(before, here);
		before = here;
	}
	points->counts_n += h->n + 1u;
	return counts;
}

static int add_otlp_point(struct otlp *otlp, struct otlp_points *points, const struct samples *samples,
			  const struct page_family *family, const struct page_series *series)
{
	struct page_label labels[LABELS_MAX];
	uint32_t n = samples_labels(samples, series, labels, LABELS_MAX);
	uint64_t *counts = series->histogram ? take_counts(points, samples, series) : NULL;
	struct otlp_point point = {
		.family = family,
		.series = series,
		.metric = otlp_metric_of(samples, family, labels, n),
		.value = series->value,
		.start_real_ns =
			is_sum(&(struct otlp_point){ .family = family }) ? series->created_real_ns : 0,
		.counts = counts,
	};
	int r = 0;

	if (otlp->delta && is_sum(&point)) {
		uint64_t key = series_key(samples, family, series);

		r = remember_sums(&points->next, samples, &point, key);
		if (r < 0 || !take_added(otlp, samples, &point, counts, key))
			return r;
	}
	points->list[points->n++] = point;
	return 0;
}

/* Series of a convention's name stand together, of whatever families, then the others by family. */
static int by_name(const void *a, const void *b)
{
	const struct otlp_point *x = a, *y = b;
	int order = x->metric && y->metric ? strcmp(x->metric->name, y->metric->name) : 0;

	if (!x->metric != !y->metric)
		return x->metric ? -1 : 1;
	return order ? order : x->series < y->series ? -1 : x->series > y->series;
}

/* Of all series: several may have one histogram. */
static size_t count_buckets(const struct samples *samples)
{
	size_t n = 0;

	for (uint32_t i = 0; i < samples->n[PAGE_SERIES]; i++)
		if (samples->series[i].histogram)
			n += samples->histograms[samples->series[i].histogram - 1].n + 1u;
	return n;
}

static int make_room_of(const struct samples *samples, struct otlp_points *points)
{
	points->list = calloc(samples->n[PAGE_SERIES] + 1u, sizeof(*points->list));
	points->counts = calloc(count_buckets(samples) + 1, sizeof(*points->counts));
	return points->list && points->counts ? 0 : -ENOMEM;
}

static int make_points(struct otlp *otlp, const struct samples *samples, struct otlp_points *points)
{
	int r = make_room_of(samples, points);

	for (uint32_t i = 0; i < samples->n[PAGE_FAMILIES] && r == 0; i++) {
		const struct page_family *family = &samples->families[i];

		for (uint32_t k = 0; k < family->n && r == 0; k++)
			r = add_otlp_point(otlp, points, samples, family,
					   &samples->series[family->first + k]);
	}
	if (r == 0)
		qsort(points->list, points->n, sizeof(*points->list), by_name);
	return r;
}

/* ---- what has ended ---- */

static int find_series(const struct samples *samples, struct hashmap *ret_there)
{
	int r = hashmap_init(ret_there, samples ? samples->n[PAGE_SERIES] : 0);

	for (uint32_t i = 0; samples && i < samples->n[PAGE_FAMILIES] && r == 0; i++) {
		const struct page_family *family = &samples->families[i];

		for (uint32_t k = 0; k < family->n && r == 0; k++)
			r = hashmap_put(ret_there,
					series_key(samples, family, &samples->series[family->first + k]), 0);
	}
	return r;
}

/* Those of a family that are not @there. Buckets of a histogram are named, too, each with nothing in it. */
static void add_ended(struct otlp_points *points, const struct samples *before,
		      const struct page_family *family, const struct hashmap *there)
{
	uint32_t at;

	for (uint32_t k = 0; k < family->n; k++) {
		const struct page_series *series = &before->series[family->first + k];
		struct page_label labels[LABELS_MAX];
		uint32_t n = samples_labels(before, series, labels, LABELS_MAX);

		if (!hashmap_get(there, series_key(before, family, series), &at))
			points->list[points->n++] = (struct otlp_point){
				.family = family,
				.series = series,
				.metric = otlp_metric_of(before, family, labels, n),
				.counts = series->histogram ? points->counts : NULL,
			};
	}
}

/* ---- batches ---- */

static int pack_points(struct otlp *otlp, const struct otlp_page *page, const struct otlp_points *points,
		       struct batches *batches)
{
	int r = 0;

	for (uint32_t first = 0; first < points->n && r == 0; first += otlp->points_max) {
		struct batch batch = { 0 };

		r = otlp_pack(page, points->list + first, MIN(points->n - first, otlp->points_max), &batch);
		if (r == 0)
			r = batches_add(batches, &batch);
	}
	return r;
}

/* Of series of the page before that are not on this one. @now NULL: none is any more. */
static int pack_ended(struct otlp *otlp, const struct samples *now, int64_t real_ns, struct batches *batches)
{
	struct otlp_points points = { 0 };
	struct hashmap there = { 0 };
	struct samples before;
	int r;

	if (!otlp->before)
		return 0;
	r = samples_read(otlp->before, otlp->before_n, &before);
	if (r == 0)
		r = find_series(now, &there);
	if (r == 0)
		r = make_room_of(&before, &points);
	for (uint32_t i = 0; r == 0 && i < before.n[PAGE_FAMILIES]; i++)
		add_ended(&points, &before, &before.families[i], &there);
	if (r == 0) {
		qsort(points.list, points.n, sizeof(*points.list), by_name);
		r = pack_points(otlp,
				&(struct otlp_page){
					.samples = &before,
					.resource = otlp->resource,
					.delta = otlp->delta,
					.ended = true,
					.real_ns = MAX(real_ns, before.real_ns + NSEC_PER_MSEC),
				},
				&points, batches);
	}
	points_end(&points);
	hashmap_done(&there);
	return r;
}

/* What has ended, if there is room for it; else the page before stays, so that the next one tells it. */
static void go_on_to_page(struct otlp *otlp, const struct samples *now, const void *data, size_t n,
			  struct batches *batches)
{
	unsigned of_page = batches->n;
	void *copy = malloc(n);

	if (!copy || pack_ended(otlp, now, now->real_ns, batches) < 0) {
		while (batches->n > of_page)
			batch_done(&batches->list[--batches->n]);
		free(copy);
		return;
	}
	memcpy(copy, data, n);
	free(otlp->before);
	otlp->before = copy;
	otlp->before_n = n;
}

static int make_otlp(void *state, const void *data, size_t n, struct batches *batches)
{
	struct otlp *otlp = state;
	struct otlp_points points = { 0 };
	struct samples samples;
	int r = samples_read(data, n, &samples);

	if (r == 0)
		r = make_points(otlp, &samples, &points);
	if (r == 0)
		r = pack_points(otlp,
				&(struct otlp_page){
					.samples = &samples,
					.resource = otlp->resource,
					.delta = otlp->delta,
					.real_ns = samples.real_ns,
				},
				&points, batches);
	if (r == 0)
		go_on_to_page(otlp, &samples, data, n, batches);
	if (r == 0 && otlp->delta) {
		struct sums before = otlp->known;

		otlp->known = points.next;
		points.next = before;
		otlp->known_real_ns = samples.real_ns;
	}
	/* What was added is told of the whole page with the next, so of this one all or nothing is. */
	if (r < 0 && otlp->delta)
		batches_done(batches);
	points_end(&points);
	return r;
}

/* All of it has ended. */
static int make_last_otlp(void *state, int64_t real_ns, struct batches *batches)
{
	return pack_ended(state, NULL, real_ns, batches);
}

/* ---- life ---- */

const char *const *otlp_headers(_unused_ uint32_t format)
{
	static const char *const headers[] = { "Content-Type: application/x-protobuf",
					       "Content-Encoding: gzip", NULL };

	return headers;
}

static void add_otlp_path(struct strbuf *url, _unused_ const char *cluster)
{
	strbuf_adds(url, "/v1/metrics");
}

uint64_t otlp_refused(const uint8_t *answer, size_t n, char *ret_words, size_t size)
{
	Otlp__ExportMetricsServiceResponse *response =
		otlp__export_metrics_service_response__unpack(NULL, n, answer);
	uint64_t refused = 0;

	if (response && response->partial_success) {
		refused = (uint64_t)MAX(response->partial_success->rejected_data_points, INT64_C(0));
		snprintf(ret_words, size, "%s", response->partial_success->error_message);
	}
	if (response)
		otlp__export_metrics_service_response__free_unpacked(response, NULL);
	return refused;
}

static int begin_otlp(const struct push_settings *settings, void **ret_state)
{
	struct otlp *otlp = calloc(1, sizeof(*otlp));

	if (!otlp)
		return -ENOMEM;
	memcpy(otlp->resource, settings->labels, sizeof(otlp->resource));
	otlp->points_max = MAX(settings->samples_max, 1u);
	otlp->delta = settings->protocol == OTLP_DELTA;
	*ret_state = otlp;
	return 0;
}

static void end_otlp(void *state)
{
	struct otlp *otlp = state;

	sums_done(&otlp->known);
	free(otlp->before);
	free(otlp);
}

const struct push_kind otlp_kind = {
	.name = "otlp",
	.section = "otlp",
	.url = "endpoint",
	.add_path = add_otlp_path,
	.key_header = "Authorization",
	.headers = otlp_headers,
	.keeps_first = true,
	.repeats_answers = true,
	.begin = begin_otlp,
	.end = end_otlp,
	.make = make_otlp,
	.finish = make_last_otlp,
	.refused = otlp_refused,
};
