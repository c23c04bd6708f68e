// SPDX-License-Identifier: Apache-2.0
/* Which rows, and in what order. */
#include "view/fields.h"

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
	{ "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 }, { "%", 0.01 },
};

static bool parse_number(const char *text, double *ret_number)
{
	char number[64];
	double factor = 1;
	size_t n = strlen(text);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i].unit);

		if (n > unit && STRV_EQ(text + n - unit, units[i].unit)) {
			n -= unit;
			factor = units[i].factor;
			break;
		}
	}
	while (n > 0 && text[n - 1] == ' ')
		n--;
	if (n >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)n, text);
	if (parse_double(number, ret_number) < 0)
		return false;
	*ret_number *= factor;
	return true;
}

/* @test: up to its end, which is cut off. */
static int parse_test(char *text, struct field_filter *filter)
{
	struct field_test *test = &filter->test[filter->names.n];
	size_t n = strcspn(text, "!<>=~");

	if (n == 0 || n >= FIELD_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (strncmp(text + n, signs[i].text, strlen(signs[i].text)) == 0) {
			test->kind = signs[i].kind;
			test->value = text + n + strlen(signs[i].text);
			test->is_number = parse_number(test->value, &test->number);
			snprintf(filter->names.name[filter->names.n++], FIELD_NAME_MAX, "%.*s", (int)n, text);
			return 0;
		}
	return -EINVAL;
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

static bool compare_holds(enum field_test_kind kind, int order)
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
static bool test_takes(const struct field_test *test, const json_t *value)
{
	bool null = STRV_EQ(test->value, "null"), takes;
	struct strbuf text;

	if (!value || null) {
		bool equal = !value && null;

		return test->kind == FIELD_EQUAL ? equal : test->kind == FIELD_UNEQUAL && !equal;
	}
	if (test->is_number && json_is_number(value)) {
		double v = json_number_value(value);

		if (test->kind != FIELD_HAS)
			return compare_holds(test->kind, (v > test->number) - (v < test->number));
	}
	strbuf_init(&text, 0);
	field_add_text(value, &text);
	if (test->kind == FIELD_HAS)
		takes = text.data && strcasestr(text.data, test->value);
	else
		takes = compare_holds(test->kind, strcmp(text.data ? text.data : "", test->value));
	strbuf_done(&text);
	return takes;
}

bool field_filter_takes(const struct field_filter *filter, const json_t *row)
{
	for (unsigned i = 0; i < filter->names.n; i++)
		if (!test_takes(&filter->test[i], field_of(row, filter->names.name[i])))
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
