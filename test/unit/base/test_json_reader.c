// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_reader.h"

static struct json_reader *reader;
static char said[4096];

static void say(int id, char what, const char *text, size_t n)
{
	size_t at = strlen(said);

	snprintf(said + at, sizeof(said) - at, "%d%c%.*s ", id, what, (int)n, text);
}

static int on_value(int id, const struct json_value *value, void *userdata)
{
	const char *word = value->kind == JSON_VALUE_NULL ? "null" : value->yes ? "true" : "false";

	(void)userdata;
	if (id == 13)
		return -ESTALE;
	if (value->kind == JSON_VALUE_TEXT || value->kind == JSON_VALUE_NUMBER)
		say(id, '=', value->text, value->n);
	else
		say(id, '=', word, strlen(word));
	if (id == 5)
		say(id, '@', value->key, strlen(value->key));
	return 0;
}

static int on_begin(int id, void *userdata)
{
	(void)userdata;
	say(id, '{', "", 0);
	return 0;
}

static int on_end(int id, void *userdata)
{
	(void)userdata;
	say(id, '}', "", 0);
	return 0;
}

static int begin(void **state)
{
	static const struct json_ops ops = { on_value, on_begin, on_end };
	static const struct json_path paths[] = {
		{ "items []", 1 }, { "items [] name", 2 }, { "a b", 3 },
		{ "list []", 4 },  { "labels *", 5 },      { "stop", 13 },
	};

	(void)state;
	said[0] = '\0';
	if (json_reader_new(&ops, NULL, &reader) < 0)
		return -1;
	return json_reader_add(reader, "", paths, ARRAY_SIZE(paths));
}

static int end(void **state)
{
	(void)state;
	json_reader_free(reader);
	return 0;
}

static int feed(const char *text)
{
	return json_feed(reader, text, strlen(text));
}

static void tells_what_is_at_its_paths(void **state)
{
	(void)state;
	assert_int_equal(feed("{\"x\":{\"b\":1},\"a\":{\"b\":-1.5e3,\"c\":[1,2]},\"items\":[{\"name\":\"n\","
			      "\"deep\":{\"name\":\"no\"}},7,{\"name\":null}],\"list\":[true,[false],\"t\"],"
			      "\"labels\":{\"k\\u00e9\":\"v\"}}"),
			 0);
	assert_int_equal(json_end(reader), 0);
	assert_string_equal(said, "3=-1.5e3 1{ 2=n 1} 1=7 1{ 2=null 1} 4=true 4{ 4} 4=t 5=v 5@k\xc3\xa9 ");
}

static void the_pieces_do_not_matter(void **state)
{
	static const char text[] = "{\"items\":[{\"name\":\"\xc3\xa9\\u20ac\\\"\"}],\"a\":{\"b\":12}}";
	char whole[sizeof(said)];

	(void)state;
	assert_int_equal(feed(text), 0);
	strcpy(whole, said);
	for (size_t cut = 1; cut < strlen(text); cut++) {
		said[0] = '\0';
		assert_int_equal(json_reader_reset(reader), 0);
		assert_int_equal(json_feed(reader, text, cut), 0);
		assert_int_equal(json_feed(reader, text + cut, strlen(text) - cut), 0);
		assert_string_equal(said, whole);
	}
}

static void documents_follow_each_other(void **state)
{
	(void)state;
	assert_int_equal(feed("{\"a\":{\"b\":1}}\n{\"a\":{\"b\":2}}{\"a\""), 0);
	assert_string_equal(said, "3=1 3=2 ");
	assert_int_equal(json_end(reader), -EBADMSG);
}

static void bounds(void **state)
{
	static char text[(3 << 20) + 16];

	(void)state;
	memset(text, '[', JSON_DEPTH_MAX + 1);
	assert_int_equal(json_feed(reader, text, JSON_DEPTH_MAX), 0);
	assert_int_equal(json_feed(reader, text, 1), -E2BIG);
	assert_int_equal(json_reader_reset(reader), 0);
	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"y\":\"", 6);
	assert_int_equal(json_feed(reader, text, sizeof(text)), -EFBIG);
	assert_int_equal(json_reader_reset(reader), 0);
	/* Between tokens there may be more. */
	memset(text, ' ', sizeof(text));
	assert_int_equal(json_feed(reader, text, 1 << 20), 0);
}

static void what_is_no_json(void **state)
{
	static const char *const bad[] = { "{]", "{\"a\":\"\xff\"}", "{\"a\" 1}", "nul!" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(json_reader_reset(reader), 0);
		assert_int_equal(feed(bad[i]), -EBADMSG);
	}
	assert_int_equal(json_reader_reset(reader), 0);
	assert_int_equal(feed("{\"stop\":1}"), -ESTALE);
}

static void paths_are_bounded(void **state)
{
	char text[JSON_NODES_MAX][8];
	int r = 0;

	(void)state;
	for (int i = 0; r == 0 && i < JSON_NODES_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "n%d", i);
		r = json_reader_add(reader, "", &(struct json_path){ text[i], 20 + i }, 1);
	}
	assert_int_equal(r, -E2BIG);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tells_what_is_at_its_paths),
		TEST(the_pieces_do_not_matter),
		TEST(documents_follow_each_other),
		TEST(bounds),
		TEST(what_is_no_json),
		TEST(paths_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
