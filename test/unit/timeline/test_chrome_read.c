// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strbuf.h"
#include "timeline/chrome_read.h"

static struct chrome_file file;

static int read_bytes(const char *text, size_t n)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return chrome_file_read(fd, &file);
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static int done(void **state)
{
	(void)state;
	chrome_file_done(&file);
	return 0;
}

static const char *text_of(uint32_t text)
{
	return texts_get(&file.texts, text);
}

static void is_slice(uint32_t i, const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	const struct chrome_slice *slice = chrome_slice_at(&file, i);

	assert_true(i < file.slices.n);
	assert_string_equal(text_of(slice->name), name);
	assert_int_equal(slice->begin_ns, begin_ns);
	assert_int_equal(slice->end_ns, end_ns);
}

static void complete_events_and_pairs(void **state)
{
	const struct chrome_place *place;

	(void)state;
	assert_int_equal(
		read_text("[{\"ph\":\"B\",\"name\":\"outer\",\"cat\":\"py\",\"ts\":10.5,\"pid\":7,\"tid\":8},"
			  "{\"ph\":\"X\",\"name\":\"x\",\"ts\":12,\"dur\":1.0014,\"pid\":7,\"tid\":8,"
			  "\"args\":{\"name\":\"no\"}},"
			  "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7},"
			  "{\"ph\":\"E\",\"ts\":\"20\",\"pid\":7,\"tid\":8},"
			  "{\"ph\":\"X\",\"name\":\"other\",\"ts\":1e3,\"dur\":0,"
			  "\"pid\":\"a\",\"tid\":\"stream 7\"}]"),
		0);
	assert_int_equal(file.slices.n, 3);
	is_slice(0, "outer", 10500, 20000);
	is_slice(1, "x", 12000, 13001);
	is_slice(2, "other", 1000000, 1000000);
	assert_string_equal(text_of(chrome_slice_at(&file, 0)->category), "py");
	place = chrome_place_at(&file, chrome_slice_at(&file, 0)->place);
	assert_int_equal(place->pid, 7);
	assert_int_equal(place->tid, 8);
	place = chrome_place_at(&file, chrome_slice_at(&file, 2)->place);
	assert_int_equal(place->pid, 0);
	assert_string_equal(text_of(place->thread), "stream 7");
	assert_int_equal(file.left_out + file.cut, 0);
}

/* As PyTorch's profiler writes it. */
static void an_object_with_a_base(void **state)
{
	(void)state;
	assert_int_equal(read_text("{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\","
				   "\"ts\":1,\"dur\":2,"
				   "\"pid\":1,\"tid\":1}],\"baseTimeNanoseconds\":1700000000000000000}"),
			 0);
	is_slice(0, "a", 1000, 3000);
	assert_int_equal(file.base_ns, INT64_C(1700000000000000000));
}

static void times_beyond_every_clock(void **state)
{
	static const char *const times[] = { "1900000000000000000", "1900000000000000000.5",
					     "18446744073709551616000", "1e40" };

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		char text[200];

		snprintf(text, sizeof(text), "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":%s,\"dur\":1}]", times[i]);
		assert_int_equal(read_text(text), 0);
		assert_int_equal(file.slices.n, 0);
		assert_int_equal(file.left_out, 1);
		done(state);
	}
	assert_int_equal(read_text("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":2305843009213692.123,\"dur\":1}]"),
			 0);
	is_slice(0, "a", UINT64_C(2305843009213692123), UINT64_C(2305843009213693123));
}

static void recursion_keeps_its_pairs(void **state)
{
	(void)state;
	assert_int_equal(read_text("[{\"ph\":\"B\",\"name\":\"f\",\"ts\":1,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"B\",\"name\":\"f\",\"ts\":2,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"B\",\"name\":\"g\",\"ts\":2,\"pid\":1,\"tid\":2},"
				   "{\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"E\",\"ts\":9,\"pid\":1,\"tid\":1}]"),
			 0);
	assert_int_equal(file.slices.n, 2);
	is_slice(0, "f", 1000, 4000);
	is_slice(1, "f", 2000, 3000);
	/* g has no end, and the last end no begin. */
	assert_int_equal(file.left_out, 2);
}

/* Viewers close the innermost one. */
static void what_overlaps_is_cut(void **state)
{
	(void)state;
	assert_int_equal(read_text("[{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":10,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":9,\"pid\":1,\"tid\":1}]"),
			 0);
	is_slice(0, "a", 1000, 10000);
	is_slice(1, "b", 5000, 10000);
	assert_int_equal(file.cut, 1);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(
		read_text("[{\"ph\":\"X\",\"name\":\"no time\",\"dur\":1,\"pid\":1,\"tid\":1},"
			  "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1},"
			  "{\"ph\":\"X\",\"name\":\"negative\",\"ts\":-1,\"dur\":1},"
			  "{\"ph\":\"X\",\"name\":\"far\",\"ts\":99999999999999999999999999,\"dur\":1},"
			  "{\"ph\":\"X\",\"name\":\"nan\",\"ts\":\"nan\",\"dur\":1},"
			  "{\"ph\":\"X\",\"name\":\"no duration\",\"ts\":1},"
			  "{\"ph\":\"B\",\"name\":\"backwards\",\"ts\":5},{\"ph\":\"E\",\"ts\":4},"
			  "7,\"x\",null]"),
		0);
	assert_int_equal(file.slices.n, 0);
	assert_int_equal(file.left_out, 7);
}

/* Its program was killed while it wrote. */
static void a_file_may_end_anywhere(void **state)
{
	(void)state;
	assert_int_equal(read_text("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1},"
				   "{\"ph\":\"X\",\"na"),
			 0);
	assert_int_equal(file.slices.n, 1);
}

static void what_is_none_is_refused(void **state)
{
	(void)state;
	assert_int_equal(read_text("[{\"ph\":\"X\"}} oops"), -EBADMSG);
	done(NULL);
	assert_int_equal(read_text("{\"a\":1}"), -EBADMSG);
	done(NULL);
	assert_int_equal(read_text(""), -EBADMSG);
}

static void deep_and_long_ones_are_refused(void **state)
{
	static char deep[1000], longer[3 << 20];

	(void)state;
	memset(deep, '[', sizeof(deep));
	assert_int_equal(read_bytes(deep, sizeof(deep)), -E2BIG);
	done(NULL);
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "[\"", 2);
	assert_int_equal(read_bytes(longer, sizeof(longer)), -EFBIG);
}

static void places_have_a_limit(void **state)
{
	struct strbuf text;

	(void)state;
	strbuf_init(&text, 0);
	strbuf_addc(&text, '[');
	for (unsigned i = 0; i < CHROME_PLACES_MAX + 10; i++)
		strbuf_addf(&text, "%s{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"tid\":%u}",
			    i ? "," : "", i);
	strbuf_addc(&text, ']');
	assert_int_equal(read_bytes(text.data, text.len), 0);
	assert_int_equal(file.slices.n, CHROME_PLACES_MAX);
	assert_int_equal(file.left_out, 10);
	strbuf_done(&text);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(complete_events_and_pairs),      TEST(an_object_with_a_base),
		TEST(times_beyond_every_clock),       TEST(recursion_keeps_its_pairs),
		TEST(what_overlaps_is_cut),           TEST(what_makes_no_sense_is_left_out),
		TEST(a_file_may_end_anywhere),        TEST(what_is_none_is_refused),
		TEST(deep_and_long_ones_are_refused), TEST(places_have_a_limit),
	};

	return cmocka_run_group_tests_name("chrome_read", tests, NULL, NULL);
}
