// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cubin/specimen.h"

static const struct specimen_kernel kernels[] = {
	{ .name = "one",
	  .registers = 40,
	  .shared = 1024 + 96,
	  .constant = 0x168,
	  .code = 640,
	  .frame = 16,
	  .stack = 48,
	  .max_threads = 256,
	  .cluster = { 2, 1, 1 } },
	{ .name = "helper", .registers = 12, .code = 128, .device_function = 1 },
	{ .name = "two",
	  .registers = 255,
	  .shared = 2048,
	  .constant = 0x210,
	  .local = 8,
	  .code = 1280,
	  .frame = 24,
	  .barriers = 16,
	  .stack = UINT32_MAX,
	  .required = { 32, 4, 2 } },
};
/*
 * registers, static and reserved shared, constants, local, stack, code, barriers, threads; block, cluster,
 * parameters
 */
static const char one[] = "one 40 96 1024 360 0 48 640 0 256 0,0,0 2,1,1 12\n";
static const char two[] = "two 255 1024 1024 528 8 -1 1280 16 256 32,4,2 0,0,0 12\n";

static void assert_read(const void *bytes, size_t n, const struct cubin_limits *limits, const char *want)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(bytes, n, limits, &out), 0);
	assert_string_equal(out.data, want);
	strbuf_done(&out);
}

static void reads_both_abis(_unused_ void **state)
{
	struct specimen specimen = { .abi = 0x41, .sm = 90, .kernels = kernels, .n = ARRAY_SIZE(kernels) };
	char want[512];

	for (int old = 0; old < 2; old++) {
		for (int accelerated = 0; accelerated < 2; accelerated++) {
			_cleanup_free_ uint8_t *bytes = NULL;
			size_t n;

			specimen.abi = old ? 0x33 : 0x41;
			specimen.accelerated = accelerated;
			bytes = specimen_cubin(&specimen, &n);
			snprintf(want, sizeof(want), "0/0 elf 0 sm_90%s none 0 %zu\n0 %s0 %s",
				 accelerated ? "a" : "", n, one, two);
			assert_read(bytes, n, NULL, want);
		}
	}
}

static void shared_memory_is_reserved_in_linked_images_of_sm_90(_unused_ void **state)
{
	static const struct {
		uint16_t sm;
		int relocatable;
		const char *want;
	} cases[] = { { 89, 0, "0 two 255 2048 0 528 8 -1" },
		      { 90, 0, "0 two 255 1024 1024 528 8 -1" },
		      { 90, 1, "0 two 255 2048 0 528 8 -1" },
		      { 120, 0, "0 two 255 1024 1024 528 8 -1" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct specimen specimen = { .abi = 0x41,
					     .sm = cases[i].sm,
					     .kernels = kernels,
					     .n = 3,
					     .relocatable = cases[i].relocatable };
		_cleanup_free_ uint8_t *bytes = NULL;
		struct strbuf out;
		size_t n;

		bytes = specimen_cubin(&specimen, &n);
		strbuf_init(&out, 0);
		assert_int_equal(specimen_read(bytes, n, NULL, &out), 0);
		assert_non_null(strstr(out.data, cases[i].want));
		assert_int_equal(!!strstr(out.data, "relocatable"), cases[i].relocatable);
		strbuf_done(&out);
	}
}

static void stack_is_the_frame_where_no_sum_is_told(_unused_ void **state)
{
	static const struct specimen_kernel kernel = { .name = "k", .registers = 8, .frame = 24, .code = 16 };
	const struct specimen specimen = {
		.abi = 0x41, .sm = 75, .kernels = &kernel, .n = 1, .relocatable = 1
	};
	_cleanup_free_ uint8_t *bytes = NULL;
	char want[128];
	size_t n;

	bytes = specimen_cubin(&specimen, &n);
	snprintf(want, sizeof(want),
		 "0/0 elf 0 sm_75 none relocatable 0 %zu\n0 k 8 0 0 0 0 24 16 0 -1 0,0,0 0,0,0 12\n", n);
	assert_read(bytes, n, NULL, want);
}

/* Whole, and in a stream; a stream's gap is larger than what is decompressed at once. */
static void reads_compressed_images(_unused_ void **state)
{
	static const struct cubin_limits limits[] = { { 0, 0 }, { 1, 0 }, { 1, 8192 } };
	const struct specimen specimen = { .abi = 0x33, .sm = 80, .gap = 900000, .kernels = kernels, .n = 3 };
	_cleanup_free_ uint8_t *bytes = NULL;
	struct specimen_entry entries[4];
	struct strbuf fatbin;
	char want[1024];
	size_t n;

	bytes = specimen_cubin(&specimen, &n);
	for (int i = 0; i < 3; i++) {
		static const uint64_t flags[] = { 0x11, 0x102011, 0x208013 };

		entries[i] = (struct specimen_entry){
			.arch = 80 + 10 * (unsigned)i, .flags = flags[i], .bytes = bytes, .n = n
		};
		if (i > 0)
			entries[i] = specimen_compressed(&entries[i]);
	}
	entries[1].header_bytes = 112;
	entries[3] =
		(struct specimen_entry){ .kind = 8, .arch = 90, .bytes = "BC", .n = 2, .header_bytes = 80 };
	strbuf_init(&fatbin, 0);
	specimen_fatbin(&fatbin, entries, 4);
	snprintf(want, sizeof(want),
		 "0/0 elf 2 sm_80 none 80 %zu\n0 one 40 1120 0 360 0 48 640 0 256 0,0,0 2,1,1 12\n"
		 "0 two 255 2048 0 528 8 -1 1280 16 256 32,4,2 0,0,0 12\n"
		 "0/1 elf 2 sm_90a lz4 %zu %zu\n1 %s1 %s0/2 elf 2 sm_100f zstd debug %zu %zu\n2 %s2 %s"
		 "0/3 other 8 sm_90 none %zu 8\n",
		 (n + 7) / 8 * 8, 80 + (n + 7) / 8 * 8 + 112, n, one, two,
		 80 + (n + 7) / 8 * 8 + 112 + (entries[1].n + 7) / 8 * 8 + 64, n, one, two, fatbin.len - 8);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		assert_read(fatbin.data, fatbin.len, &limits[i], want);
	free((void *)(uintptr_t)entries[1].bytes);
	free((void *)(uintptr_t)entries[2].bytes);
	strbuf_done(&fatbin);
}

static void reads_old_cubins(_unused_ void **state)
{
	const struct specimen specimen = { .abi = 0x33, .sm = 80, .kernels = kernels, .n = 1 };
	_cleanup_free_ uint8_t *bytes = NULL;
	struct specimen_entry entries[2];
	struct strbuf fatbin;
	char want[512];
	size_t n;

	bytes = specimen_cubin(&specimen, &n);
	entries[0] = (struct specimen_entry){ .kind = 4, .arch = 20, .bytes = "not one.", .n = 8 };
	entries[1] = (struct specimen_entry){ .kind = 4, .arch = 80, .flags = 0x11, .bytes = bytes, .n = n };
	strbuf_init(&fatbin, 0);
	specimen_fatbin(&fatbin, entries, 2);
	snprintf(want, sizeof(want),
		 "0/0 elf 4 sm_20 none 80 8\n! 80 headers of an image: the file ends\n0/1 elf 4 sm_80 none "
		 "152 %zu\n1 one 40 1120 0 360 0 48 640 0 256 "
		 "0,0,0 2,1,1 12\n",
		 (n + 7) / 8 * 8);
	assert_read(fatbin.data, fatbin.len, NULL, want);
	strbuf_done(&fatbin);
}

static void finds_containers_behind_padding(_unused_ void **state)
{
	const struct specimen_entry ptx = { .kind = 1, .arch = 75, .bytes = ".version", .n = 8 };
	static const char padding[10000];
	struct strbuf bytes;

	strbuf_init(&bytes, 0);
	specimen_fatbin(&bytes, &ptx, 1);
	/* An empty one, that ends where none may begin. */
	strbuf_add(&bytes, "\x50\xed\x55\xba\x01\x00\x14\x00", 8);
	strbuf_add(&bytes, padding, 4096);
	specimen_fatbin(&bytes, &ptx, 1);
	strbuf_add(&bytes, padding, 24);
	assert_read(bytes.data, bytes.len, NULL, "0/0 ptx 1 sm_75 none 80 8\n2/1 ptx 1 sm_75 none 4272 8\n");
	strbuf_done(&bytes);
}

static void reads_archives(_unused_ void **state)
{
	const struct specimen specimen = { .abi = 0x41, .sm = 75, .kernels = kernels, .n = 0 };
	_cleanup_free_ uint8_t *cubin = NULL;
	struct strbuf bytes;
	char want[128];
	size_t n;

	cubin = specimen_cubin(&specimen, &n);
	strbuf_init(&bytes, 0);
	strbuf_addf(&bytes, "!<arch>\n%-16s%-12d%-6d%-6d%-8d%-10zu`\n%s\n", "/", 0, 0, 0, 0, (size_t)5,
		    "table");
	strbuf_addf(&bytes, "%-16s%-12d%-6d%-6d%-8d%-10zu`\nlong", "#1/4", 0, 0, 0, 0, n + 4);
	strbuf_add(&bytes, cubin, n);
	snprintf(want, sizeof(want), "0/0 elf 0 sm_75 none 138 %zu\n", n);
	assert_read(bytes.data, bytes.len, NULL, want);
	memcpy(bytes.data, "!<thin>\n", 8);
	assert_read(bytes.data, bytes.len, NULL,
		    "! 0 a thin archive: its members are files of their own; read those\n");
	strbuf_done(&bytes);
}

static void nothing_is_told_as_such(_unused_ void **state)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(specimen_read("", 0, NULL, &out), -ENOEXEC);
	assert_int_equal(specimen_read("#!/bin/sh\nexit 0\n", 17, NULL, &out), -ENOEXEC);
	assert_int_equal(specimen_read("!<arch>\n", 8, NULL, &out), -ENODATA);
	assert_string_equal(out.data, "");
	strbuf_done(&out);
}

static int collect(const struct cubin_image *image, void *userdata)
{
	*(uint32_t *)userdata += 1 + image->container;
	return image->number == 1 ? -ECANCELED : 1;
}

static int never(_unused_ const struct cubin_image *image, _unused_ const struct cubin_kernel *kernel,
		 _unused_ void *userdata)
{
	fail();
	return 0;
}

static void callbacks_skip_and_stop(_unused_ void **state)
{
	static const struct cubin_ops ops = { .image = collect, .kernel = never };
	struct specimen_entry entries[3] = { { .arch = 80, .bytes = "no ELF image", .n = 12 } };
	struct cubin_memory memory;
	struct cubin_source source;
	struct strbuf bytes;
	uint32_t images = 0;

	entries[1] = entries[2] = entries[0];
	strbuf_init(&bytes, 0);
	specimen_fatbin(&bytes, entries, 3);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_int_equal(cubin_read(&source, NULL, &ops, &images), -ECANCELED);
	assert_int_equal(images, 2);
	strbuf_done(&bytes);
}

struct wrapper {
	uint32_t magic, version;
	uint64_t data, more;
};

static void assert_process(uintptr_t address, const char *want)
{
	const struct cubin_process process = { getpid(), address };
	struct cubin_source source;
	struct strbuf out;

	strbuf_init(&out, 0);
	cubin_source_process(&process, &source);
	assert_int_equal(specimen_read_source(&source, NULL, &out), 0);
	assert_string_equal(out.data, want);
	strbuf_done(&out);
}

/* The wrapper is behind what it points to; sizes are what the headers say. */
static void reads_memory_of_processes(_unused_ void **state)
{
	const struct specimen specimen = { .abi = 0x41, .sm = 90, .kernels = kernels, .n = 3 };
	_cleanup_free_ uint8_t *cubin = NULL;
	struct specimen_entry entry = { .arch = 90 };
	struct wrapper wrapper = { 0x466243B1, 1, 0, 0 };
	struct strbuf bytes;
	char want[512];
	size_t at;

	NEED_CALL(process_vm_readv);
	cubin = specimen_cubin(&specimen, &entry.n);
	entry.bytes = cubin;
	strbuf_init(&bytes, 0);
	specimen_fatbin(&bytes, &entry, 1);
	at = bytes.len;
	strbuf_add(&bytes, &wrapper, sizeof(wrapper));
	wrapper.data = (uintptr_t)bytes.data;
	memcpy(bytes.data + at, &wrapper, sizeof(wrapper));
	snprintf(want, sizeof(want), "0/0 elf 2 sm_90 none 80 %zu\n0 %s0 %s", (entry.n + 7) / 8 * 8, one,
		 two);
	assert_process((uintptr_t)bytes.data, want);
	snprintf(want, sizeof(want), "0/0 elf 2 sm_90 none %llu %zu\n0 %s0 %s", 80 - (unsigned long long)at,
		 (entry.n + 7) / 8 * 8, one, two);
	assert_process((uintptr_t)bytes.data + at, want);
	snprintf(want, sizeof(want), "0/0 elf 0 sm_90 none 0 %zu\n0 %s0 %s", entry.n, one, two);
	assert_process((uintptr_t)cubin, want);
	strbuf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_both_abis),
		cmocka_unit_test(shared_memory_is_reserved_in_linked_images_of_sm_90),
		cmocka_unit_test(stack_is_the_frame_where_no_sum_is_told),
		cmocka_unit_test(reads_compressed_images),
		cmocka_unit_test(reads_old_cubins),
		cmocka_unit_test(finds_containers_behind_padding),
		cmocka_unit_test(reads_archives),
		cmocka_unit_test(nothing_is_told_as_such),
		cmocka_unit_test(callbacks_skip_and_stop),
		cmocka_unit_test(reads_memory_of_processes),
	};

	return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
