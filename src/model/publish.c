// SPDX-License-Identifier: Apache-2.0
#include "model/private.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/publisher.h"
#include "model/rounding.h"

static void publish_header(struct model *model, struct snapshot *s)
{
	s->boot_ns = clock_boot_ns();
	s->real_ns = clock_real_ns();
	s->period_ns = model->period_ns;
	s->clock_window_ns = model->clock_window_ns;
	memcpy(s->hostname, model->hostname, sizeof(s->hostname));
	memcpy(s->node_name, model->node_name, sizeof(s->node_name));
	s->tags_n = model->tags_n;
	memcpy(s->tags, model->tags, model->tags_n * sizeof(model->tags[0]));
	s->gpus_unidentified = model->gpus_unidentified;
	s->topology_n = model->topology_n;
	memcpy(s->topology, model->topology, sizeof(s->topology));
	memcpy(s->topology_nvlinks, model->topology_nvlinks, sizeof(s->topology_nvlinks));
	memcpy(s->rejected, model->rejected, sizeof(s->rejected));
	memcpy(s->rejected_process, model->rejected_process, sizeof(s->rejected_process));
	sources_publish(model, s);
	memcpy(s->agent, model->agent, sizeof(s->agent));
	memcpy(s->agent_p, model->agent_p, sizeof(s->agent_p));
	host_sums_show(&model->host, &s->host);
	servers_publish(&model->servers, &s->servers);
}

/*
 * If the tracer's figures are old, its counters remain; its gauges become absent, since they would look
 * current.
 */
static void publish_trace(const struct model *model, struct snapshot *s)
{
	s->trace = trace_view_ref(model->trace);
	s->trace_stale = false;
	if (!model->trace || !model->trace->enabled)
		return;
	s->trace_stale = !s->sources[SOURCE_TRACE].fresh;
	if (!s->trace_stale)
		return;
	for (unsigned row = 0; row < AGENT_METRICS; row++)
		if (row != AGENT_SOURCE_UP_TRACE && agent_metric_of_trace(row) &&
		    agent_metrics[row].kind == METRIC_GAUGE)
			s->agent_p[row] = PRESENCE_ABSENT;
}

static uint32_t numbers_from(const struct snapshot *s, const struct entity *e)
{
	uint32_t sources = 0;

	if (!e->mixed)
		return 1u << e->source;
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
		enum source_id source = snapshot_slot_source(s, e, slot);

		if (presence_is(e->id.p[slot]) && source < SOURCES)
			sources |= 1u << source;
	}
	return sources;
}

static void publish_entities(struct model *model, struct snapshot *s)
{
	s->entities_n = model->devices_n;
	s->slot_sources_n = 0;
	for (uint16_t rank = 0; rank < model->devices_n; rank++) {
		struct device *device = model->devices[model->order[rank]];
		struct entity *e = &s->entities[rank];

		if (device->from)
			device_merge(model, device, s->boot_ns);

		memcpy(e, &device->e, sizeof(*e));
		e->id.parent =
			device->parent == NO_INDEX ? READING_NONE : model->devices[device->parent]->rank;
		e->stale = device_stale(model, device, s->boot_ns);
		e->mixed = 0;
		if (device->from) {
			memcpy(s->slot_sources[s->slot_sources_n], device->from, GPU_SLOTS);
			e->mixed = (uint16_t)++s->slot_sources_n;
		}
		e->numbers_from = numbers_from(s, e);
		e->processes_live = 0;
		clock_window_counts(device->clock_window, s->boot_ns, e->clock_events);
	}
}

static void publish_workloads(struct model *model, struct snapshot *s)
{
	s->workloads_n = 0;
	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct tracked_workload *t = &model->workloads[i];
		struct workload *w = &s->workloads[s->workloads_n];

		if (t->w.kind == WORKLOAD_KINDS)
			continue;
		model->workload_rank[i] = (uint16_t)s->workloads_n++;
		*w = t->w;
		w->entity = model->devices[t->device]->rank;
		w->allocated = t->allocations[0] != NO_INDEX ? t->allocations[0] : t->allocations[1];
		w->allocated = w->allocated == NO_INDEX ? 0 : w->allocated + 1;
		w->v[PROCESS_MEMORY] = 0;
		w->p[PROCESS_MEMORY] = PRESENCE_ABSENT;
	}
}

/* Shell's sort with Ciura's gaps: in place, while qsort() would allocate. */
static void sort_u64(uint64_t *keys, uint32_t n)
{
	static const uint32_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };

	for (unsigned g = 0; g < ARRAY_SIZE(gaps); g++) {
		for (uint32_t i = gaps[g]; i < n; i++) {
			uint64_t key = keys[i];
			uint32_t at = i;

			for (; at >= gaps[g] && keys[at - gaps[g]] > key; at -= gaps[g])
				keys[at] = keys[at - gaps[g]];
			keys[at] = key;
		}
	}
}

/* Sort key: rank, PID, and index to find the process: 16, 32 and 16 bits. */
static void sort_processes(struct model *model)
{
	if (model->sorted_valid)
		return;
	for (uint32_t i = 0; i < model->processes_n; i++) {
		const struct tracked *t = &model->processes[i];

		model->sorted[i] =
			(uint64_t)model->devices[t->device]->rank << 48 | (uint64_t)t->p.id.pid << 16 | i;
	}
	sort_u64(model->sorted, model->processes_n);
	model->sorted_valid = true;
}

static uint16_t workload_rank(const struct model *model, uint16_t workload)
{
	return workload == NO_INDEX ? READING_NONE : model->workload_rank[workload];
}

/*
 * If the newest reading of its device did not list the process (GPU lost, list unreadable), its gauges are
 * outdated and become absent. Its sums remain.
 */
static void drop_old_gauges(const struct tracked *t, const struct device *device, struct process *p)
{
	if (device->e.present && t->seen_ns >= device->process_ns)
		return;
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		if (process_metrics[row].kind == METRIC_GAUGE)
			p->p[row] = PRESENCE_ABSENT;
}

/* A workload's memory in use is that of its live processes; its peak is the highest sum published. */
static void publish_processes(struct model *model, struct snapshot *s)
{
	sort_processes(model);
	s->processes_n = model->processes_n;
	for (uint32_t i = 0; i < model->processes_n; i++) {
		const struct tracked *t = &model->processes[model->sorted[i] & 0xffff];
		struct process *p = &s->processes[i];
		struct workload *w;

		*p = t->p;
		look_back_fill(t->look_back, p, t->seen_ns);
		p->has_series = t->claim.has;
		p->entity = model->devices[t->device]->rank;
		p->workload = workload_rank(model, t->workload);
		drop_old_gauges(t, model->devices[t->device], p);
		s->entities[p->entity].processes_live++;
		if (p->workload == READING_NONE || !presence_is(p->p[PROCESS_MEMORY]))
			continue;
		w = &s->workloads[p->workload];
		w->v[PROCESS_MEMORY] += p->v[PROCESS_MEMORY];
		w->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	}
	for (uint32_t i = 0; i < model->workloads_n; i++) {
		struct workload *kept = &model->workloads[i].w, *w;

		if (kept->kind == WORKLOAD_KINDS)
			continue;
		w = &s->workloads[model->workload_rank[i]];
		if (!presence_is(w->p[PROCESS_MEMORY]))
			continue;
		kept->v[PROCESS_MEMORY_PEAK] = MAX(kept->v[PROCESS_MEMORY_PEAK], w->v[PROCESS_MEMORY]);
		kept->p[PROCESS_MEMORY_PEAK] = PRESENCE_PRESENT;
		w->v[PROCESS_MEMORY_PEAK] = kept->v[PROCESS_MEMORY_PEAK];
		w->p[PROCESS_MEMORY_PEAK] = PRESENCE_PRESENT;
	}
}

/* Exit records rarely change between ticks; a recycled snapshot may contain them already. */
static void publish_exited(const struct model *model, struct snapshot *s, uint64_t tag)
{
	if (tag == model->exits_tag) {
		/* The workloads' ranks may have changed nevertheless. */
		uint32_t at = 0;

		for (uint32_t i = 0; i < model->exits_n; i++)
			if (exit_at(model, i)->device != NO_INDEX)
				s->exited[at++].workload = workload_rank(model, exit_at(model, i)->workload);
		return;
	}
	s->exited_n = 0;
	for (uint32_t i = 0; i < model->exits_n; i++) {
		const struct exit_record *record = exit_at(model, i);
		struct process *p = &s->exited[s->exited_n];

		if (record->device == NO_INDEX)
			continue;
		*p = record->p;
		p->entity = model->devices[record->device]->rank;
		p->workload = workload_rank(model, record->workload);
		process_round(p);
		s->exited_n++;
	}
	publisher_tag_exited(s, model->exits_tag);
}

static uint32_t mixed_devices(const struct model *model)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < model->devices_n; i++)
		n += model->devices[model->order[i]]->from != NULL;
	return n;
}

int model_publish(struct model *model, struct publisher *publisher)
{
	int64_t now_ns = clock_boot_ns();
	struct snapshot_sizes sizes;
	struct snapshot *s;
	uint64_t tag;
	int r;

	processes_sweep(model, now_ns);
	exits_expire(model, now_ns);
	allocations_resolve(model, now_ns);
	health_resolve(model);
	sizes = (struct snapshot_sizes){
		.entities = model->devices_n,
		.processes = model->processes_n,
		.exited = model->exits_n,
		.workloads = model->workloads_n,
		.xids = model->xids_n,
		.xid_events = (uint32_t)MIN(model->xid_reports_n, (uint64_t)XID_REPORTS_MAX),
		.workload_names = model->traced.names_n,
		.traced_workloads = model->trace ? model->trace->processes_n : 0,
		.traced_places = model->trace ? model->trace->devices_n : 0,
		.slot_sources = mixed_devices(model),
		.allocated = model->allocations.n,
		.jobs = model->jobs.n,
		.traced_uses = model->traced.uses_n,
	};
	r = publisher_take(publisher, &sizes, &s, &tag);
	if (r < 0)
		return r;
	publish_header(model, s);
	publish_trace(model, s);
	s->owners = owners_ref(model->owners);
	s->scraped = scraped_ref(model->scraped);
	s->measured = nccl_measurements_ref(model->measured);
	s->gpu_times = gpu_times_ref(model->gpu_times);
	jobs_publish(model, s);
	publish_entities(model, s);
	publish_workloads(model, s);
	allocations_publish(model, s);
	publish_processes(model, s);
	attribution_publish(model, s);
	publish_exited(model, s, tag);
	traced_publish(model, s);
	xids_publish(model, s);
	snapshot_round(s);
	publisher_put(publisher, s);
	return 0;
}
