// SPDX-License-Identifier: Apache-2.0
#include "view/table_parts.h"

#include <inttypes.h>

#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"

bool entity_number(const struct entity *e, enum gpu_metric row, double *ret_value)
{
	const struct metric *m = &gpu_metrics[row];

	if (!entity_shows(e, m) || !presence_is(e->id.p[m->slot]))
		return false;
	*ret_value = e->id.v[m->slot];
	return true;
}

void table_simulated(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	if (s->simulated)
		table_line(options, out, COLOUR_WARN, "SIMULATED DATA: these GPUs do not exist.");
}

void table_nothing(const struct snapshot *s, const char *what, const struct table_options *options,
		   struct strbuf *out)
{
	const char *why = outage_reason(s);
	struct strbuf line;

	strbuf_init(&line, 0);
	strbuf_addf(&line, "No %s%s%s", what, *why ? ": " : ".", why);
	table_line(options, out, COLOUR_NONE, line.data);
	strbuf_done(&line);
}

void table_outage(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	const char *why = outage_reason(s);
	struct strbuf line;

	if (!*why)
		return;
	strbuf_init(&line, 0);
	/* Traced processes exist without a GPU, too. */
	strbuf_addf(&line, "%s: %s", s->entities_n == 0 ? "No GPUs" : "No new data", why);
	table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}

/* A long list is cut at its end, so the reference to doctor comes first. */
void table_unrecognised(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	const char *what = snapshot_driver(s)->unrecognised;
	struct strbuf line;

	if (!*what)
		return;
	strbuf_init(&line, 0);
	strbuf_addf(&line,
		    "Left out, because it is not recognised in this driver (gpusonde doctor says more): %s",
		    what);
	table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}

void table_bytes(struct table *table, const char *mark, const double *bytes)
{
	char text[BYTES_TEXT] = "";

	if (bytes)
		bytes_text(*bytes, text);
	table_cellf(table, COLOUR_NONE, "%s%s", bytes ? mark : "", text);
}

void table_duration(struct table *table, const double *seconds)
{
	unsigned long long whole;

	if (!seconds || *seconds < 0 || *seconds > 1e12) {
		table_cell(table, COLOUR_NONE, "");
		return;
	}
	whole = (unsigned long long)*seconds;
	if (whole < 60)
		table_cellf(table, COLOUR_NONE, "%.1f s", *seconds);
	else
		table_cellf(table, COLOUR_NONE, "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
			    whole % 60);
}

void table_process_bytes(struct table *table, const double *v, const uint8_t *p, enum process_metric row)
{
	table_bytes(table, "", presence_is(p[row]) ? &v[row] : NULL);
}

void table_process_duration(struct table *table, const double *v, const uint8_t *p, enum process_metric row)
{
	table_duration(table, presence_is(p[row]) ? &v[row] : NULL);
}

void table_gpu_index(struct table *table, const struct snapshot *s, const struct entity *e)
{
	table_cellf(table, COLOUR_NONE, "%" PRIu32, snapshot_gpu(s, e)->id.index);
}

void table_instance(struct table *table, const struct entity *e)
{
	if (entity_is_mig(e))
		table_cellf(table, COLOUR_NONE, "%" PRIu32 "/%" PRIu32, e->id.gi, e->id.ci);
	else
		table_cell(table, COLOUR_NONE, "");
}

void table_workload(struct table *table, const struct workload *workload)
{
	if (!workload || workload->kind == WORKLOAD_NONE)
		table_cell(table, COLOUR_NONE, "");
	else if (workload->kind == WORKLOAD_CONTAINER && *workload->pod_uid)
		table_cellf(table, COLOUR_NONE, "%s %s", workload_kind_name(WORKLOAD_POD), workload->pod_uid);
	else
		table_cellf(table, COLOUR_NONE, "%s %s", workload_kind_name(workload->kind), workload->id);
}
