// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/node_tag.h"

static struct node_tag tags[NODE_TAGS_MAX];

static void keys_and_values(_unused_ void **state)
{
	uint32_t n = 77;

	assert_int_equal(node_tags_parse("", tags, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(node_tags_parse("rack:r2,topology.kubernetes.io/zone:a:b=c d", tags, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(tags[0].key, "rack");
	assert_string_equal(tags[0].value, "r2");
	assert_string_equal(tags[1].key, "topology.kubernetes.io/zone");
	assert_string_equal(tags[1].value, "a:b=c d");
}

static void anything_else_is_refused(_unused_ void **state)
{
	static const char *const texts[] = { "a",      "a:",       ":b",         ",",       "a:b,",
					     ",a:b",   "a:b,,c:d", "a b:c",      "gpu_a:b", "a:b,a:c",
					     "a:\x01", "a:\xff",   "\xc3\xa9:b", "a:b,c" };
	char text[300], many[NODE_TAGS_MAX * 8 + 16] = "";
	uint32_t n = 77;

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
		if (node_tags_parse(texts[i], tags, &n) != -EINVAL || n != 77)
			fail_msg("'%s' is taken", texts[i]);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	text[127] = ':';
	text[127 + 1 + 127] = '\0';
	assert_int_equal(node_tags_parse(text, tags, &n), 0);
	text[127 + 1 + 127] = 'a';
	text[127 + 1 + 128] = '\0';
	assert_int_equal(node_tags_parse(text, tags, &n), -EINVAL);
	for (unsigned i = 0; i <= NODE_TAGS_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "%sk%u:v", i ? "," : "", i);
	assert_int_equal(node_tags_parse(many, tags, &n), -E2BIG);
	*strrchr(many, ',') = '\0';
	assert_int_equal(node_tags_parse(many, tags, &n), 0);
	assert_int_equal(n, NODE_TAGS_MAX);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(keys_and_values),
		cmocka_unit_test(anything_else_is_refused),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
