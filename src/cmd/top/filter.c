// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "view/fields/fields.h"

enum { WORDS_MAX = 8, WORD_TEXT = 64 };

struct word {
	const struct column *column; /* NULL: any has the text */
	enum field_test_kind kind;
	char text[WORD_TEXT];
	bool is_number;
	double number;
};

struct filter {
	const struct column *columns;
	unsigned columns_n, n;
	struct word words[WORDS_MAX];
};

/* Titles as people type them: without blanks. */
static bool begins_with(const char *title, const char *name, size_t length)
{
	while (length > 0 && *title) {
		if (*title == ' ' && *name != ' ' && *name != '_') {
			title++;
			continue;
		}
		if (strncasecmp(title, name, 1) != 0 && !(*title == ' ' && *name == '_'))
			return false;
		title++;
		name++;
		length--;
	}
	return length == 0;
}

unsigned filter_column(const struct column *columns, unsigned n, const char *name, size_t length)
{
	unsigned found = n;

	for (unsigned i = 0; i < n; i++) {
		if (!begins_with(columns[i].title, name, length))
			continue;
		if (strlen(columns[i].title) == length)
			return i;
		found = found == n ? i : found;
	}
	return found;
}

/* "1.5G", "50%", "80": in the column's own unit. */
static bool parse_number(const struct column *column, const char *text, double *ret_number)
{
	const char *unit;
	double v;

	if (!field_number_parse(text, &v, &unit))
		return false;
	*ret_number = column->kind == KIND_SHARE && *unit != '%' ? v / 100 :
		      column->kind == KIND_HERTZ                 ? v * 1e6 :
		      column->kind == KIND_JOULES                ? v * 3600 :
								   v;
	return true;
}

static void add_word(struct filter *filter, const char *text, size_t length, bool *ret_unknown)
{
	struct word *word = &filter->words[filter->n++];
	size_t name, sign;
	unsigned at;

	snprintf(word->text, sizeof(word->text), "%.*s", (int)length, text);
	name = strcspn(word->text, FIELD_SIGNS);
	sign = field_sign_parse(word->text + name, &word->kind);
	if (sign == 0)
		return;
	at = name > 0 ? filter_column(filter->columns, filter->columns_n, word->text, name) :
			filter->columns_n;
	*ret_unknown |= at == filter->columns_n;
	if (at == filter->columns_n)
		return;
	word->column = &filter->columns[at];
	memmove(word->text, word->text + name + sign, strlen(word->text + name + sign) + 1);
	word->is_number = parse_number(word->column, word->text, &word->number);
}

int filter_new(enum tab tab, const char *text, struct filter **ret_filter, bool *ret_unknown)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	*ret_unknown = false;
	if (!filter)
		return -ENOMEM;
	filter->columns = tab_columns(tab, &filter->columns_n);
	while (*text && filter->n < WORDS_MAX) {
		size_t length = strcspn(text, " ");

		if (length > 0)
			add_word(filter, text, length, ret_unknown);
		text += length + strspn(text + length, " ");
	}
	*ret_filter = filter;
	return 0;
}

void filter_free(struct filter *filter)
{
	free(filter);
}

/* What is not known matches no condition but "!=". */
static bool matches_column(const struct word *word, const struct sample *sample, const struct row *row)
{
	bool has, same;
	struct value value;

	column_text(sample, row, word->column, &value);
	has = value.known && strcasestr(value.text, word->text);
	switch (word->kind) {
	case FIELD_HAS:
		return has;
	case FIELD_EQUAL:
	case FIELD_UNEQUAL:
		same = value.is_text ? has :
				       value.known && (strcasecmp(value.text, word->text) == 0 ||
						       (word->is_number && value.number == word->number));
		return same == (word->kind == FIELD_EQUAL);
	default:
		return value.known && word->is_number && !value.is_text &&
		       field_order_holds(word->kind,
					 (value.number > word->number) - (value.number < word->number));
	}
}

static bool matches_any(const struct filter *filter, const struct word *word, const struct sample *sample,
			const struct row *row)
{
	struct value value;

	for (unsigned i = 0; i < filter->columns_n; i++) {
		column_text(sample, row, &filter->columns[i], &value);
		if (value.known && strcasestr(value.text, word->text))
			return true;
	}
	return false;
}

bool filter_matches(const struct filter *filter, const struct sample *sample, const struct row *row)
{
	for (unsigned i = 0; i < filter->n; i++) {
		const struct word *word = &filter->words[i];

		if (word->column ? !matches_column(word, sample, row) :
				   !matches_any(filter, word, sample, row))
			return false;
	}
	return true;
}
