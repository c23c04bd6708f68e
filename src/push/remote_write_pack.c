// SPDX-License-Identifier: Apache-2.0
#include "push/remote_write_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "push/remote_write.h"
#include "push/remote_write.pb-c.h"
#include "samples/native.h"

static int64_t ms_of(int64_t ns)
{
	return ns / NSEC_PER_MSEC;
}

/* ---- what is packed ---- */

static int compress_body(const uint8_t *data, size_t n, struct batch *batch)
{
	size_t room = snappy_max_compressed_length(n);

	batch->data = malloc(room + 1);
	if (!batch->data)
		return -ENOMEM;
	if (snappy_compress((const char *)data, n, (char *)batch->data, &room) != SNAPPY_OK) {
		batch_done(batch);
		return -ENOMEM;
	}
	batch->n = room;
	if (room <= BATCH_BYTES_MAX)
		return 0;
	batch_done(batch);
	return -EFBIG;
}

static int pack_message(const ProtobufCMessage *message, uint32_t format, int64_t real_ns, uint32_t samples,
			struct batch *ret_batch)
{
	struct batch batch = { .real_ns = real_ns, .samples = samples, .format = format };
	size_t n = protobuf_c_message_get_packed_size(message);
	_cleanup_free_ uint8_t *body = malloc(n + 1);
	int r;

	if (!body)
		return -ENOMEM;
	protobuf_c_message_pack(message, body);
	r = compress_body(body, n, &batch);
	if (r == 0)
		*ret_batch = batch;
	return r;
}

static Rw__MetricType type_of(uint32_t type)
{
	static const Rw__MetricType types[PAGE_TYPES] = {
		[PAGE_GAUGE] = RW__METRIC_TYPE__GAUGE,         [PAGE_COUNTER] = RW__METRIC_TYPE__COUNTER,
		[PAGE_INFO] = RW__METRIC_TYPE__INFO,           [PAGE_UNKNOWN] = RW__METRIC_TYPE__UNKNOWN,
		[PAGE_HISTOGRAM] = RW__METRIC_TYPE__HISTOGRAM,
	};

	return types[type];
}

/* One series of a request, whichever version, and what hangs on it. */
struct series {
	Rw__TimeSeries one;
	Rw__Series two;
	Rw__Sample sample, *samples[1];
	Rw__Metadata metadata;
	struct whole *whole; /* a histogram; NULL: none */
};

struct whole {
	Rw__Histogram histogram, *list[1];
	Rw__BucketSpan span, *spans[1];
	int64_t deltas[];
};

static void set_sample(struct series *series, const struct point *point, int64_t real_ns)
{
	rw__sample__init(&series->sample);
	series->sample.value = point->value;
	series->sample.timestamp = ms_of(real_ns);
	series->samples[0] = &series->sample;
}

static void set_buckets(struct whole *whole, const struct native_histogram *native)
{
	rw__bucket_span__init(&whole->span);
	whole->span.offset = native->offset;
	whole->span.length = native->length;
	whole->spans[0] = &whole->span;
	whole->histogram.positive_spans = whole->spans;
	whole->histogram.n_positive_spans = native->length > 0;
	whole->histogram.positive_deltas = whole->deltas;
	whole->histogram.n_positive_deltas = native->length;
}

static struct whole *make_whole(const struct remote_write_page *page, const struct point *point)
{
	const struct page_histogram *h = point->histogram;
	struct whole *whole = calloc(1, sizeof(*whole) + h->all * sizeof(*whole->deltas));
	struct native_histogram native;

	if (!whole)
		return NULL;
	native_histogram_make(page->samples->counts + h->counts, h->all, h->first, &native, whole->deltas);
	rw__histogram__init(&whole->histogram);
	set_buckets(whole, &native);
	whole->histogram.count_int = native.count;
	whole->histogram.sum = point->value;
	whole->histogram.schema = NATIVE_SCHEMA;
	whole->histogram.zero_threshold = native.zero_threshold;
	whole->histogram.zero_count_int = native.zero_count;
	whole->histogram.timestamp = ms_of(page->real_ns);
	whole->list[0] = &whole->histogram;
	return whole;
}

static void free_series(struct series *series, uint32_t n)
{
	for (uint32_t i = 0; series && i < n; i++)
		free(series[i].whole);
	free(series);
}

static uint32_t count_labels(const struct points *points, uint32_t first, uint32_t n)
{
	uint32_t labels = 0;

	for (uint32_t i = 0; i < n; i++)
		labels += points->list[first + i].labels_n;
	return labels;
}

/* ---- 1.0 ---- */

static size_t add_labels(const struct points *points, const struct point *point, Rw__Label *labels,
			 Rw__Label **list)
{
	const char *text = point_labels(points, point);

	for (uint32_t i = 0; i < point->labels_n; i++) {
		rw__label__init(&labels[i]);
		labels[i].name = (char *)text;
		text += strlen(text) + 1;
		labels[i].value = (char *)text;
		text += strlen(text) + 1;
		list[i] = &labels[i];
	}
	return point->labels_n;
}

static int add_metadata(const struct samples *samples, Rw__WriteRequest *request)
{
	uint32_t n = samples->n[PAGE_FAMILIES], used = 0;
	Rw__MetricMetadata *metadata = calloc(n + 1u, sizeof(*metadata));
	Rw__MetricMetadata **list = calloc(n + 1u, sizeof(*list));

	if (!metadata || !list) {
		free(metadata);
		free(list);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct page_family *family = &samples->families[i];
		Rw__MetricMetadata *m = &metadata[used];

		if (family->n == 0)
			continue;
		rw__metric_metadata__init(m);
		m->type = type_of(family->type);
		m->metric_family_name = (char *)samples_text(samples, family->name);
		m->help = (char *)samples_text(samples, family->help);
		m->unit = (char *)samples_text(samples, family->unit);
		list[used++] = m;
	}
	if (used == 0) {
		free(metadata);
		list[0] = NULL;
	}
	request->metadata = list;
	request->n_metadata = used;
	return 0;
}

static void free_metadata(Rw__WriteRequest *request)
{
	if (request->n_metadata > 0)
		free(request->metadata[0]);
	free(request->metadata);
}

static int set_value_1(const struct remote_write_page *page, const struct point *point, struct series *series)
{
	if (!point->histogram) {
		set_sample(series, point, page->real_ns);
		series->one.samples = series->samples;
		series->one.n_samples = 1;
		return 0;
	}
	series->whole = make_whole(page, point);
	if (!series->whole)
		return -ENOMEM;
	series->one.histograms = series->whole->list;
	series->one.n_histograms = 1;
	return 0;
}

int remote_write_pack_1(const struct remote_write_page *page, uint32_t first, uint32_t n, bool metadata,
			struct batch *ret_batch)
{
	uint32_t labels_n = count_labels(page->points, first, n);
	Rw__WriteRequest request = RW__WRITE_REQUEST__INIT;
	struct series *series = calloc(n + 1u, sizeof(*series));
	_cleanup_free_ Rw__TimeSeries **list = calloc(n + 1u, sizeof(*list));
	_cleanup_free_ Rw__Label *labels = calloc(labels_n + 1u, sizeof(*labels));
	_cleanup_free_ Rw__Label **label_list = calloc(labels_n + 1u, sizeof(*label_list));
	int r = series && list && labels && label_list ? 0 : -ENOMEM;
	size_t at = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		const struct point *point = &page->points->list[first + i];
		Rw__TimeSeries *one = &series[i].one;

		rw__time_series__init(one);
		one->labels = label_list + at;
		one->n_labels = add_labels(page->points, point, labels + at, label_list + at);
		at += one->n_labels;
		r = set_value_1(page, point, &series[i]);
		list[i] = one;
	}
	if (r == 0 && metadata && page->samples)
		r = add_metadata(page->samples, &request);
	request.timeseries = list;
	request.n_timeseries = n;
	if (r == 0)
		r = pack_message(&request.base, REMOTE_WRITE_1, page->real_ns, n, ret_batch);
	free_metadata(&request);
	free_series(series, n);
	return r;
}

/* ---- 2.0 ---- */

/* Texts of a request, each once; the first is "". */
struct symbols {
	char **list;
	uint32_t n, room;
	struct hashmap places;
	bool failed;
};

static uint32_t symbol_of(struct symbols *symbols, const char *text)
{
	uint64_t key = hash_bytes_secret(text, strlen(text));
	uint32_t at;

	if (hashmap_get(&symbols->places, key, &at) && STRV_EQ(symbols->list[at], text))
		return at;
	if (symbols->n == symbols->room) {
		uint32_t room = MAX(256u, symbols->room * 2);
		char **more = reallocarray(symbols->list, room, sizeof(*more));

		if (!more) {
			symbols->failed = true;
			return 0;
		}
		symbols->list = more;
		symbols->room = room;
	}
	if (hashmap_put(&symbols->places, key, symbols->n) < 0)
		symbols->failed = true;
	symbols->list[symbols->n] = (char *)text;
	return symbols->n++;
}

static size_t add_refs(struct symbols *symbols, const struct points *points, const struct point *point,
		       uint32_t *refs)
{
	const char *text = point_labels(points, point);

	for (uint32_t i = 0; i < 2 * point->labels_n; i++) {
		refs[i] = symbol_of(symbols, text);
		text += strlen(text) + 1;
	}
	return 2u * point->labels_n;
}

static void describe_series(struct symbols *symbols, const struct samples *samples, const struct point *point,
			    struct series *series)
{
	const struct page_family *family = point->family;

	if (!family)
		return;
	rw__metadata__init(&series->metadata);
	series->metadata.type = type_of(family->type);
	series->metadata.help_ref = symbol_of(symbols, samples_text(samples, family->help));
	series->metadata.unit_ref = symbol_of(symbols, samples_text(samples, family->unit));
	series->two.metadata = &series->metadata;
	series->two.created_timestamp = ms_of(point->created_real_ns);
	series->sample.start_timestamp = ms_of(point->created_real_ns);
}

static int set_series_2(const struct remote_write_page *page, struct symbols *symbols,
			const struct point *point, struct series *series, uint32_t *refs)
{
	Rw__Series *two = &series->two;

	rw__series__init(two);
	set_sample(series, point, page->real_ns);
	two->labels_refs = refs;
	two->n_labels_refs = add_refs(symbols, page->points, point, refs);
	describe_series(symbols, page->samples, point, series);
	if (!point->histogram) {
		two->samples = series->samples;
		two->n_samples = 1;
		return 0;
	}
	series->whole = make_whole(page, point);
	if (!series->whole)
		return -ENOMEM;
	series->whole->histogram.start_timestamp = ms_of(point->created_real_ns);
	two->histograms = series->whole->list;
	two->n_histograms = 1;
	return 0;
}

int remote_write_pack_2(const struct remote_write_page *page, uint32_t first, uint32_t n,
			struct batch *ret_batch)
{
	Rw__Request request = RW__REQUEST__INIT;
	struct symbols symbols = { 0 };
	struct series *series = calloc(n + 1u, sizeof(*series));
	_cleanup_free_ Rw__Series **list = calloc(n + 1u, sizeof(*list));
	_cleanup_free_ uint32_t *refs = calloc(2 * count_labels(page->points, first, n) + 1u, sizeof(*refs));
	int r = series && list && refs ? 0 : -ENOMEM;
	size_t at = 0;

	(void)symbol_of(&symbols, "");
	for (uint32_t i = 0; i < n && r == 0; i++) {
		r = set_series_2(page, &symbols, &page->points->list[first + i], &series[i], refs + at);
		at += series[i].two.n_labels_refs;
		list[i] = &series[i].two;
	}
	if (symbols.failed)
		r = -ENOMEM;
	request.symbols = symbols.list;
	request.n_symbols = symbols.n;
	request.timeseries = list;
	request.n_timeseries = n;
	if (r == 0)
		r = pack_message(&request.base, REMOTE_WRITE_2, page->real_ns, n, ret_batch);
	free(symbols.list);
	hashmap_done(&symbols.places);
	free_series(series, n);
	return r;
}

/* ---- from 2.0 to 1.0 ---- */

static bool refs_are_there(const Rw__Request *request)
{
	for (size_t i = 0; i < request->n_timeseries; i++) {
		const Rw__Series *two = request->timeseries[i];

		for (size_t k = 0; k < two->n_labels_refs; k++)
			if (two->labels_refs[k] >= request->n_symbols)
				return false;
	}
	return true;
}

static int pack_converted(const Rw__Request *request, const struct batch *batch, struct batch *ret_batch)
{
	Rw__WriteRequest old = RW__WRITE_REQUEST__INIT;
	size_t n = request->n_timeseries, labels_n = 0, at = 0;
	_cleanup_free_ Rw__TimeSeries *series = calloc(n + 1, sizeof(*series));
	_cleanup_free_ Rw__TimeSeries **list = calloc(n + 1, sizeof(*list));
	_cleanup_free_ Rw__Label *labels = NULL;
	_cleanup_free_ Rw__Label **label_list = NULL;

	for (size_t i = 0; i < n; i++)
		labels_n += request->timeseries[i]->n_labels_refs / 2;
	labels = calloc(labels_n + 1, sizeof(*labels));
	label_list = calloc(labels_n + 1, sizeof(*label_list));
	if (!series || !list || !labels || !label_list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const Rw__Series *two = request->timeseries[i];

		rw__time_series__init(&series[i]);
		series[i].labels = label_list + at;
		series[i].n_labels = two->n_labels_refs / 2;
		for (size_t k = 0; k < series[i].n_labels; k++, at++) {
			rw__label__init(&labels[at]);
			labels[at].name = request->symbols[two->labels_refs[2 * k]];
			labels[at].value = request->symbols[two->labels_refs[2 * k + 1]];
			label_list[at] = &labels[at];
		}
		for (size_t k = 0; k < two->n_samples; k++)
			two->samples[k]->start_timestamp = 0;
		for (size_t k = 0; k < two->n_histograms; k++)
			two->histograms[k]->start_timestamp = 0;
		series[i].samples = two->samples;
		series[i].n_samples = two->n_samples;
		series[i].histograms = two->histograms;
		series[i].n_histograms = two->n_histograms;
		list[i] = &series[i];
	}
	old.timeseries = list;
	old.n_timeseries = n;
	return pack_message(&old.base, REMOTE_WRITE_1, batch->real_ns, batch->samples, ret_batch);
}

int remote_write_convert(const struct batch *batch, struct batch *ret_batch)
{
	_cleanup_free_ char *body = NULL;
	Rw__Request *request;
	size_t n;
	int r = -EBADMSG;

	if (snappy_uncompressed_length((const char *)batch->data, batch->n, &n) != SNAPPY_OK ||
	    n > PAGE_BYTES_MAX * 2)
		return -EBADMSG;
	body = malloc(n + 1);
	if (!body)
		return -ENOMEM;
	if (snappy_uncompress((const char *)batch->data, batch->n, body, &n) != SNAPPY_OK)
		return -EBADMSG;
	request = rw__request__unpack(NULL, n, (const uint8_t *)body);
	if (!request)
		return -EBADMSG;
	if (refs_are_there(request))
		r = pack_converted(request, batch, ret_batch);
	rw__request__free_unpacked(request, NULL);
	return r;
}
