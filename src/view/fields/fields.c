// SPDX-License-Identifier: Apache-2.0
#include "view/fields/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "view/number.h"

int field_list_parse(const char *text, struct field_list *ret_list)
{
	ret_list->n = 0;
	for (;;) {
		size_t n = strcspn(text, ","), sign = n > 0 && (*text == '+' || *text == '-');

		if (n == sign || n >= FIELD_NAME_MAX || ret_list->n == FIELDS_MAX)
			return -EINVAL;
		snprintf(ret_list->name[ret_list->n++], FIELD_NAME_MAX, "%.*s", (int)n, text);
		if (!text[n])
			return 0;
		text += n + 1;
	}
}

/* The member of one part of a name: of an object by its key, of a list by its index. */
static const json_t *member(const json_t *value, const char *part, size_t n)
{
	char key[FIELD_NAME_MAX];
	uint64_t index;

	snprintf(key, sizeof(key), "%.*s", (int)n, part);
	if (json_is_object(value))
		return json_object_get(value, key);
	return json_is_array(value) && parse_u64(key, &index) == 0 ? json_array_get(value, index) : NULL;
}

const json_t *field_of(const json_t *row, const char *name)
{
	for (const char *part = name; row; part++) {
		size_t n = strcspn(part, ".");

		row = member(row, part, n);
		part += n;
		if (!*part)
			break;
	}
	return json_is_null(row) ? NULL : row;
}

void field_add_text(const json_t *value, struct strbuf *out)
{
	const json_t *element;
	size_t i;

	if (json_is_string(value))
		strbuf_adds(out, json_string_value(value));
	else if (json_is_number(value))
		number_add(out, json_number_value(value));
	else if (json_is_boolean(value))
		strbuf_adds(out, json_is_true(value) ? "true" : "false");
	json_array_foreach(value, i, element) {
		if (i > 0)
			strbuf_addc(out, ' ');
		field_add_text(element, out);
	}
}

/* Fields of @value, whose own name is @prefix, that are not in @names yet. Objects in lists are no fields. */
static int collect_names(json_t *names, const json_t *value, const char *prefix)
{
	char name[FIELD_NAME_MAX];
	const json_t *inner;
	const char *key;
	int r = 0;

	json_object_foreach((json_t *)value, key, inner) {
		if (snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key) >= FIELD_NAME_MAX)
			return -EBADMSG;
		if (json_is_object(inner))
			r = collect_names(names, inner, name);
		else if (!json_is_object(json_array_get(inner, 0)) && !json_object_get(names, name))
			r = json_object_set_new(names, name, json_true());
		if (r < 0)
			return r == -EBADMSG ? r : -ENOMEM;
	}
	return 0;
}

/* One row's null may be another's object. */
static bool has_members(json_t *names, const char *object)
{
	size_t n = strlen(object);
	const json_t *unused;
	const char *name;

	json_object_foreach(names, name, unused) {
		if (strncmp(name, object, n) == 0 && name[n] == '.')
			return true;
	}
	return false;
}

int fields_names(const json_t *rows, json_t **ret_names)
{
	const char *name;
	json_t *unused;
	void *next;
	json_t *names = json_object();
	const json_t *row;
	size_t i;
	int r = names ? 0 : -ENOMEM;

	json_array_foreach(rows, i, row)
		r = r == 0 ? collect_names(names, row, "") : r;
	if (r < 0) {
		json_decref(names);
		return r;
	}
	json_object_foreach_safe(names, next, name, unused)
	{
		if (has_members(names, name))
			json_object_del(names, name);
	}
	*ret_names = names;
	return 0;
}

int fields_reduce(json_t *rows, const struct field_list *list)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_t *reduced = json_object();
		int r = 0;

		for (unsigned k = 0; k < list->n; k++) {
			const json_t *value = field_of(row, list->name[k]);

			r |= json_object_set_new(reduced, list->name[k],
						 value ? json_incref((json_t *)value) : json_null());
		}
		if (json_array_set_new(rows, i, reduced) < 0 || r < 0)
			return -ENOMEM;
	}
	return 0;
}
