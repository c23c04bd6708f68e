// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "samples/read.h"
#include "samples/write.h"

static uint64_t room[64 << 10]; /* aligned */
static uint32_t bytes;

static struct page_label label(struct samples_writer *w, const char *name, const char *value)
{
	return (struct page_label){ samples_add_text(w, name), samples_add_text(w, value) };
}

static void add_histogram(struct samples_writer *w)
{
	const struct page_bound bounds[] = { { .value = 1, .text = samples_add_text(w, "1") },
					     { .value = 4, .text = samples_add_text(w, "4") } };
	static const uint64_t counts[] = { 1, 2, 5 };
	struct page_series series = { .value = 7.5 };

	samples_add_family(w,
			   &(struct page_family){ .name = samples_add_text(w, "h"), .type = PAGE_HISTOGRAM });
	series.histogram = samples_add_histogram(
		w, &(struct page_histogram){ .n = ARRAY_SIZE(bounds), .all = ARRAY_SIZE(counts) }, bounds,
		counts);
	samples_add_series(w, &series);
}

static void write_page(void)
{
	_cleanup_close_ int fd = -1;
	struct samples_writer w;
	struct page_label gpu, process[2];
	struct page_series series = { .value = 1.5, .created_real_ns = 9, .estimated = 1 };

	samples_writer_init(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "a_total"),
						      .help = samples_add_text(&w, "what it is"),
						      .type = PAGE_COUNTER });
	gpu = label(&w, "gpu", "0");
	process[0] = label(&w, "pid", "12");
	process[1] = label(&w, "comm", "0");
	series.sets[0] = samples_add_set(&w, &gpu, 1);
	series.sets[2] = samples_add_set(&w, process, 2);
	samples_add_series(&w, &series);
	series.sets[2] = 0;
	samples_add_series(&w, &series);
	add_histogram(&w);
	samples_add_family(&w, &(struct page_family){ .name = samples_add_text(&w, "none") });
	fd = samples_write(&w, 77, &bytes);
	samples_writer_done(&w);
	assert_true(fd >= 0 && bytes <= sizeof(room));
	assert_int_equal(pread(fd, room, sizeof(room), 0), bytes);
}

static void is_label(const struct samples *s, const struct page_label *l, const char *name, const char *value)
{
	assert_string_equal(samples_text(s, l->name), name);
	assert_string_equal(samples_text(s, l->value), value);
}

static void what_is_written_is_read(void **state)
{
	struct page_label labels[8];
	struct samples s;

	(void)state;
	write_page();
	assert_int_equal(samples_read(room, bytes, &s), 0);
	assert_int_equal(s.real_ns, 77);
	assert_int_equal(s.n[PAGE_FAMILIES], 3);
	assert_string_equal(samples_text(&s, s.families[0].name), "a_total");
	assert_string_equal(samples_text(&s, s.families[0].help), "what it is");
	assert_int_equal(s.families[0].n, 2);
	assert_int_equal(samples_labels(&s, &s.series[0], labels, 8), 3);
	is_label(&s, &labels[0], "gpu", "0");
	is_label(&s, &labels[1], "pid", "12");
	is_label(&s, &labels[2], "comm", "0");
	assert_int_equal(labels[0].value, labels[2].value); /* a text is there once */
	assert_int_equal(samples_labels(&s, &s.series[0], labels, 2), 2);
	assert_int_equal(samples_labels(&s, &s.series[1], labels, 8), 1);
	assert_true(s.series[0].value == 1.5 && s.series[0].created_real_ns == 9 &&
		    s.series[0].estimated == 1);
	assert_int_equal(s.families[1].type, PAGE_HISTOGRAM);
	assert_int_equal(s.histograms[0].n, 2);
	assert_true(s.bounds[s.histograms[0].bounds + 1].value == 4 &&
		    s.counts[s.histograms[0].counts + 2] == 5);
	assert_int_equal(s.families[2].n, 0);
}

/* Each number of the page that could lead out of it, made too large. */
static void what_leads_out_is_refused(void **state)
{
	struct samples s;
	char *start = (char *)room;
	unsigned refused = 0, tried = 0;

	(void)state;
	write_page();
	assert_int_equal(samples_read(room, bytes, &s), 0);
#define SPOIL(where_, value_)                                                             \
	do {                                                                              \
		size_t at = (size_t)((const char *)&(where_)-start);                      \
		uint32_t before;                                                          \
		const uint32_t wrong = (value_);                                          \
		memcpy(&before, start + at, 4);                                           \
		memcpy(start + at, &wrong, 4);                                            \
		tried++;                                                                  \
		refused += samples_read(room, bytes, &(struct samples){ 0 }) == -EBADMSG; \
		memcpy(start + at, &before, 4);                                           \
	} while (0)
	for (unsigned part = 0; part < PAGE_PARTS_N; part++) {
		SPOIL(((struct page_header *)room)->n[part], UINT32_MAX);
		SPOIL(((struct page_header *)room)->n[part], s.n[part] + 8);
	}
	SPOIL(s.families[0].name, s.n[PAGE_TEXTS]);
	SPOIL(s.families[0].help, UINT32_MAX);
	SPOIL(s.families[0].unit, UINT32_MAX);
	SPOIL(s.families[0].type, PAGE_TYPES);
	SPOIL(s.families[0].type, PAGE_HISTOGRAM);
	SPOIL(s.families[1].type, PAGE_GAUGE);
	SPOIL(s.families[0].first, 1);
	SPOIL(s.families[0].n, 4);
	SPOIL(s.families[2].n, UINT32_MAX);
	SPOIL(s.series[0].sets[5], s.n[PAGE_SETS] + 1);
	SPOIL(s.series[0].histogram, 1);
	SPOIL(s.series[2].histogram, 2);
	SPOIL(s.series[0].estimated, 2);
	SPOIL(s.sets[1].n, 3);
	SPOIL(s.sets[1].first, UINT32_MAX);
	SPOIL(s.labels[0].value, s.n[PAGE_TEXTS]);
	SPOIL(s.labels[2].name, UINT32_MAX);
	SPOIL(s.bounds[1].text, s.n[PAGE_TEXTS]);
	SPOIL(s.histograms[0].n, 3);
	SPOIL(s.histograms[0].n, UINT32_MAX);
	SPOIL(s.histograms[0].all, 2);
	SPOIL(s.histograms[0].all, 4);
	SPOIL(s.histograms[0].first, PAGE_FIRST_MAX + 1);
	SPOIL(s.histograms[0].first, INT32_MIN);
	SPOIL(s.histograms[0].bounds, 1);
	SPOIL(s.histograms[0].counts, 1);
	SPOIL(s.texts[s.n[PAGE_TEXTS] - 4], 0x41414141);
	assert_int_equal(refused, tried);
	assert_int_equal(samples_read(room, bytes, &s), 0);
	for (uint32_t n = 0; n < bytes; n++)
		assert_int_equal(samples_read(room, n, &s), -EBADMSG);
	assert_int_equal(samples_read(room, bytes + 8, &s), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_leads_out_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
