// SPDX-License-Identifier: Apache-2.0
#include "view/table/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/xid.h"
#include "base/clock.h"
#include "view/shown.h"
#include "view/table/parts.h"

/* Columns of `gpusonde gpus`. */
static const struct table_column columns[] = {
	{ .title = "GPU", .right = true },
	{ .title = "NAME", .flexible = true },
	{ .title = "STATE" },
	{ .title = "UTIL", .right = true },
	{ .title = "MEMORY", .right = true },
	{ .title = "POWER", .right = true },
	{ .title = "TEMP", .right = true },
	{ .title = "SM CLOCK", .right = true, .dispensable = 2 },
	{ .title = "PROC", .right = true, .dispensable = 1 },
	{ .title = "THROTTLED BY", .flexible = true },
};

static void state_cell(struct table *table, const struct snapshot *s, const struct entity *e)
{
	static const enum table_colour colours[] = {
		[GPU_WORKS] = COLOUR_GOOD, [GPU_DOUBTFUL] = COLOUR_WARN, [GPU_UNUSABLE] = COLOUR_BAD
	};
	struct gpu_state state;

	gpu_state(s, e, &state);
	table_cell(table, colours[state.severity], state.word);
}

static void ratio_cell(struct table *table, const struct entity *e)
{
	double v;

	if (entity_number(e, GPU_UTILIZATION_GPU, &v))
		table_cellf(table, COLOUR_NONE, "%.0f %%", v * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void memory_cell(struct table *table, const struct entity *e)
{
	static const double gib = 1024.0 * 1024.0 * 1024.0;
	double used, total;
	bool has_used = entity_number(e, GPU_MEMORY_USED, &used);
	bool has_total = entity_number(e, GPU_MEMORY_TOTAL, &total);

	if (has_used && has_total)
		table_cellf(table, COLOUR_NONE, "%.1f/%.1f GiB", used / gib, total / gib);
	else if (has_total)
		table_cellf(table, COLOUR_NONE, "-/%.1f GiB", total / gib);
	else if (has_used)
		table_cellf(table, COLOUR_NONE, "%.1f GiB", used / gib);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void power_cell(struct table *table, const struct entity *e)
{
	double power, limit;

	if (!entity_number(e, GPU_POWER, &power))
		table_cell(table, COLOUR_NONE, "");
	else if (entity_number(e, GPU_POWER_LIMIT_ENFORCED, &limit))
		table_cellf(table, COLOUR_NONE, "%.0f/%.0f W", power, limit);
	else
		table_cellf(table, COLOUR_NONE, "%.0f W", power);
}

static void scaled_cell(struct table *table, const struct entity *e, enum gpu_metric row, double scale,
			const char *unit, double warn_from)
{
	double v;

	if (entity_number(e, row, &v))
		table_cellf(table, warn_from > 0 && v >= warn_from ? COLOUR_WARN : COLOUR_NONE, "%.0f %s",
			    v * scale, unit);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void reasons_cell(struct table *table, const struct entity *e)
{
	struct strbuf text;
	bool slowed;

	strbuf_init(&text, 0);
	slowed = gpu_throttled_by(e, &text);
	table_cell(table, slowed ? COLOUR_WARN : COLOUR_DIM, text.data);
	strbuf_done(&text);
}

/* False: the driver's process list is incomplete or unknown, as that of a GPU that is gone. */
static bool processes_known(const struct entity *e)
{
	return e->present && processes_listed(e) && e->processes_live != UINT32_MAX;
}

/*
 * A GPU's number includes its instances', since the driver lists each process at its instance. If one number
 * is unknown, so is the sum.
 */
static void processes_cell(struct table *table, const struct snapshot *s, uint32_t entity)
{
	uint64_t sum = s->entities[entity].processes_live;
	bool known = processes_known(&s->entities[entity]);

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (e->id.parent != entity || !entity_shown(e))
			continue;
		known = known && processes_known(e);
		sum += e->processes_live;
	}
	if (known)
		table_cellf(table, COLOUR_NONE, "%" PRIu64, sum);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void number_cells(struct table *table, const struct snapshot *s, uint32_t entity)
{
	const struct entity *e = &s->entities[entity];

	state_cell(table, s, e);
	ratio_cell(table, e);
	memory_cell(table, e);
	power_cell(table, e);
	scaled_cell(table, e, GPU_TEMPERATURE, 1, "\u00b0C", GPU_WARM_CELSIUS);
	scaled_cell(table, e, GPU_CLOCK_SM, 1e-6, "MHz", 0);
	processes_cell(table, s, entity);
	reasons_cell(table, e);
}

static void add_gpu(struct table *table, const struct snapshot *s, uint32_t gpu)
{
	const char *name = s->entities[gpu].id.name;

	table_gpu_index(table, s, &s->entities[gpu]);
	/* All names begin with it. */
	table_cell(table, COLOUR_NONE, name + (strncmp(name, "NVIDIA ", 7) == 0 ? 7 : 0));
	number_cells(table, s, gpu);
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (e->id.parent != gpu || !entity_shown(e))
			continue;
		table_cell(table, COLOUR_NONE, " ");
		table_cellf(table, COLOUR_NONE, "  MIG %s gi %" PRIu32 " ci %" PRIu32, e->id.mig_profile,
			    e->id.gi, e->id.ci);
		number_cells(table, s, i);
	}
}

static void add_warnings(const struct entity *gpu, const struct table_options *options, struct strbuf *out)
{
	struct gpu_warning warning;
	struct strbuf line;

	strbuf_init(&line, 0);
	for (unsigned i = 0; i < GPU_WARNINGS; i++) {
		if (!gpu_warning(gpu, i, &warning))
			continue;
		strbuf_reset(&line);
		strbuf_addf(&line, "GPU %" PRIu32 ": %s", gpu->id.index, warning.text);
		table_line(options, out, warning.severe ? COLOUR_BAD : COLOUR_WARN, line.data);
	}
	strbuf_done(&line);
}

static enum table_colour severity_colour(enum xid_severity severity)
{
	if (severity == XID_CRITICAL)
		return COLOUR_BAD;
	return severity == XID_INFO ? COLOUR_DIM : COLOUR_WARN;
}

static void add_xid(const struct snapshot *s, const struct xid *xid, const struct table_options *options,
		    struct strbuf *out)
{
	const struct xid_description *description = xid_describe(xid->code);
	struct strbuf line;
	char last[32] = "";

	if (xid->last_real_ns != 0)
		format_rfc3339(xid->last_real_ns, last);
	strbuf_init(&line, 0);
	strbuf_addf(&line, "GPU %" PRIu32 ": XID %" PRIu32 " (%s), %" PRIu64 "x, last %s",
		    s->entities[xid->entity].id.index, xid->code, description->name, xid->count, last);
	table_line(options, out, severity_colour(description->severity), line.data);
	strbuf_reset(&line);
	strbuf_addf(&line, "    %s %s", description->meaning, xid_action_text(description->action));
	table_line(options, out, COLOUR_NONE, line.data);
	strbuf_done(&line);
}

int table_gpus(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct table table;
	int r;

	table_simulated(s, options, out);
	if (s->entities_n == 0) {
		table_nothing(s, options->selected ? "GPUs that match" : "GPUs", options, out);
		table_unrecognised(s, options, out);
		return 0;
	}
	table_outage(s, options, out);
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (!entity_is_mig(&s->entities[i]))
			add_gpu(&table, s, i);
	r = table_write(&table, options, out);
	table_done(&table);
	for (uint32_t i = 0; i < s->entities_n; i++) {
		if (entity_is_mig(&s->entities[i]))
			continue;
		add_warnings(&s->entities[i], options, out);
		for (uint32_t k = 0; k < s->xids_n; k++)
			if (s->xids[k].entity == i)
				add_xid(s, &s->xids[k], options, out);
	}
	table_unrecognised(s, options, out);
	return r;
}
