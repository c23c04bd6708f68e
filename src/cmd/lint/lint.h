// SPDX-License-Identifier: Apache-2.0
/* "gpusonde lint": the queries of a board or rule file, and what their names are called elsewhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

enum { LINT_FILE_MAX = 4 << 20 };

struct lint_query {
	const char *title; /* of the panel or variable, or the rule's name; "" */
	bool records; /* a rule that makes a metric called @title */
	int line; /* from 1; 0: the format does not say */
	const char *text;
};

/*
 * Tells each query of a file: of Grafana (JSON) or of rules (YAML). 0, -EBADMSG: it is neither, or too much,
 * and *why says so; -ENOMEM.
 */
typedef void lint_take_query(const struct lint_query *query, void *userdata);
int lint_read(const char *name, const char *data, size_t n, lint_take_query *take, void *userdata,
	      struct strbuf *why);

struct lint_name {
	const char *name; /* of DCGM, within the query */
	size_t n;
	bool breaks_49; /* the exporter's release 4.9 does not have it */
	const char *dcgm, *dcgm49; /* NULL: there is none */
	double factor49; /* number of 4.9 by that of the name; 0: unknown */
	char ours[160]; /* a selector; "": none that is the same */
	double factor_ours; /* the same of ours */
};

/* Tells each name of DCGM's that a query of Prometheus has, once. */
typedef void lint_take_name(const struct lint_name *name, void *userdata);
void lint_names(const char *query, lint_take_name *take, void *userdata);

/* What a query says of gpusonde's metrics and is not so. Texts lie within the query, and have no end. */
struct lint_fault {
	const char *metric; /* that it is about; NULL: several, or the query is too long to be judged */
	size_t metric_n;
	const char *label; /* that they do not have; NULL: there is no such metric */
	size_t label_n;
};

/* Tells them; @records: names of metrics that the file's rules make, each with a line end. 0, -ENOMEM. */
typedef void lint_take_fault(const struct lint_fault *fault, void *userdata);
int lint_ours(const char *query, const char *records, lint_take_fault *take, void *userdata);
