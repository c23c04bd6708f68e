// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "base/text.h"
#include "cmd/top/alert.h"
#include "cmd/top/growth.h"
#include "cmd/top/totals.h"
#include "cmd/top/tree.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/table/parts.h"

void value_set(struct value *value, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value->text, sizeof(value->text), fmt, ap);
	va_end(ap);
	utf8_sanitize(value->text);
	value->known = value->text[0] != '\0';
	value->is_text = true;
}

static void set_number(struct value *value, double number)
{
	value->known = true;
	value->number = number;
}

/* ---- GPUs ---- */

static void set_place(const struct entity *e, struct value *value)
{
	if (entity_is_mig(e))
		value_set(value, "%" PRIu32 ":%" PRIu32 "/%" PRIu32, e->id.index, e->id.gi, e->id.ci);
	else
		value_set(value, "%" PRIu32, e->id.index);
	/* Sorted as a number, not as a text. */
	value->is_text = false;
	value->number = e->id.index * 1e6 + (entity_is_mig(e) ? 1 + e->id.gi * 100.0 + e->id.ci : 0);
	value->role = ROLE_ACCENT;
}

void value_gpu_index(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	if (row->entity)
		set_place(row->entity, value);
}

void value_gpu_name(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	const char *name = row->entity ? row->entity->id.name : "";

	if (row->entity && entity_is_mig(row->entity))
		value_set(value, "MIG %s", row->entity->id.mig_profile);
	else
		value_set(value, "%s", name + (strncmp(name, "NVIDIA ", 7) == 0 ? 7 : 0));
}

enum role value_severity_role(enum gpu_severity severity)
{
	return severity == GPU_WORKS ? ROLE_GOOD : severity == GPU_DOUBTFUL ? ROLE_WARN : ROLE_BAD;
}

void value_gpu_state(const struct sample *sample, const struct row *row, struct value *value)
{
	struct gpu_state state;

	if (!row->entity)
		return;
	gpu_state(sample->snapshot, row->entity, &state);
	value_set(value, "%s", state.word);
	value->role = value_severity_role(state.severity);
}

void value_throttled_by(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	struct strbuf text;

	if (!row->entity)
		return;
	strbuf_init(&text, VALUE_TEXT);
	value->role = gpu_throttled_by(row->entity, &text) ? ROLE_WARN : ROLE_DIM;
	value_set(value, "%s", text.data);
	strbuf_done(&text);
}

/* The first that was given it, and how many others were; else nobody says so. */
void value_given_to(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct snapshot *s = sample->snapshot;
	const struct allocated *first = NULL;
	unsigned others = 0;
	char more[24] = "";

	for (uint32_t i = 0; row->entity && i < s->allocated_n; i++) {
		if (&s->entities[s->allocated[i].entity] != row->entity)
			continue;
		others += first != NULL;
		first = first ? first : &s->allocated[i];
	}
	if (!first)
		return;
	if (others > 0)
		snprintf(more, sizeof(more), " +%u", others);
	if (first->pod[0])
		value_set(value, "%.40s/%.80s%s", first->namespace, first->pod, more);
	else
		value_set(value, "%s %.80s%s", workload_kind_name(first->kind), first->id, more);
}

/* ---- processes ---- */

void value_process_gpu(const struct sample *sample, const struct row *row, struct value *value)
{
	if (row->process)
		set_place(&sample->snapshot->entities[row->process->entity], value);
}

void value_user(const struct sample *sample, const struct row *row, struct value *value)
{
	const json_t *uid = json_object_get(row->object, "uid");
	const char *name;

	if (!json_is_integer(uid))
		return;
	name = sample_user(sample, (uint32_t)json_integer_value(uid));
	if (name)
		value_set(value, "%s", name);
	else
		value_set(value, "%" JSON_INTEGER_FORMAT, json_integer_value(uid));
}

void value_types(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	char letters[9] = "";
	const json_t *type;
	size_t i, n = 0;

	json_array_foreach(json_object_get(row->object, "types"), i, type)
		if (json_string_length(type) > 0 && n + 1 < sizeof(letters))
			letters[n++] = (char)toupper((unsigned char)json_string_value(type)[0]);
	value_set(value, "%s", letters);
}

/* The load of a GPU without new data is not that of now. */
void value_process_sm(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct snapshot *s = sample->snapshot;
	const json_t *share = json_object_get(row->object, "utilization_ratio");

	if (row->process && entity_is_old(snapshot_gpu(s, &s->entities[row->process->entity])))
		return;
	if (json_is_number(share))
		set_number(value, json_number_value(share));
}

static const struct host_process *host_of(const struct sample *sample, const struct row *row)
{
	return row->process ? sample_process(sample, row->process->id.pid) : NULL;
}

void value_cpu(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);

	if (host && host->cores >= 0)
		set_number(value, host->cores);
	else if (row->heading && row->heading->host.cores_known)
		set_number(value, row->heading->host.cores);
}

void value_host_memory(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);

	if (host)
		set_number(value, (double)host->resident_bytes);
	else if (row->heading && row->heading->host.known)
		set_number(value, row->heading->host.resident_bytes);
}

void value_threads(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);

	if (host)
		set_number(value, (double)host->threads);
	else if (row->heading && row->heading->host.known)
		set_number(value, row->heading->host.threads);
}

/* What it was started with; of other machines' processes, whose command line is not known, its name. */
void value_command(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);

	value_set(value, "%s", host && host->command[0] ? host->command : text_member(row->object, "comm"));
}

/* Since it was started, at the moment that is shown. */
void value_age(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);
	int64_t then_ns = clock_boot_ns() - (clock_mono_ns() - sample->mono_ns);

	if (host)
		set_number(value, (double)(then_ns - process_boot_ns(host->start_ticks)) * 1e-9);
}

void value_host_state(const struct sample *sample, const struct row *row, struct value *value)
{
	const struct host_process *host = host_of(sample, row);

	if (!host)
		return;
	value_set(value, "%c", host->state);
	value->role = host->state == 'D' || host->state == 'Z' ? ROLE_WARN : ROLE_TEXT;
}

static void whose(const json_t *object, struct value *value)
{
	const json_t *job = json_object_get(object, "batch_job");
	const char *pod = text_member(object, "pod"), *container = text_member(object, "container");
	const char *id = text_member(object, "container_id"), *unit = text_member(object, "unit");

	if (*text_member(job, "id"))
		value_set(value, "%sjob %.40s%s%.60s",
			  json_is_true(json_object_get(job, "claimed")) ? "claimed " : "",
			  text_member(job, "id"), *container ? ", container " : "", container);
	else if (*pod)
		value_set(value, "%.40s/%.60s%s%.40s", text_member(object, "namespace"), pod,
			  *container ? " " : "", container);
	else if (*container)
		value_set(value, "container %.80s", container);
	else if (*text_member(object, "pod_uid"))
		value_set(value, "pod %.80s", text_member(object, "pod_uid"));
	else if (*id)
		value_set(value, "container %.*s", container_short_length(id), id);
	else if (*text_member(object, "job"))
		value_set(value, "job %.80s", text_member(object, "job"));
	else
		value_set(value, "%.100s", unit);
}

void value_workload(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	whose(row->object, value);
}

/* ---- groups and events ---- */

void value_owner(const struct sample *sample, const struct row *row, struct value *value)
{
	const char *job = text_member(row->object, "job");

	if (*job)
		value_set(value, "%sjob %.40s%s%.60s%s",
			  json_is_true(json_object_get(row->object, "claimed")) ? "claimed " : "", job,
			  *text_member(row->object, "job_name") ? " (claimed: " : "",
			  text_member(row->object, "job_name"),
			  *text_member(row->object, "job_name") ? ")" : "");
	else
		whose(row->object, value);
	if (!value->known)
		value_user(sample, row, value);
	if (!value->known)
		value_set(value, "(none)");
}

void value_severity(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	const char *word = text_member(row->object, "severity");

	value_set(value, "%s", word);
	value->role = STRV_EQ(word, "critical") ? ROLE_BAD : STRV_EQ(word, "info") ? ROLE_DIM : ROLE_WARN;
}

/* ---- inference servers ---- */

void value_server_state(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	const char *word = text_member(row->object, "state");

	value_set(value, "%s", word);
	value->role = STRV_EQ(word, server_states[SERVER_STATE_READ].name) ? ROLE_GOOD : ROLE_WARN;
}

static void set_tokens(const struct sample *sample, const struct row *row, enum server_metric metric,
		       struct value *value)
{
	const struct servers *servers = &sample->snapshot->servers;
	json_int_t pid = json_integer_value(json_object_get(row->object, "pid"));

	for (uint32_t i = 0; i < servers->n; i++) {
		const struct inference_server *server = &servers->list[i];
		double v = server->id.pid == pid ? growth_server(sample, server, metric) : -1;

		if (v >= 0)
			set_number(value, v);
	}
}

void value_tokens_in(const struct sample *sample, const struct row *row, struct value *value)
{
	set_tokens(sample, row, SERVER_TOKENS_PROMPT, value);
}

void value_tokens_out(const struct sample *sample, const struct row *row, struct value *value)
{
	set_tokens(sample, row, SERVER_TOKENS_GENERATED, value);
}

/* ---- machines ---- */

void value_host(const struct sample *sample, const struct row *row, struct value *value)
{
	value_set(value, "%s", row->host ? row->host->name : sample ? sample->host : "");
}

/* False: nothing is known of it. */
static bool totals_of(const struct sample *sample, struct gpu_totals *totals)
{
	totals_init(totals);
	if (!sample || !sample->snapshot)
		return false;
	totals_add(totals, sample->snapshot);
	return true;
}

/* Of the GPUs that have it: of how many is said where it is not of all. */
static void set_total(struct value *value, const struct total *total, double number, unsigned gpus)
{
	if (total->n == 0)
		return;
	set_number(value, number);
	value->part = total->n < gpus ? total->n : 0;
}

void value_worst_state(const struct sample *sample, const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (row->host && row->host->failure[0]) {
		value_set(value, "no answer");
		value->role = ROLE_BAD;
	} else if (totals_of(sample, &totals)) {
		value_set(value, "%s", totals.gpus > 0 ? totals.word : "no GPUs");
		value->role = totals.gpus > 0 ? value_severity_role(totals.worst) : ROLE_WARN;
	} else {
		value_set(value, "asked ...");
		value->role = ROLE_DIM;
	}
}

void value_total_gpus(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_number(value, totals.gpus);
}

void value_total_processes(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_number(value, totals.processes);
}

void value_total_load(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_total(value, &totals.load, totals.load.sum / MAX(totals.load.n, 1U), totals.gpus);
}

void value_total_memory(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_total(value, &totals.used, totals.used.sum, totals.gpus);
}

void value_total_memory_of(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	/* Of the GPUs that the memory in use is of, and is said to be. */
	if (totals_of(sample, &totals) && totals.memory.n > 0)
		set_number(value, totals.memory.sum);
}

void value_total_power(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_total(value, &totals.power, totals.power.sum, totals.gpus);
}

void value_total_heat(const struct sample *sample, _unused_ const struct row *row, struct value *value)
{
	struct gpu_totals totals;

	if (totals_of(sample, &totals))
		set_total(value, &totals.heat, totals.heat.most, totals.gpus);
}

void value_host_age(_unused_ const struct sample *sample, const struct row *row, struct value *value)
{
	if (row->host && row->host->age_ns >= 0)
		set_number(value, (double)row->host->age_ns / (double)NSEC_PER_SEC);
}

void value_host_trouble(const struct sample *sample, const struct row *row, struct value *value)
{
	struct alert alert;

	if (row->host && row->host->failure[0]) {
		value_set(value, "%s", row->host->failure);
		value->role = ROLE_BAD;
	} else if (sample && sample->snapshot && alert_newest(sample, &alert)) {
		value_set(value, "%s", alert.text);
		value->role = alert.severe ? ROLE_BAD : ROLE_WARN;
	}
}
