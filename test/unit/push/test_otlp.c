// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "push/otlp.h"
#include "push/otlp.pb-c.h"
#include "samples/write.h"
#include "push/unzipped.h"

static uint64_t room[64 << 10]; /* aligned */
static void *otlp;
static struct batches batches;
static Otlp__ExportMetricsServiceRequest *request;

static int stop(_unused_ void **state)
{
	if (request)
		otlp__export_metrics_service_request__free_unpacked(TAKE_PTR(request), NULL);
	batches_done(&batches);
	if (otlp)
		otlp_kind.end(TAKE_PTR(otlp));
	return 0;
}

static void begin_with(uint32_t temporality, uint32_t points_max)
{
	static struct push_settings settings;

	settings = (struct push_settings){ .kind = PUSH_OTLP,
					   .protocol = temporality,
					   .samples_max = points_max };
	strcpy(settings.labels, "service.name=gpusonde\nrack=7\n");
	assert_int_equal(otlp_kind.begin(&settings, &otlp), 0);
}

static void add_series(struct samples_writer *w, const char *uuid, double number, int64_t created_real_ns)
{
	struct page_label label = { samples_add_text(w, "uuid"), samples_add_text(w, uuid) };
	struct page_series series = { .value = number, .created_real_ns = created_real_ns };

	series.sets[1] = samples_add_set(w, &label, 1);
	samples_add_series(w, &series);
}

static void add_durations(struct samples_writer *w, uint64_t more)
{
	const struct page_bound bounds[] = { { .value = 0.25, .text = samples_add_text(w, "0.25") },
					     { .value = 1, .text = samples_add_text(w, "1") } };
	/* the last ones are beyond the bounds that are told */
	const uint64_t counts[] = { 2, 3 + more, 4 + more, 7 + more };
	struct page_series series = { .value = 7.5 + (double)more };

	samples_add_family(w, &(struct page_family){ .name = samples_add_text(w, "gpusonde_d_seconds"),
						     .type = PAGE_HISTOGRAM });
	series.histogram = samples_add_histogram(
		w,
		&(struct page_histogram){ .n = ARRAY_SIZE(bounds), .all = ARRAY_SIZE(counts), .first = -1 },
		bounds, counts);
	samples_add_series(w, &series);
}

/* Hands over the page. */
static int make(struct samples_writer *w, int64_t real_s)
{
	_cleanup_close_ int fd = -1;
	uint32_t bytes;

	fd = samples_write(w, real_s * NSEC_PER_SEC, &bytes);
	samples_writer_done(w);
	assert_true(fd >= 0 && bytes <= sizeof(room));
	assert_int_equal(pread(fd, room, sizeof(room), 0), bytes);
	batches_done(&batches);
	return otlp_kind.make(otlp, room, bytes, &batches);
}

/* Energy of two GPUs, the second one's since @second_ns, and a histogram; sends it. */
static void send_page(int64_t real_s, double joules, double second, int64_t second_s, uint64_t more)
{
	struct samples_writer w;

	samples_writer_init(&w);
	samples_add_family(
		&w, &(struct page_family){ .name = samples_add_text(&w, "gpusonde_gpu_energy_joules_total"),
					   .unit = samples_add_text(&w, "joules"),
					   .type = PAGE_COUNTER });
	add_series(&w, "GPU-1", joules, 1 * NSEC_PER_SEC);
	if (second_s)
		add_series(&w, "GPU-2", second, second_s * NSEC_PER_SEC);
	add_durations(&w, more);
	assert_int_equal(make(&w, real_s), 0);
}

/* Of the batch @at. */
static const Otlp__ScopeMetrics *sent(size_t at)
{
	static uint8_t body[64 << 10];
	size_t n = unzipped(&batches.list[at], body, sizeof(body));

	if (request)
		otlp__export_metrics_service_request__free_unpacked(request, NULL);
	request = otlp__export_metrics_service_request__unpack(NULL, n, body);
	assert_non_null(request);
	return request->resource_metrics[0]->scope_metrics[0];
}

static void all_since_the_beginning(_unused_ void **state)
{
	const Otlp__Metric *energy, *durations;

	begin_with(OTLP_CUMULATIVE, 500);
	send_page(10, 100, 0, 0, 0);
	assert_int_equal(batches.n, 1);
	assert_int_equal(sent(0)->n_metrics, 2);
	assert_string_equal(request->resource_metrics[0]->resource->attributes[1]->key, "rack");
	energy = sent(0)->metrics[0];
	assert_string_equal(energy->name, "hw.energy");
	assert_string_equal(energy->unit, "J");
	assert_true(energy->sum->is_monotonic);
	assert_float_equal(energy->sum->data_points[0]->as_double, 100, 0);
	assert_int_equal(energy->sum->data_points[0]->start_time_unix_nano, NSEC_PER_SEC);
	assert_int_equal(energy->sum->data_points[0]->time_unix_nano, 10 * NSEC_PER_SEC);
	assert_string_equal(energy->sum->data_points[0]->attributes[0]->key, "hw.id");
	durations = sent(0)->metrics[1];
	assert_string_equal(durations->name, "gpusonde.d_seconds");
	assert_int_equal(durations->histogram->data_points[0]->count, 7);
	assert_int_equal(durations->histogram->data_points[0]->bucket_counts[1], 1);
	assert_int_equal(durations->histogram->data_points[0]->n_explicit_bounds, 2);
}

/* A sum of 0 is one; none would be another thing. */
static void a_sum_of_nothing_is_told(_unused_ void **state)
{
	const Otlp__HistogramDataPoint *point;
	struct samples_writer w;
	const struct page_bound bound = { .value = 1 };
	struct page_series series = { .value = 0 };

	begin_with(OTLP_CUMULATIVE, 500);
	samples_writer_init(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "h_seconds"),
						      .type = PAGE_HISTOGRAM });
	series.histogram = samples_add_histogram(&w, &(struct page_histogram){ .n = 1, .all = 2 }, &bound,
						 (const uint64_t[]){ 0, 0 });
	samples_add_series(&w, &series);
	assert_int_equal(make(&w, 10), 0);
	point = sent(0)->metrics[0]->histogram->data_points[0];
	assert_int_equal(point->sum_of_all_case, OTLP__HISTOGRAM_DATA_POINT__SUM_OF_ALL_SUM);
	assert_float_equal(point->sum, 0, 0);
}

/* A series that is new says how much only if it began after the page before. */
static void what_was_added(_unused_ void **state)
{
	const Otlp__Sum *energy;

	begin_with(OTLP_DELTA, 500);
	send_page(10, 100, 0, 0, 0);
	assert_int_equal(batches.n, 0);
	send_page(11, 130, 40, 5, 2);
	energy = sent(0)->metrics[0]->sum;
	assert_int_equal(energy->n_data_points, 1);
	assert_float_equal(energy->data_points[0]->as_double, 30, 0);
	assert_int_equal(energy->data_points[0]->start_time_unix_nano, 10 * NSEC_PER_SEC);
	assert_int_equal(sent(0)->metrics[1]->histogram->data_points[0]->count, 2);
	assert_float_equal(sent(0)->metrics[1]->histogram->data_points[0]->sum, 2, 0);
	send_page(12, 20, 45, 5, 2); /* the first begins anew */
	energy = sent(0)->metrics[0]->sum;
	assert_int_equal(energy->n_data_points, 2);
	assert_float_equal(energy->data_points[0]->as_double, 20, 0);
	assert_float_equal(energy->data_points[1]->as_double, 5, 0);
}

static void what_begins_between_two_pages(_unused_ void **state)
{
	begin_with(OTLP_DELTA, 500);
	send_page(10, 100, 0, 0, 0);
	send_page(20, 100, 6, 15, 0);
	assert_int_equal(sent(0)->metrics[0]->sum->n_data_points, 2);
	assert_float_equal(sent(0)->metrics[0]->sum->data_points[1]->as_double, 6, 0);
}

static void requests_are_bounded(_unused_ void **state)
{
	begin_with(OTLP_CUMULATIVE, 2);
	send_page(10, 100, 3, 1, 0);
	assert_int_equal(batches.n, 2);
	assert_int_equal(sent(0)->n_metrics, 1);
	assert_int_equal(sent(1)->n_metrics, 1);
	assert_int_equal(batches.list[0].samples, 2);
}

/* A series that is no more, and a histogram, without values but with all that they are known by. */
static void what_has_ended_is_told_once(_unused_ void **state)
{
	const Otlp__NumberDataPoint *point;
	const Otlp__HistogramDataPoint *histogram;

	begin_with(OTLP_CUMULATIVE, 500);
	send_page(10, 100, 3, 1, 0);
	send_page(11, 110, 0, 0, 0);
	assert_int_equal(batches.n, 2);
	assert_int_equal(sent(0)->metrics[0]->sum->data_points[0]->flags, 0);
	assert_int_equal(sent(1)->n_metrics, 1);
	assert_int_equal(batches.list[1].samples, 1);
	assert_string_equal(sent(1)->metrics[0]->name, "hw.energy");
	point = sent(1)->metrics[0]->sum->data_points[0];
	assert_int_equal(point->flags, 1);
	assert_int_equal(point->value_case, OTLP__NUMBER_DATA_POINT__VALUE__NOT_SET);
	assert_int_equal(point->time_unix_nano, 11 * NSEC_PER_SEC);
	assert_string_equal(point->attributes[0]->value->string_value, "GPU-2");
	send_page(12, 120, 0, 0, 0);
	assert_int_equal(batches.n, 1);
	batches_done(&batches);
	assert_int_equal(otlp_kind.finish(otlp, 12 * NSEC_PER_SEC, &batches), 0);
	assert_int_equal(sent(0)->n_metrics, 2);
	histogram = sent(0)->metrics[1]->histogram->data_points[0];
	assert_int_equal(histogram->flags, 1);
	assert_int_equal(histogram->n_explicit_bounds, 2);
	assert_int_equal(histogram->n_bucket_counts, 3);
	assert_int_equal(histogram->bucket_counts[0], 0);
	/* Not at the time of its last value. */
	assert_true(histogram->time_unix_nano > 12 * NSEC_PER_SEC);
}

static int send_counters(int64_t real_s, unsigned n, double number)
{
	struct samples_writer w;
	char uuid[16];

	samples_writer_init(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "c_total"),
						      .type = PAGE_COUNTER });
	for (unsigned i = 0; i < n; i++) {
		snprintf(uuid, sizeof(uuid), "GPU-%u", i);
		add_series(&w, uuid, number, 1 * NSEC_PER_SEC);
	}
	return make(&w, real_s);
}

/* Of a page that does not fit nothing is sent, so that what was added since is not told twice. */
static void what_does_not_fit_comes_with_the_next(_unused_ void **state)
{
	begin_with(OTLP_DELTA, 1);
	assert_int_equal(send_counters(10, BATCHES_MAX + 1, 1), 0);
	assert_int_equal(send_counters(11, BATCHES_MAX + 1, 2), -EFBIG);
	assert_int_equal(batches.n, 0);
	assert_int_equal(send_counters(12, 1, 5), 0);
	assert_int_equal(batches.n, 1);
	assert_float_equal(sent(0)->metrics[0]->sum->data_points[0]->as_double, 4, 0);
}

/* Three histograms that are one, and what becomes of it when it has other buckets. */
static void send_histograms(int64_t real_s, uint32_t bounds_n)
{
	struct page_bound bounds[4] = { 0 };
	const uint64_t counts[5] = { 1, 2, 3, 4, 5 };
	struct page_series series = { .value = 1 };
	struct samples_writer w;

	samples_writer_init(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "h_seconds"),
						      .type = PAGE_HISTOGRAM });
	series.histogram = samples_add_histogram(
		&w, &(struct page_histogram){ .n = bounds_n, .all = bounds_n + 1 }, bounds, counts);
	for (unsigned i = 0; i < 3; i++)
		samples_add_series(&w, &series);
	assert_int_equal(make(&w, real_s), 0);
}

static void histograms_that_are_one_and_change(_unused_ void **state)
{
	begin_with(OTLP_DELTA, 500);
	send_histograms(10, 1);
	send_histograms(11, 4);
	assert_int_equal(batches.n, 0);
	send_histograms(12, 4);
	assert_int_equal(sent(0)->metrics[0]->histogram->n_data_points, 3);
}

static void add_io(struct samples_writer *w, const char *family, const char *help)
{
	samples_add_family(w, &(struct page_family){ .name = samples_add_text(w, family),
						     .help = samples_add_text(w, help),
						     .unit = samples_add_text(w, "bytes"),
						     .type = PAGE_COUNTER });
	add_series(w, "GPU-1", 5, 1 * NSEC_PER_SEC);
}

/* Of several families, between which others stand. */
static void a_name_has_one_metric(_unused_ void **state)
{
	struct samples_writer w;

	begin_with(OTLP_CUMULATIVE, 500);
	samples_writer_init(&w);
	add_io(&w, "gpusonde_gpu_pcie_tx_bytes_total", "sent");
	add_durations(&w, 0);
	add_io(&w, "gpusonde_gpu_pcie_rx_bytes_total", "received");
	assert_int_equal(make(&w, 10), 0);
	assert_int_equal(sent(0)->n_metrics, 2);
	assert_string_equal(sent(0)->metrics[0]->name, "hw.gpu.io");
	assert_int_equal(sent(0)->metrics[0]->sum->n_data_points, 2);
	assert_string_equal(sent(0)->metrics[0]->description,
			    "Bytes that the GPU sent and received through PCIe.");
}

static void points_that_are_refused(_unused_ void **state)
{
	char words[16] = "";

	assert_int_equal(
		otlp_kind.refused((const uint8_t *)"\x0a\x06\x08\x05\x12\x02no", 8, words, sizeof(words)), 5);
	assert_string_equal(words, "no");
	assert_int_equal(otlp_kind.refused(NULL, 0, words, sizeof(words)), 0);
	assert_int_equal(otlp_kind.refused((const uint8_t *)"\xff\xff", 2, words, sizeof(words)), 0);
}

#define CASE(name_) cmocka_unit_test_teardown(name_, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(all_since_the_beginning),
		CASE(what_was_added),
		CASE(what_begins_between_two_pages),
		CASE(requests_are_bounded),
		CASE(what_has_ended_is_told_once),
		CASE(a_sum_of_nothing_is_told),
		CASE(points_that_are_refused),
		CASE(a_name_has_one_metric),
		CASE(what_does_not_fit_comes_with_the_next),
		CASE(histograms_that_are_one_and_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
