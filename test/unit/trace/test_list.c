// SPDX-License-Identifier: Apache-2.0
/* The sites of whole files: made ones, and CUDA's own runtime where there is one. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/image.h"
#include "trace/list.h"

static const bool both[PROBE_LIBRARIES] = { [PROBE_CUDA] = true, [PROBE_CUDART] = true };

struct seen {
	struct trace_listing at[16];
	unsigned n, chosen;
	bool first_pushes;
	int stop_after;
};

static int note(const struct trace_listing *listing, void *userdata)
{
	struct seen *seen = userdata;

	if (seen->n < ARRAY_SIZE(seen->at))
		seen->at[seen->n] = *listing;
	seen->n++;
	seen->chosen += listing->site.chosen;
	seen->first_pushes = (seen->n == 1 || seen->first_pushes) && listing->site.kind == SITE_KIND_PUSH &&
			     listing->site.offset == 0;
	return (int)seen->n == seen->stop_after ? 9 : 0;
}

static int list(const union image_file *file, const bool libraries[PROBE_LIBRARIES], struct seen *seen)
{
	_cleanup_close_ int fd = image_open(file, sizeof(*file));
	struct site_query query = { 0 };

	memcpy(query.libraries, libraries, sizeof(query.libraries));
	site_rules_default(file->image.header.e_machine, &query.rules);
	return trace_list_sites(fd, &query, note, seen, NULL);
}

/* Only nops, but for what a test puts there. */
static void init(union image_file *file)
{
	image_init(file);
	memset(file->bytes + IMAGE_CODE_AT, 0x90, IMAGE_CODE_BYTES);
}

static void finds_probed_functions_in_the_tables_order(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { 0 };

	init(&file);
	file.bytes[IMAGE_CODE_AT + 0x80] = 0x55;
	memcpy(file.bytes + IMAGE_CODE_AT + 0xc0, "\xf3\x0f\x1e\xfa\x55", 5);
	image_add(&file, 1, "cudaMalloc", IMAGE_CODE_ADDRESS + 0xc0, 0x40);
	image_add(&file, 0, "cuInit", IMAGE_CODE_ADDRESS + 0x80, 0x40);
	assert_int_equal(list(&file, both, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_string_equal(seen.at[0].probe->symbol, "cuInit");
	assert_int_equal(seen.at[0].file_offset, IMAGE_CODE_AT + 0x80);
	assert_string_equal(seen.at[1].probe->symbol, "cudaMalloc");
	assert_int_equal(seen.at[1].file_offset, IMAGE_CODE_AT + 0xc4);
	assert_int_equal(seen.at[1].site.offset, 4);
}

static void leaves_out_libraries_not_asked_for(_unused_ void **state)
{
	static const bool driver[PROBE_LIBRARIES] = { [PROBE_CUDA] = true };
	union image_file file;
	struct seen seen = { 0 };

	init(&file);
	image_add(&file, 1, "cudaMalloc", IMAGE_CODE_ADDRESS + 0xc0, 0x40);
	assert_int_equal(list(&file, driver, &seen), 0);
	assert_int_equal(seen.n, 0);
}

/* What the user names comes after the functions of the table, and before newer versions of those. */
static void lists_what_the_user_names(_unused_ void **state)
{
	struct site_query query = { .libraries = { [PROBE_CUDA] = true }, .users = LIBRARY_USER_BIT(1) };
	union image_file file;
	struct seen seen = { 0 };
	_cleanup_close_ int fd = -1;
	struct site_more more;

	init(&file);
	image_add(&file, 1, "cuInit", IMAGE_CODE_ADDRESS + 0x80, 0x10);
	image_add(&file, 1, "foo_alias", IMAGE_CODE_ADDRESS + 0x80, 0x10);
	image_add(&file, 1, "cuInit_v9", IMAGE_CODE_ADDRESS + 0x90, 0x10);
	image_add(&file, 1, "foo_b", IMAGE_CODE_ADDRESS + 0xa0, 0x10);
	image_add(&file, 0, "cuMemAlloc_v9", IMAGE_CODE_ADDRESS + 0xa0, 0x10);
	image_add(&file, 1, "other", IMAGE_CODE_ADDRESS + 0xb0, 0x10);
	image_add(&file, 0, "foo_a", IMAGE_CODE_ADDRESS + 0xa0, 0x10);
	file.bytes[IMAGE_CODE_AT + 0x90] = file.bytes[IMAGE_CODE_AT + 0xa0] = 0x55;
	fd = image_open(&file, sizeof(file));
	/* The first does not apply to this file. */
	library_set_user_text("libother.so:*; libfoo.so:foo_*,cuInit*");
	site_rules_default(file.image.header.e_machine, &query.rules);
	assert_int_equal(trace_list_sites(fd, &query, note, &seen, &more), 0);
	library_set_user_text(NULL);
	assert_int_equal(more.user, 0);
	assert_int_equal(seen.n, 3);
	assert_string_equal(seen.at[0].probe->symbol, "cuInit");
	assert_int_equal(seen.at[0].user, 0);
	assert_int_equal(seen.at[1].user, 2);
	assert_int_equal(seen.at[1].file_offset, IMAGE_CODE_AT + 0x90);
	assert_true(seen.at[1].site.chosen);
	assert_int_equal(seen.at[2].user, 2);
	assert_int_equal(seen.at[2].file_offset, IMAGE_CODE_AT + 0xa0);
}

/* One place, one probe, whichever table or name came first: calls would be counted twice. */
static void gives_aliases_one_site(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { 0 };

	init(&file);
	image_add(&file, 1, "cuMemAlloc_v2", IMAGE_CODE_ADDRESS + 0x80, 0);
	image_add(&file, 1, "cuInit", IMAGE_CODE_ADDRESS + 0x80, 0x10);
	image_add(&file, 0, "cuMemAlloc_v2@@V", IMAGE_CODE_ADDRESS + 0x80, 0x10);
	/* the same name elsewhere, another version of it, is called by others */
	image_add(&file, 1, "cuInit", IMAGE_CODE_ADDRESS + 0xc0, 0x10);
	assert_int_equal(list(&file, both, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_string_equal(seen.at[0].probe->symbol, "cuInit");
	assert_int_equal(seen.at[0].file_offset, IMAGE_CODE_AT + 0x80);
	assert_string_equal(seen.at[1].probe->symbol, "cuInit");
	assert_int_equal(seen.at[1].file_offset, IMAGE_CODE_AT + 0xc0);
}

/* A function ends where its size says: what follows is another's, and its jump back to there no matter. */
static void reads_no_further_than_the_function(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { 0 };

	init(&file);
	memcpy(file.bytes + IMAGE_CODE_AT + 0x80, "\x89\xf8\x55", 3);
	image_add(&file, 1, "cuInit", IMAGE_CODE_ADDRESS + 0x80, 2);
	memcpy(file.bytes + IMAGE_CODE_AT + 0xc0, "\x55\xc3\xeb\xfc", 4);
	image_add(&file, 1, "cudaMalloc", IMAGE_CODE_ADDRESS + 0xc0, 2);
	assert_int_equal(list(&file, both, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_false(seen.at[0].site.chosen);
	assert_true(seen.at[1].site.chosen);
}

static void stops_when_told_and_refuses_other_files(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { .stop_after = 1 };

	init(&file);
	image_add(&file, 1, "cuInit", IMAGE_CODE_ADDRESS + 0x80, 0x10);
	image_add(&file, 1, "cudaMalloc", IMAGE_CODE_ADDRESS + 0xc0, 0x10);
	assert_int_equal(list(&file, both, &seen), 9);
	assert_int_equal(seen.n, 1);
	file.image.header.e_machine = EM_PPC64;
	assert_int_equal(list(&file, both, &seen), -EOPNOTSUPP);
	file.image.header.e_ident[0] = 0;
	assert_int_equal(list(&file, both, &seen), -ENOEXEC);
}

/* NVIDIA's own runtime: its functions all begin with a push. */
static void real_runtime_has_cheap_sites_only(_unused_ void **state)
{
	static const char path[] = "/usr/local/cuda/lib64/libcudart.so";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct seen seen = { 0 };
	struct site_query query = { 0 };

	if (fd < 0) {
		print_message("# SKIP no %s: NVIDIA's runtime is not looked at\n", path);
		skip();
	}
	memcpy(query.libraries, both, sizeof(query.libraries));
	site_rules_default(EM_X86_64, &query.rules);
	assert_int_equal(trace_list_sites(fd, &query, note, &seen, NULL), 0);
	assert_true(seen.n > 100);
	assert_int_equal(seen.chosen, seen.n);
#if defined(__x86_64__)
	assert_true(seen.first_pushes);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_probed_functions_in_the_tables_order),
		cmocka_unit_test(leaves_out_libraries_not_asked_for),
		cmocka_unit_test(lists_what_the_user_names),
		cmocka_unit_test(gives_aliases_one_site),
		cmocka_unit_test(reads_no_further_than_the_function),
		cmocka_unit_test(stops_when_told_and_refuses_other_files),
		cmocka_unit_test(real_runtime_has_cheap_sites_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
