// SPDX-License-Identifier: Apache-2.0
/*
 * GET /metrics in Prometheus' protobuf: messages io.prometheus.client.MetricFamily, each after its length. It
 * has when counters began, which the text formats of ours do not say. Numbers of fields are those of
 * Prometheus' client_model.
 *
 * Histograms have the buckets that they have everywhere, and may be native ones beside (samples/native.h).
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/glob.h"
#include "samples/native.h"
#include "view/page.h"
#include "view/view.h"
#include "view/walk/walk.h"

enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES };

enum {
	FIELD_FAMILY_NAME = 1,
	FIELD_FAMILY_HELP = 2,
	FIELD_FAMILY_TYPE = 3,
	FIELD_FAMILY_METRIC = 4,
	FIELD_FAMILY_UNIT = 5
};
enum {
	FIELD_METRIC_LABEL = 1,
	FIELD_METRIC_GAUGE = 2,
	FIELD_METRIC_COUNTER = 3,
	FIELD_METRIC_UNTYPED = 5,
	FIELD_METRIC_HISTOGRAM = 7,
};
enum { FIELD_LABEL_NAME = 1, FIELD_LABEL_VALUE = 2 };
enum { FIELD_VALUE_VALUE = 1, FIELD_VALUE_CREATED = 3 };
enum {
	FIELD_HISTOGRAM_COUNT = 1,
	FIELD_HISTOGRAM_SUM = 2,
	FIELD_HISTOGRAM_BUCKET = 3,
	FIELD_HISTOGRAM_SCHEMA = 5,
	FIELD_HISTOGRAM_ZERO_THRESHOLD = 6,
	FIELD_HISTOGRAM_ZERO_COUNT = 7,
	FIELD_HISTOGRAM_POSITIVE_SPAN = 12,
	FIELD_HISTOGRAM_POSITIVE_DELTA = 13,
	FIELD_HISTOGRAM_CREATED = 15
};
enum { FIELD_BUCKET_COUNT = 1, FIELD_BUCKET_BOUND = 2 };
enum { FIELD_SPAN_OFFSET = 1, FIELD_SPAN_LENGTH = 2 };
enum { FIELD_TIMESTAMP_SECONDS = 1, FIELD_TIMESTAMP_NANOS = 2 };

static const struct {
	uint8_t type; /* io.prometheus.client.MetricType */
	uint8_t value; /* of a metric: the field that has it */
} types[FAMILY_TYPES] = {
	[FAMILY_GAUGE] = { 1, FIELD_METRIC_GAUGE },         [FAMILY_COUNTER] = { 0, FIELD_METRIC_COUNTER },
	[FAMILY_INFO] = { 1, FIELD_METRIC_GAUGE },          [FAMILY_UNKNOWN] = { 3, FIELD_METRIC_UNTYPED },
	[FAMILY_HISTOGRAM] = { 4, FIELD_METRIC_HISTOGRAM },
};

struct protobuf_page {
	struct strbuf *out;
	const char *families; /* glob_list_has() */
	bool native;
	struct family family;
	struct set_texts sets;
	struct strbuf metrics; /* of this family: fields FIELD_FAMILY_METRIC */
	struct strbuf metric, part, piece, text; /* that are being made, each a part of the one before */
};

/* ---- the wire ---- */

static void add_varint(struct strbuf *out, uint64_t value)
{
	char bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (char)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value > 0);
	strbuf_add(out, bytes, n);
}

static void add_tag(struct strbuf *out, unsigned field, unsigned wire)
{
	add_varint(out, field << 3 | wire);
}

static void add_number_field(struct strbuf *out, unsigned field, uint64_t value)
{
	add_tag(out, field, WIRE_VARINT);
	add_varint(out, value);
}

/* Of type sint32 or sint64. */
static void add_signed_field(struct strbuf *out, unsigned field, int64_t value)
{
	add_number_field(out, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static void add_double_field(struct strbuf *out, unsigned field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	add_tag(out, field, WIRE_FIXED64);
	strbuf_add(out, (const char *)&bits, sizeof(bits));
}

static void add_bytes_field(struct strbuf *out, unsigned field, const char *data, size_t n)
{
	add_tag(out, field, WIRE_BYTES);
	add_varint(out, n);
	strbuf_add(out, data, n);
}

static void add_text_field(struct strbuf *out, unsigned field, const char *text)
{
	add_bytes_field(out, field, text, strlen(text));
}

/* ---- a series ---- */

static void add_label_fields(struct strbuf *out, const struct label_set *set, void *userdata)
{
	struct protobuf_page *page = userdata;

	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *label = &set->labels[i];

		strbuf_reset(&page->part);
		add_text_field(&page->part, FIELD_LABEL_NAME, label->name);
		add_text_field(&page->part, FIELD_LABEL_VALUE, page_clean_value(label->value, &page->text));
		add_bytes_field(out, FIELD_METRIC_LABEL, page->part.data, page->part.len);
	}
}

/* @real_ns 0: it is not known. */
static void add_created(struct protobuf_page *page, unsigned field, int64_t real_ns)
{
	if (real_ns <= 0)
		return;
	strbuf_reset(&page->piece);
	add_number_field(&page->piece, FIELD_TIMESTAMP_SECONDS, (uint64_t)(real_ns / NSEC_PER_SEC));
	add_number_field(&page->piece, FIELD_TIMESTAMP_NANOS, (uint64_t)(real_ns % NSEC_PER_SEC));
	add_bytes_field(&page->part, field, page->piece.data, page->piece.len);
}

static void add_native(struct protobuf_page *page, const struct histogram *h)
{
	struct native_histogram native;
	int64_t deltas[h->all];

	native_histogram_make(h->within, h->all, h->first, &native, deltas);
	add_signed_field(&page->part, FIELD_HISTOGRAM_SCHEMA, NATIVE_SCHEMA);
	add_double_field(&page->part, FIELD_HISTOGRAM_ZERO_THRESHOLD, native.zero_threshold);
	add_number_field(&page->part, FIELD_HISTOGRAM_ZERO_COUNT, native.zero_count);
	if (native.length == 0)
		return;
	strbuf_reset(&page->piece);
	add_signed_field(&page->piece, FIELD_SPAN_OFFSET, native.offset);
	add_number_field(&page->piece, FIELD_SPAN_LENGTH, native.length);
	add_bytes_field(&page->part, FIELD_HISTOGRAM_POSITIVE_SPAN, page->piece.data, page->piece.len);
	for (uint32_t i = 0; i < native.length; i++)
		add_signed_field(&page->part, FIELD_HISTOGRAM_POSITIVE_DELTA, deltas[i]);
}

/* The last bucket, of all, is the count's. */
static void set_histogram_part(struct protobuf_page *page, const struct series *series)
{
	const struct histogram *h = series->histogram;

	add_number_field(&page->part, FIELD_HISTOGRAM_COUNT, h->count);
	add_double_field(&page->part, FIELD_HISTOGRAM_SUM, h->sum);
	for (unsigned i = 0; i < h->n; i++) {
		strbuf_reset(&page->piece);
		add_number_field(&page->piece, FIELD_BUCKET_COUNT, h->within[i]);
		add_double_field(&page->piece, FIELD_BUCKET_BOUND, h->bounds[i]);
		add_bytes_field(&page->part, FIELD_HISTOGRAM_BUCKET, page->piece.data, page->piece.len);
	}
	if (page->native)
		add_native(page, h);
	add_created(page, FIELD_HISTOGRAM_CREATED, series->created_real_ns);
}

static void set_value_part(struct protobuf_page *page, const struct series *series)
{
	add_double_field(&page->part, FIELD_VALUE_VALUE, series->value);
	if (page->family.type == FAMILY_COUNTER)
		add_created(page, FIELD_VALUE_CREATED, series->created_real_ns);
}

static void take_protobuf_series(void *userdata, const struct series *series)
{
	struct protobuf_page *page = userdata;

	strbuf_reset(&page->metric);
	for (unsigned i = 0; i < SERIES_SETS; i++)
		if (series->sets[i] && series->sets[i]->n > 0)
			set_texts_add(&page->sets, series->sets[i], add_label_fields, page, &page->metric);
	strbuf_reset(&page->part);
	if (series->histogram)
		set_histogram_part(page, series);
	else
		set_value_part(page, series);
	add_bytes_field(&page->metric, types[page->family.type].value, page->part.data, page->part.len);
	add_bytes_field(&page->metrics, FIELD_FAMILY_METRIC, page->metric.data, page->metric.len);
}

/* ---- families ---- */

static void end_family(struct protobuf_page *page)
{
	const struct family *family = &page->family;
	struct strbuf *head = &page->metric;
	char name[256];

	if (page->metrics.len == 0)
		return;
	strbuf_reset(head);
	snprintf(name, sizeof(name), "%s%s", family->prefix, family->name);
	add_text_field(head, FIELD_FAMILY_NAME, name);
	strbuf_reset(&page->piece);
	strbuf_adds(&page->piece, family->help);
	strbuf_adds(&page->piece, family->help_more ? family->help_more : "");
	add_bytes_field(head, FIELD_FAMILY_HELP, page->piece.data, page->piece.len);
	add_number_field(head, FIELD_FAMILY_TYPE, types[family->type].type);
	if (page_names_unit(family))
		add_text_field(head, FIELD_FAMILY_UNIT, unit_name(family->unit));
	add_varint(page->out, head->len + page->metrics.len);
	strbuf_add(page->out, head->data, head->len);
	strbuf_add(page->out, page->metrics.data, page->metrics.len);
	strbuf_reset(&page->metrics);
}

static bool begin_protobuf_family(void *userdata, const struct family *family)
{
	struct protobuf_page *page = userdata;
	char name[256];

	end_family(page);
	page->family = *family;
	snprintf(name, sizeof(name), "%s%s", family->prefix, family->name);
	return !page->families || glob_list_has(page->families, name);
}

int view_metrics_protobuf(const struct snapshot *snapshot, const char *families, bool native,
			  struct strbuf *out)
{
	struct protobuf_page page = { .out = out, .families = families, .native = native };
	struct strbuf *rooms[] = { &page.metrics, &page.metric, &page.part, &page.piece, &page.text };
	const struct walk_sink sink = { begin_protobuf_family, take_protobuf_series, &page };
	bool failed = false;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++)
		strbuf_init(rooms[i], 0);
	set_texts_init(&page.sets);
	r = walk_snapshot(snapshot, WALK_ALL, &sink);
	end_family(&page);
	failed = page.sets.text.failed;
	set_texts_done(&page.sets);
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		failed |= rooms[i]->failed;
		strbuf_done(rooms[i]);
	}
	if (r < 0 || failed)
		return -ENOMEM;
	return out->failed ? out->limit > 0 ? -E2BIG : -ENOMEM : 0;
}
