// SPDX-License-Identifier: Apache-2.0
#include "view/dcgm/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/contract.h"
#include "model/xid.h"

enum { COLUMNS = 3, COLUMN_MAX = 512 };

struct csv_line {
	unsigned number;
	unsigned columns;
	char text[COLUMNS][COLUMN_MAX];
};

struct reading_fields {
	struct dcgm_fields *fields;
	const char *name; /* of the file */
	struct strbuf *errors, *warnings;
	struct csv_line line;
};

#define GAUGE(name_, integer_)                                                      \
	{                                                                           \
		.name = (name_), .scale = 1, .integer = (integer_), .type = "gauge" \
	}
#define COUNTER(name_)                                                          \
	{                                                                       \
		.name = (name_), .scale = 1, .integer = true, .type = "counter" \
	}

const struct dcgm_name dcgm_extras[DCGM_EXTRAS][DCGM_NAMES] = {
	/* Up to 4.8 in DCGM's MB per second (1000 KiB), a counter although it is a rate. */
	[DCGM_EXTRA_NVLINK] = { { .name = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
				  .scale = 1.0 / 1024000,
				  .integer = true,
				  .type = "counter" },
				GAUGE("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", true) },
	[DCGM_EXTRA_XID] = { GAUGE(DCGM_XID_OLD, true), GAUGE(DCGM_XID_49, true) },
	[DCGM_EXTRA_XID_COUNT] = { GAUGE("DCGM_EXP_XID_ERRORS_COUNT", true),
				   GAUGE("DCGM_EXP_XID_ERRORS_COUNT", true) },
	[DCGM_EXTRA_CLOCK_COUNT] = { GAUGE("DCGM_EXP_CLOCK_EVENTS_COUNT", true),
				     GAUGE("DCGM_EXP_CLOCK_EVENTS_COUNT", true) },
	[DCGM_EXTRA_HEALTH] = { GAUGE("DCGM_EXP_GPU_HEALTH_STATUS", true),
				GAUGE("DCGM_EXP_GPU_HEALTH_STATUS", true) },
#define LINK(n_)                                                                     \
	[DCGM_EXTRA_LINK + (n_)] = { { .name = "DCGM_FI_DEV_NVLINK_BANDWIDTH_L" #n_, \
				       .scale = 1.0 / 1024000,                       \
				       .integer = true,                              \
				       .type = "counter" } }
	LINK(0),
	LINK(1),
	LINK(2),
	LINK(3),
	LINK(4),
	LINK(5),
	LINK(6),
	LINK(7),
	LINK(8),
	LINK(9),
	LINK(10),
	LINK(11),
	LINK(12),
	LINK(13),
	LINK(14),
	LINK(15),
	LINK(16),
	LINK(17),
#undef LINK
};

/* Fields of the type "label". */
static const struct dcgm_label_field label_fields[] = {
	{ "DCGM_FI_DRIVER_VERSION", DCGM_TEXT_DRIVER },
	{ "DCGM_FI_SYSTEM_DRIVER_VERSION", DCGM_TEXT_DRIVER },
	{ "DCGM_FI_NVML_VERSION", DCGM_TEXT_NVML },
	{ "DCGM_FI_SYSTEM_NVML_VERSION", DCGM_TEXT_NVML },
	{ "DCGM_FI_DEV_NAME", DCGM_TEXT_NAME },
	{ "DCGM_FI_DEV_UUID", DCGM_TEXT_UUID },
	{ "DCGM_FI_DEV_SERIAL", DCGM_TEXT_SERIAL },
	{ "DCGM_FI_DEV_VBIOS_VERSION", DCGM_TEXT_VBIOS },
	{ "DCGM_FI_DEV_PCI_BUSID", DCGM_TEXT_PCI_BUS_ID },
};

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* Reads one column up to its comma or @end, and returns where it ends. Quotes as in CSV. */
static const char *take_column(const char *p, const char *end, char out[static COLUMN_MAX])
{
	bool quoted = (p = skip_blanks(p, end)) < end && *p == '"';
	size_t n = 0;

	for (p += quoted; p < end && (quoted || *p != ','); p++) {
		if (quoted && *p == '"') {
			if (p + 1 == end || p[1] != '"') {
				quoted = false;
				continue;
			}
			p++;
		}
		if (n + 1 < COLUMN_MAX)
			out[n++] = *p;
	}
	while (n > 0 && strchr(" \t\r", out[n - 1]))
		n--;
	out[n] = '\0';
	utf8_sanitize(out);
	return p;
}

/* False: an empty line, or a comment. */
static bool take_csv_line(struct csv_line *line, const char *p, const char *end)
{
	p = skip_blanks(p, end);
	if (p == end || *p == '#')
		return false;
	for (line->columns = 0;; p++) {
		char beyond[COLUMN_MAX];

		p = take_column(p, end, line->columns < COLUMNS ? line->text[line->columns] : beyond);
		line->columns++;
		if (p == end)
			return true;
	}
}

static void want_label(struct reading_fields *r)
{
	struct dcgm_fields *fields = r->fields;
	const char *name = r->line.text[0];

	for (size_t i = 0; i < ARRAY_SIZE(label_fields); i++) {
		if (!STRV_EQ(label_fields[i].name, name))
			continue;
		for (unsigned k = 0; k < fields->labels_n; k++)
			if (fields->labels[k].name == label_fields[i].name)
				return;
		fields->labels[fields->labels_n++] = label_fields[i];
		return;
	}
	strbuf_addf(r->warnings, "%s, line %u: /metrics/dcgm has no label %s\n", r->name, r->line.number,
		    name);
}

_Static_assert(ARRAY_SIZE(label_fields) <= DCGM_LABEL_FIELDS_MAX, "each once");

static const struct dcgm_name *find_extra(const char *name, enum dcgm_extra *ret_extra)
{
	for (unsigned i = 0; i < DCGM_EXTRAS; i++)
		for (unsigned k = 0; k < ARRAY_SIZE(dcgm_extras[i]); k++)
			if (dcgm_extras[i][k].name && STRV_EQ(dcgm_extras[i][k].name, name)) {
				*ret_extra = i;
				return &dcgm_extras[i][k];
			}
	return NULL;
}

/* The row that has this name, or had it before; its columns, with this name. */
static const struct metric *find_row(const char *name, struct dcgm_name *ret_columns)
{
	const struct dcgm_name *columns;
	const struct metric *metric = metric_by_dcgm_name(name, strlen(name), &columns);

	if (metric)
		*ret_columns = *columns;
	for (unsigned i = 0; !metric && i < CONTRACT_METRICS; i++) {
		if (!contract_rows[i].also || !STRV_EQ(contract_rows[i].also, name))
			continue;
		metric = contract_source((enum contract_metric)i);
		if (!metric)
			return NULL;
		*ret_columns = metric->dcgm;
		ret_columns->name = contract_rows[i].also;
	}
	return metric;
}

/* The field of that name, and its columns; NULL: this page has none. */
static struct dcgm_field *find_field(struct dcgm_fields *fields, const char *name,
				     struct dcgm_name *ret_columns)
{
	const struct metric *metric = find_row(name, ret_columns);
	const struct dcgm_name *columns;
	enum dcgm_extra extra;

	if (metric)
		return &fields->rows[metric - gpu_metrics];
	columns = find_extra(name, &extra);
	if (!columns)
		return NULL;
	*ret_columns = *columns;
	return &fields->extras[extra];
}

/* -ENOMEM. */
static int add_metric(struct reading_fields *r, const char *type)
{
	const char *name = r->line.text[0];
	struct dcgm_name columns;
	struct dcgm_field *field = find_field(r->fields, name, &columns);
	char *help;

	if (!field) {
		strbuf_addf(r->warnings, "%s, line %u: /metrics/dcgm has no %s\n", r->name, r->line.number,
			    name);
		return 0;
	}
	if (field->name.name)
		strbuf_addf(r->warnings, "%s, line %u: %s is there already as %s; this one counts\n", r->name,
			    r->line.number, name, field->name.name);
	help = strdup(r->line.text[2]);
	if (!help)
		return -ENOMEM;
	free(field->help);
	*field = (struct dcgm_field){ .name = columns, .help = help };
	field->name.type = type;
	return 0;
}

static int add_line(struct reading_fields *r)
{
	static const char *const types[] = { "gauge", "counter" };
	const struct csv_line *line = &r->line;

	if (line->columns != COLUMNS) {
		strbuf_addf(r->errors,
			    "%s, line %u: it has %u columns: \"FIELD, TYPE, help\" is wanted, with quotes "
			    "around a help text that has a comma\n",
			    r->name, line->number, line->columns);
		return 0;
	}
	if (STRV_EQ(line->text[1], "label")) {
		want_label(r);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (STRV_EQ(line->text[1], types[i]))
			return add_metric(r, types[i]);
	strbuf_addf(r->errors,
		    "%s, line %u: the type of %.64s is \"%.32s\": gauge, counter or label is wanted\n",
		    r->name, line->number, line->text[0], line->text[1]);
	return 0;
}

int dcgm_fields_parse(const char *name, const char *text, size_t n, struct strbuf *errors,
		      struct strbuf *warnings, struct dcgm_fields **ret_fields)
{
	_cleanup_(dcgm_fields_freep) struct dcgm_fields *fields = calloc(1, sizeof(*fields));
	struct reading_fields r = { .fields = fields, .name = name, .errors = errors, .warnings = warnings };
	const char *end = text + n;
	size_t before = errors->len;

	if (!fields)
		return -ENOMEM;
	for (const char *p = text; p < end; p++) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));

		if (!line_end)
			line_end = end;
		r.line.number++;
		if (take_csv_line(&r.line, p, line_end) && add_line(&r) < 0)
			return -ENOMEM;
		p = line_end;
	}
	if (errors->failed || warnings->failed)
		return -ENOMEM;
	if (errors->len > before)
		return -EINVAL;
	*ret_fields = TAKE_PTR(fields);
	return 0;
}

void dcgm_fields_free(struct dcgm_fields *fields)
{
	if (!fields)
		return;
	for (unsigned i = 0; i < GPU_METRICS; i++)
		free(fields->rows[i].help);
	for (unsigned i = 0; i < DCGM_EXTRAS; i++)
		free(fields->extras[i].help);
	free(fields);
}
