// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include "base/strbuf.h"
#include "view/tags.h"

json_t *json_tags(struct json_maker *j)
{
	_cleanup_free_ struct tag *list = calloc(TAGS_MAX + 1, sizeof(*list));
	json_t *tags = json_array();
	uint32_t n;

	if (!list) {
		j->failed = true;
		return tags;
	}
	n = tags_of(j->s, list);
	for (uint32_t i = 0; i < n; i++) {
		struct strbuf text;

		strbuf_init(&text, 0);
		strbuf_addf(&text, "%s:%s", list[i].key, list[i].value);
		if (text.failed)
			j->failed = true;
		else
			json_push(j, tags, json_text(text.data));
		strbuf_done(&text);
	}
	return tags;
}
