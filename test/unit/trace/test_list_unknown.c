// SPDX-License-Identifier: Apache-2.0
/* Files of an unknown generation: what no proof exists for is refused, and named with its reason. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/image.h"
#include "trace/list.h"

enum { FIRST = 0x80, SECOND = 0xc0 };

struct seen {
	struct {
		char symbol[64], probe[64], reason[160];
		bool chosen, may_return;
		unsigned offset;
	} at[16];
	unsigned n;
};

static int note(const struct trace_listing *listing, void *userdata)
{
	struct seen *seen = userdata;

	assert_true(seen->n < ARRAY_SIZE(seen->at));
	snprintf(seen->at[seen->n].symbol, 64, "%s", listing->symbol);
	snprintf(seen->at[seen->n].probe, 64, "%s", listing->probe->symbol);
	snprintf(seen->at[seen->n].reason, 160, "%s", listing->site.reason);
	seen->at[seen->n].chosen = listing->site.chosen;
	seen->at[seen->n].may_return = listing->site.may_return;
	seen->at[seen->n++].offset = listing->site.offset;
	return 0;
}

static struct seen list(const union image_file *file)
{
	struct site_query query = { .libraries = { [PROBE_CUDA] = true, [PROBE_CUDART] = true } };
	_cleanup_close_ int fd = image_open(file, sizeof(*file));
	struct seen seen = { .n = 0 };

	site_rules_default(EM_X86_64, &query.rules);
	assert_int_equal(trace_list_sites(fd, &query, note, &seen, NULL), 0);
	return seen;
}

/* mov %edi, %eax all over, which is passed; pushes where a test puts them. */
static void init(union image_file *file)
{
	image_init(file);
	for (size_t i = 0; i < IMAGE_CODE_BYTES; i += 2)
		memcpy(file->bytes + IMAGE_CODE_AT + i, "\x89\xf8", 2);
}

static void push_at(union image_file *file, size_t at)
{
	file->bytes[IMAGE_CODE_AT + at] = 0x55;
	file->bytes[IMAGE_CODE_AT + at + 1] = 0x55;
}

static Elf64_Sym *add(union image_file *file, const char *name, uint64_t at, uint64_t size)
{
	return image_add(file, 1, name, IMAGE_CODE_ADDRESS + at, size);
}

static void check_refused(const struct seen *seen, unsigned i, const char *symbol, const char *reason)
{
	assert_true(i < seen->n);
	assert_string_equal(seen->at[i].symbol, symbol);
	if (seen->at[i].chosen || seen->at[i].may_return || !strstr(seen->at[i].reason, reason))
		fail_msg("%s: %d, \"%s\", not \"%s\"", symbol, seen->at[i].chosen, seen->at[i].reason,
			 reason);
}

static void check_chosen(const struct seen *seen, unsigned i, const char *symbol, unsigned offset)
{
	assert_true(i < seen->n);
	assert_string_equal(seen->at[i].symbol, symbol);
	if (!seen->at[i].chosen || seen->at[i].offset != offset)
		fail_msg("%s: %d at %u, \"%s\"", symbol, seen->at[i].chosen, seen->at[i].offset,
			 seen->at[i].reason);
}

static void newer_versions_are_named_and_not_probed(_unused_ void **state)
{
	union image_file file;
	struct seen seen;

	init(&file);
	push_at(&file, FIRST);
	push_at(&file, SECOND);
	push_at(&file, SECOND + 0x20);
	add(&file, "cuMemAlloc_v3", FIRST, 0x20);
	add(&file, "cuMemFree_v2", SECOND, 0x20);
	add(&file, "cuStreamQuery_v2_ptsz", SECOND + 0x20, 0x20);
	/* older ones are left out on purpose; others have nothing to do with what is probed */
	add(&file, "cuMemAlloc", FIRST + 0x20, 0x10);
	add(&file, "cuMemAllocator_v9", FIRST + 0x30, 0x10);
	seen = list(&file);
	assert_int_equal(seen.n, 3);
	check_refused(&seen, 0, "cuMemAlloc_v3", "newer than this gpusonde");
	assert_string_equal(seen.at[0].probe, "cuMemAlloc_v2");
	check_chosen(&seen, 1, "cuMemFree_v2", 0);
	check_refused(&seen, 2, "cuStreamQuery_v2_ptsz", "newer than this gpusonde");
}

/* Then all its calls are counted, as those of the name that is known. */
static void a_newer_name_of_the_same_function_is_no_loss(_unused_ void **state)
{
	static const char *const names[] = { "cuMemAlloc_v3", "cuMemAlloc_v2" };

	for (int first = 0; first < 2; first++) {
		union image_file file;
		struct seen seen;

		init(&file);
		push_at(&file, FIRST);
		add(&file, names[first], FIRST, 0x20);
		add(&file, names[!first], FIRST, 0x20);
		seen = list(&file);
		assert_int_equal(seen.n, 1);
		check_chosen(&seen, 0, "cuMemAlloc_v2", 0);
	}
}

static void names_that_have_rows_are_not_newer(_unused_ void **state)
{
	for (uint16_t i = 0; i < probes_n; i++)
		assert_null(probe_of_newer(probes[i].library, probes[i].symbol));
	assert_null(probe_of_newer(PROBE_CUDA, ""));
	assert_null(probe_of_newer(PROBE_CUDA, "_v2"));
	assert_null(probe_of_newer(PROBE_CUDA, "cu"));
	assert_null(probe_of_newer(PROBE_CUDA, "cuCtxCreate_v1"));
	assert_null(probe_of_newer(PROBE_CUDA, "cuInit_v1"));
	assert_null(probe_of_newer(PROBE_CUDA, "cudaMalloc_v2"));
	assert_null(probe_of_newer(PROBE_CUDA, "cuMemAlloc_v999999999999"));
	assert_string_equal(probe_of_newer(PROBE_CUDART, "cudaMalloc_v2")->symbol, "cudaMalloc");
	assert_string_equal(probe_of_newer(PROBE_CUDA, "cuCtxCreate_v5")->symbol, "cuCtxCreate_v4");
	assert_string_equal(probe_of_newer(PROBE_CUDA, "cuMemAlloc_v2_ptsz")->symbol, "cuMemAlloc_v2");
}

static void set_type(Elf64_Sym *symbol, unsigned type)
{
	symbol->st_info = ELF64_ST_INFO(STB_GLOBAL, type);
}

static void what_is_no_plain_function_is_refused(_unused_ void **state)
{
	union image_file file;
	struct seen seen;

	init(&file);
	push_at(&file, FIRST);
	push_at(&file, SECOND);
	push_at(&file, SECOND + 0x20);
	set_type(add(&file, "cuInit", FIRST, 0x20), STT_GNU_IFUNC);
	set_type(add(&file, "cuCtxSynchronize", SECOND, 0x20), STT_NOTYPE);
	add(&file, "cuStreamCreate", SECOND + 0x20, 0x20);
	seen = list(&file);
	assert_int_equal(seen.n, 3);
	check_refused(&seen, 0, "cuInit", "IFUNC");
	check_chosen(&seen, 1, "cuStreamCreate", 0);
	check_refused(&seen, 2, "cuCtxSynchronize", "may be data");
}

static void code_is_where_sections_say(_unused_ void **state)
{
	union image_file file;
	struct seen seen;

	init(&file);
	push_at(&file, FIRST);
	push_at(&file, SECOND);
	add(&file, "cuInit", FIRST, 0x20);
	add(&file, "cuDeviceGet", SECOND, 0x20);
	file.image.sections[0] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_offset = IMAGE_CODE_AT,
		.sh_addr = IMAGE_CODE_ADDRESS,
		.sh_size = SECOND,
	};
	seen = list(&file);
	assert_int_equal(seen.n, 2);
	check_chosen(&seen, 0, "cuInit", 0);
	check_refused(&seen, 1, "cuDeviceGet", "may be data");
}

/* Who begins at FIRST + 4 comes to the push at FIRST + 8, too; it has a probe there of its own. */
static void functions_that_overlap_are_told_apart_or_refused(_unused_ void **state)
{
	union image_file file;
	struct seen seen;

	for (int probed = 0; probed < 2; probed++) {
		init(&file);
		push_at(&file, FIRST + 8);
		add(&file, "cuInit", FIRST, 0x20);
		add(&file, probed ? "cuDeviceGet" : "another", FIRST + 4, 0x1c);
		seen = list(&file);
		assert_int_equal(seen.n, 1 + probed);
		check_refused(&seen, 0, "cuInit", "another function begins before");
		if (probed)
			check_refused(&seen, 1, "cuDeviceGet", "begins within another function");
	}
	/* behind the site it harms nobody but the one within */
	init(&file);
	push_at(&file, FIRST);
	push_at(&file, FIRST + 0x10);
	push_at(&file, FIRST + 0x18);
	add(&file, "cuInit", FIRST, 0x20);
	add(&file, "between", FIRST + 8, 1);
	add(&file, "cuDeviceGet", FIRST + 0x10, 4);
	add(&file, "cuCtxPopCurrent", FIRST + 0x18, 0x20);
	add(&file, "cuCtxSetCurrent", FIRST + 0x38, 0x20);
	push_at(&file, FIRST + 0x38);
	seen = list(&file);
	assert_int_equal(seen.n, 4);
	check_chosen(&seen, 0, "cuInit", 0);
	check_refused(&seen, 1, "cuDeviceGet", "begins within another function");
	check_refused(&seen, 2, "cuCtxPopCurrent", "begins within another function");
	check_chosen(&seen, 3, "cuCtxSetCurrent", 0);
}

/*
 * Without a size it ends where the next one begins: what is behind is searched for jumps back as far as that.
 */
static void a_function_without_a_size_ends_at_the_next(_unused_ void **state)
{
	union image_file file;
	struct seen seen;

	init(&file);
	push_at(&file, FIRST);
	push_at(&file, SECOND + 4);
	memcpy(file.bytes + IMAGE_CODE_AT + SECOND + 2, "\x90\xc3", 2);
	add(&file, "cuInit", FIRST, 0);
	add(&file, "another", SECOND, 0);
	seen = list(&file);
	assert_int_equal(seen.n, 1);
	check_chosen(&seen, 0, "cuInit", 0);
	memcpy(file.bytes + IMAGE_CODE_AT + SECOND - 2, "\xeb\xc0", 2); /* jmp FIRST */
	seen = list(&file);
	check_refused(&seen, 0, "cuInit", "jumps back");
	/* the next one's jump to there is a call */
	memcpy(file.bytes + IMAGE_CODE_AT + SECOND - 2, "\x89\xf8\xeb\xbe", 4);
	seen = list(&file);
	check_chosen(&seen, 0, "cuInit", 0);
	/* it may fall through into the next, whose site that is */
	init(&file);
	push_at(&file, SECOND + 4);
	add(&file, "cuInit", FIRST + 0x38, 0);
	add(&file, "cuDeviceGet", SECOND, 0);
	seen = list(&file);
	assert_int_equal(seen.n, 2);
	check_refused(&seen, 0, "cuInit", "no better");
	check_chosen(&seen, 1, "cuDeviceGet", 4);
}

/* Where it begins, and whether its own neighbour, of no size, comes to there at an instruction's start. */
static void a_function_without_a_size_has_an_instruction(_unused_ void **state)
{
	static const struct {
		const char *neighbour, *code;
		size_t n;
		unsigned at;
		bool chosen;
	} cases[] = {
		{ "cuInit", "\xb8", 1, 1, false }, /* mov $..55.., %eax */
		{ "another", "\xb8", 1, 1, false },
		{ "another", "\x89\xf8\x89\xf8", 4, 4, true },
		{ "another", "\x89\xf8\x89", 3, 3, false },
		{ "another", "\x06\x90", 2, 2, false }, /* no instruction */
		{ "another", "\x66\x66\x66\x66\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00", 14, 14, false },
		{ "another", "\xc3", 1, 15, true }, /* so far no instruction goes */
		{ "another", "", 0, 0, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		union image_file file;
		struct seen seen;

		init(&file);
		memcpy(file.bytes + IMAGE_CODE_AT + FIRST, cases[i].code, cases[i].n);
		push_at(&file, FIRST + cases[i].at);
		add(&file, cases[i].neighbour, FIRST, 0);
		add(&file, "cuDeviceGet", FIRST + cases[i].at, i % 2 ? 0x20 : 0);
		seen = list(&file);
		unsigned of = seen.n - 1;

		if (cases[i].chosen)
			check_chosen(&seen, of, "cuDeviceGet", 0);
		else
			check_refused(&seen, of, "cuDeviceGet", "begins within another function");
	}
}

/* One in step proves nothing for one that is not. */
static void each_function_without_a_size_counts(_unused_ void **state)
{
	for (unsigned apart = 0; apart < 2; apart++) {
		union image_file file;
		struct seen seen;

		init(&file);
		memcpy(file.bytes + IMAGE_CODE_AT + FIRST, apart ? "\xb8\x90\x90" : "\x90\x90\x90", 3);
		push_at(&file, FIRST + 3);
		add(&file, "another", FIRST, 0);
		add(&file, "third", FIRST + 2, 0);
		add(&file, "cuDeviceGet", FIRST + 3, 0x20);
		seen = list(&file);
		assert_int_equal(seen.n, 1);
		if (apart)
			check_refused(&seen, 0, "cuDeviceGet", "begins within another function");
		else
			check_chosen(&seen, 0, "cuDeviceGet", 0);
	}
}

static void a_function_that_is_not_all_there_is_refused(_unused_ void **state)
{
	static const uint64_t sizes[] = { IMAGE_CODE_BYTES - FIRST, IMAGE_CODE_BYTES - FIRST + 1,
					  (uint64_t)SITE_CODE_MAX + 1, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		union image_file file;
		struct seen seen;

		init(&file);
		push_at(&file, FIRST);
		add(&file, "cuInit", FIRST, sizes[i]);
		seen = list(&file);
		assert_int_equal(seen.n, 1);
		if (i == 0)
			check_chosen(&seen, 0, "cuInit", 0);
		else
			check_refused(&seen, 0, "cuInit", "only a part of it");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_versions_are_named_and_not_probed),
		cmocka_unit_test(a_newer_name_of_the_same_function_is_no_loss),
		cmocka_unit_test(names_that_have_rows_are_not_newer),
		cmocka_unit_test(what_is_no_plain_function_is_refused),
		cmocka_unit_test(code_is_where_sections_say),
		cmocka_unit_test(functions_that_overlap_are_told_apart_or_refused),
		cmocka_unit_test(a_function_without_a_size_ends_at_the_next),
		cmocka_unit_test(a_function_without_a_size_has_an_instruction),
		cmocka_unit_test(each_function_without_a_size_counts),
		cmocka_unit_test(a_function_that_is_not_all_there_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
