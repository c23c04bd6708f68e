// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <jansson.h>
#include <string.h>

#include "cmd/top/prune.h"

static void is_pruned(const char *text, const char *wanted)
{
	struct strbuf out;
	/* Exactly so large that reading past it is found. */
	size_t length = strlen(text);
	char *copy = malloc(length + 1);

	memcpy(copy, text, length);
	strbuf_init(&out, 0);
	prune(copy, length, &out);
	assert_string_equal(out.data, wanted);
	strbuf_done(&out);
	free(copy);
}

static void members_go(_unused_ void **state)
{
	is_pruned("{\"a\":1,\"recent\":[{\"b\":2},3],\"c\":3}", "{\"a\":1,\"c\":3}");
	is_pruned("{\"recent\":1,\"c\":3}", "{\"c\":3}");
	is_pruned("{\"a\":1,\"recent\":\"},\\\"\"}", "{\"a\":1}");
	is_pruned("{\"recent\":1}", "{}");
	is_pruned("{\"recent\" : {} , \"a\": null , \"c\" : 3}", "{  \"c\" : 3}");
	is_pruned("{\"a\": 1, \"recent\": [1, 2] }", "{\"a\": 1}");
	is_pruned("{\"a\":null,\"b\":{\"c\":null},\"d\":null}", "{\"b\":{}}");
	is_pruned("{\"nvlink_link_up\":[1],\"nvlink_links\":2,\"nvlink_link_\":3}",
		  "{\"nvlink_links\":2,\"nvlink_link_\":3}");
}

static void what_is_no_member_stays(_unused_ void **state)
{
	is_pruned("[null,\"recent\",{\"a\":\"recent\"},null]", "[null,\"recent\",{\"a\":\"recent\"},null]");
	is_pruned("{\"recents\":1,\"recen\":2,\"x\\\"recent\":3}",
		  "{\"recents\":1,\"recen\":2,\"x\\\"recent\":3}");
	is_pruned("{\"a\":nullx,\"b\":\"null\"}", "{\"a\":nullx,\"b\":\"null\"}");
}

/* Whatever it is, nothing beyond it is read, and the parser sees that it is no JSON. */
static void broken_texts(_unused_ void **state)
{
	static const char whole[] =
		"{\"a\":[1,{\"recent\":{\"b\":[null,\"\\\"\"]},\"c\":null}],\"unavailable\":{}}";

	is_pruned("", "");
	is_pruned("\"", "\"");
	is_pruned("\"recent\":", "");
	is_pruned("{\"recent\":,}", "{}");
	for (size_t n = 1; n < strlen(whole); n++) {
		char *part = malloc(n);
		struct strbuf out;
		json_t *parsed;

		memcpy(part, whole, n);
		strbuf_init(&out, 0);
		prune(part, n, &out);
		parsed = json_loadb(out.data, out.len, 0, NULL);
		assert_null(parsed);
		strbuf_done(&out);
		free(part);
	}
	is_pruned(whole, "{\"a\":[1,{}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_go),
		cmocka_unit_test(what_is_no_member_stays),
		cmocka_unit_test(broken_texts),
	};

	return cmocka_run_group_tests_name("prune", tests, NULL, NULL);
}
