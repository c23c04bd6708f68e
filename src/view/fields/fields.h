// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of a document by its own names: a field is a member of a row, such as "memory_bytes",
 * "clock_hertz.sm" of an object or "fan_speed_ratio.0" of a list. What is null is unknown.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "view/view.h"

enum { FIELDS_MAX = 40, FIELD_NAME_MAX = 96 };

struct field_list {
	unsigned n;
	char name[FIELDS_MAX][FIELD_NAME_MAX];
};

/* "NAME,NAME,...". -EINVAL: an empty name, a longer one or more of them. */
int field_list_parse(const char *text, struct field_list *ret_list);

/* NULL: the row has no such member, or it is null. */
const json_t *field_of(const json_t *row, const char *name);

/* As in JSON; of a list its values with blanks between them. Nothing for NULL and objects. */
void field_add_text(const json_t *value, struct strbuf *out);

/*
 * An object whose keys are the names of all fields that a row has, as they come. -ENOMEM; -EBADMSG: one is
 * longer.
 */
int fields_names(const json_t *rows, json_t **ret_names);

/* Leaves these fields of each row, under their names; null where it has none. -ENOMEM. */
int fields_reduce(json_t *rows, const struct field_list *list);

/* ---- which rows ---- */

enum field_test_kind {
	FIELD_EQUAL,
	FIELD_UNEQUAL,
	FIELD_LESS,
	FIELD_MORE,
	FIELD_AT_MOST,
	FIELD_AT_LEAST,
	FIELD_HAS
};

/* What a sign begins with. */
#define FIELD_SIGNS "!<>=~"
/* The sign that @text begins with; the characters that it takes, 0: there is none. */
size_t field_sign_parse(const char *text, enum field_test_kind *ret_kind);
/*
 * Whether all of @text is a number; K, M, G, T, KiB, MiB, GiB, TiB or % may follow, in any case. *@ret_unit:
 * that, or "".
 */
bool field_number_parse(const char *text, double *ret_number, const char **ret_unit);
/* @order: negative, 0 or positive, of a value and the test's. Not of FIELD_HAS. */
bool field_order_holds(enum field_test_kind kind, int order);

struct field_test {
	enum field_test_kind kind;
	size_t value_at; /* in the filter's text, so that a filter can be copied */
	bool is_number;
	double number;
};

/* Tests that all must hold: of each name in @names. */
struct field_filter {
	struct field_list names;
	struct field_test test[FIELDS_MAX];
	char text[1024];
};

/*
 * "NAME=VALUE,NAME>=VALUE,..."; also != < > <= and ~ (has the text in it). A VALUE is a text, a number, also
 * with a unit, or null: unknown. -EINVAL.
 */
int field_filter_parse(const char *text, struct field_filter *ret_filter);
bool field_filter_takes(const struct field_filter *filter, const json_t *row);
/* The first name that is of figures in these rows and is compared with what is no number; NULL: none. */
const char *field_filter_misfit(const struct field_filter *filter, const json_t *rows);

/* ---- in what order ---- */

/*
 * By the first name, then by the next: figures from the largest on, texts from A on; "+NAME" upwards,
 * "-NAME" downwards. Unknown ones come last. -ENOMEM: the rows are unusable.
 */
int fields_sort(json_t *rows, const struct field_list *list);

/* ---- written ---- */

/* A line of names, and one for each row (RFC 4180); unknown is empty. @list NULL: every field there is. */
int fields_csv(const json_t *rows, const struct field_list *list, struct strbuf *out);

/* Columns for people: sizes and shares with their units, titles as the fields are called. */
int table_fields(const json_t *rows, const struct field_list *list, const struct table_options *options,
		 struct strbuf *out);
