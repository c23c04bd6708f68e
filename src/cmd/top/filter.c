// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { WORDS_MAX = 8, WORD_TEXT = 64 };

enum comparison { HAS, IS, IS_NOT, ABOVE, BELOW, AT_LEAST, AT_MOST };

struct word {
	enum comparison comparison;
	const struct column *column; /* NULL: any */
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
	static const char sizes[] = "KMGT";
	char digits[WORD_TEXT], *end;
	const char *size;
	double v;

	snprintf(digits, sizeof(digits), "%s", text);
	end = digits + strspn(digits, "0123456789.");
	size = *end ? strchr(sizes, *end & ~0x20) : NULL;
	*end = '\0';
	if (parse_double(digits, &v) < 0)
		return false;
	for (const char *p = sizes; size && p <= size; p++)
		v *= 1024;
	*ret_number = column->kind == KIND_SHARE  ? v / 100 :
		      column->kind == KIND_HERTZ  ? v * 1e6 :
		      column->kind == KIND_JOULES ? v * 3600 :
						    v;
	return true;
}

static const struct {
	const char *text;
	enum comparison comparison;
} operators[] = { { "!=", IS_NOT }, { ">=", AT_LEAST }, { "<=", AT_MOST },
		  { "=", IS },      { ">", ABOVE },     { "<", BELOW } };

static void add_word(struct filter *filter, const char *text, size_t length, bool *ret_unknown)
{
	struct word *word = &filter->words[filter->n++];
	size_t name = 0;

	snprintf(word->text, sizeof(word->text), "%.*s", (int)length, text);
	name = strcspn(word->text, "!<>=");
	for (size_t i = 0; i < ARRAY_SIZE(operators) && word->text[name]; i++) {
		size_t n = strlen(operators[i].text);
		unsigned at;

		if (strncmp(word->text + name, operators[i].text, n) != 0)
			continue;
		at = name > 0 ? filter_column(filter->columns, filter->columns_n, word->text, name) :
				filter->columns_n;
		*ret_unknown |= at == filter->columns_n;
		if (at == filter->columns_n)
			return;
		word->column = &filter->columns[at];
		word->comparison = operators[i].comparison;
		memmove(word->text, word->text + name + n, strlen(word->text + name + n) + 1);
		word->is_number = parse_number(word->column, word->text, &word->number);
		return;
	}
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

static bool compare_number(const struct word *word, double v)
{
	switch (word->comparison) {
	case ABOVE:
		return v > word->number;
	case BELOW:
		return v < word->number;
	case AT_LEAST:
		return v >= word->number;
	case AT_MOST:
		return v <= word->number;
	default:
		return false;
	}
}

/* What is not known matches no condition but "!=". */
static bool matches_column(const struct word *word, const struct sample *sample, const struct row *row)
{
	struct value value;
	bool same;

	column_text(sample, row, word->column, &value);
	if (word->comparison > IS_NOT)
		return value.known && word->is_number && !value.is_text && compare_number(word, value.number);
	same = value.known && (value.is_text ? strcasestr(value.text, word->text) != NULL :
					       strcasecmp(value.text, word->text) == 0 ||
						       (word->is_number && value.number == word->number));
	return same == (word->comparison == IS);
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
