// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cubin/specimen.h"

enum { IMAGES = 200 };

/* Each image has a kernel of its own name, and every tenth image is broken; then a container that is none. */
static void fatbin_of_many(struct strbuf *ret_bytes)
{
	strbuf_init(ret_bytes, 0);
	for (unsigned i = 0; i < IMAGES; i++) {
		char name[16];
		const struct specimen_kernel kernels[] = { { .name = name, .registers = i, .code = 16 },
							   { .name = "same", .registers = 1, .code = 16 } };
		const struct specimen specimen = {
			.abi = 0x41, .sm = 80, .kernels = kernels, .n = 2, .gap = 100 * i
		};
		struct specimen_entry entry = { .arch = 80, .flags = i % 2 ? SPECIMEN_LZ4 : SPECIMEN_ZSTD };
		uint8_t *cubin;

		snprintf(name, sizeof(name), "kernel%u", i);
		cubin = specimen_cubin(&specimen, &entry.n);
		entry.bytes = cubin;
		entry = specimen_compressed(&entry);
		if (i % 10 == 9)
			memset((char *)(uintptr_t)entry.bytes, 0xff, 40);
		specimen_fatbin(ret_bytes, &entry, 1);
		free((void *)(uintptr_t)entry.bytes);
		free(cubin);
	}
	strbuf_add(ret_bytes, "\x50\xed\x55\xba\x01\x00\x00\x00", 8);
}

enum { PARTS = IMAGES + 8, THREADS = 8 };

/* What was told of each part, and by how many at a time. */
struct record {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_barrier_t all;
	unsigned threads;
	struct strbuf text[PARTS];
	bool ended[PARTS];
	uint64_t left_out;
	unsigned alone; /* calls */
	unsigned kernels_left; /* then -ECANCELED; 0: no end */
	int result;
};

struct teller {
	struct record *record;
	uint64_t part;
	bool begun;
	uint32_t images;
};

static void record_init(struct record *record)
{
	*record = (struct record){ .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	for (unsigned i = 0; i < PARTS; i++)
		strbuf_init(&record->text[i], 0);
}

/* All parts in order, and the record's memory. */
static void record_take(struct record *record, struct strbuf *ret_text)
{
	strbuf_init(ret_text, 0);
	for (unsigned i = 0; i < PARTS; i++) {
		strbuf_add(ret_text, record->text[i].data, record->text[i].len);
		strbuf_done(&record->text[i]);
	}
	strbuf_addf(ret_text, "%llu left out, result %d\n", (unsigned long long)record->left_out,
		    record->result);
}

static int begin(uint64_t part, void *userdata)
{
	struct teller *teller = userdata;

	assert_false(teller->begun);
	assert_true(part < PARTS);
	teller->part = part;
	teller->begun = true;
	/* Each has one of the first parts, however late it comes. */
	if (part < teller->record->threads)
		pthread_barrier_wait(&teller->record->all);
	return 0;
}

static int end(uint64_t left_out, void *userdata)
{
	struct teller *teller = userdata;
	struct record *record = teller->record;

	assert_true(teller->begun);
	teller->begun = false;
	pthread_mutex_lock(&record->lock);
	assert_false(record->ended[teller->part]);
	record->ended[teller->part] = true;
	record->left_out += left_out;
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
	return 0;
}

static bool are_before(const struct record *record, uint64_t part)
{
	for (uint64_t i = 0; i < part; i++)
		if (!record->ended[i])
			return false;
	return true;
}

static int alone(void *userdata)
{
	const struct teller *teller = userdata;
	struct record *record = teller->record;

	pthread_mutex_lock(&record->lock);
	record->alone++;
	while (!are_before(record, teller->part))
		pthread_cond_wait(&record->changed, &record->lock);
	pthread_mutex_unlock(&record->lock);
	return 0;
}

static int number(const struct cubin_image *image, void *userdata)
{
	struct teller *teller = userdata;

	assert_int_equal(image->number, teller->images++);
	return image->number % 7 == 3;
}

static int tell_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	const struct teller *teller = userdata;
	struct record *record = teller->record;
	int r = 0;

	assert_true(teller->begun);
	assert_int_equal(teller->images, image->number + 1);
	strbuf_addf(&record->text[teller->part], "%u %s %lld\n", image->number, kernel->symbol,
		    (long long)kernel->figures[KERNEL_REGISTERS]);
	pthread_mutex_lock(&record->lock);
	if (record->kernels_left && --record->kernels_left == 0)
		r = -ECANCELED;
	pthread_mutex_unlock(&record->lock);
	return r;
}

static void tell_trouble(uint64_t offset, const char *text, void *userdata)
{
	const struct teller *teller = userdata;

	assert_true(teller->begun);
	strbuf_addf(&teller->record->text[teller->part], "! %llu %s\n", (unsigned long long)offset, text);
}

static const struct cubin_ops ops = { .image = number, .kernel = tell_kernel, .trouble = tell_trouble };
static const struct cubin_parts parts = { &ops, begin, end, alone };

static void read_by(unsigned threads, const struct cubin_source *source, const struct cubin_limits *limits,
		    struct record *record)
{
	struct teller tellers[THREADS];
	void *userdata[THREADS];

	for (unsigned i = 0; i < threads; i++) {
		tellers[i] = (struct teller){ .record = record };
		userdata[i] = &tellers[i];
	}
	record->threads = threads;
	pthread_barrier_init(&record->all, NULL, threads);
	record->result = cubin_read_parallel(source, limits, &parts, userdata, threads);
	pthread_barrier_destroy(&record->all);
	for (unsigned i = 0; i < threads; i++)
		assert_false(tellers[i].begun);
}

static void assert_the_same(const struct cubin_source *source, const struct cubin_limits *limits,
			    struct strbuf *ret_text, unsigned *ret_alone)
{
	struct strbuf got;
	struct record record;

	record_init(&record);
	read_by(1, source, limits, &record);
	record_take(&record, ret_text);
	*ret_alone = 0;
	for (unsigned threads = 2; threads <= THREADS; threads++) {
		record_init(&record);
		read_by(threads, source, limits, &record);
		*ret_alone += record.alone;
		record_take(&record, &got);
		assert_string_equal(ret_text->data, got.data);
		strbuf_done(&got);
	}
}

static void all_say_the_same(_unused_ void **state)
{
	struct strbuf bytes, text;
	struct cubin_memory memory;
	struct cubin_source source;
	unsigned alone_n;

	fatbin_of_many(&bytes);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_the_same(&source, NULL, &text, &alone_n);
	assert_non_null(strstr(text.data, "\n8 kernel8 8\n8 same 1\n! "));
	assert_non_null(strstr(text.data, "the header of a container is wrong"));
	assert_null(strstr(text.data, "kernel10 "));
	assert_non_null(strstr(text.data, "\n0 left out, result 0\n"));
	assert_int_equal(alone_n, 0);
	strbuf_done(&text);
	/* Large ones are read by one at a time, and larger ones in a stream. */
	assert_the_same(&source, &(struct cubin_limits){ .image_bytes = 16 << 10 }, &text, &alone_n);
	assert_non_null(strstr(text.data, "\n198 kernel198 198\n"));
	assert_true(alone_n > 0);
	strbuf_done(&text);
	assert_the_same(&source, &(struct cubin_limits){ .image_bytes = 1, .metadata_bytes = 4 << 10 }, &text,
			&alone_n);
	assert_non_null(strstr(text.data, "\n198 kernel198 198\n"));
	assert_true(alone_n > 0);
	strbuf_done(&text);
	strbuf_done(&bytes);
}

/* A little file that stands for more than it may: the images that are read are the same ones. */
static void the_budget_is_one_for_all(_unused_ void **state)
{
	struct specimen_entry entry = { .arch = 80, .flags = SPECIMEN_LZ4, .uncompressed = 60ull << 20 };
	struct strbuf bytes, text;
	struct cubin_memory memory;
	struct cubin_source source;
	unsigned alone_n;

	strbuf_init(&bytes, 0);
	entry.bytes = "not compressed as it should be..";
	entry.n = 32;
	for (unsigned i = 0; i < 8; i++)
		specimen_fatbin(&bytes, &entry, 1);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_the_same(&source, NULL, &text, &alone_n);
	/* 256 MiB are for two of them, each twice; of the others one is not wanted. */
	assert_non_null(strstr(text.data, "kernels of 5 images, of which this is the first, are not read"));
	strbuf_done(&text);
	strbuf_done(&bytes);
}

/* Each part tells so many of its troubles, and how many more there were. */
static void troubles_of_a_part_are_bounded(_unused_ void **state)
{
	enum { ENTRIES = 300 };
	struct specimen_entry entries[ENTRIES];
	struct strbuf bytes, text;
	struct cubin_memory memory;
	struct cubin_source source;
	unsigned alone_n, told = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		entries[i] = (struct specimen_entry){ .arch = 80, .bytes = "no ELF image....", .n = 16 };
	strbuf_init(&bytes, 0);
	for (unsigned i = 0; i < 3; i++)
		specimen_fatbin(&bytes, entries, ENTRIES);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_the_same(&source, NULL, &text, &alone_n);
	for (const char *p = text.data; (p = strstr(p, "! ")); p++)
		told++;
	assert_int_equal(told, 3 * CUBIN_TROUBLES_MAX);
	/* Of 300 every 7th was not wanted. */
	assert_null(strstr(text.data, "\n0 left out"));
	strbuf_done(&text);
	strbuf_done(&bytes);
}

static void the_first_error_stops_all(_unused_ void **state)
{
	struct strbuf bytes, text;
	struct cubin_memory memory;
	struct cubin_source source;
	struct record record;

	fatbin_of_many(&bytes);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	for (unsigned threads = 1; threads <= THREADS; threads++) {
		unsigned lines = 0;

		record_init(&record);
		record.kernels_left = 10;
		read_by(threads, &source, NULL, &record);
		assert_int_equal(record.result, -ECANCELED);
		record_take(&record, &text);
		for (const char *p = text.data; (p = strchr(p, '\n')); p++)
			lines++;
		assert_true(lines < 10 + 3 * threads + 3);
		strbuf_done(&text);
	}
	memory.n = 0;
	cubin_source_memory(&memory, &source);
	record_init(&record);
	read_by(4, &source, NULL, &record);
	assert_int_equal(record.result, -ENOEXEC);
	record_take(&record, &text);
	strbuf_done(&text);
	strbuf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_say_the_same),
		cmocka_unit_test(the_budget_is_one_for_all),
		cmocka_unit_test(troubles_of_a_part_are_bounded),
		cmocka_unit_test(the_first_error_stops_all),
	};

	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
