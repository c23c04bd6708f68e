// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cmd/top/value.h"
#include "view/number.h"

enum { PATH_PART = 64, CLOCK_TEXT = 8 };

const struct tab_description tabs[TABS] = {
#define TAB(id_, key_, title_, brief_, page_, list_, nested_, nothing_) \
	[TAB_##id_] = { .key = key_,                                    \
			.title = title_,                                \
			.brief = brief_,                                \
			.page = page_,                                  \
			.list = list_,                                  \
			.nested = nested_,                              \
			.nothing = nothing_ },
#include "cmd/top/tabs.def"
#undef TAB
};

static const struct column columns[] = {
#define PATH(path_) .path = path_
#define VALUE(name_) .value = value_##name_
#define SPARE .spare = true
#define SUMMED .summed = true
#define TOTAL .total = true
#define COLUMN(tab_, title_, width_, kind_, drop_, ...) \
	{ .tab = TAB_##tab_,                            \
	  .title = title_,                              \
	  .width = width_,                              \
	  .kind = KIND_##kind_,                         \
	  .drop = drop_,                                \
	  __VA_ARGS__ },
#include "cmd/top/columns.def"
#undef COLUMN
#undef TOTAL
#undef SUMMED
#undef SPARE
#undef VALUE
#undef PATH
};

const struct column *tab_columns(enum tab tab, unsigned *ret_n)
{
	const struct column *first = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (columns[i].tab != tab)
			continue;
		first = first ? first : &columns[i];
		++*ret_n;
	}
	return first;
}

/* The object that has the path's last member, and that member's name. */
static const json_t *holder(const json_t *object, const char *path, const char **ret_name)
{
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		char part[PATH_PART];

		snprintf(part, sizeof(part), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, part);
		path = dot + 1;
	}
	*ret_name = path;
	return object;
}

const json_t *member_at(const json_t *object, const char *path)
{
	const char *name;
	const json_t *in = holder(object, path, &name);

	return json_object_get(in, name);
}

const char *text_member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Whether the object that has the member says that it is an estimate. */
static bool is_estimated(const json_t *object, const char *name)
{
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(object, "estimated"), i, word)
		if (json_is_string(word) && STRV_EQ(json_string_value(word), name))
			return true;
	return false;
}

static void list_text(const json_t *list, char text[static VALUE_TEXT])
{
	const json_t *element;
	size_t i, used = 0;

	text[0] = '\0';
	json_array_foreach(list, i, element) {
		const char *comma = i > 0 ? "," : "";
		int n = json_is_string(element) ? snprintf(text + used, VALUE_TEXT - used, "%s%.40s", comma,
							   json_string_value(element)) :
						  snprintf(text + used, VALUE_TEXT - used, "%s%g", comma,
							   json_number_value(element));

		used += (size_t)n;
		if (used >= VALUE_TEXT - 1)
			break;
	}
}

static void take_member(const json_t *object, const struct column *column, struct value *value)
{
	const char *name;
	const json_t *in = holder(object, column->path, &name), *member = json_object_get(in, name);

	value->is_text = !column_is_right(column) || column->kind == KIND_TIME;
	if (json_is_boolean(member)) {
		value->known = true;
		value->number = json_is_true(member);
	} else if (json_is_number(member)) {
		value->known = true;
		value->number = json_number_value(member);
		value->estimated = is_estimated(in, name);
	} else if (json_is_string(member)) {
		value->known = json_string_length(member) > 0;
		snprintf(value->text, sizeof(value->text), "%s", json_string_value(member));
		utf8_sanitize(value->text);
	} else if (json_is_array(member)) {
		value->known = json_array_size(member) > 0;
		list_text(member, value->text);
	}
}

void column_value(const struct sample *sample, const struct row *row, const struct column *column,
		  struct value *ret_value)
{
	bool of_parent = column->path && column->path[0] == '^';
	struct column own = *column;

	*ret_value = (struct value){ .role = ROLE_TEXT };
	if (column->value) {
		column->value(sample, row, ret_value);
		return;
	}
	own.path += of_parent;
	take_member(of_parent ? row->parent : row->object, &own, ret_value);
}

static void number_text(enum column_kind kind, double v, char text[static VALUE_TEXT])
{
	char part[MAX((int)BYTES_TEXT, (int)DURATION_TEXT)];

	switch (kind) {
	case KIND_BYTES:
	case KIND_RATE:
		bytes_text(v, part);
		snprintf(text, VALUE_TEXT, "%s%s", part, kind == KIND_RATE ? "/s" : "");
		break;
	case KIND_SHARE:
		snprintf(text, VALUE_TEXT, "%.0f %%", v * 100);
		break;
	case KIND_SECONDS:
		duration_text(v, text);
		break;
	case KIND_LATENCY:
		latency_text(v, text);
		break;
	case KIND_NANOSECONDS:
		latency_text(v * 1e-9, text);
		break;
	case KIND_NUMBER:
		snprintf(text, VALUE_TEXT, v >= 100 ? "%.0f" : "%.3g", v);
		break;
	case KIND_BY_SECOND:
		snprintf(text, VALUE_TEXT, "%.1f/s", v);
		break;
	case KIND_WATTS:
		snprintf(text, VALUE_TEXT, "%.0f W", v);
		break;
	case KIND_JOULES:
		if (v < 3.6e6)
			snprintf(text, VALUE_TEXT, "%.1f Wh", v / 3600);
		else
			snprintf(text, VALUE_TEXT, "%.2f kWh", v / 3.6e6);
		break;
	case KIND_CELSIUS:
		snprintf(text, VALUE_TEXT, "%.0f \u00b0C", v);
		break;
	case KIND_HERTZ:
		snprintf(text, VALUE_TEXT, "%.0f MHz", v * 1e-6);
		break;
	case KIND_FLAG:
		snprintf(text, VALUE_TEXT, "%s", v != 0 ? "yes" : "no");
		break;
	case KIND_TEXT:
	case KIND_TIME:
	case KIND_LIST:
	case KIND_COUNT:
		snprintf(text, VALUE_TEXT, "%.0f", v);
		break;
	}
}

/* "2026-01-31T23:59:59.042Z": the time of day, in UTC as in JSON. */
static void keep_time_of_day(char text[static VALUE_TEXT])
{
	const char *clock = strchr(text, 'T');

	if (!clock || strlen(clock) <= CLOCK_TEXT)
		return;
	memmove(text, clock + 1, CLOCK_TEXT);
	text[CLOCK_TEXT] = '\0';
}

void column_text(const struct sample *sample, const struct row *row, const struct column *column,
		 struct value *ret_value)
{
	char text[VALUE_TEXT], part[16] = "";

	column_value(sample, row, column, ret_value);
	if (!ret_value->known) {
		snprintf(ret_value->text, sizeof(ret_value->text), "-");
		ret_value->role = ROLE_DIM;
		return;
	}
	if (column->kind == KIND_TIME)
		keep_time_of_day(ret_value->text);
	if (ret_value->text[0])
		return;
	number_text(column->kind, ret_value->number, text);
	if (ret_value->part > 0)
		snprintf(part, sizeof(part), "(%u) ", ret_value->part);
	snprintf(ret_value->text, sizeof(ret_value->text), "%s%s%.140s", part,
		 ret_value->estimated ? "~" : "", text);
}
