// SPDX-License-Identifier: Apache-2.0
/* The web page's files, as they are in the program. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "page/asset.h"

static void test_each_unpacks_to_what_it_was(_unused_ void **state)
{
	unsigned n = 0;

	for (const struct asset *a = assets; a->path; a++, n++) {
		struct strbuf out;

		strbuf_init(&out, 0);
		assert_int_equal(asset_unpack(a, &out), 0);
		assert_int_equal(out.len, a->plain_bytes);
		assert_true(a->bytes > 0 && a->tag[0] == '"' && a->tag[strlen(a->tag) - 1] == '"');
		assert_ptr_equal(asset_find(a->path), a);
		strbuf_done(&out);
	}
	assert_true(n > 5);
}

static void test_the_page_is_there_and_nothing_else(_unused_ void **state)
{
	const struct asset *index = asset_find(ASSET_INDEX);

	assert_non_null(index);
	assert_string_equal(index->content_type, "text/html; charset=utf-8");
	assert_string_equal(asset_find("/page/app.js")->content_type, "text/javascript; charset=utf-8");
	assert_null(asset_find("/page/../page/app.js"));
	assert_null(asset_find("/page/"));
}

static void test_a_damaged_file_is_an_error(_unused_ void **state)
{
	struct asset cut = *asset_find(ASSET_INDEX);
	struct strbuf out;

	cut.bytes /= 2;
	strbuf_init(&out, 0);
	assert_int_equal(asset_unpack(&cut, &out), -EIO);
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_unpacks_to_what_it_was),
		cmocka_unit_test(test_the_page_is_there_and_nothing_else),
		cmocka_unit_test(test_a_damaged_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
