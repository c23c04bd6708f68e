// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/strbuf.h"
#include "base/yaml.h"

static int parse(const char *text, struct yaml_doc **ret_doc, struct yaml_error *err)
{
	return yaml_parse_buffer("test.yaml", text, strlen(text), ret_doc, err);
}

static void maps_lists_and_scalars(_unused_ void **state)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	const struct yaml_node *gpus, *gpu;
	struct yaml_error err;

	assert_int_equal(parse("# a comment\n"
			       "name: node\n"
			       "gpus:\n"
			       "  - uuid: \"GPU-1\\u00e9\"\n"
			       "    power: {min: 75, max: 700}\n"
			       "  - just text\n"
			       "empty:\n",
			       &doc, &err),
			 0);
	assert_string_equal(doc->name, "test.yaml");
	assert_int_equal(doc->root->kind, YAML_MAP);
	assert_null(doc->root->key);
	assert_string_equal(yaml_get(doc->root, "name")->scalar, "node");
	assert_int_equal(yaml_get(doc->root, "name")->line, 2);
	gpus = yaml_get(doc->root, "gpus");
	assert_int_equal(gpus->kind, YAML_LIST);
	assert_int_equal(gpus->line, 3);
	assert_null(gpus->scalar);
	gpu = gpus->children;
	assert_int_equal(gpu->line, 4);
	assert_null(gpu->key);
	assert_string_equal(yaml_get(gpu, "uuid")->scalar, "GPU-1\xc3\xa9");
	assert_string_equal(yaml_get(yaml_get(gpu, "power"), "max")->scalar, "700");
	assert_string_equal(gpu->next->scalar, "just text");
	assert_null(gpu->next->next);
	assert_string_equal(yaml_get(doc->root, "empty")->scalar, "");
	assert_null(yaml_get(doc->root, "power"));
	assert_null(yaml_get(gpus, "uuid"));
	assert_null(yaml_get(NULL, "uuid"));
}

static void an_empty_file_is_an_empty_map(_unused_ void **state)
{
	static const char *const texts[] = { "", "\n# nothing\n", "---\n...\n" };
	struct yaml_error err;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;

		assert_int_equal(parse(texts[i], &doc, &err), 0);
		assert_null(doc->root->children);
		assert_null(yaml_get(doc->root, "x"));
	}
}

static void refusals_name_line_and_remedy(_unused_ void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} cases[] = {
		{ "a: &x 1\nb: *x\n", 2, "aliases" },
		{ "a: !!int 1\n", 1, "tags" },
		{ "a: !foo {}\n", 1, "tags" },
		{ "- !!seq []\n", 1, "tags" },
		{ "a: 1\n---\nb: 2\n", 2, "second document" },
		{ "a: 1\n? [b]\n: 2\n", 2, "key must be plain text" },
		{ "a: 1\n? {b: 1}\n: 2\n", 2, "key must be plain text" },
		{ "a: \"x\\0y\"\n", 1, "NUL" },
		{ "a: 1\n b: 2\n", 2, "indentation" },
		{ "a: [1, 2\n", 2, "brackets" },
		{ "a: \"never closed\n", 2, "quotes" },
		{ "a: 1\n\tb: 2\n", 2, "check" },
		{ "a: 1\nb: \xff\n", 0, "UTF-8" },
		{ "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", 1, "more than 16 levels" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
		struct yaml_error err = { .line = -1 };
		int r = parse(cases[i].text, &doc, &err);

		assert_null(doc);
		assert_int_equal(r, strstr(cases[i].says, "more than") ? -E2BIG : -EINVAL);
		if (!strstr(err.message, cases[i].says))
			fail_msg("%s: said \"%s\"", cases[i].text, err.message);
		if (cases[i].line > 0)
			assert_int_equal(err.line, cases[i].line);
	}
}

/* The first is named, and a caller that looks for other mistakes has all of the file. */
static void a_key_given_twice_leaves_a_document(_unused_ void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} cases[] = {
		{ "a: 1\nb: 2\na: 3\nb: 4\nlast: 5\n", 3,
		  "the same key was given in line 1 already; keep one of the two" },
		{ "x:\n  a: 1\n  a: 2\nlast: {}\n", 3, "in line 2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
		struct yaml_error err = { .line = -1 };

		assert_int_equal(parse(cases[i].text, &doc, &err), -EEXIST);
		assert_int_equal(err.line, cases[i].line);
		assert_non_null(strstr(err.message, cases[i].says));
		assert_non_null(yaml_get(doc->root, "last"));
	}
}

static void sixteen_levels_are_enough(_unused_ void **state)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct yaml_error err;

	assert_int_equal(parse("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n", &doc, &err), 0);
}

static void the_same_key_in_different_maps_is_fine(_unused_ void **state)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct yaml_error err;

	assert_int_equal(parse("a: {a: 1, b: 2}\nb: {a: 1, b: {a: 1}}\nc: [{a: 1}, {a: 1}]\n", &doc, &err),
			 0);
}

static void large_files_stop_at_the_limits(_unused_ void **state)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	_cleanup_(strbuf_done) struct strbuf text;
	struct yaml_error err;

	strbuf_init(&text, 0);
	for (int i = 0; i < YAML_MAX_NODES - 1; i++)
		strbuf_addf(&text, "k%d: 1\n", i);
	assert_int_equal(yaml_parse_buffer("big", text.data, text.len, &doc, &err), 0);
	yaml_doc_free(TAKE_PTR(doc));
	strbuf_adds(&text, "last: 1\n");
	assert_int_equal(yaml_parse_buffer("big", text.data, text.len, &doc, &err), -E2BIG);
	assert_int_equal(err.line, YAML_MAX_NODES);
	assert_non_null(strstr(err.message, "65536 entries"));
	while (text.len <= YAML_MAX_BYTES)
		strbuf_addf(&text, "#%01000d\n", 0);
	assert_int_equal(yaml_parse_buffer("big", text.data, text.len, &doc, &err), -E2BIG);
	assert_int_equal(err.line, 0);
	assert_null(doc);
}

static void files_are_read_or_explained(_unused_ void **state)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	char path[] = "/tmp/gpusonde-yaml-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	struct yaml_error err;

	assert_int_equal(write_all(fd, "a: 1\n", 5), 5);
	assert_int_equal(yaml_parse_file(path, &doc, &err), 0);
	assert_string_equal(doc->name, path);
	assert_string_equal(yaml_get(doc->root, "a")->scalar, "1");
	yaml_doc_free(TAKE_PTR(doc));
	assert_int_equal(ftruncate(fd, YAML_MAX_BYTES + 1), 0);
	assert_int_equal(yaml_parse_file(path, &doc, &err), -E2BIG);
	unlink(path);
	assert_int_equal(yaml_parse_file(path, &doc, &err), -ENOENT);
	assert_non_null(strstr(err.message, "check the path"));
	assert_int_equal(yaml_parse_file("/", &doc, &err), -EISDIR);
	assert_null(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_lists_and_scalars),
		cmocka_unit_test(an_empty_file_is_an_empty_map),
		cmocka_unit_test(refusals_name_line_and_remedy),
		cmocka_unit_test(a_key_given_twice_leaves_a_document),
		cmocka_unit_test(sixteen_levels_are_enough),
		cmocka_unit_test(the_same_key_in_different_maps_is_fine),
		cmocka_unit_test(large_files_stop_at_the_limits),
		cmocka_unit_test(files_are_read_or_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
