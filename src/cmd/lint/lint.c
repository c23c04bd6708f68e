// SPDX-License-Identifier: Apache-2.0
#include "cmd/lint/lint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fd.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "config/nearest.h"
#include "view/metrics/family_names.h"
#include "view/table/table.h"

enum {
	SAID_MAX = 64 << 20,
	RECORDS_MAX = 64 << 10, /* bytes of names */
	NEAREST_MAX = 256, /* faults that a name is looked for, which takes long */
	NAME_MAX_SHOWN = 120,
};

struct lint {
	struct strbuf out;
	struct strbuf records; /* lines */
	json_t *names, *faults; /* of --json; NULL: @out is written */
	unsigned faults_n;
	const struct lint_query *query; /* at hand */
	unsigned queries, broken_49, broken_ours;
	bool named, breaks_49, breaks_ours; /* the query at hand */
};

/* Units differ by what is exact in decimal; products of floating-point numbers are not. */
static void add_factor(struct strbuf *out, double factor)
{
	double inverse = factor > 0 ? 1 / factor : 0;

	if (factor <= 0 || fabs(factor - 1) < 1e-9)
		return;
	if (factor > 1)
		strbuf_addf(out, ", %.10g times the number", factor);
	else
		strbuf_addf(out, ", the number divided by %.10g", inverse);
}

static void add_title(struct lint *lint)
{
	if (lint->named)
		return;
	lint->named = true;
	if (lint->query->line > 0)
		strbuf_addf(&lint->out, "line %d: ", lint->query->line);
	text_clean(&lint->out, *lint->query->title ? lint->query->title : "(no title)");
	strbuf_addc(&lint->out, '\n');
}

static json_t *factor_json(double factor)
{
	return factor > 0 ? json_real(factor) : json_null();
}

/* Texts of the file may be no UTF-8: then they are null. */
static void add_name_json(struct lint *lint, const struct lint_name *name)
{
	json_t *title = json_string(lint->query->title), *query = json_string(lint->query->text);
	json_t *row = json_pack("{s:o, s:i, s:o, s:s#, s:b, s:s?, s:o, s:s?, s:o}", "title",
				title ? title : json_null(), "line", lint->query->line, "query",
				query ? query : json_null(), "name", name->name, (int)name->n,
				"breaks_at_4_9", name->breaks_49, "dcgm_4_9", name->dcgm49, "factor_4_9",
				factor_json(name->factor49), "gpusonde", *name->ours ? name->ours : NULL,
				"factor_gpusonde", factor_json(name->factor_ours));

	if (json_array_append_new(lint->names, row) < 0)
		lint->out.failed = true;
}

static void say_name(const struct lint_name *name, void *userdata)
{
	struct lint *lint = userdata;

	lint->breaks_49 = lint->breaks_49 || name->breaks_49;
	lint->breaks_ours = true;
	if (lint->names) {
		add_name_json(lint, name);
		return;
	}
	add_title(lint);
	strbuf_addf(&lint->out, "  %.*s\n", (int)MIN(name->n, (size_t)NAME_MAX_SHOWN), name->name);
	if (!name->dcgm && !name->dcgm49) {
		strbuf_adds(&lint->out,
			    "    not known: neither gpusonde nor its table of the exporter's names has it\n");
	} else if (!name->breaks_49) {
		strbuf_adds(&lint->out, "    DCGM exporter 4.9: has it\n");
	} else if (!name->dcgm49) {
		strbuf_adds(&lint->out, "    DCGM exporter 4.9: has no new name for it\n");
	} else {
		strbuf_addf(&lint->out, "    DCGM exporter 4.9: %s", name->dcgm49);
		add_factor(&lint->out, name->factor49);
		strbuf_addc(&lint->out, '\n');
	}
	if (name->dcgm || name->dcgm49) {
		strbuf_addf(&lint->out, "    gpusonde, /metrics: %s",
			    *name->ours ? name->ours : "nothing that is the same number");
		add_factor(&lint->out, name->factor_ours);
		strbuf_addf(&lint->out, "; /metrics/dcgm%s has it\n",
			    name->dcgm && strlen(name->dcgm) == name->n &&
					    memcmp(name->dcgm, name->name, name->n) == 0 ?
				    "" :
				    "?names=4.9");
	}
}

/* ---- names of gpusonde's own ---- */

#define PREFIX "gpusonde_"

struct nearest_name {
	struct nearest nearest;
	char found[NAME_MAX_SHOWN]; /* "": none is near */
};

/* What all names begin with makes no two alike. */
static const char *without_prefix(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? name + strlen(PREFIX) : name;
}

static void offer_name(const char *name, void *userdata)
{
	struct nearest_name *near = userdata;
	const char *best = near->nearest.best;

	nearest_offer(&near->nearest, without_prefix(name));
	if (near->nearest.best != best)
		snprintf(near->found, sizeof(near->found), "%s", name);
	near->nearest.best = *near->found ? near->found : NULL;
}

/* A name whose end was left out, such as its unit; the shortest. */
static void offer_longer(const char *name, void *userdata)
{
	struct nearest_name *near = userdata;
	size_t n = strlen(near->nearest.word);

	if (strncmp(without_prefix(name), near->nearest.word, n) == 0 && without_prefix(name)[n] == '_' &&
	    (!*near->found || strlen(name) < strlen(near->found)))
		snprintf(near->found, sizeof(near->found), "%s", name);
}

/* The metric that may have been meant, or of a label the label. */
static void find_nearest(struct lint *lint, const struct lint_fault *fault, struct nearest_name *near)
{
	const char *word = fault->label ? fault->label : fault->metric;
	char text[NAME_MAX_SHOWN];
	struct strbuf labels;

	near->found[0] = '\0';
	if (lint->faults_n > NEAREST_MAX || !fault->metric)
		return;
	snprintf(text, sizeof(text), "%.*s",
		 (int)MIN(fault->label ? fault->label_n : fault->metric_n, sizeof(text)), word);
	nearest_init(&near->nearest, without_prefix(text));
	if (!fault->label) {
		series_names(offer_name, near);
		if (!*near->found)
			series_names(offer_longer, near);
		return;
	}
	strbuf_init(&labels, 0);
	series_labels(fault->metric, fault->metric_n, &labels);
	for (char *save, *label = strtok_r(labels.data, ", ", &save); label;
	     label = strtok_r(NULL, ", ", &save))
		offer_name(label, near);
	strbuf_done(&labels);
}

static json_t *text_json(const char *text, size_t n)
{
	json_t *json = text ? json_stringn(text, n) : NULL;

	return json ? json : json_null(); /* no UTF-8 */
}

static void add_fault_json(struct lint *lint, const struct lint_fault *fault, const char *nearest)
{
	const struct lint_query *query = lint->query;
	json_t *row = json_pack("{s:o, s:i, s:o, s:o, s:o, s:o}", "title",
				text_json(query->title, strlen(query->title)), "line", query->line, "query",
				text_json(query->text, strlen(query->text)), "metric",
				text_json(fault->metric, fault->metric_n), "label",
				text_json(fault->label, fault->label_n), "nearest",
				text_json(*nearest ? nearest : NULL, strlen(nearest)));

	if (json_array_append_new(lint->faults, row) < 0)
		lint->out.failed = true;
}

static void add_fault_word(struct strbuf *out, const char *word, size_t n)
{
	char text[NAME_MAX_SHOWN];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(n, sizeof(text)), word);
	text_clean(out, text);
}

static void say_fault(const struct lint_fault *fault, void *userdata)
{
	struct lint *lint = userdata;
	struct nearest_name near;

	lint->faults_n++;
	lint->breaks_ours = true;
	find_nearest(lint, fault, &near);
	if (lint->faults) {
		add_fault_json(lint, fault, near.found);
		return;
	}
	add_title(lint);
	strbuf_adds(&lint->out, "  ");
	if (fault->metric)
		add_fault_word(&lint->out, fault->metric, fault->metric_n);
	else
		strbuf_adds(&lint->out,
			    fault->label ? "the metrics of this expression" : "too long to be judged");
	if (fault->label) {
		strbuf_adds(&lint->out, "\n    gpusonde, /metrics: no label ");
		add_fault_word(&lint->out, fault->label, fault->label_n);
	} else if (fault->metric) {
		strbuf_adds(&lint->out, "\n    gpusonde, /metrics: no such metric");
	}
	if (*near.found)
		strbuf_addf(&lint->out, "; nearest: %s", near.found);
	strbuf_addc(&lint->out, '\n');
}

static void take_recording(const struct lint_query *query, void *userdata)
{
	struct lint *lint = userdata;

	if (query->records)
		strbuf_addf(&lint->records, "%s\n", query->title);
}

static void say_query(const struct lint_query *query, void *userdata)
{
	struct lint *lint = userdata;

	lint->query = query;
	lint->named = lint->breaks_49 = lint->breaks_ours = false;
	lint_names(query->text, say_name, lint);
	if (lint_ours(query->text, lint->records.data, say_fault, lint) < 0)
		lint->out.failed = true;
	lint->queries++;
	lint->broken_49 += lint->breaks_49;
	lint->broken_ours += lint->breaks_ours;
}

static void say_json(struct lint *lint)
{
	json_t *json =
		json_pack("{s:s, s:i, s:i, s:i, s:O, s:O}", "schema", "gpusonde-lint/v1", "queries",
			  (int)lint->queries, "broken_at_4_9", (int)lint->broken_49, "broken_at_gpusonde",
			  (int)lint->broken_ours, "names", lint->names, "faults", lint->faults);
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;

	if (text)
		strbuf_addf(&lint->out, "%s\n", text);
	lint->out.failed |= !text;
	free(text);
	json_decref(json);
}

static void say_sums(struct lint *lint)
{
	if (lint->names)
		say_json(lint);
	else
		strbuf_addf(&lint->out,
			    "%u queries: %u break at the names of DCGM exporter 4.9, %u at gpusonde's own\n",
			    lint->queries, lint->broken_49, lint->broken_ours);
}

static int lint_fail(const struct invocation *inv, struct strbuf *why)
{
	struct strbuf line;

	strbuf_init(&line, 0);
	text_clean(&line, inv->operands[0]);
	strbuf_adds(&line, ": ");
	text_clean(&line, why->data);
	put_errors(inv, &line);
	strbuf_done(&line);
	return EXIT_FAILURE;
}

static int lint_file(struct invocation *inv, struct lint *lint, struct strbuf *why)
{
	_cleanup_free_ char *data = malloc(LINT_FILE_MAX + 1);
	size_t n = 0;
	int r = data ? read_file(inv->operands[0], data, LINT_FILE_MAX + 1, &n) : -ENOMEM;

	if (r == -E2BIG) {
		strbuf_adds(why, "it has more than 4 MiB");
		return r;
	}
	if (r == 0)
		r = lint_read(inv->operands[0], data, n, take_recording, lint, why);
	if (r == 0 && lint->records.failed) {
		strbuf_adds(why, "the names of its recording rules are more than 64 KiB");
		return -E2BIG;
	}
	if (r == 0)
		r = lint_read(inv->operands[0], data, n, say_query, lint, why);
	if (r == 0 && lint->out.failed)
		r = -ENOMEM;
	if (r < 0 && why->len == 0)
		strbuf_adds(why, strerror(-r));
	if (r == 0 && lint->queries == 0) {
		strbuf_adds(why,
			    "no query in it: is it a board of Grafana (JSON) or a file of rules (YAML)?");
		r = -ENODATA;
	}
	return r;
}

int lint_main(struct invocation *inv)
{
	struct lint lint = { 0 };
	struct strbuf why;
	int r;

	if (inv->operands_n == 0) {
		fprintf(stderr, "gpusonde lint: which FILE? See gpusonde lint --help\n");
		return EXIT_USAGE;
	}
	strbuf_init(&lint.out, SAID_MAX);
	strbuf_init(&lint.records, RECORDS_MAX);
	strbuf_init(&why, 0);
	if (inv->flag[FLAG_JSON]) {
		lint.names = json_array();
		lint.faults = json_array();
	}
	if (lint_file(inv, &lint, &why) < 0) {
		r = lint_fail(inv, &why);
	} else {
		say_sums(&lint);
		r = put_stdout(&lint.out);
		if (lint.broken_49 > 0 || lint.broken_ours > 0)
			r = EXIT_FAILURE;
	}
	json_decref(lint.names);
	json_decref(lint.faults);
	strbuf_done(&lint.records);
	strbuf_done(&lint.out);
	strbuf_done(&why);
	return r;
}
