// SPDX-License-Identifier: Apache-2.0
/* A store in memory stands in for the reader, so that its times and numbers are this test's. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "store/history.h"
#include "view/fixture.h"

#define SECOND INT64_C(1000000000)
#define BEGAN (1700000000 * SECOND)
enum { BLOCKS = 4 };

static struct fields fields[STORE_TABLES];
static struct stored_layout layout;
static struct stored_block listed[BLOCKS];
static struct strbuf packed[BLOCKS];
static size_t listed_n;
static struct block *opened;
static int failure; /* of opening a block */

const struct stored_block *store_reader_blocks(_unused_ const struct store_reader *reader, size_t *ret_n)
{
	*ret_n = listed_n;
	return listed;
}

const struct fields *store_reader_fields(_unused_ const struct store_reader *reader)
{
	return fields;
}

int store_reader_block(_unused_ struct store_reader *reader, const struct stored_block *stored,
		       struct block **ret_block)
{
	const struct strbuf *data = &packed[stored - listed];
	int r = failure;

	block_free(TAKE_PTR(opened));
	if (r == 0)
		r = block_read(fields, &layout, data->data, data->len, &opened);
	*ret_block = opened;
	return r;
}

/* ---- making it ---- */

static void add_frame(struct block_writer *writer, const struct snapshot *s)
{
	struct frame_mark mark = { 0 };
	struct strbuf bytes;
	struct frame frame;
	uint64_t left_out;

	strbuf_init(&bytes, 0);
	assert_int_equal(frame_write(s, true, &mark, &bytes, &left_out), 0);
	assert_int_equal(frame_read(bytes.data, bytes.len, &frame), 0);
	assert_int_equal(block_writer_add(writer, &frame), 0);
	strbuf_done(&bytes);
}

/* @n snapshots from @first_ns on, one each @period_ns, whose power is their number. */
static void add_block(uint32_t tier, int64_t first_ns, int64_t period_ns, unsigned n)
{
	struct block_writer *writer;
	struct snapshot *s = fixture_small();

	assert_true(listed_n < BLOCKS);
	assert_int_equal(block_writer_new(fields, &writer), 0);
	s->entities[0].present = true;
	s->entities[0].id.p[SLOT_POWER] = PRESENCE_PRESENT;
	for (unsigned i = 0; i < n; i++) {
		s->real_ns = first_ns + i * period_ns;
		s->entities[0].id.v[SLOT_POWER] = i;
		/* The third has no number, the fourth an old one. */
		s->entities[0].id.p[SLOT_POWER] = i == 2 ? PRESENCE_ABSENT : PRESENCE_PRESENT;
		s->entities[0].stale = i == 3;
		add_frame(writer, s);
	}
	strbuf_init(&packed[listed_n], 0);
	assert_int_equal(block_writer_finish(writer, true, &packed[listed_n]), 0);
	listed[listed_n++] = (struct stored_block){
		.tier = tier,
		.frames = n,
		.real_first_ns = first_ns,
		.real_last_ns = first_ns + (n - 1) * period_ns,
	};
	block_writer_free(writer);
	fixture_free(s);
}

static int begin(_unused_ void **state)
{
	struct strbuf text;
	int r = fields_new(fields);

	strbuf_init(&text, 0);
	layout_write(fields, &text);
	if (r == 0)
		r = layout_read(fields, text.data, text.len, &layout);
	strbuf_done(&text);
	return r;
}

static int forget(_unused_ void **state)
{
	block_free(TAKE_PTR(opened));
	while (listed_n > 0)
		strbuf_done(&packed[--listed_n]);
	failure = 0;
	return 0;
}

static int end(_unused_ void **state)
{
	layout_done(&layout);
	fields_done(fields);
	return 0;
}

/* ---- reading it ---- */

static uint32_t power(void)
{
	for (uint32_t row = 0; row < GPU_METRICS; row++)
		if (gpu_metrics[row].slot == SLOT_POWER)
			return row;
	fail();
	return 0;
}

static struct history_query query_of(int64_t since_ns, int64_t until_ns, int64_t step_ns)
{
	return (struct history_query){ .metrics = { power() },
				       .metrics_n = 1,
				       .gpu = 0,
				       .since_ns = since_ns,
				       .until_ns = until_ns,
				       .step_ns = step_ns };
}

static void test_points(_unused_ void **state)
{
	struct history_query query = query_of(BEGAN, BEGAN + 29 * SECOND, 10 * SECOND);
	const struct history_point *points;
	struct history history;

	add_block(0, BEGAN, SECOND, 25);
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.points, 3);
	assert_int_equal(history.series_n, 1);
	points = history.series[0].points;
	assert_true(points[0].min == 0);
	assert_true(points[0].max == 9);
	assert_true(points[2].last == 24);
	history_done(&history);

	query = query_of(BEGAN, BEGAN + 29 * SECOND, SECOND);
	assert_int_equal(history_read(NULL, &query, &history), 0);
	points = history.series[0].points;
	assert_true(points[1].known && points[4].known && points[24].known);
	assert_false(points[2].known || points[3].known || points[25].known);
	history_done(&history);

	query.gpu = 7;
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.series_n, 0);
	history_done(&history);
}

static const struct history_series *series_of(const struct history *history, uint32_t metric,
					      const char *device)
{
	for (uint32_t i = 0; i < history->series_n; i++)
		if (history->series[i].metric == metric && STRV_EQ(history->series[i].device, device))
			return &history->series[i];
	fail_msg("no series of %u, \"%s\"", metric, device);
	return NULL;
}

/* The machine, and each device by its name; whichever GPU is asked for. */
static void test_the_machine(_unused_ void **state)
{
	struct history_query query = query_of(BEGAN, BEGAN + 9 * SECOND, SECOND);
	struct snapshot *s = fixture_small();
	const struct host *host = &s->host;
	const struct history_series *series;
	struct history history;

	query.metrics[0] = metric_code(METRICS_OF_HOST, HOST_CPU_USER);
	query.metrics[1] = metric_code(METRICS_OF_DISK, DISK_WRITTEN_BYTES);
	query.metrics[2] = metric_code(METRICS_OF_INTERFACE, INTERFACE_SENT_BYTES);
	query.metrics[3] = power();
	query.metrics_n = 4;
	add_block(0, BEGAN, SECOND, 10);
	assert_int_equal(history_read(NULL, &query, &history), 0);
	series = series_of(&history, query.metrics[0], "");
	assert_string_equal(series->uuid, "");
	for (unsigned i = 0; i < 10; i++)
		assert_true(series->points[i].known && series->points[i].last == host->v[HOST_CPU_USER]);
	for (unsigned kind = 0; kind < HOST_LISTS; kind++)
		for (uint32_t i = 0; i < host->devices[kind].n; i++) {
			const struct host_device *device = &host->devices[kind].list[i];
			unsigned row = kind == HOST_DISKS ? (unsigned)DISK_WRITTEN_BYTES :
							    (unsigned)INTERFACE_SENT_BYTES;

			if (!presence_is(device->p[row]))
				continue;
			series = series_of(&history, query.metrics[1 + kind], device->name);
			assert_true(series->points[9].last == device->v[row]);
		}
	assert_true(host->devices[HOST_DISKS].n > 0 && host->devices[HOST_INTERFACES].n > 0);
	assert_true(series_of(&history, power(), "")->points[1].last == 1);
	history_done(&history);
	fixture_free(s);
}

/* The coarsest pace that has a snapshot in each step, of those that reach back. */
static void test_paces(_unused_ void **state)
{
	struct history_query query = query_of(BEGAN + 500 * SECOND, BEGAN + 599 * SECOND, 10 * SECOND);
	struct history history;

	add_block(1, BEGAN, 10 * SECOND, 60);
	add_block(0, BEGAN + 500 * SECOND, SECOND, 100);
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.tier, 1);
	history_done(&history);
	query.step_ns = SECOND;
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.tier, 0);
	history_done(&history);
	query.since_ns = BEGAN;
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.tier, 1);
	assert_int_equal(history.step_ns, 10 * SECOND);
	history_done(&history);
}

/* Of a time that the clock had twice the later one is shown. */
static void test_clock_is_set_back(_unused_ void **state)
{
	struct history_query query = query_of(BEGAN, BEGAN + 9 * SECOND, SECOND);
	struct history history;

	add_block(0, BEGAN, SECOND, 10);
	add_block(0, BEGAN - 5 * SECOND, SECOND, 10);
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_true(history.series[0].points[0].last == 5);
	assert_true(history.series[0].points[4].last == 9);
	assert_true(history.series[0].points[5].last == 5);
	history_done(&history);
}

static void test_refused(_unused_ void **state)
{
	const struct history_query good = query_of(BEGAN, BEGAN + 9 * SECOND, SECOND);
	struct history_query bad[] = { good, good, good, good, good, good, good, good };
	struct history history;

	assert_int_equal(history_read(NULL, &good, &history), -ENOENT);
	add_block(0, BEGAN, SECOND, 10);
	bad[0].metrics_n = 0;
	bad[1].metrics_n = UINT32_MAX;
	bad[2].metrics[0] = GPU_METRICS;
	bad[3].step_ns = 0;
	bad[4].step_ns = INT64_MIN;
	bad[5].until_ns = BEGAN - 1;
	bad[6].until_ns = INT64_MAX;
	bad[7].since_ns = INT64_MIN + 1;
	bad[7].until_ns = INT64_MAX;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(history_read(NULL, &bad[i], &history), -EINVAL);
	bad[0] = query_of(BEGAN, BEGAN + (HISTORY_POINTS_MAX - 1) * SECOND, SECOND);
	assert_int_equal(history_read(NULL, &bad[0], &history), 0);
	history_done(&history);
	bad[0].until_ns += SECOND;
	assert_int_equal(history_read(NULL, &bad[0], &history), -E2BIG);
	/* A greatest step is one point. */
	bad[0].step_ns = INT64_MAX;
	assert_int_equal(history_read(NULL, &bad[0], &history), 0);
	assert_int_equal(history.points, 1);
	history_done(&history);
}

/* What has been dropped meanwhile is not known; what is damaged is told. */
static void test_blocks_that_fail(_unused_ void **state)
{
	const struct history_query query = query_of(BEGAN, BEGAN + 9 * SECOND, SECOND);
	struct history history;

	add_block(0, BEGAN, SECOND, 10);
	failure = -ENOENT;
	assert_int_equal(history_read(NULL, &query, &history), 0);
	assert_int_equal(history.series_n, 0);
	history_done(&history);
	failure = -EBADMSG;
	assert_int_equal(history_read(NULL, &query, &history), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_points, forget),
		cmocka_unit_test_teardown(test_the_machine, forget),
		cmocka_unit_test_teardown(test_paces, forget),
		cmocka_unit_test_teardown(test_clock_is_set_back, forget),
		cmocka_unit_test_teardown(test_refused, forget),
		cmocka_unit_test_teardown(test_blocks_that_fail, forget),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
