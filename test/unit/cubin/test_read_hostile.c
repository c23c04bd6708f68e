// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cubin/specimen.h"

static const struct specimen_kernel kernel = { .name = "k", .registers = 8, .code = 256, .constant = 0x160 };
static const struct specimen good = { .abi = 0x41, .sm = 80, .kernels = &kernel, .n = 1 };
enum { ENTRY_AT = 16, PAYLOAD_AT = ENTRY_AT + 64 };

/* A container of two equal images; the second must be read whatever is wrong with the first. */
struct pair {
	uint8_t *cubin;
	size_t cubin_n;
	struct strbuf bytes;
};

static void pair_init(struct pair *pair, const struct specimen *specimen, uint64_t flags)
{
	struct specimen_entry entries[2] = { { .arch = 80, .flags = flags } };

	pair->cubin = specimen_cubin(specimen, &pair->cubin_n);
	entries[0].bytes = pair->cubin;
	entries[0].n = pair->cubin_n;
	if (flags)
		entries[0] = specimen_compressed(&entries[0]);
	entries[1] = (struct specimen_entry){ .arch = 80, .bytes = pair->cubin, .n = pair->cubin_n };
	strbuf_init(&pair->bytes, 0);
	specimen_fatbin(&pair->bytes, entries, 2);
	if (flags)
		free((void *)(uintptr_t)entries[0].bytes);
}

static void pair_done(struct pair *pair)
{
	strbuf_done(&pair->bytes);
	free(pair->cubin);
}

/* Trouble that says @what, and only the second image's kernel. */
static void assert_second(struct pair *pair, const struct cubin_limits *limits, const char *what)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(pair->bytes.data, pair->bytes.len, limits, &out), 0);
	if (!strstr(out.data, what))
		print_message("# %s\n", out.data);
	assert_non_null(strstr(out.data, what));
	assert_int_equal(specimen_times(out.data, "! "), 1);
	assert_null(strstr(out.data, "\n0 k "));
	assert_non_null(strstr(out.data, "\n1 k 8 0 0 352 0 0 256 0 -1"));
	strbuf_done(&out);
}

static void sizes_that_lie(_unused_ void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned n;
		const char *what;
	} lies[] = {
		{ ENTRY_AT + 16, UINT32_MAX, 4, "compressed image of 4294967295 bytes in an entry of" },
		{ ENTRY_AT + 56, 1ull << 60, 8,
		  "an image that says to be 1152921504606846976 bytes when decompressed: above 1073741824 it "
		  "is not read" },
		{ ENTRY_AT + 56, 17, 8, "wrong, or of more than 17" },
		{ ENTRY_AT + 40, 0x1000, 8, "toolkits before 7" },
		{ ENTRY_AT + 40, SPECIMEN_ZSTD, 8, "zstd: " },
	};
	struct pair pair;

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		pair_init(&pair, &good, SPECIMEN_LZ4);
		memcpy(pair.bytes.data + lies[i].at, &lies[i].value, lies[i].n);
		assert_second(&pair, NULL, lies[i].what);
		pair_done(&pair);
	}
}

static void streams_that_lie(_unused_ void **state)
{
	static const struct cubin_limits streamed = { 1, 0 };
	static const uint64_t flags[] = { SPECIMEN_LZ4, SPECIMEN_ZSTD };
	const uint64_t more = 1 << 20, less = 80;
	struct pair pair;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pair_init(&pair, &good, flags[i]);
		memcpy(pair.bytes.data + ENTRY_AT + 56, &less, sizeof(less));
		assert_second(&pair, &streamed, "more than the 80 bytes that it says to be");
		pair_done(&pair);
		pair_init(&pair, &good, flags[i]);
		memset(pair.bytes.data + PAYLOAD_AT + 8, 0xff, 64);
		assert_second(&pair, &streamed, flags[i] == SPECIMEN_LZ4 ? "lz4: " : "zstd: ");
		pair_done(&pair);
	}
	/* The sections that matter are there: whole, it is told that it ends; in a stream nobody looks. */
	for (int i = 0; i < 2; i++) {
		struct strbuf out;

		pair_init(&pair, &good, flags[i]);
		memcpy(pair.bytes.data + ENTRY_AT + 56, &more, sizeof(more));
		for (int whole = 0; whole < 2; whole++) {
			strbuf_init(&out, 0);
			assert_int_equal(specimen_read(pair.bytes.data, pair.bytes.len,
						       whole ? NULL : &streamed, &out),
					 0);
			assert_int_equal(specimen_times(out.data, " k 8 0 0 352"), 2);
			assert_int_equal(specimen_times(out.data, "it ends, and says to be 1048576 bytes"),
					 whole);
			strbuf_done(&out);
		}
		pair_done(&pair);
	}
}

static void headers_that_lie(_unused_ void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned n;
		const char *what;
	} lies[] = {
		{ offsetof(Elf64_Ehdr, e_machine), 62, 2, "no ELF image of a CUDA device" },
		{ offsetof(Elf64_Ehdr, e_ident), 0, 1, "no ELF image of a CUDA device" },
		{ offsetof(Elf64_Ehdr, e_shoff), UINT64_MAX - 7, 8, "section headers beyond the image's" },
		{ offsetof(Elf64_Ehdr, e_shnum), 60000, 2, "section headers beyond the image's" },
		{ offsetof(Elf64_Ehdr, e_shentsize), 40, 2, "section headers of 40 bytes" },
	};
	struct pair pair;

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		pair_init(&pair, &good, 0);
		memcpy(pair.bytes.data + PAYLOAD_AT + lies[i].at, &lies[i].value, lies[i].n);
		assert_second(&pair, NULL, lies[i].what);
		pair_done(&pair);
	}
}

/* Each section in turn is said to be where nothing is, or everything: of overlaps nobody takes harm. */
static void sections_that_lie(_unused_ void **state)
{
	struct pair pair;

	for (unsigned i = 0; i < 10; i++) {
		Elf64_Shdr section;
		uint8_t *at;

		pair_init(&pair, &good, 0);
		at = specimen_section((uint8_t *)pair.bytes.data + PAYLOAD_AT, i, &section);
		section.sh_offset = 0;
		section.sh_size = pair.cubin_n;
		memcpy(at, &section, sizeof(section));
		for (int far = 0; far < 2; far++) {
			struct strbuf out;

			section.sh_offset = far ? UINT64_MAX - 1 : 0;
			memcpy(at, &section, sizeof(section));
			strbuf_init(&out, 0);
			assert_int_equal(specimen_read(pair.bytes.data, pair.bytes.len, NULL, &out), 0);
			assert_non_null(strstr(out.data, "\n1 k 8 0 0 352 0 0 256 0 -1"));
			strbuf_done(&out);
		}
		pair_done(&pair);
	}
}

static void names_without_end(_unused_ void **state)
{
	struct pair pair;
	Elf64_Shdr strings;

	pair_init(&pair, &good, 0);
	specimen_section(pair.cubin, 2, &strings);
	pair.bytes.data[PAYLOAD_AT + strings.sh_offset + strings.sh_size - 1] = 'x';
	assert_second(&pair, NULL, "a kernel's name has no end");
	pair_done(&pair);
}

static void attributes_without_end(_unused_ void **state)
{
	struct specimen specimen = good;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct strbuf out;
	size_t n;

	specimen.attributes_cut = 1;
	bytes = specimen_cubin(&specimen, &n);
	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(bytes, n, NULL, &out), 0);
	assert_non_null(strstr(out.data, "attributes that end in the middle of one"));
	assert_non_null(strstr(out.data, "0 k 8 0 0 352 0 0 256 0 -1"));
	strbuf_done(&out);
}

static void limits_are_kept(_unused_ void **state)
{
	static const struct cubin_limits small = { 1, 300 }, smaller = { 1, 1000 };
	struct pair pair;
	struct strbuf out;

	pair_init(&pair, &good, SPECIMEN_ZSTD);
	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(pair.bytes.data, pair.bytes.len, &small, &out), 0);
	assert_int_equal(specimen_times(out.data, "bytes of section headers, above the limit of 300"), 2);
	strbuf_done(&out);
	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(pair.bytes.data, pair.bytes.len, &smaller, &out), 0);
	assert_null(strstr(out.data, "! "));
	strbuf_done(&out);
	pair_done(&pair);
}

static void names_have_a_limit(_unused_ void **state)
{
	static const struct cubin_limits limits = { 1, 1000 };
	char name[1200] = { 0 };
	const struct specimen_kernel named = { .name = name, .registers = 8, .code = 256 };
	const struct specimen specimen = { .abi = 0x41, .sm = 80, .kernels = &named, .n = 1 };
	_cleanup_free_ uint8_t *bytes = NULL;
	struct strbuf out;
	size_t n;

	memset(name, 'n', sizeof(name) - 1);
	bytes = specimen_cubin(&specimen, &n);
	strbuf_init(&out, 0);
	assert_int_equal(specimen_read(bytes, n, &limits, &out), 0);
	assert_non_null(strstr(out.data, "its names and attributes are "));
	assert_null(strstr(out.data, "nnn"));
	strbuf_done(&out);
}

/* What an image before it left in memory is none of its bytes. */
static void short_images_have_nothing_of_others(_unused_ void **state)
{
	struct specimen_entry entries[2] = { { .arch = 80, .flags = SPECIMEN_LZ4 } }, cut;
	_cleanup_free_ uint8_t *cubin = NULL;
	struct strbuf bytes, out;

	cubin = specimen_cubin(&good, &entries[0].n);
	entries[0].bytes = cubin;
	cut = entries[0];
	cut.n -= 64;
	entries[1] = specimen_compressed(&cut);
	entries[0] = specimen_compressed(&entries[0]);
	entries[1].uncompressed = entries[0].uncompressed;
	strbuf_init(&bytes, 0);
	strbuf_init(&out, 0);
	specimen_fatbin(&bytes, entries, 2);
	assert_int_equal(specimen_read(bytes.data, bytes.len, NULL, &out), 0);
	assert_int_equal(specimen_times(out.data, " k 8 "), 1);
	assert_non_null(strstr(out.data, "section headers beyond the image's"));
	strbuf_done(&bytes);
	strbuf_done(&out);
	free((void *)(uintptr_t)entries[0].bytes);
	free((void *)(uintptr_t)entries[1].bytes);
}

/* Together they would be 512 MiB, each in a stream, twice. */
static void bombs_are_refused(_unused_ void **state)
{
	struct specimen_entry entries[8];
	struct strbuf bytes, out;

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		entries[i] = (struct specimen_entry){
			.arch = 80, .flags = SPECIMEN_LZ4, .bytes = "\x1f", .n = 1, .uncompressed = 64 << 20
		};
	strbuf_init(&bytes, 0);
	strbuf_init(&out, 0);
	specimen_fatbin(&bytes, entries, ARRAY_SIZE(entries));
	assert_int_equal(specimen_read(bytes.data, bytes.len, NULL, &out), 0);
	assert_int_equal(specimen_times(out.data, "elf 2 sm_80 lz4"), 8);
	assert_int_equal(
		specimen_times(out.data,
			       "! 224 kernels of 6 images, of which this is the first, are not read: "
			       "the file decompresses to more than 64 times its size"),
		1);
	assert_int_equal(specimen_times(out.data, "lz4: the block ends in the middle of a sequence"), 2);
	strbuf_done(&bytes);
	strbuf_done(&out);
}

static void trouble_is_bounded(_unused_ void **state)
{
	struct strbuf bytes, out;

	strbuf_init(&bytes, 0);
	strbuf_init(&out, 0);
	for (int i = 0; i < 300; i++)
		strbuf_add(&bytes, "\x50\xed\x55\xba\x01\x00\x10\x00\x08\0\0\0\0\0\0\0too few!", 24);
	assert_int_equal(specimen_read(bytes.data, bytes.len, NULL, &out), 0);
	assert_int_equal(specimen_times(out.data, "\n"), 257);
	assert_non_null(strstr(out.data, "! 0 44 more things that could not be read"));
	strbuf_done(&bytes);
	strbuf_done(&out);
}

/* At every byte: what is whole before is read, and the rest is told. */
static void cut_off_anywhere(_unused_ void **state)
{
	static const struct cubin_limits limits[] = { { 0, 0 }, { 1, 0 } };
	struct pair pair;

	pair_init(&pair, &good, SPECIMEN_LZ4);
	for (size_t n = 0; n < pair.bytes.len; n++) {
		/* So that a sanitizer sees what is read beyond. */
		_cleanup_free_ char *copy = malloc(n + 1);
		struct strbuf out;
		int r;

		memcpy(copy, pair.bytes.data, n);
		strbuf_init(&out, 0);
		r = specimen_read(copy, n, &limits[n & 1], &out);
		if (n < 8)
			assert_int_equal(r, -ENOEXEC);
		else
			assert_true(r == 0 && specimen_times(out.data, "! ") >= 1);
		if (n > pair.bytes.len - pair.cubin_n)
			assert_non_null(strstr(out.data, "\n0 k 8"));
		strbuf_done(&out);
	}
	pair_done(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_that_lie),     cmocka_unit_test(streams_that_lie),
		cmocka_unit_test(headers_that_lie),   cmocka_unit_test(sections_that_lie),
		cmocka_unit_test(names_without_end),  cmocka_unit_test(attributes_without_end),
		cmocka_unit_test(limits_are_kept),    cmocka_unit_test(bombs_are_refused),
		cmocka_unit_test(names_have_a_limit), cmocka_unit_test(short_images_have_nothing_of_others),
		cmocka_unit_test(trouble_is_bounded), cmocka_unit_test(cut_off_anywhere),
	};

	return cmocka_run_group_tests_name("read_hostile", tests, NULL, NULL);
}
