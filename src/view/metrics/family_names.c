// SPDX-License-Identifier: Apache-2.0
#include "view/metrics/family_names.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"
#include "view/shown.h"
#include "view/walk/private.h"

enum { SERIES_NAME_MAX = 160 };

/* Rows that the walk shows under a name: the families' with @strip replaced by @prefix. */
static const struct series_table {
	const struct metric *rows;
	unsigned n;
	const char *strip, *prefix;
	const char *labels; /* besides the rows' own */
	bool counters; /* of them only */
} tables[] = {
	{ gpu_metrics, GPU_METRICS, "", "", DEVICE_LABELS, false },
	{ process_metrics, PROCESS_METRICS, "", "", DEVICE_LABELS ", " PROCESS_LABELS, false },
	{ process_metrics, PROCESS_METRICS, "process_", "workload_",
	  DEVICE_LABELS ", kind, " WORKLOAD_IDS ", " OWNER_NAMES, false },
	{ traced_metrics, TRACED_METRICS, "", "", DEVICE_LABELS ", " PROCESS_LABELS, false },
	{ traced_metrics, TRACED_METRICS, "process_", "gpu_", DEVICE_LABELS, false },
	{ traced_metrics, TRACED_METRICS, "process_", "workload_",
	  DEVICE_LABELS ", workload, " WORKLOAD_IDS ", " OWNER_NAMES, false },
	{ kernel_metrics, KERNEL_METRICS, "", "", DEVICE_LABELS ", " PROCESS_LABELS ", " KERNEL_LABELS,
	  false },
	{ kernel_metrics, KERNEL_METRICS, "", "gpu_", DEVICE_LABELS, true },
	{ operator_metrics, OPERATOR_METRICS, "", "", "operator", false },
	{ host_metrics, HOST_METRICS, "", "", "", false },
	{ disk_metrics, DISK_METRICS, "", "", "device", false },
	{ interface_metrics, INTERFACE_METRICS, "", "", "interface", false },
	{ server_metrics, SERVER_METRICS, "", "", "server, pid, port", false },
	{ agent_metrics, AGENT_METRICS, "", "", "", false },
};

/* Those of all rows: named_families.def says where. */
#define OWN_LABELS "*"
static const struct named {
	const char *name, *type, *labels;
} named_families[] = {
#define FAMILY(name_, type_, labels_, help_) { name_, type_, labels_ },
#include "view/metrics/named_families.def"
};

/* The first of other families; of histograms it is that of native ones. */
static const char *const histogram_suffixes[] = { "", "_bucket", "_count", "_sum" };

static bool is_histogram(const struct named *family)
{
	return STRV_EQ(family->type, "histogram");
}

static unsigned suffixes_of(const struct named *family)
{
	return is_histogram(family) ? ARRAY_SIZE(histogram_suffixes) : 1;
}

static bool table_shows(const struct series_table *table, const struct metric *row)
{
	return (!table->counters || metric_is_counter(row)) &&
	       strncmp(row->family, table->strip, strlen(table->strip)) == 0;
}

/* Is it WALK_PREFIX, @first and @second? */
static bool name_is(const char *name, size_t n, const char *first, const char *second)
{
	size_t prefix_n = strlen(WALK_PREFIX), first_n = strlen(first), second_n = strlen(second);

	return n == prefix_n + first_n + second_n && memcmp(name, WALK_PREFIX, prefix_n) == 0 &&
	       memcmp(name + prefix_n, first, first_n) == 0 &&
	       memcmp(name + prefix_n + first_n, second, second_n) == 0;
}

void series_names(take_series_name *take, void *userdata)
{
	char name[SERIES_NAME_MAX];

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (unsigned i = 0; i < tables[t].n; i = family_end(tables[t].rows, tables[t].n, i)) {
			const struct metric *row = &tables[t].rows[i];

			if (!table_shows(&tables[t], row))
				continue;
			snprintf(name, sizeof(name), WALK_PREFIX "%s%s", tables[t].prefix,
				 row->family + strlen(tables[t].strip));
			take(name, userdata);
		}
	for (size_t i = 0; i < ARRAY_SIZE(named_families); i++)
		for (unsigned k = 0; k < suffixes_of(&named_families[i]); k++) {
			snprintf(name, sizeof(name), WALK_PREFIX "%s%s", named_families[i].name,
				 histogram_suffixes[k]);
			take(name, userdata);
		}
}

static void add_label(struct strbuf *out, const char *label)
{
	bool first = out->len == 0 || out->data[out->len - 1] == '\0';

	if (label && *label)
		strbuf_addf(out, "%s%s", first ? "" : ", ", label);
}

static void add_row_labels(struct strbuf *out, const struct metric *row)
{
	add_label(out, row->label);
	add_label(out, row->label2);
	add_label(out, row->index);
	if (row == &kernel_metrics[KERNEL_METRIC_OCCUPANCY])
		add_label(out, "limiter");
}

static bool table_labels(const struct series_table *table, const char *name, size_t n, struct strbuf *out)
{
	bool found = false;

	for (unsigned i = 0; i < table->n; i++) {
		const struct metric *row = &table->rows[i];

		if (!table_shows(table, row) ||
		    !name_is(name, n, table->prefix, row->family + strlen(table->strip)))
			continue;
		if (!found)
			add_label(out, table->labels);
		add_row_labels(out, row);
		found = true;
	}
	return found;
}

static void add_named_labels(const struct named *family, bool bucket, struct strbuf *out)
{
	const char *own = strstr(family->labels, ", " OWN_LABELS);
	size_t n = own ? (size_t)(own - family->labels) : strlen(family->labels);

	if (is_histogram(family) && !bucket)
		n -= strlen(", le"); /* the last of each */
	strbuf_add(out, family->labels, n);
	for (size_t t = 0; own && t < ARRAY_SIZE(tables); t++)
		for (unsigned i = 0; i < tables[t].n; i++)
			add_row_labels(out, &tables[t].rows[i]);
}

bool series_labels(const char *name, size_t n, struct strbuf *out)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		if (table_labels(&tables[t], name, n, out))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(named_families); i++)
		for (unsigned k = 0; k < suffixes_of(&named_families[i]); k++)
			if (name_is(name, n, named_families[i].name, histogram_suffixes[k])) {
				add_named_labels(&named_families[i], k == 1, out);
				return true;
			}
	return false;
}

bool label_is_listed(const char *list, const char *label, size_t n)
{
	while (*list) {
		size_t m = strcspn(list, ",");

		if (m == n && memcmp(list, label, n) == 0)
			return true;
		list += m + strspn(list + m, ", ");
	}
	return false;
}
