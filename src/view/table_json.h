// SPDX-License-Identifier: Apache-2.0
/*
 * What the tables read from the JSON document. It may come from an agent of another version: whatever is
 * missing is unknown.
 */
#pragma once

#include <jansson.h>

#include "view/table.h"

/* object[name], or object[name][label]; false when there is no number. */
bool get_number(const json_t *object, const char *name, const char *label, double *ret_value);

/* "" when there is no string. */
const char *get_string(const json_t *object, const char *name);

/* The line that says so, when the document is of the simulated driver. */
void table_simulated(const json_t *document, const struct table_options *options, struct strbuf *out);

/* "No GPUs", and why there are none, where the document knows. */
void table_nothing(const json_t *document, const char *what, const struct table_options *options,
		   struct strbuf *out);

/* Why what is shown is no longer true, where the document knows. */
void table_trouble(const json_t *document, const struct table_options *options, struct strbuf *out);

/* What is left out because it is not recognised in this driver; nothing where all is. */
void table_unrecognised(const json_t *document, const struct table_options *options, struct strbuf *out);

/* Cells of bytes ("1.5 GiB") and of a time ("1:02:03"), "-" when unknown. */
void table_bytes(struct table *table, const json_t *object, const char *name);
/* Of a number at hand; NULL: unknown. */
void table_bytes_value(struct table *table, const char *mark, const double *value);
void table_duration(struct table *table, const json_t *object, const char *name);

/* Cell naming what a process or workload entry belongs to ("pod 0f3e..."). */
void table_workload(struct table *table, const json_t *object);
