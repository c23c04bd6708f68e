// SPDX-License-Identifier: Apache-2.0
#include "model/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"

enum { SERIES_DEFAULT = 128, EXITED_DEFAULT = 1024, WORKLOADS_DEFAULT = 1024 };

int model_new(const struct model_limits *limits, struct model **ret_model)
{
	static const struct model_limits defaults = {
		.processes = READING_PROCESSES_MAX,
		.series = SERIES_DEFAULT,
		.exited = EXITED_DEFAULT,
		.workloads = WORKLOADS_DEFAULT,
	};
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		return -ENOMEM;
	model_set_limits(model, limits ? limits : &defaults);
	model->period_ns = NSEC_PER_SEC;
	model->clock_window_ns = CLOCK_WINDOW_DEFAULT_NS;
	model->exits_tag = 1;
	if (gethostname(model->hostname, sizeof(model->hostname) - 1) < 0)
		model->hostname[0] = '\0';
	/* The agent's counters start at zero; gauges, and what tracing counts, are absent until set. */
	for (unsigned row = 0; row < AGENT_METRICS; row++)
		if (agent_metrics[row].kind == METRIC_COUNTER && !agent_metric_of_trace(row) &&
		    !agent_metrics[row].when_used)
			model->agent_p[row] = PRESENCE_PRESENT;
	*ret_model = model;
	return 0;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		device_free(model->devices[i]);
	hashmap_done(&model->process_map);
	hashmap_done(&model->workload_map);
	for (uint32_t i = 0; i < model->processes_n; i++)
		free(model->processes[i].look_back);
	free(model->processes);
	free(model->sorted);
	free(model->exits);
	free(model->workloads);
	free(model->workload_rank);
	trace_view_unref(model->trace);
	traced_done(&model->traced);
	jobs_done(model);
	owners_unref(model->owners);
	scraped_unref(model->scraped);
	nccl_measurements_unref(model->measured);
	gpu_times_unref(model->gpu_times);
	allocations_done(model);
	health_done(model);
	free(model);
}

void model_set_identify(struct model *model, process_identify_fn *identify, void *userdata)
{
	model->identify = identify;
	model->identify_data = userdata;
}

void model_set_limits(struct model *model, const struct model_limits *limits)
{
	model->limits.processes = MIN(limits->processes, (uint32_t)READING_PROCESSES_MAX);
	model->limits.series = MIN(limits->series, (uint32_t)READING_PROCESSES_MAX);
	model->series.limit = model->limits.series;
	model->limits.exited = MIN(limits->exited, (uint32_t)NO_INDEX);
	model->limits.workloads = MIN(limits->workloads, (uint32_t)SNAPSHOT_WORKLOADS_MAX);
	processes_balance(model);
}

void model_agent_set(struct model *model, enum agent_metric metric, double value)
{
	model->agent[metric] = value;
	model->agent_p[metric] = PRESENCE_PRESENT;
}

void model_agent_add(struct model *model, enum agent_metric metric, double value)
{
	model->agent[metric] += value;
	if (agent_metrics[metric].when_used)
		model->agent_p[metric] = PRESENCE_PRESENT;
}

void model_set_trace(struct model *model, struct trace_view *view)
{
	struct source *source = &model->sources[SOURCE_TRACE].s;
	struct trace_view *former = model->trace;

	model->trace = trace_view_ref(view);
	if (view != former) {
		traced_keep_ended(model, former, view);
		traced_take_view(model, view);
		traced_sum_uses(model, view);
	}
	for (unsigned row = 0; row < AGENT_METRICS; row++) {
		if (!agent_metric_of_trace(row))
			continue;
		model->agent[row] = view ? view->agent[row] : 0;
		model->agent_p[row] = view ? view->agent_p[row] : PRESENCE_ABSENT;
	}
	source->in_use = view && (view->enabled || presence_is(view->agent_p[AGENT_SOURCE_UP_TRACE]));
	source->state = view && view->enabled ? READING_OK : READING_FAILED;
	snprintf(source->error, sizeof(source->error), "%.*s", (int)sizeof(source->error) - 1,
		 view && !view->enabled ? view->why : "");
	if (view)
		source->heard_ns = view->boot_ns;
	if (view && view->enabled)
		source->fresh_ns = view->boot_ns;
	trace_view_unref(former);
}

static void take_counts(struct model *model, const struct reading *reading)
{
	model_agent_add(model, AGENT_TICKS, 1);
	model_agent_add(model, AGENT_DROPPED_ENTITIES, reading->entities_dropped);
	model_agent_add(model, AGENT_DROPPED_PROCESSES, reading->processes_dropped);
	model_agent_add(model, AGENT_DROPPED_EVENTS, reading->events_dropped);
	for (unsigned row = 0; row < GPU_METRICS; row++)
		model->rejected[row] += reading->rejected[row];
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		model->rejected_process[row] += reading->rejected_process[row];
}

static void take_node(struct model *model, const struct reading *reading)
{
	model->gpus_unidentified = reading->gpus_unidentified;
	model->topology_n = reading->topology_n;
	memcpy(model->topology, reading->topology, sizeof(model->topology));
	memcpy(model->topology_nvlinks, reading->topology_nvlinks, sizeof(model->topology_nvlinks));
}

static void devices_gone(struct model *model, enum source_id source, int64_t now_ns, int64_t end_ns)
{
	for (unsigned i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];

		if (!device->reports[source])
			continue;
		device_gone(device, source, end_ns);
		device_merge(model, device, now_ns);
	}
}

static void apply_devices(struct model *model, enum source_id source, const struct reading *reading,
			  uint32_t n, const uint16_t *devices, int64_t now_ns, int64_t end_ns)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct reading_entity *entity = &reading->entities[i];
		struct device_report *report;
		struct device *device;

		if (devices[i] == NO_INDEX)
			continue;
		device = model->devices[devices[i]];
		report = device->reports[source];
		report->lost = entity->lost;
		report->process_list = entity->process_list;
		report->process_util = entity->process_util;
		if (entity->lost) {
			device_gone(device, source, end_ns);
			device_merge(model, device, now_ns);
		} else {
			device_apply(model, device, source, entity, end_ns);
		}
	}
}

/*
 * Selects one source of processes for each device. devices[i] becomes NO_INDEX where this source's processes
 * are not used.
 */
static void choose_processes(struct model *model, enum source_id source, uint32_t n, uint16_t *devices,
			     int64_t now_ns, int64_t end_ns)
{
	for (uint32_t i = 0; i < n; i++) {
		enum source_id process_source;
		struct device *device;

		if (devices[i] == NO_INDEX)
			continue;
		device = model->devices[devices[i]];
		process_source = device_process_source(model, device, now_ns);
		if (process_source == SOURCES && device_first_source(device) == source)
			continue; /* lost: its processes are still processed, but the list is incomplete */
		if (process_source != source) {
			devices[i] = NO_INDEX;
			continue;
		}
		device->process_switched = device->process_ns != 0 && device->process_source != source;
		device->process_source = source;
		device->process_reading = model->readings;
		device->before_ns = device->process_begin_ns;
		device->process_begin_ns = model->begin_ns;
		device->process_ns = end_ns;
	}
}

int model_apply(struct model *model, enum source_id source, const struct reading *reading)
{
	uint32_t n = MIN(reading->entities_n, (uint32_t)READING_ENTITIES_MAX);
	struct source_state *state = &model->sources[source];
	/*
	 * The child uses the same clock; an end time in the future would make values seem fresh for too long.
	 */
	int64_t now_ns = clock_boot_ns(), end_ns = MIN(reading->end_ns, now_ns), since_ns;
	uint16_t devices[READING_ENTITIES_MAX];

	if (end_ns <= state->s.heard_ns)
		return -ESTALE;
	/*
	 * The driver queues events from attachment on, so they happened since the last good reading or this
	 * attachment.
	 */
	since_ns = reading->attach == state->attach && state->s.fresh_ns != 0 ? state->s.fresh_ns :
										reading->begin_ns;
	model->readings++;
	model->reading_ns = end_ns;
	model->begin_ns = MIN(reading->begin_ns, end_ns);
	source_apply(model, source, reading, now_ns, end_ns);
	take_counts(model, reading);
	if (reading->state != READING_OK) {
		/* After a release on request the GPUs remain present and become stale. */
		if (reading->state != READING_RELEASED)
			devices_gone(model, source, now_ns, end_ns);
		return 0;
	}
	state->attach = reading->attach;
	if (source_is_first(model, source))
		take_node(model, reading);

	devices_match(model, source, reading, n, end_ns, devices);
	apply_devices(model, source, reading, n, devices, now_ns, end_ns);
	xids_apply(model, source, reading, devices, n, since_ns, end_ns);
	choose_processes(model, source, n, devices, now_ns, end_ns);
	attribution_begin(model, reading, devices, n, end_ns);
	processes_apply(model, reading, devices, n, end_ns);
	attribution_count(model);
	servers_count(model);
	allocations_count(model, end_ns);
	return 0;
}

void model_set_node_name(struct model *model, const char *name)
{
	snprintf(model->node_name, sizeof(model->node_name), "%s", name ? name : "");
}
