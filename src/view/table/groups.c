// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "view/names.h"
#include "view/table/parts.h"
#include "view/traced.h"

enum { GPUS_SHOWN = 16 };

enum column {
	COLUMN_NAME, /* by what */
	COLUMN_OWNER,
	COLUMN_CLAIMED,
	COLUMN_PROCESSES,
	COLUMN_ENDED,
	COLUMN_GPUS,
	COLUMN_ALLOCATED,
	COLUMN_SM,
	COLUMN_MEMORY,
	COLUMN_BUSY,
	COLUMN_IDLE,
	COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[COLUMN_NAME] = { .flexible = true },
	[COLUMN_OWNER] = { .title = "USER", .dispensable = 4 },
	[COLUMN_CLAIMED] = { .title = "CLAIMED NAME", .flexible = true, .dispensable = 5 },
	[COLUMN_PROCESSES] = { .title = "PROCESSES", .right = true, .dispensable = 1 },
	[COLUMN_ENDED] = { .title = "ENDED", .right = true, .dispensable = 2 },
	[COLUMN_GPUS] = { .title = "GPU", .flexible = true },
	[COLUMN_ALLOCATED] = { .title = "ALLOCATED", .right = true, .dispensable = 3 },
	[COLUMN_SM] = { .title = "SM", .right = true },
	[COLUMN_MEMORY] = { .title = "MEMORY", .right = true },
	[COLUMN_BUSY] = { .title = "BUSY", .right = true },
	[COLUMN_IDLE] = { .title = "IDLE", .right = true },
};

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
		table_cellf(table, COLOUR_NONE, "%.*s", container_short_length(names->container_id),
			    names->container_id);
}

static void pod_cell(struct table *table, const struct group_names *names)
{
	if (*names->pod)
		table_cellf(table, COLOUR_NONE, "%s/%s", names->namespace, names->pod);
	else
		table_cell(table, COLOUR_NONE, names->pod_uid);
}

/* The mark comes first, where a long text cannot push it out of sight. */
static void job_cell(struct table *table, const struct group_names *names)
{
	char text[SHORT_TEXT];

	table_cellf(table, COLOUR_NONE, "%s%s", names->claimed ? "claimed " : "",
		    names->claimed ? text_shorten(names->job, text) : names->job);
}

static void name_cell(struct table *table, const struct group *group, const struct group_names *names,
		      enum group_by by)
{
	if (by == GROUP_USER)
		table_user(table, names->uid);
	else if (group->none)
		table_cell(table, COLOUR_NONE, "");
	else if (by == GROUP_CONTAINER)
		container_cell(table, names);
	else if (by == GROUP_POD)
		pod_cell(table, names);
	else
		job_cell(table, names);
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

static void count_cell(struct table *table, bool known, uint32_t count)
{
	if (known)
		table_cellf(table, COLOUR_NONE, "%" PRIu32, count);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void allocated_cell(struct table *table, const struct group *group)
{
	if (group->allocations_claimed > 0)
		table_cellf(table, COLOUR_NONE, "claimed %" PRIu32, group->allocations);
	else
		count_cell(table, group->allocations > 0, group->allocations);
}

static void utilization_cell(struct table *table, const struct group *group)
{
	if (group->known[GROUP_UTILIZATION])
		table_cellf(table, COLOUR_NONE, "%s%.0f %%", mark_of(group, GROUP_UTILIZATION),
			    group->v[GROUP_UTILIZATION] * 100);
	else
		table_cell(table, COLOUR_NONE, "");
}

static void job_name_cell(struct table *table, const char *name)
{
	char text[SHORT_TEXT];

	table_cell(table, COLOUR_NONE, text_shorten(name, text));
}

static void add_cell(struct table *table, const struct snapshot *s, const struct group *group,
		     enum group_by by, enum column column)
{
	const struct group_names names = group_names(s, group, by);

	switch (column) {
	case COLUMN_NAME:
		name_cell(table, group, &names, by);
		break;
	case COLUMN_OWNER:
		table_user(table, names.uid);
		break;
	case COLUMN_CLAIMED:
		job_name_cell(table, names.job_name);
		break;
	case COLUMN_PROCESSES:
		count_cell(table, true, group->processes);
		break;
	case COLUMN_ENDED:
		count_cell(table, group->workload, group->exited);
		break;
	case COLUMN_GPUS:
		gpus_cell(table, group);
		break;
	case COLUMN_ALLOCATED:
		allocated_cell(table, group);
		break;
	case COLUMN_SM:
		utilization_cell(table, group);
		break;
	case COLUMN_MEMORY:
		table_bytes(table, mark_of(group, GROUP_MEMORY),
			    group->known[GROUP_MEMORY] ? &group->v[GROUP_MEMORY] : NULL);
		break;
	case COLUMN_BUSY:
		seconds_cell(table, group->known[GROUP_BUSY], group->estimated[GROUP_BUSY],
			     group->v[GROUP_BUSY]);
		break;
	case COLUMN_IDLE:
		seconds_cell(table, group->allocations > 0 && group->idle_known, group->idle_estimated,
			     group->idle_seconds);
		break;
	case COLUMNS:
		break;
	}
}

/* Which figures have no sum in some row, though it has processes and its GPUs have new data. */
static void add_unknown_note(const struct group *groups, uint32_t n, const struct table_options *options,
			     struct strbuf *out)
{
	static const char *const figures[GROUP_FIGURES] = {
		[GROUP_UTILIZATION] = "SM", [GROUP_MEMORY] = "MEMORY", [GROUP_BUSY] = "BUSY"
	};
	struct strbuf line;

	strbuf_init(&line, 0);
	for (unsigned k = 0; k < GROUP_FIGURES; k++) {
		bool missing = false;

		for (uint32_t i = 0; i < n; i++)
			missing |= groups[i].processes > 0 && !groups[i].known[k] &&
				   !(k == GROUP_UTILIZATION && groups[i].stale);
		if (missing)
			strbuf_addf(&line, "%s%s", line.len > 0 ? ", " : "", figures[k]);
	}
	if (line.len > 0) {
		strbuf_adds(&line,
			    ": \"-\" where the driver does not tell it of one of the processes, so that "
			    "there is no sum (gpusonde ps shows of which)");
		table_line(options, out, COLOUR_DIM, line.data);
	}
	strbuf_done(&line);
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

static bool is_shown(const struct snapshot *s, const struct group *groups, uint32_t n, enum group_by by,
		     enum column column)
{
	bool given = column == COLUMN_ALLOCATED || column == COLUMN_IDLE, any = false;

	if (column == COLUMN_OWNER)
		return by == GROUP_JOB;
	if (column != COLUMN_CLAIMED && !given)
		return true;
	for (uint32_t i = 0; i < n; i++)
		any |= given ? groups[i].allocations > 0 : *group_names(s, &groups[i], by).job_name != '\0';
	return any;
}

static int write_groups(const struct snapshot *s, enum group_by by, const struct group *groups, uint32_t n,
			const struct table_options *options, struct strbuf *out)
{
	struct table_column shown[COLUMNS];
	enum column which[COLUMNS];
	struct table table;
	unsigned shown_n = 0;
	int r;

	for (enum column column = 0; column < COLUMNS; column++)
		if (is_shown(s, groups, n, by, column)) {
			which[shown_n] = column;
			shown[shown_n++] = columns[column];
		}
	shown[0].title = titles[by];
	table_init(&table, shown, shown_n);
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < shown_n; k++)
			add_cell(&table, s, &groups[i], by, which[k]);
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}

int table_groups(const struct snapshot *s, enum group_by by, const struct table_options *options,
		 struct strbuf *out)
{
	_cleanup_free_ struct group *groups = NULL;
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
	table_outage(s, options, out);
	r = write_groups(s, by, groups, n, options, out);
	add_unknown_note(groups, n, options, out);
	add_notes(s, options, out);
	return r;
}
