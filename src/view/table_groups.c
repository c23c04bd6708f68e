// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "view/table_parts.h"
#include "view/traced.h"

enum { GPUS_SHOWN = 16, SHORT_ID = 12 };

static const struct table_column columns[] = {
	{ .flexible = true }, /* by what */
	{ .title = "PROCESSES", .right = true, .dispensable = 1 },
	{ .title = "ENDED", .right = true, .dispensable = 2 },
	{ .title = "GPU", .flexible = true },
	{ .title = "SM", .right = true },
	{ .title = "MEMORY", .right = true },
	{ .title = "BUSY", .right = true },
	{ .title = "IDLE", .right = true }, /* only if something was given */
};
enum { COLUMNS = ARRAY_SIZE(columns) };

static const char *const titles[GROUPS_BY] = {
	[GROUP_CONTAINER] = "CONTAINER",
	[GROUP_POD] = "POD",
	[GROUP_JOB] = "JOB",
	[GROUP_USER] = "USER",
};

static void container_cell(struct table *table, const struct group_names *names)
{
	if (*names->pod && *names->container)
		table_cellf(table, COLOUR_NONE, "%s/%s %s", names->namespace, names->pod, names->container);
	else if (*names->container)
		table_cell(table, COLOUR_NONE, names->container);
	else
		table_cellf(table, COLOUR_NONE, "%.*s", (int)SHORT_ID, names->container_id);
}

static void pod_cell(struct table *table, const struct group_names *names)
{
	if (*names->pod)
		table_cellf(table, COLOUR_NONE, "%s/%s", names->namespace, names->pod);
	else
		table_cell(table, COLOUR_NONE, names->pod_uid);
}

static void name_cell(struct table *table, const struct snapshot *s, const struct group *group,
		      enum group_by by)
{
	const struct group_names names = group_names(s, group, by);

	if (by == GROUP_USER)
		table_user(table, group->any->uid);
	else if (group->none)
		table_cell(table, COLOUR_NONE, "");
	else if (by == GROUP_CONTAINER)
		container_cell(table, &names);
	else if (by == GROUP_POD)
		pod_cell(table, &names);
	else
		table_cellf(table, COLOUR_NONE, "%s%s%s%s", names.job, *names.job_name ? " " : "",
			    names.job_name, names.claimed ? " (claimed)" : "");
}

static void gpus_cell(struct table *table, const struct group *group)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	for (uint32_t i = 0; i < MIN(group->gpus_n, (uint32_t)GPUS_SHOWN); i++)
		strbuf_addf(&text, "%s%" PRIu32,
			    i > 0                 ? "," :
			    group->gpus_estimated ? "~" :
						    "",
			    group->gpus[i]);
	if (group->gpus_n > GPUS_SHOWN)
		strbuf_addf(&text, ",... (%" PRIu32 ")", group->gpus_n);
	table_cell(table, COLOUR_NONE, text.data);
	strbuf_done(&text);
}

static const char *mark_of(const struct group *group, enum group_figure figure)
{
	return group->estimated[figure] ? "~" : "";
}

static void seconds_cell(struct table *table, bool known, bool estimated, double seconds)
{
	if (known && estimated)
		table_cellf(table, COLOUR_NONE, "~%.1f s", seconds);
	else
		table_duration(table, known ? &seconds : NULL);
}

static void add_group(struct table *table, const struct snapshot *s, const struct group *group,
		      enum group_by by, bool given)
{
	const double *v = group->v;

	name_cell(table, s, group, by);
	table_cellf(table, COLOUR_NONE, "%" PRIu32, group->processes);
	if (group->workload)
		table_cellf(table, COLOUR_NONE, "%" PRIu32, group->exited);
	else
		table_cell(table, COLOUR_NONE, "");
	gpus_cell(table, group);
	if (group->known[GROUP_UTILIZATION])
		table_cellf(table, COLOUR_NONE, "%s%.0f %%", mark_of(group, GROUP_UTILIZATION),
			    v[GROUP_UTILIZATION] * 100);
	else
		table_cell(table, COLOUR_NONE, "");
	table_bytes(table, mark_of(group, GROUP_MEMORY),
		    group->known[GROUP_MEMORY] ? &v[GROUP_MEMORY] : NULL);
	seconds_cell(table, group->known[GROUP_BUSY], group->estimated[GROUP_BUSY], v[GROUP_BUSY]);
	if (given)
		seconds_cell(table, group->allocations > 0 && group->idle_known, group->idle_estimated,
			     group->idle_seconds);
}

/* What the sums lack. */
static void add_notes(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct traced_apart apart = { .s = s };
	uint32_t left_out = s->trace ? s->trace->left_out : 0;
	uint32_t allocations = groups_left_out(s);
	char text[120];

	table_old_gpus(s, options, out);
	table_unlisted(s, options, out);
	table_unrecognised(s, options, out);
	while (traced_apart_next(&apart))
		left_out++;
	if (allocations > 0) {
		snprintf(text, sizeof(text),
			 "%" PRIu32 " allocations are left out; \"workload.max\" is how many are kept",
			 allocations);
		table_line(options, out, COLOUR_WARN, text);
	}
	if (left_out == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu32 " traced processes that the driver does not list are left out", left_out);
	table_line(options, out, COLOUR_WARN, text);
}

int table_groups(const struct snapshot *s, enum group_by by, const struct table_options *options,
		 struct strbuf *out)
{
	_cleanup_free_ struct group *groups = NULL;
	struct table_column shown[COLUMNS];
	struct table table;
	bool given = false;
	uint32_t n;
	int r = groups_make(s, by, &groups, &n);

	if (r < 0)
		return r;
	table_simulated(s, options, out);
	if (n == 0) {
		table_no_processes(s, options, out);
		add_notes(s, options, out);
		return out->failed ? -ENOMEM : 0;
	}
	memcpy(shown, columns, sizeof(shown));
	shown[0].title = titles[by];
	table_outage(s, options, out);
	for (uint32_t i = 0; i < n; i++)
		given |= groups[i].allocations > 0;
	table_init(&table, shown, given ? COLUMNS : COLUMNS - 1);
	for (uint32_t i = 0; i < n; i++)
		add_group(&table, s, &groups[i], by, given);
	r = table_write(&table, options, out);
	add_notes(s, options, out);
	table_done(&table);
	return r;
}
