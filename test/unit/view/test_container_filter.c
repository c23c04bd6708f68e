// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "view/container/filter.h"
#include "view/container/go_writer.h"

enum { CONTAINER, POD, NAMESPACE, NODE };

static const struct {
	const char *node, *pod, *container, *namespace;
} objects[] = {
	{ "n1", "", "", "" },
	{ "n1", "train-0", "main", "ml" },
	{ "n1", "train-0", "side", "ml" },
	{ "n2", "train-0", "main", "web" },
	{ "n1", "a\"b\n    \"pod\": \"train-1\",", "main", "ml" },
	{ "n1", "<\u2028\ufffd>", "main", "ml" },
};

/* A page with the objects of which the bit is set. */
static void make_page(unsigned bits, struct strbuf *out)
{
	struct go_writer w = { .out = out };

	go_open(&w, NULL, '[');
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		if (!(bits >> i & 1))
			continue;
		go_open(&w, NULL, '{');
		go_text(&w, "node_name", objects[i].node);
		go_text(&w, "pod", objects[i].pod);
		go_text(&w, "container", objects[i].container);
		go_text(&w, "namespace", objects[i].namespace);
		go_number(&w, "sm_active", (double)i);
		go_close(&w, '}');
	}
	go_close(&w, ']');
}

static void assert_kept(const char *const values[static CONTAINER_FILTERS], unsigned bits)
{
	struct strbuf page, expected, out;

	strbuf_init(&page, 0);
	strbuf_init(&expected, 0);
	strbuf_init(&out, 0);
	make_page((1u << ARRAY_SIZE(objects)) - 1, &page);
	make_page(bits, &expected);
	assert_int_equal(container_filter(page.data, page.len, values, &out), 0);
	assert_string_equal(out.data, expected.data);
	assert_int_equal(out.len, expected.len);
	strbuf_done(&page);
	strbuf_done(&expected);
	strbuf_done(&out);
}

#define KEPT(bits, ...) assert_kept((const char *const[CONTAINER_FILTERS]){ __VA_ARGS__ }, bits)

static void no_filter_keeps_the_page(_unused_ void **state)
{
	KEPT(0x3f, NULL);
	KEPT(0x3f, [POD] = "", [NODE] = "", [CONTAINER] = "", [NAMESPACE] = "");
}

static void all_filters_must_match(_unused_ void **state)
{
	KEPT(0x0e, [POD] = "train-0");
	KEPT(0x0a, [POD] = "train-0", [CONTAINER] = "main");
	KEPT(0x02, [POD] = "train-0", [CONTAINER] = "main", [NAMESPACE] = "ml");
	KEPT(0x08, [NODE] = "n2");
	KEPT(0x00, [NODE] = "n2", [NAMESPACE] = "ml");
	KEPT(0x00, [NODE] = "n3");
}

static void matches_are_exact(_unused_ void **state)
{
	KEPT(0, [POD] = "train");
	KEPT(0, [POD] = "train-0 ");
	KEPT(0, [POD] = "Train-0");
	KEPT(0, [POD] = "train-0\",");
	KEPT(0, [POD] = "*");
}

/* A name that looks like a member's line is no line, and what is escaped is compared as such. */
static void hostile_names_are_compared_as_they_are(_unused_ void **state)
{
	KEPT(0, [POD] = "train-1");
	KEPT(0x10, [POD] = objects[4].pod);
	KEPT(0x20, [POD] = "<\u2028\ufffd>");
	/* another character than U+FFFD, and no UTF-8 at all */
	KEPT(0, [POD] = "<\u2028\xff>");
	KEPT(0, [POD] = "\\u003c\\u2028\ufffd\\u003e");
}

static void what_is_no_page_has_no_objects(_unused_ void **state)
{
	static const char *const pages[] = { "",
					     "[]\n",
					     "[",
					     "[\n  {",
					     "[\n  {\n    \"pod\": \"a\"",
					     "503 no\n",
					     "[\n  {\n    \"pod\": \"b\",\n    \"x\": 1\n  }\n]\n" };
	const char *const values[CONTAINER_FILTERS] = { [POD] = "a" };
	struct strbuf out;

	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		strbuf_reset(&out);
		assert_int_equal(container_filter(pages[i], strlen(pages[i]), values, &out), 0);
		assert_string_equal(out.data, "[]\n");
	}
	strbuf_done(&out);
}

static void arguments_are_those_of_the_contract(_unused_ void **state)
{
	assert_string_equal(container_filters[CONTAINER].argument, "container");
	assert_string_equal(container_filters[POD].argument, "pod");
	assert_string_equal(container_filters[NAMESPACE].argument, "namespace");
	assert_string_equal(container_filters[NODE].argument, "node");
	assert_string_equal(container_filters[NODE].member, "node_name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_filter_keeps_the_page),
		cmocka_unit_test(all_filters_must_match),
		cmocka_unit_test(matches_are_exact),
		cmocka_unit_test(hostile_names_are_compared_as_they_are),
		cmocka_unit_test(what_is_no_page_has_no_objects),
		cmocka_unit_test(arguments_are_those_of_the_contract),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
