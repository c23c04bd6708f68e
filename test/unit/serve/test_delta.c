// SPDX-License-Identifier: Apache-2.0
/* What changes from one JSON text to the next: the events, applied to the old text, give the new one. */
#include "test.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/delta.h"

static struct strbuf events;

static int start(_unused_ void **state)
{
	strbuf_init(&events, 0);
	return 0;
}

static int stop(_unused_ void **state)
{
	strbuf_done(&events);
	return 0;
}

static int find(const char *old, const char *new)
{
	const struct delta_text a = { old, strlen(old) }, b = { new, strlen(new) };

	strbuf_reset(&events);
	return delta_events("p", &a, &b, &events);
}

/* As the page does it. */
static void apply(json_t **document, json_t *change)
{
	json_t *path = json_array_get(change, 0), *value = json_array_get(change, 1), *at = *document, *step;
	size_t n = json_array_size(path);

	if (n == 0) {
		json_decref(*document);
		*document = json_deep_copy(value);
		return;
	}
	for (size_t i = 0; i + 1 < n; i++) {
		step = json_array_get(path, i);
		at = json_is_string(step) ? json_object_get(at, json_string_value(step)) :
					    json_array_get(at, (size_t)json_integer_value(step));
		assert_non_null(at);
	}
	step = json_array_get(path, n - 1);
	if (json_is_array(at) && json_is_string(step)) {
		while ((json_int_t)json_array_size(at) > json_integer_value(value))
			json_array_remove(at, json_array_size(at) - 1);
	} else if (json_is_string(step)) {
		json_object_set(at, json_string_value(step), value);
	} else if ((size_t)json_integer_value(step) == json_array_size(at)) {
		json_array_append(at, value);
	} else {
		assert_int_equal(json_array_set(at, (size_t)json_integer_value(step), value), 0);
	}
}

static unsigned apply_all(json_t **document)
{
	static const char head[] = "event: change\ndata: ";
	unsigned n = 0;

	for (char *at = events.data; at && *at; n++) {
		char *end = strstr(at, "\n\n");
		json_t *event, *change;
		size_t i;

		assert_int_equal(strncmp(at, head, strlen(head)), 0);
		assert_non_null(end);
		*end = '\0';
		event = json_loads(at + strlen(head), 0, NULL);
		assert_non_null(event);
		assert_string_equal(json_string_value(json_object_get(event, "page")), "p");
		assert_int_equal(json_is_true(json_object_get(event, "more")), end[2] != '\0');
		json_array_foreach(json_object_get(event, "changes"), i, change)
			apply(document, change);
		json_decref(event);
		at = end + 2;
	}
	return n;
}

static void check(const char *old, const char *new)
{
	json_t *document = *old ? json_loads(old, JSON_DECODE_ANY, NULL) : json_object();
	json_t *wanted = json_loads(new, JSON_DECODE_ANY, NULL);
	int r = find(old, new);

	assert_non_null(wanted);
	if (r == -E2BIG) {
		assert_true(*old);
	} else {
		assert_int_equal(r, 0);
		apply_all(&document);
		assert_true(json_equal(document, wanted));
	}
	json_decref(document);
	json_decref(wanted);
}

static void test_changes_lead_from_one_to_the_next(_unused_ void **state)
{
	static const char *const texts[] = {
		"{\"time\":1,\"gpus\":[{\"a\":1,\"b\":{\"c\":[1,2,3]}},{\"a\":2,\"b\":{\"c\":[]}}],\"pad\":\""
		"a long text, so that changes are less\"}",
		"{\"time\":2,\"gpus\":[{\"a\":1,\"b\":{\"c\":[1,5]}},{\"a\":2,\"b\":{\"c\":[7]}}],\"pad\":\""
		"a long text, so that changes are less\"}",
		"{\"time\":2,\"gpus\":[{\"a\":1,\"b\":{\"c\":[1]}}],\"pad\":\""
		"a long text, so that changes are less, and with \\\"]}\\\\ \"}",
		"{\"time\":2,\"gpus\":[],\"pad\":\""
		"a long text, so that changes are less, and with \\\"]}\\\\ \"}",
		"{\"time\":null,\"other\":true}",
		"{ \"time\" : -1.5e3 ,\n \"other\" : [ {} , [ ] , \"\" ] }\n",
		"{}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		check("", texts[i]);
		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			check(texts[i], texts[k]);
	}
}

static void test_only_what_changes_is_sent(_unused_ void **state)
{
	assert_int_equal(find("{\"a\":[{\"x\":1,\"y\":\"0123456789\"}]}",
			      "{\"a\":[{\"x\":2,\"y\":\"0123456789\"}]}"),
			 -E2BIG); /* the head of an event alone is longer than this text */
	assert_int_equal(
		find("{\"a\":[{\"x\":1,\"y\":\"0123456789012345678901234567890123456789012345678901\"}]}",
		     "{\"a\":[{\"x\":2,\"y\":\"0123456789012345678901234567890123456789012345678901\"}]}"),
		0);
	assert_string_equal(events.data,
			    "event: change\ndata: {\"page\":\"p\",\"changes\":[[[\"a\",0,\"x\"],2]]}\n\n");
	assert_int_equal(find("{\"a\":1}", "{\"a\":1}"), 0);
	assert_int_equal(events.len, 0);
}

static void test_a_long_text_comes_in_parts(_unused_ void **state)
{
	json_t *list = json_array(), *document = json_object(), *wanted;
	char *text;

	for (unsigned i = 0; i < 4000; i++)
		json_array_append_new(list, json_pack("{s:i, s:s}", "n", (int)i, "text",
						      "of some length, as those of processes"));
	wanted = json_pack("{s:i, s:o}", "time", 1, "list", list);
	text = json_dumps(wanted, JSON_COMPACT);
	assert_int_equal(find("", text), 0);
	assert_non_null(strstr(events.data, "\"start\":true"));
	assert_true(apply_all(&document) > 1);
	assert_true(json_equal(document, wanted));
	json_decref(document);
	json_decref(wanted);
	free(text);
}

static void test_what_is_no_json_is_refused(_unused_ void **state)
{
	static const char *const texts[] = { "",         " ",    "{",         "{\"a\"",    "{\"a\":",
					     "{\"a\":1", "[1,2", "]",         "{\"a\":\"", "{\"a\":\"\\",
					     "{} {}",    ",",    "{\"a\":1}}" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct delta_text broken = { texts[i], strlen(texts[i]) }, nothing = { 0 };

		assert_int_equal(delta_events("p", &nothing, &broken, &events), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changes_lead_from_one_to_the_next, start, stop),
		cmocka_unit_test_setup_teardown(test_only_what_changes_is_sent, start, stop),
		cmocka_unit_test_setup_teardown(test_a_long_text_comes_in_parts, start, stop),
		cmocka_unit_test_setup_teardown(test_what_is_no_json_is_refused, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
