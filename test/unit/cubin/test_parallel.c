// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
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

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines in order. */
static void sort(struct strbuf *text)
{
	char *lines[4 * IMAGES + 8], *rest = text->data, *line;
	struct strbuf sorted;
	size_t n = 0;

	while ((line = strsep(&rest, "\n")) && n < ARRAY_SIZE(lines))
		lines[n++] = line;
	qsort(lines, n, sizeof(*lines), by_text);
	strbuf_init(&sorted, 0);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&sorted, "%s\n", lines[i]);
	strbuf_done(text);
	*text = sorted;
}

static void all_say_the_same(_unused_ void **state)
{
	struct strbuf bytes, want;
	struct cubin_memory memory;
	struct cubin_source source;

	fatbin_of_many(&bytes);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	strbuf_init(&want, 0);
	assert_int_equal(specimen_read_source(&source, NULL, &want, 0), 0);
	sort(&want);
	assert_non_null(strstr(want.data, "8 kernel8 8 "));
	assert_non_null(strstr(want.data, "the header of a container is wrong"));
	for (unsigned threads = 1; threads < 9; threads++) {
		struct strbuf got;

		strbuf_init(&got, 0);
		assert_int_equal(specimen_read_source(&source, NULL, &got, threads), 0);
		sort(&got);
		assert_string_equal(want.data, got.data);
		strbuf_done(&got);
	}
	strbuf_done(&want);
	strbuf_done(&bytes);
}

static int stop_at_tenth(_unused_ const struct cubin_image *image, _unused_ const struct cubin_kernel *kernel,
			 void *userdata)
{
	unsigned *n = userdata;

	assert_true(*n < 10);
	return ++*n == 10 ? -ECANCELED : 0;
}

static int want_it(_unused_ const struct cubin_image *image, _unused_ void *userdata)
{
	return 0;
}

static void the_first_error_stops_all(_unused_ void **state)
{
	static const struct cubin_ops ops = { want_it, stop_at_tenth, NULL };
	struct strbuf bytes;
	struct cubin_memory memory;
	struct cubin_source source;
	unsigned n = 0;

	fatbin_of_many(&bytes);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_int_equal(cubin_read_parallel(&source, NULL, &ops, &n, 4), -ECANCELED);
	assert_int_equal(n, 10);
	strbuf_done(&bytes);
	memory.n = 0;
	cubin_source_memory(&memory, &source);
	assert_int_equal(cubin_read_parallel(&source, NULL, &ops, &n, 4), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_say_the_same),
		cmocka_unit_test(the_first_error_stops_all),
	};

	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
