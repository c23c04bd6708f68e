// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include "base/macro.h"
#include "config.h"
#include "view/json/host.h"
#include "view/json/server.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/snapshot/values.h"

void json_place(struct json_maker *j, json_t *object, uint16_t entity)
{
	const struct entity *e = &j->s->entities[entity];
	const struct entity *gpu = snapshot_gpu(j->s, e);

	json_put(j, object, "gpu", json_integer(gpu->id.index));
	json_put(j, object, "uuid", json_text(gpu->id.uuid));
	json_put(j, object, "gi", entity_is_mig(e) ? json_integer(e->id.gi) : json_null());
	json_put(j, object, "ci", entity_is_mig(e) ? json_integer(e->id.ci) : json_null());
}

static void add_workload_id(struct json_maker *j, json_t *object, const struct workload *w)
{
	if (w)
		json_workload(j, object, w->kind, w->id, w->pod_uid, w->owner);
	else
		json_workload(j, object, WORKLOAD_NONE, "", "", NULL);
}

/* The job of a batch system; a member that is not known is null. */
static json_t *json_batch_job(struct json_maker *j, const struct job *job)
{
	json_t *object;

	if (!job || job->manager == JOB_MANAGER_NONE)
		return json_null();
	object = json_object();
	json_put(j, object, "manager", json_string(job_manager_name(job->manager)));
	json_put(j, object, "id", json_text(job->id));
	json_put(j, object, "step", json_text_or_null(job->step));
	json_put(j, object, "name", json_text_or_null(job->name));
	json_put(j, object, "user", json_text_or_null(job->user));
	json_put(j, object, "claimed", json_boolean(job->claimed));
	json_put(j, object, "name_claimed", json_boolean(job_name_is_claimed(job)));
	return object;
}

static void add_job(struct json_maker *j, json_t *object, const struct process *process)
{
	struct run_names names = run_of(j->s, process);

	json_put(j, object, "batch_job", json_batch_job(j, snapshot_job(j->s, process->job)));
	json_put(j, object, "run", json_text_or_null(names.run));
	json_put(j, object, "run_group", json_text_or_null(names.group));
	json_put(j, object, "run_claimed", json_boolean(names.claimed));
	json_put(j, object, "rank", json_unsigned_or_null(process->rank.rank));
	json_put(j, object, "local_rank", json_unsigned_or_null(process->rank.local));
	json_put(j, object, "world_size", json_unsigned_or_null(process->rank.world));
}

static void add_numbers(struct json_maker *j, json_t *object, const double *v, const uint8_t *p)
{
	const struct json_rows rows = {
		.rows = process_metrics,
		.n = PROCESS_METRICS,
		.v = v,
		.p = p,
		.strip = "process_gpu_",
		.strip_more = "process_",
	};

	json_add_rows(j, object, &rows);
}

static json_t *json_recent(struct json_maker *j, const struct process *process)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < RECENTS; i++) {
		const struct recent *recent = &process->recent[i];
		json_t *object;

		if (recent->seconds <= 0)
			continue;
		object = json_object();
		json_put(j, object, "window_seconds", json_integer(recent_seconds[i]));
		json_put(j, object, "seconds", json_number(recent->seconds));
		for (unsigned k = 0; k < RECENT_FIGURES; k++)
			json_put(j, object, recent_names[k],
				 presence_is(recent->p[k]) ? json_number(recent->v[k]) : json_null());
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_process(struct json_maker *j, const struct process *process)
{
	const struct snapshot *s = j->s;
	json_t *object = json_object(), *types = json_array();
	const char *type;

	json_put(j, object, "pid", json_integer(process->id.pid));
	json_put(j, object, "ns_pid", json_positive_or_null(process->ns_pid));
	json_put(j, object, "comm", json_text_or_null(process->comm));
	json_put(j, object, "uid", process->uid != UINT32_MAX ? json_integer(process->uid) : json_null());
	json_place(j, object, process->entity);
	for (unsigned i = 0; (type = process_type_name(i)); i++)
		if (process->types & (1u << i))
			json_push(j, types, json_string(type));
	json_put(j, object, "types", types);
	json_put(j, object, "first_seen", json_time(process->first_real_ns));
	json_put(j, object, "last_seen", json_time(process->last_real_ns));
	add_workload_id(j, object,
			process->workload < s->workloads_n ? &s->workloads[process->workload] : NULL);
	add_job(j, object, process);
	add_numbers(j, object, process->v, process->p);
	json_put(j, object, "recent", json_recent(j, process));
	json_put(j, object, "cuda", json_process_cuda(j, process));
	return object;
}

json_t *json_processes(struct json_maker *j)
{
	json_t *processes = json_array();

	for (uint32_t i = 0; i < j->s->processes_n; i++)
		json_push(j, processes, json_process(j, &j->s->processes[i]));
	return processes;
}

static json_t *json_workloads(struct json_maker *j)
{
	json_t *workloads = json_array();

	for (uint32_t i = 0; i < j->s->workloads_n; i++) {
		const struct workload *workload = &j->s->workloads[i];
		json_t *object = json_object();

		json_put(j, object, "kind", json_string(workload_kind_name(workload->kind)));
		add_workload_id(j, object, workload);
		json_put(j, object, "batch_job", json_batch_job(j, snapshot_job(j->s, workload->job)));
		json_put(j, object, "uid", json_unsigned_or_null(workload->uid));
		json_place(j, object, workload->entity);
		json_put(j, object, "processes_live", json_integer(workload->live));
		json_put(j, object, "processes_exited", json_integer(workload->exited));
		add_numbers(j, object, workload->v, workload->p);
		json_push(j, workloads, object);
	}
	return workloads;
}

static json_t *json_gpu_counts(struct json_maker *j)
{
	json_t *object = json_object();
	struct gpu_counts counts;

	count_gpus(j->s, &counts);
	json_put(j, object, "present", json_integer(counts.present));
	json_put(j, object, "absent", json_integer(counts.absent));
	json_put(j, object, "unidentified", json_integer(counts.unidentified));
	json_put(j, object, "mig_instances", json_integer(counts.instances));
	return object;
}

/* Each pair of GPUs once, by and ordered by index. */
static json_t *json_topology(struct json_maker *j)
{
	json_t *pairs = json_array();
	char link[8];

	for (uint32_t a = 0; a < j->s->topology_n; a++)
		for (uint32_t b = a + 1; b < j->s->topology_n; b++) {
			json_t *pair;

			if (!snapshot_has_gpu(j->s, a) || !snapshot_has_gpu(j->s, b))
				continue;
			pair = json_object();
			link_text(j->s->topology[a][b], j->s->topology_nvlinks[a][b], link);
			json_put(j, pair, "a", json_integer(a));
			json_put(j, pair, "b", json_integer(b));
			json_put(j, pair, "link", json_text_or_null(link));
			json_push(j, pairs, pair);
		}
	return pairs;
}

void json_read_topology(const json_t *pairs, struct snapshot *s)
{
	json_t *pair;
	size_t i;

	json_array_foreach(pairs, i, pair) {
		uint32_t a = read_u32(pair, "a", UINT32_MAX), b = read_u32(pair, "b", UINT32_MAX);
		const char *link = json_string_value(json_object_get(pair, "link"));
		uint8_t level = 0, nvlinks = 0;

		if (a >= b || b >= READING_TOPOLOGY_MAX)
			continue;
		link_parse(link ? link : "", &level, &nvlinks);
		s->topology[a][b] = s->topology[b][a] = level;
		s->topology_nvlinks[a][b] = s->topology_nvlinks[b][a] = nvlinks;
		s->topology_n = MAX(s->topology_n, b + 1);
	}
}

static json_t *json_rejected(struct json_maker *j)
{
	json_t *object = json_object();
	struct rejected_field field;

	for (unsigned i = 0; rejected_next(j->s, &i, &field);)
		json_put(j, object, field.name, json_integer((json_int_t)field.count));
	return object;
}

static json_t *json_agent(struct json_maker *j)
{
	const struct json_rows rows = {
		.rows = agent_metrics,
		.n = AGENT_METRICS,
		.v = j->s->agent,
		.p = j->s->agent_p,
	};
	json_t *agent = json_object();

	json_put(j, agent, "version", json_string(GPUSONDE_VERSION));
	json_add_rows(j, agent, &rows);
	return agent;
}

json_t *json_node(struct json_maker *j)
{
	const struct snapshot *s = j->s;
	const struct source *driver = snapshot_driver(s);
	json_t *node = json_object();
	char cuda[16];

	cuda_version_text(driver->cuda_version, cuda);
	json_put(j, node, "hostname", json_text_or_null(s->hostname));
	json_put(j, node, "driver_version", json_text_or_null(driver->driver_version));
	json_put(j, node, "nvml_version", json_text_or_null(driver->library_version));
	json_put(j, node, "cuda_version", json_text_or_null(cuda));
	json_put(j, node, "library", json_text_or_null(driver->library));
	json_put(j, node, "unrecognised", json_text_or_null(driver->unrecognised));
	json_put(j, node, "state", json_string(state_name(driver->state)));
	json_put(j, node, "error", json_text_or_null(driver->error));
	json_put(j, node, "fresh", json_boolean(s->fresh));
	json_put(j, node, "reason", json_text_or_null(s->fresh ? "" : s->not_fresh_reason));
	json_put(j, node, "period_seconds", json_number((double)s->period_ns * 1e-9));
	json_put(j, node, "gpus", json_gpu_counts(j));
	json_put(j, node, "tags", json_tags(j));
	json_put(j, node, "topology", json_topology(j));
	json_put(j, node, "workloads", json_workloads(j));
	json_put(j, node, "host", json_host(j));
	json_put(j, node, "inference", json_inference(j));
	json_put(j, node, "agent", json_agent(j));
	json_put(j, node, "rejected", json_rejected(j));
	return node;
}
