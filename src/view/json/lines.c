// SPDX-License-Identifier: Apache-2.0
#include "view/lines.h"

#include <errno.h>

#include "view/json/json.h"

static json_t *json_calls_of(struct json_maker *j, const struct stack_line *line)
{
	json_t *list = json_array();

	for (size_t i = 0; i < line->calls_n; i++) {
		json_t *object = json_object();

		json_put(j, object, "api", json_string(line->calls[i].call));
		json_put(j, object, "count", json_number(line->calls[i].count));
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_line(struct json_maker *j, const struct stack_page *page, const struct stack_line *line)
{
	const struct stack_place *place = &page->places[line->place];
	json_t *object = json_object();

	json_put(j, object, "pid", json_integer(line->pid));
	/* null: there is none, and `function` says why. */
	json_put(j, object, "file", json_text_or_null(place->file));
	json_put(j, object, "line", json_positive_or_null(place->line));
	json_put(j, object, "function", json_long_text(place->name));
	json_put(j, object, "calls_itself", json_number(line->itself));
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		if (stack_weight_is_known(page, (enum stack_weight)i))
			json_put(j, object, stack_weight_infos[i].name, json_number(line->weights[i]));
	json_put(j, object, "apis", json_calls_of(j, line));
	return object;
}

int json_lines(const struct stack_page *page, struct strbuf *out)
{
	_cleanup_(stack_lines_freep) struct stack_lines *lines = NULL;
	struct json_maker j = { 0 };
	json_t *list;
	int r = stack_lines_new(page, &lines);

	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < lines->lines_n; i++)
		json_push(&j, list, json_line(&j, page, &lines->lines[i]));
	return json_finish(&j, list, 0, out);
}
