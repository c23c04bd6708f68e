// SPDX-License-Identifier: Apache-2.0
/* Which rows, and in what order. */
#include "view/fields/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* ---- which rows ---- */

static const struct {
	const char *text;
	enum field_test_kind kind;
} signs[] = { /* longer ones first */
	      { "!=", FIELD_UNEQUAL }, { "<=", FIELD_AT_MOST }, { ">=", FIELD_AT_LEAST },
	      { "=", FIELD_EQUAL },    { "<", FIELD_LESS },     { ">", FIELD_MORE },
	      { "~", FIELD_HAS }
};

static const struct {
	const char *unit;
	double factor;
} units[] = {
	{ "", 1 },       { "K", 0x1p10 },   { "KiB", 0x1p10 }, { "M", 0x1p20 },   { "MiB", 0x1p20 },
	{ "G", 0x1p30 }, { "GiB", 0x1p30 }, { "T", 0x1p40 },   { "TiB", 0x1p40 }, { "%", 0.01 },
};

size_t field_sign_parse(const char *text, enum field_test_kind *ret_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (strncmp(text, signs[i].text, strlen(signs[i].text)) == 0) {
			*ret_kind = signs[i].kind;
			return strlen(signs[i].text);
		}
	return 0;
}

bool field_number_parse(const char *text, double *ret_number, const char **ret_unit)
{
	size_t digits = strlen(text);
	char number[64];

	while (digits > 0 && (isalpha((unsigned char)text[digits - 1]) || text[digits - 1] == '%'))
		digits--;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t n = digits;

		if (strcasecmp(text + digits, units[i].unit) != 0)
			continue;
		while (n > 0 && text[n - 1] == ' ')
			n--;
		if (n >= sizeof(number))
			return false;
		snprintf(number, sizeof(number), "%.*s", (int)n, text);
		if (parse_double(number, ret_number) < 0)
			return false;
		*ret_number *= units[i].factor;
		*ret_unit = units[i].unit;
		return true;
	}
	return false;
}

/* @test: up to its end, which is cut off. */
static int parse_test(char *text, struct field_filter *filter)
{
	struct field_test *test = &filter->test[filter->names.n];
	size_t n = strcspn(text, FIELD_SIGNS), sign;
	const char *unit;

	if (n == 0 || n >= FIELD_NAME_MAX)
		return -EINVAL;
	sign = field_sign_parse(text + n, &test->kind);
	if (sign == 0)
		return -EINVAL;
	test->value_at = (size_t)(text + n + sign - filter->text);
	test->is_number = field_number_parse(text + n + sign, &test->number, &unit);
	snprintf(filter->names.name[filter->names.n++], FIELD_NAME_MAX, "%.*s", (int)n, text);
	return 0;
}

int field_filter_parse(const char *text, struct field_filter *ret_filter)
{
	char *save = NULL;
	int r = 0;

	*ret_filter = (struct field_filter){ 0 };
	if (strlen(text) >= sizeof(ret_filter->text))
		return -EINVAL;
	strcpy(ret_filter->text, text);
	for (char *part = strtok_r(ret_filter->text, ",", &save); r == 0 && part;
	     part = strtok_r(NULL, ",", &save))
		r = ret_filter->names.n < FIELDS_MAX ? parse_test(part, ret_filter) : -EINVAL;
	return ret_filter->names.n > 0 ? r : -EINVAL;
}

bool field_order_holds(enum field_test_kind kind, int order)
{
	switch (kind) {
	case FIELD_EQUAL:
		return order == 0;
	case FIELD_UNEQUAL:
		return order != 0;
	case FIELD_LESS:
		return order < 0;
	case FIELD_MORE:
		return order > 0;
	case FIELD_AT_MOST:
		return order <= 0;
	default:
		return order >= 0;
	}
}

/* What is not known is equal to null alone, and neither more nor less than anything. */
static bool test_takes(const struct field_filter *filter, const struct field_test *test, const json_t *value)
{
	const char *wanted = filter->text + test->value_at;
	bool null = test->kind != FIELD_HAS && STRV_EQ(wanted, "null"), takes;
	struct strbuf text;

	if (!value || null) {
		bool equal = !value && null;

		return test->kind == FIELD_EQUAL ? equal : test->kind == FIELD_UNEQUAL && !equal;
	}
	if (test->is_number && json_is_number(value)) {
		double v = json_number_value(value);

		if (test->kind != FIELD_HAS)
			return field_order_holds(test->kind, (v > test->number) - (v < test->number));
	}
	strbuf_init(&text, 0);
	field_add_text(value, &text);
	if (test->kind == FIELD_HAS)
		takes = text.data && strcasestr(text.data, wanted);
	else
		takes = field_order_holds(test->kind, strcmp(text.data ? text.data : "", wanted));
	strbuf_done(&text);
	return takes;
}

static bool is_misfit(const struct field_filter *filter, const struct field_test *test, const char *name,
		      const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (test->is_number || test->kind == FIELD_HAS || STRV_EQ(filter->text + test->value_at, "null"))
		return false;
	json_array_foreach(rows, i, row) {
		if (json_is_number(field_of(row, name)))
			return true;
	}
	return false;
}

const char *field_filter_misfit(const struct field_filter *filter, const json_t *rows)
{
	for (unsigned i = 0; i < filter->names.n; i++)
		if (is_misfit(filter, &filter->test[i], filter->names.name[i], rows))
			return filter->names.name[i];
	return NULL;
}

bool field_filter_takes(const struct field_filter *filter, const json_t *row)
{
	for (unsigned i = 0; i < filter->names.n; i++)
		if (!test_takes(filter, &filter->test[i], field_of(row, filter->names.name[i])))
			return false;
	return true;
}

/* ---- in what order ---- */

struct sorted {
	json_t *row;
	size_t at;
};

static const char *bare_name(const char *name)
{
	return name + (*name == '+' || *name == '-');
}

static int compare_texts(const json_t *x, const json_t *y)
{
	struct strbuf a, b;
	int order;

	strbuf_init(&a, 0);
	strbuf_init(&b, 0);
	field_add_text(x, &a);
	field_add_text(y, &b);
	order = strcmp(a.data ? a.data : "", b.data ? b.data : "");
	strbuf_done(&a);
	strbuf_done(&b);
	return order;
}

/* Negative: @a comes first. */
static int compare_by(const json_t *a, const json_t *b, const char *name)
{
	const json_t *x = field_of(a, bare_name(name)), *y = field_of(b, bare_name(name));
	bool numbers = json_is_number(x) && json_is_number(y);
	int order;

	if (!x || !y)
		return !x - !y;
	if (numbers) {
		double v = json_number_value(x), w = json_number_value(y);

		order = (v > w) - (v < w);
	} else {
		order = compare_texts(x, y);
	}
	return *name == '-' || (*name != '+' && numbers) ? -order : order;
}

static int compare_by_list(const void *a, const void *b, void *list_pointer)
{
	const struct sorted *x = a, *y = b;
	const struct field_list *list = list_pointer;
	int order = 0;

	for (unsigned i = 0; order == 0 && i < list->n; i++)
		order = compare_by(x->row, y->row, list->name[i]);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

int fields_sort(json_t *rows, const struct field_list *list)
{
	size_t n = json_array_size(rows);
	_cleanup_free_ struct sorted *sorted = calloc(n + 1, sizeof(*sorted));
	int r = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct sorted){ json_incref(json_array_get(rows, i)), i };
	qsort_r(sorted, n, sizeof(*sorted), compare_by_list, (void *)list);
	for (size_t i = 0; i < n; i++)
		if (json_array_set_new(rows, i, sorted[i].row) < 0)
			r = -ENOMEM;
	return r;
}
