// SPDX-License-Identifier: Apache-2.0
/* Tabs and their columns: what a row shows under each, as a value to sort by and as a text. */
#pragma once

#include "cmd/top/sample.h"
#include "screen/canvas.h"

enum tab {
#define TAB(id_, ...) TAB_##id_,
#include "cmd/top/tabs.def"
#undef TAB
	TABS
};

struct tab_description {
	char key;
	const char *title, *brief;
	enum page page;
	const char *list, *nested, *nothing;
};
extern const struct tab_description tabs[TABS];

enum column_kind {
	KIND_TEXT,
	KIND_COUNT,
	KIND_BYTES,
	KIND_SHARE,
	KIND_SECONDS,
	KIND_LATENCY, /* seconds, too, of calls */
	KIND_NANOSECONDS,
	KIND_NUMBER, /* of any size */
	KIND_BY_SECOND,
	KIND_WATTS,
	KIND_JOULES,
	KIND_CELSIUS,
	KIND_HERTZ,
	KIND_RATE,
	KIND_TIME,
	KIND_LIST,
	KIND_FLAG,
};

/* What a row is about; borrowed from the sample, which lives longer. */
struct row {
	const struct sample *sample; /* of the machine that it is of */
	const struct host_part *host; /* of machines */
	const json_t *object, *parent; /* parent: of a nested list, the element that it is in */
	const struct entity *entity; /* of GPUs */
	const struct process *process; /* of processes */
	const struct heading
		*heading; /* of a group (tree.h): what follows is in it; the object is its sums */
};

enum { VALUE_TEXT = 160 };
struct value {
	bool known, estimated;
	bool is_text;
	unsigned part; /* of a machine's GPUs: of so many alone; 0: of all */
	double number;
	char text[VALUE_TEXT];
	enum role role;
};

typedef void value_fn(const struct sample *sample, const struct row *row, struct value *value);

struct column {
	enum tab tab;
	const char *title;
	unsigned width;
	enum column_kind kind;
	unsigned drop;
	bool spare, summed, total;
	const char *path;
	value_fn *value;
};

/* Those of a tab, in their order; *ret_n of them. */
const struct column *tab_columns(enum tab tab, unsigned *ret_n);
enum { TAB_COLUMNS_MAX = 32 };

/* What the row has there; the text of numbers is not made yet. */
void column_value(const struct sample *sample, const struct row *row, const struct column *column,
		  struct value *ret_value);
/* The same with its text; "-": it is not known. */
void column_text(const struct sample *sample, const struct row *row, const struct column *column,
		 struct value *ret_value);
static inline bool column_is_right(const struct column *column)
{
	return column->kind != KIND_TEXT && column->kind != KIND_LIST;
}

/* The member at @path ("a.b"); NULL: there is none. */
const json_t *member_at(const json_t *object, const char *path);
/* A member that is a text; "": there is none. */
const char *text_member(const json_t *object, const char *name);
