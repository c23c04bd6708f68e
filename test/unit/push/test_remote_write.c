// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <snappy-c.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "push/post.h"
#include "push/remote_write.h"
#include "push/remote_write.pb-c.h"
#include "samples/write.h"

static uint64_t room[64 << 10]; /* aligned */
static uint32_t bytes;
static void *rw;
static struct push_settings settings;
static struct batches batches;

static void begin_with(uint32_t protocol, bool native)
{
	settings = (struct push_settings){ .kind = PUSH_REMOTE_WRITE,
					   .protocol = protocol,
					   .samples_max = 500,
					   .native_histograms = native };
	strcpy(settings.labels, "job=gpusonde\ninstance=n1\nzone=a\n");
	assert_int_equal(remote_write_kind.begin(&settings, &rw), 0);
}

static int end(void **state)
{
	(void)state;
	batches_done(&batches);
	if (rw)
		remote_write_kind.end(rw);
	rw = NULL;
	return 0;
}

static void add_series(struct samples_writer *w, const char *name, const char *value, double number)
{
	struct page_label label = { samples_add_text(w, name), samples_add_text(w, value) };
	struct page_series series = { .value = number, .created_real_ns = 5 * NSEC_PER_SEC };

	series.sets[1] = samples_add_set(w, &label, 1);
	samples_add_series(w, &series);
}

static void add_durations(struct samples_writer *w)
{
	const struct page_bound bounds[] = { { .value = 0.25, .text = samples_add_text(w, "0.25") },
					     { .value = 1, .text = samples_add_text(w, "1") } };
	static const uint64_t counts[] = { 2, 3, 3, 7 };
	struct page_series series = { .value = 7.5 };

	samples_add_family(w, &(struct page_family){ .name = samples_add_text(w, "d_seconds"),
						     .type = PAGE_HISTOGRAM });
	series.histogram = samples_add_histogram(
		w,
		&(struct page_histogram){ .n = ARRAY_SIZE(bounds), .all = ARRAY_SIZE(counts), .first = -1 },
		bounds, counts);
	samples_add_series(w, &series);
}

/* gpu="0" .. of a counter, and a histogram. */
static void make_page(int64_t real_ns, unsigned gpus, const char *more)
{
	_cleanup_close_ int fd = -1;
	struct samples_writer w;

	samples_writer_init(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "a_total"),
						      .help = samples_add_text(&w, "what it is"),
						      .unit = samples_add_text(&w, "bytes"),
						      .type = PAGE_COUNTER });
	for (unsigned i = 0; i < gpus; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", i);
		add_series(&w, "gpu", text, i + 0.5);
	}
	if (more)
		add_series(&w, more, "own", 1);
	add_durations(&w);
	fd = samples_write(&w, real_ns, &bytes);
	samples_writer_done(&w);
	assert_true(fd >= 0 && bytes <= sizeof(room));
	assert_int_equal(pread(fd, room, sizeof(room), 0), bytes);
}

static int put(int64_t real_ns, unsigned gpus, const char *more)
{
	batches_done(&batches);
	make_page(real_ns, gpus, more);
	return remote_write_kind.make(rw, room, bytes, &batches);
}

static uint8_t *unpacked(const struct batch *batch, size_t *ret_n)
{
	static uint8_t body[1 << 20];

	*ret_n = sizeof(body);
	assert_int_equal(snappy_uncompress((const char *)batch->data, batch->n, (char *)body, ret_n),
			 SNAPPY_OK);
	return body;
}

static Rw__WriteRequest *request_1(const struct batch *batch)
{
	size_t n;
	uint8_t *body = unpacked(batch, &n);
	Rw__WriteRequest *request = rw__write_request__unpack(NULL, n, body);

	assert_int_equal(batch->format, REMOTE_WRITE_1);
	assert_non_null(request);
	assert_int_equal(request->n_timeseries, batch->samples);
	return request;
}

/* "a=b,c=d" */
static const char *labels_1(const Rw__TimeSeries *series)
{
	static char text[512];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < series->n_labels; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s", i ? "," : "",
				      series->labels[i]->name, series->labels[i]->value);
	return text;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void labels_are_sorted_and_complete(void **state)
{
	Rw__WriteRequest *request;

	(void)state;
	begin_with(1, false);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 1, "job"), 0);
	assert_int_equal(batches.n, 1);
	assert_int_equal(batches.list[0].real_ns, 1000 * NSEC_PER_SEC);
	request = request_1(&batches.list[0]);
	assert_int_equal(request->n_timeseries, 2 + 5);
	assert_string_equal(labels_1(request->timeseries[0]),
			    "__name__=a_total,gpu=0,instance=n1,job=gpusonde,zone=a");
	assert_true(request->timeseries[0]->samples[0]->value == 0.5);
	assert_true(request->timeseries[0]->samples[0]->timestamp == 1000000);
	assert_true(request->timeseries[0]->samples[0]->start_timestamp == 0);
	assert_string_equal(labels_1(request->timeseries[1]),
			    "__name__=a_total,exported_job=own,instance=n1,job=gpusonde,zone=a");
	assert_string_equal(labels_1(request->timeseries[2]),
			    "__name__=d_seconds_bucket,instance=n1,job=gpusonde,le=0.25,zone=a");
	assert_true(request->timeseries[3]->samples[0]->value == 3);
	assert_string_equal(labels_1(request->timeseries[4]),
			    "__name__=d_seconds_bucket,instance=n1,job=gpusonde,le=+Inf,zone=a");
	assert_true(request->timeseries[5]->samples[0]->value == 7.5);
	assert_string_equal(labels_1(request->timeseries[6]),
			    "__name__=d_seconds_count,instance=n1,job=gpusonde,zone=a");
	assert_int_equal(request->n_metadata, 2);
	assert_string_equal(request->metadata[0]->metric_family_name, "a_total");
	assert_string_equal(request->metadata[0]->help, "what it is");
	assert_int_equal(request->metadata[0]->type, RW__METRIC_TYPE__COUNTER);
	rw__write_request__free_unpacked(request, NULL);
}

/* The series' own label stays, and an empty one is none. */
static void further_labels_do_not_replace(void **state)
{
	Rw__WriteRequest *request;

	(void)state;
	begin_with(1, false);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 0, "zone"), 0);
	request = request_1(&batches.list[0]);
	assert_string_equal(labels_1(request->timeseries[0]),
			    "__name__=a_total,instance=n1,job=gpusonde,zone=own");
	rw__write_request__free_unpacked(request, NULL);
}

static void what_ends_is_marked_once(void **state)
{
	Rw__WriteRequest *request;

	(void)state;
	begin_with(1, false);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 2, NULL), 0);
	assert_int_equal(put(1001 * NSEC_PER_SEC, 1, NULL), 0);
	request = request_1(&batches.list[0]);
	assert_int_equal(request->n_timeseries, 1 + 5 + 1);
	assert_string_equal(labels_1(request->timeseries[6]),
			    "__name__=a_total,gpu=1,instance=n1,job=gpusonde,zone=a");
	assert_true(bits_of(request->timeseries[6]->samples[0]->value) == STALE_NAN_BITS);
	assert_true(request->timeseries[6]->samples[0]->timestamp == 1001000);
	rw__write_request__free_unpacked(request, NULL);
	assert_int_equal(put(1002 * NSEC_PER_SEC, 1, NULL), 0);
	assert_int_equal(batches.list[0].samples, 6);
	batches_done(&batches);
	/* At the end all, and never before what was sent. */
	assert_int_equal(remote_write_kind.finish(rw, 1, &batches), 0);
	request = request_1(&batches.list[0]);
	assert_int_equal(request->n_timeseries, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_true(bits_of(request->timeseries[i]->samples[0]->value) == STALE_NAN_BITS);
		assert_true(request->timeseries[i]->samples[0]->timestamp == 1002001);
	}
	rw__write_request__free_unpacked(request, NULL);
}

static void time_goes_forward_alone(void **state)
{
	(void)state;
	begin_with(1, false);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 1, NULL), 0);
	assert_int_equal(put(1000 * NSEC_PER_SEC + 999999, 1, NULL), -EALREADY);
	assert_int_equal(put(999 * NSEC_PER_SEC, 1, NULL), -EALREADY);
	assert_int_equal(batches.n, 0);
	assert_int_equal(put(1000 * NSEC_PER_SEC + NSEC_PER_MSEC, 1, NULL), 0);
}

static void requests_are_bounded(void **state)
{
	(void)state;
	begin_with(2, false);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 1200, NULL), 0);
	assert_int_equal(batches.n, 3);
	assert_int_equal(batches.list[0].samples, 500);
	assert_int_equal(batches.list[2].samples, 205);
	room[0] ^= 1;
	assert_int_equal(remote_write_kind.make(rw, room, bytes, &batches), -EBADMSG);
}

static Rw__Request *request_2(const struct batch *batch)
{
	size_t n;
	uint8_t *body = unpacked(batch, &n);
	Rw__Request *request = rw__request__unpack(NULL, n, body);

	assert_int_equal(batch->format, REMOTE_WRITE_2);
	assert_non_null(request);
	assert_string_equal(request->symbols[0], "");
	return request;
}

/* Up to 1/4 second 2, to 1: 1, to 4: none, to 16: 4. */
static void check_durations(const Rw__Histogram *h)
{
	assert_true(h->schema == -1 && h->count_int == 7 && h->sum == 7.5 && h->timestamp == 1000000);
	assert_true(h->zero_threshold == 0.25 && h->zero_count_int == 2);
	assert_int_equal(h->n_positive_spans, 1);
	assert_int_equal(h->positive_spans[0]->offset, 0);
	assert_int_equal(h->positive_spans[0]->length, 3);
	assert_int_equal(h->n_positive_deltas, 3);
	assert_true(h->positive_deltas[0] == 1 && h->positive_deltas[1] == -1 && h->positive_deltas[2] == 4);
}

static void version_2_has_symbols_and_histograms(void **state)
{
	Rw__Request *request;
	const Rw__Series *series;

	(void)state;
	begin_with(2, true);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 2, NULL), 0);
	request = request_2(&batches.list[0]);
	assert_int_equal(request->n_timeseries, 3);
	series = request->timeseries[1];
	assert_int_equal(series->n_labels_refs, 10);
	assert_string_equal(request->symbols[series->labels_refs[0]], "__name__");
	assert_string_equal(request->symbols[series->labels_refs[1]], "a_total");
	assert_int_equal(series->labels_refs[0], request->timeseries[0]->labels_refs[0]);
	assert_string_equal(request->symbols[series->metadata->help_ref], "what it is");
	assert_string_equal(request->symbols[series->metadata->unit_ref], "bytes");
	assert_int_equal(series->metadata->type, RW__METRIC_TYPE__COUNTER);
	assert_true(series->created_timestamp == 5000 && series->samples[0]->start_timestamp == 5000);
	series = request->timeseries[2];
	assert_int_equal(series->n_samples, 0);
	check_durations(series->histograms[0]);
	rw__request__free_unpacked(request, NULL);
}

static void version_1_has_histograms(void **state)
{
	Rw__WriteRequest *request;

	(void)state;
	begin_with(1, true);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 2, NULL), 0);
	request = request_1(&batches.list[0]);
	assert_int_equal(request->n_timeseries, 3);
	assert_string_equal(labels_1(request->timeseries[2]),
			    "__name__=d_seconds,instance=n1,job=gpusonde,zone=a");
	assert_int_equal(request->timeseries[2]->n_samples, 0);
	assert_int_equal(request->timeseries[2]->n_histograms, 1);
	check_durations(request->timeseries[2]->histograms[0]);
	rw__write_request__free_unpacked(request, NULL);
}

/* A server that does not know 2.0: what waits becomes 1.0, and so does all that follows. */
static void version_2_becomes_1(void **state)
{
	const struct post_result unknown = { .status = 415, .written = -1 };
	Rw__WriteRequest *request;
	struct batch batch;

	(void)state;
	begin_with(2, true);
	assert_int_equal(put(1000 * NSEC_PER_SEC, 2, NULL), 0);
	batch = batches.list[0];
	batches.n = 0;
	assert_false(
		remote_write_kind.is_unfit(rw, &batch, &(struct post_result){ .status = 204, .written = 0 }));
	assert_false(remote_write_kind.is_unfit(rw, &batch,
						&(struct post_result){ .status = 500, .written = -1 }));
	assert_int_equal(remote_write_kind.fit(rw, &batch), 0);
	assert_int_equal(batch.format, REMOTE_WRITE_2);
	assert_true(remote_write_kind.is_unfit(rw, &batch, &unknown));
	assert_int_equal(remote_write_kind.fit(rw, &batch), 0);
	assert_false(remote_write_kind.is_unfit(rw, &batch, &unknown));
	assert_int_equal(batch.real_ns, 1000 * NSEC_PER_SEC);
	request = request_1(&batch);
	assert_string_equal(labels_1(request->timeseries[1]),
			    "__name__=a_total,gpu=1,instance=n1,job=gpusonde,zone=a");
	assert_true(request->timeseries[1]->samples[0]->value == 1.5);
	check_durations(request->timeseries[2]->histograms[0]);
	rw__write_request__free_unpacked(request, NULL);
	batch_done(&batch);
	assert_int_equal(put(1001 * NSEC_PER_SEC, 2, NULL), 0);
	assert_int_equal(batches.list[0].format, REMOTE_WRITE_1);
}

static void what_is_no_request_is_not_converted(void **state)
{
	uint8_t garbage[] = { 5, 16, 0xff, 0xff, 0xff, 0xff, 0xff };
	/* One symbol, and a series with a label of the symbols 0 and 7. */
	uint8_t refs[] = { 8, 0x1c, 0x22, 0, 0x2a, 4, 0x0a, 2, 0, 7 };
	const struct batch batch = { .data = garbage, .n = sizeof(garbage), .format = REMOTE_WRITE_2 };
	const struct batch beyond = { .data = refs, .n = sizeof(refs), .format = REMOTE_WRITE_2 };
	struct batch converted;

	(void)state;
	assert_int_equal(remote_write_convert(&batch, &converted), -EBADMSG);
	assert_int_equal(remote_write_convert(&(struct batch){ .data = garbage }, &converted), -EBADMSG);
	assert_int_equal(remote_write_convert(&beyond, &converted), -EBADMSG);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(labels_are_sorted_and_complete),
		TEST(further_labels_do_not_replace),
		TEST(what_ends_is_marked_once),
		TEST(time_goes_forward_alone),
		TEST(requests_are_bounded),
		TEST(version_2_has_symbols_and_histograms),
		TEST(version_1_has_histograms),
		TEST(version_2_becomes_1),
		TEST(what_is_no_request_is_not_converted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
