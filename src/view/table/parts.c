// SPDX-License-Identifier: Apache-2.0
#include "view/table/parts.h"

#include <inttypes.h>
#include <pwd.h>

#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"

enum { PASSWD_BUFFER = 4096 };

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
		table_line(options, out, COLOUR_WARN, TABLE_SIMULATED);
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

void table_no_processes(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	table_nothing(s, options->selected ? "GPU processes that match" : "GPU processes", options, out);
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
	char text[DURATION_TEXT] = "";

	if (seconds)
		duration_text(*seconds, text);
	table_cell(table, COLOUR_NONE, text);
}

void table_seconds(struct table *table, double seconds)
{
	char text[DURATION_TEXT];

	latency_text(seconds, text);
	table_cell(table, COLOUR_NONE, text);
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

static void workload_cell(struct table *table, enum workload_kind kind, const char *id, const char *pod_uid,
			  const struct owner *owner)
{
	if (kind == WORKLOAD_NONE)
		table_cell(table, COLOUR_NONE, "");
	else if (owner && owner->pod[0])
		table_cellf(table, COLOUR_NONE, "%s %s/%s%s%s", workload_kind_name(WORKLOAD_POD),
			    owner->namespace, owner->pod, owner->container[0] ? " " : "", owner->container);
	else if (owner && owner->container[0])
		table_cellf(table, COLOUR_NONE, "%s %s", workload_kind_name(WORKLOAD_CONTAINER),
			    owner->container);
	else if (kind == WORKLOAD_CONTAINER && *pod_uid)
		table_cellf(table, COLOUR_NONE, "%s %s", workload_kind_name(WORKLOAD_POD), pod_uid);
	else
		table_cellf(table, COLOUR_NONE, "%s %s", workload_kind_name(kind), id);
}

void table_workload(struct table *table, const struct workload *w)
{
	if (w)
		workload_cell(table, w->kind, w->id, w->pod_uid, w->owner);
	else
		table_cell(table, COLOUR_NONE, "");
}

/*
 * "job 42.0 (claimed: train)": the name is the process's word; "claimed job 42.0 train": all of it is. The
 * mark comes first, where a long text cannot push it out of sight.
 */
static void job_text(const struct job *job, char *text, size_t size)
{
	char id[SHORT_TEXT], name[SHORT_TEXT];
	const char *dot = job->step[0] ? "." : "";

	text_shorten(job->name, name);
	if (job->claimed)
		snprintf(text, size, "claimed job %s%s%s%s%s", text_shorten(job->id, id), dot, job->step,
			 *name ? " " : "", name);
	else
		snprintf(text, size, "job %s%s%s%s%s%s", job->id, dot, job->step, *name ? " (claimed: " : "",
			 name, *name ? ")" : "");
}

void table_process_workload(struct table *table, const struct snapshot *s, const struct process *process)
{
	const struct workload *w =
		process->workload < s->workloads_n ? &s->workloads[process->workload] : NULL;
	const struct job *job = snapshot_job(s, process->job);
	char text[sizeof(job->id) + sizeof(job->step) + sizeof(job->name) + 32];

	if (!job || job->manager == JOB_MANAGER_NONE) {
		table_workload(table, w);
		return;
	}
	job_text(job, text, sizeof(text));
	if (!w || w->kind == WORKLOAD_JOB)
		table_cell(table, COLOUR_NONE, text);
	else if (w->kind == WORKLOAD_UNIT)
		table_cellf(table, COLOUR_NONE, "%s, %s", text, w->id);
	else if (w->owner && w->owner->container[0])
		table_cellf(table, COLOUR_NONE, "%s, container %s", text, w->owner->container);
	else
		table_cellf(table, COLOUR_NONE, "%s, %s %.*s", text, workload_kind_name(w->kind),
			    container_short_length(w->id), w->id);
}

void table_traced_workload(struct table *table, const struct workload_name *w)
{
	if (w)
		workload_cell(table, w->kind, w->id, w->pod_uid, w->owner);
	else
		table_cell(table, COLOUR_NONE, "");
}

void table_user(struct table *table, uint32_t uid)
{
	char buffer[PASSWD_BUFFER];
	struct passwd entry, *found = NULL;

	if (uid == UINT32_MAX)
		table_cell(table, COLOUR_NONE, "");
	else if (getpwuid_r((uid_t)uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
		table_cell(table, COLOUR_NONE, found->pw_name);
	else
		table_cellf(table, COLOUR_NONE, "%" PRIu32, uid);
}

bool entity_is_old(const struct entity *gpu)
{
	return !gpu->present || gpu->stale;
}

static bool has_processes(const struct snapshot *s, const struct entity *gpu)
{
	for (uint32_t i = 0; i < s->processes_n; i++)
		if (snapshot_gpu(s, &s->entities[s->processes[i].entity]) == gpu)
			return true;
	return false;
}

void table_old_gpus(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	char text[160];

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *gpu = &s->entities[i];

		if (entity_is_mig(gpu) || !entity_is_old(gpu) || !has_processes(s, gpu))
			continue;
		snprintf(text, sizeof(text), "GPU %" PRIu32 " %s: its processes are as of %.0f s ago",
			 gpu->id.index, gpu->present ? "has no new data" : "is lost",
			 MAX(entity_age_seconds(s, gpu), 0.0));
		table_line(options, out, COLOUR_WARN, text);
	}
}

void table_unlisted(const struct snapshot *s, const struct table_options *options, struct strbuf *out)
{
	struct strbuf line;
	size_t before;

	strbuf_init(&line, 0);
	strbuf_adds(&line,
		    "Processes are missing: the driver's lists of them cannot be read, or not whole, on GPU");
	before = line.len;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (gpu_unlisted(s, i))
			strbuf_addf(&line, "%s %" PRIu32, line.len > before ? "," : "",
				    s->entities[i].id.index);
	if (line.len > before)
		table_line(options, out, COLOUR_WARN, line.data);
	strbuf_done(&line);
}
