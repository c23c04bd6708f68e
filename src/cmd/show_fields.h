// SPDX-License-Identifier: Apache-2.0
/* Flags of gpusonde gpus and ps that name fields: --filter, --sort, --columns; and --csv. */
#pragma once

#include "config/cmdline.h"
#include "view/fields/fields.h"

struct show_fields {
	const char *command;
	bool any; /* one of the flags is set */
	bool json, csv;
	struct field_list columns, sort; /* n 0: not asked for */
	struct field_filter filter; /* names.n 0: not asked for */
};

/* False: a flag was refused, with an error. */
bool show_fields_parse(const struct invocation *inv, struct show_fields *ret_fields);

/* Whether rows are written field by field, and not by a table of their own. */
static inline bool show_fields_writes(const struct show_fields *fields)
{
	return fields->csv || (fields->columns.n > 0 && !fields->json);
}

/*
 * Removes rows of the document's list @key that the filter does not take, and sorts them. @written: they are
 * what show_fields_write() writes, and not added up first. -EINVAL: a field that no row has, with an error.
 * -ENOMEM: the rows are unusable.
 */
int show_fields_apply(const struct show_fields *fields, json_t *document, const char *key, bool written);
/*
 * @simulated: that the data are is said, beside CSV on standard error. @added_up: rows that
 * show_fields_apply() has not seen. -EINVAL as there.
 */
int show_fields_write(const struct show_fields *fields, bool simulated, bool added_up, const json_t *rows,
		      const struct table_options *options, struct strbuf *out);
