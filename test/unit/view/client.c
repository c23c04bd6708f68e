// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "client.h"

char *client_page(const struct snapshot *s, enum exposition format)
{
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	assert_int_equal(view_prometheus(s, format, NULL, &out), 0);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

json_t *client_document(const struct snapshot *s, unsigned sections)
{
	struct strbuf out;
	json_t *json;

	strbuf_init(&out, 0);
	assert_int_equal(view_json_text(s, sections, &out), 0);
	json = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	strbuf_done(&out);
	return json;
}
