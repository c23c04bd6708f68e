// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "kube/url.h"

static void escapes(void **state)
{
	struct strbuf url;

	(void)state;
	strbuf_init(&url, 0);
	url_add(&url, "aZ09-_~./ \xc3\xa9%?&");
	assert_string_equal(url.data, "aZ09-_~.%2F%20%C3%A9%25%3F%26");
	strbuf_done(&url);
}

static void no_way_out_of_a_path(void **state)
{
	(void)state;
	assert_true(url_is_segment("train-0"));
	assert_true(url_is_segment("..."));
	assert_false(url_is_segment(""));
	assert_false(url_is_segment("."));
	assert_false(url_is_segment(".."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(no_way_out_of_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
