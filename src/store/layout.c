// SPDX-License-Identifier: Apache-2.0
#include "store/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"

#define MEMBER(s_, m_) (((struct s_ *)0)->m_)
#define IS_BOOL(value_) _Generic((value_), bool : true, default : false)
#define ONE(s_, m_, kind_, ...)                                                                   \
	{                                                                                         \
		.name = #m_, .offset = offsetof(struct s_, m_), .stride = sizeof(MEMBER(s_, m_)), \
		.size = sizeof(MEMBER(s_, m_)), .count = 1, .kind = COLUMN_##kind_,               \
		.is_bool = IS_BOOL(MEMBER(s_, m_)), __VA_ARGS__                                   \
	}
/* An array of the kind, which may have more than one dimension: @e_ is its first element. */
#define MANY(s_, m_, e_, kind_, ...)                                                                      \
	{                                                                                                 \
		.name = #m_, .offset = offsetof(struct s_, m_), .stride = sizeof(MEMBER(s_, e_)),         \
		.size = sizeof(MEMBER(s_, e_)), .count = sizeof(MEMBER(s_, m_)) / sizeof(MEMBER(s_, e_)), \
		.kind = COLUMN_##kind_, __VA_ARGS__                                                       \
	}
/* A member of each element of an array of structs. */
#define EACH(s_, a_, m_, kind_, ...)                                                                 \
	{                                                                                            \
		.name = #a_ "." #m_, .offset = offsetof(struct s_, a_[0].m_),                        \
		.stride = sizeof(MEMBER(s_, a_[0])), .size = sizeof(MEMBER(s_, a_[0].m_)),           \
		.count = sizeof(MEMBER(s_, a_)) / sizeof(MEMBER(s_, a_[0])), .kind = COLUMN_##kind_, \
		__VA_ARGS__                                                                          \
	}
#define METRICS(list_) .metrics = (list_), .metrics_n = ARRAY_SIZE(list_)
#define KEY .key = true
#define BELOW(n_) .limit = (n_)
#define OF(table_) .rows = STORE_##table_ + 1
#define OR(n_) .none = (n_)

static const struct column node_columns[] = {
	ONE(snapshot, real_ns, TIME),
	ONE(snapshot, boot_ns, TIME),
	ONE(snapshot, device_source, UINT, BELOW(SOURCES)),
	ONE(snapshot, simulated, UINT),
	ONE(snapshot, fresh, UINT),
	ONE(snapshot, not_fresh_reason, TEXT),
	ONE(snapshot, not_fresh_cause, TEXT),
	ONE(snapshot, hostname, TEXT),
	ONE(snapshot, node_name, TEXT),
	ONE(snapshot, agent_version, TEXT),
	ONE(snapshot, tags_n, UINT, BELOW(NODE_TAGS_MAX + 1)),
	EACH(snapshot, tags, key, TEXT),
	EACH(snapshot, tags, value, TEXT),
	ONE(snapshot, period_ns, INT),
	ONE(snapshot, clock_window_ns, INT),
	ONE(snapshot, gpus_unidentified, UINT),
	ONE(snapshot, topology_n, UINT, BELOW(READING_TOPOLOGY_MAX + 1)),
	MANY(snapshot, topology, topology[0][0], UINT),
	MANY(snapshot, topology_nvlinks, topology_nvlinks[0][0], UINT),
	MANY(snapshot, rejected, rejected[0], UINT),
	MANY(snapshot, rejected_process, rejected_process[0], UINT),
	MANY(snapshot, agent, agent[0], REAL, METRICS(agent_metrics)),
	MANY(snapshot, agent_p, agent_p[0], PRESENCE, METRICS(agent_metrics)),
	ONE(snapshot, host.read, UINT),
	MANY(snapshot, host.v, host.v[0], REAL, METRICS(host_metrics)),
	MANY(snapshot, host.p, host.p[0], PRESENCE, METRICS(host_metrics)),
	ONE(snapshot, host.devices[HOST_DISKS].n, UINT, BELOW(HOST_DEVICES_MAX + 1)),
	EACH(snapshot, host.devices[HOST_DISKS].list, name, TEXT),
#define DISK_METRIC(id_, field_, ...)                                       \
	EACH(snapshot, host.devices[HOST_DISKS].list, v[DISK_##id_], REAL), \
		EACH(snapshot, host.devices[HOST_DISKS].list, p[DISK_##id_], PRESENCE),
#include "model/metrics.def"
	ONE(snapshot, host.devices[HOST_INTERFACES].n, UINT, BELOW(HOST_DEVICES_MAX + 1)),
	EACH(snapshot, host.devices[HOST_INTERFACES].list, name, TEXT),
#define INTERFACE_METRIC(id_, field_, ...)                                            \
	EACH(snapshot, host.devices[HOST_INTERFACES].list, v[INTERFACE_##id_], REAL), \
		EACH(snapshot, host.devices[HOST_INTERFACES].list, p[INTERFACE_##id_], PRESENCE),
#include "model/metrics.def"
	ONE(snapshot, servers.read, UINT),
	ONE(snapshot, servers.left_out, UINT),
	ONE(snapshot, servers.n, UINT, BELOW(SERVERS_MAX + 1)),
	EACH(snapshot, servers.list, id.pid, UINT),
	EACH(snapshot, servers.list, id.start_ticks, UINT),
	EACH(snapshot, servers.list, uid, UINT),
	EACH(snapshot, servers.list, kind, UINT, BELOW(SERVER_KINDS)),
	EACH(snapshot, servers.list, state, UINT, BELOW(SERVER_STATES)),
	EACH(snapshot, servers.list, port, UINT),
	EACH(snapshot, servers.list, read_boot_ns, TIME),
	EACH(snapshot, servers.list, error, TEXT),
#define SERVER_METRIC(id_, ...)                              \
	EACH(snapshot, servers.list, v[SERVER_##id_], REAL), \
		EACH(snapshot, servers.list, p[SERVER_##id_], PRESENCE),
#include "model/metrics.def"
	ONE(snapshot, trace_stale, UINT),
};

static const struct column source_columns[] = {
	ONE(source, id, UINT, BELOW(SOURCES)),
	ONE(source, in_use, UINT),
	ONE(source, fresh, UINT),
	ONE(source, state, UINT, BELOW(READING_STATES)),
	ONE(source, error, TEXT),
	ONE(source, heard_ns, TIME),
	ONE(source, fresh_ns, TIME),
	ONE(source, fresh_real_ns, TIME),
	ONE(source, dropped, UINT),
	ONE(source, simulated, UINT),
	ONE(source, cuda_version, UINT),
	ONE(source, driver_version, TEXT),
	ONE(source, library_version, TEXT),
	ONE(source, library, TEXT),
	ONE(source, unrecognised, TEXT),
};

/* Sums for atop, of GPUs and of processes, are left out: they are for its protocol alone. */
static const struct column gpu_columns[] = {
	ONE(entity, id.uuid, TEXT, KEY),
	ONE(entity, id.mig_uuid, TEXT),
	ONE(entity, id.name, TEXT),
	ONE(entity, id.pci_bus_id, TEXT),
	ONE(entity, id.serial, TEXT),
	ONE(entity, id.vbios, TEXT),
	ONE(entity, id.architecture, TEXT),
	ONE(entity, id.mig_profile, TEXT),
	ONE(entity, id.compute_capability, TEXT),
	ONE(entity, id.index, UINT),
	ONE(entity, id.minor, UINT),
	ONE(entity, id.numa_node, INT),
	ONE(entity, id.gi, UINT, KEY),
	ONE(entity, id.ci, UINT, KEY),
	ONE(entity, id.parent, UINT, OF(GPUS), OR(READING_NONE)),
	ONE(entity, id.lost, UINT),
	ONE(entity, id.process_list, PRESENCE),
	ONE(entity, id.process_util, PRESENCE),
	ONE(entity, id.mig_number, UINT),
	MANY(entity, id.v, id.v[0], REAL, METRICS(gpu_metrics)),
	MANY(entity, id.p, id.p[0], PRESENCE, METRICS(gpu_metrics)),
	ONE(entity, source, UINT, BELOW(SOURCES)),
	ONE(entity, mixed, UINT),
	ONE(entity, numbers_from, UINT),
	ONE(entity, present, UINT),
	ONE(entity, stale, UINT),
	ONE(entity, sampled_boot_ns, TIME),
	ONE(entity, sampled_real_ns, TIME),
	ONE(entity, stamped_boot_ns, TIME),
	ONE(entity, stamped_real_ns, TIME),
	ONE(entity, id.stamps.offset_ns, INT),
	ONE(entity, id.stamps.error_ns, INT),
	ONE(entity, id.stamps.unusable, UINT),
	MANY(entity, id.stamps.at_ns, id.stamps.at_ns[0], TIME),
	MANY(entity, clock_events, clock_events[0], UINT),
	MANY(entity, health, health[0], UINT, BELOW(HEALTH_BAD + 1)),
	ONE(entity, processes_live, UINT),
	MANY(entity, process_total, process_total[0], REAL, METRICS(process_metrics)),
	MANY(entity, process_other, process_other[0], REAL, METRICS(process_metrics)),
};

/* Of a process, running or exited. */
#define WHOSE_PROCESS                                                                                      \
	ONE(process, comm, TEXT), ONE(process, uid, UINT), ONE(process, ns_pid, UINT),                     \
		ONE(process, entity, UINT, OF(GPUS), KEY),                                                 \
		ONE(process, workload, UINT, OF(WORKLOADS), OR(READING_NONE)),                             \
		ONE(process, job, UINT, OF(JOBS), OR(JOB_NONE)), ONE(process, rank.rank, UINT),            \
		ONE(process, rank.local, UINT), ONE(process, rank.world, UINT), ONE(process, types, UINT), \
		ONE(process, exited, UINT)

/* `recent` is left out: the recording itself says it, and it has as many digits as all else together. */
static const struct column process_columns[] = {
	ONE(process, id.pid, UINT, KEY),
	ONE(process, id.start_ticks, UINT, KEY),
	ONE(process, first_real_ns, INT),
	ONE(process, last_real_ns, TIME),
	WHOSE_PROCESS,
	ONE(process, has_series, UINT),
	ONE(process, exit_seq, UINT),
	MANY(process, v, v[0], REAL, METRICS(process_metrics)),
	MANY(process, p, p[0], PRESENCE, METRICS(process_metrics)),
	MANY(process, series, series[0], REAL, METRICS(process_metrics)),
};

/* What an exit record says in the end; sums of series are of those that run. */
static const struct column exited_columns[] = {
	ONE(process, id.pid, UINT, KEY),
	ONE(process, id.start_ticks, UINT, KEY),
	ONE(process, first_real_ns, INT),
	ONE(process, last_real_ns, INT),
	WHOSE_PROCESS,
	ONE(process, exit_seq, UINT),
	MANY(process, v, v[0], REAL, METRICS(process_metrics)),
	MANY(process, p, p[0], PRESENCE, METRICS(process_metrics)),
};

static const struct column workload_columns[] = {
	ONE(workload, kind, UINT, BELOW(WORKLOAD_KINDS), KEY),
	ONE(workload, id, TEXT, KEY),
	ONE(workload, pod_uid, TEXT),
	ONE(workload, user, UINT),
	ONE(workload, job, UINT, OF(JOBS), OR(JOB_NONE)),
	ONE(workload, uid, UINT),
	ONE(workload, entity, UINT, OF(GPUS), KEY),
	ONE(workload, allocated, UINT), /* plus 1 */
	ONE(workload, live, UINT),
	ONE(workload, exited, UINT),
	MANY(workload, v, v[0], REAL, METRICS(process_metrics)),
	MANY(workload, p, p[0], PRESENCE, METRICS(process_metrics)),
};

static const struct column owner_columns[] = {
	ONE(owner, workload, UINT, BELOW(WORKLOAD_KINDS)),
	ONE(owner, id, TEXT),
	ONE(owner, namespace, TEXT),
	ONE(owner, pod, TEXT),
	ONE(owner, container, TEXT),
	ONE(owner, owner_kind, TEXT),
	ONE(owner, owner_name, TEXT),
	ONE(owner, run, TEXT),
	ONE(owner, group, TEXT),
	ONE(owner, source, UINT, BELOW(SOURCES)),
};

static const struct column allocated_columns[] = {
	ONE(allocated, kind, UINT, BELOW(WORKLOAD_KINDS), KEY),
	ONE(allocated, id, TEXT, KEY),
	ONE(allocated, pod_uid, TEXT),
	ONE(allocated, namespace, TEXT, KEY),
	ONE(allocated, pod, TEXT, KEY),
	ONE(allocated, container, TEXT, KEY),
	ONE(allocated, resource, TEXT),
	ONE(allocated, source, UINT, BELOW(SOURCES)),
	ONE(allocated, claimed, UINT),
	ONE(allocated, slots, UINT),
	ONE(allocated, count, UINT),
	ONE(allocated, processes, UINT),
	ONE(allocated, entity, UINT, OF(GPUS), KEY),
	ONE(allocated, estimated, UINT),
	ONE(allocated, stale, UINT),
	ONE(allocated, since_real_ns, INT),
	ONE(allocated, seconds, REAL),
	ONE(allocated, idle_seconds, REAL),
	ONE(allocated, idle_p, PRESENCE),
};

static const struct column job_columns[] = {
	ONE(job, manager, UINT, BELOW(JOB_MANAGERS), KEY),
	ONE(job, claimed, UINT, KEY),
	ONE(job, id, TEXT, KEY),
	ONE(job, step, TEXT, KEY),
	ONE(job, name, TEXT),
	ONE(job, user, TEXT),
	ONE(job, run, TEXT),
	ONE(job, group, TEXT),
};

static const struct column xid_columns[] = {
	ONE(xid, pci_bus_id, TEXT, KEY), ONE(xid, entity, UINT, OF(GPUS), OR(READING_NONE)),
	ONE(xid, code, UINT, KEY),       ONE(xid, count, UINT),
	ONE(xid, last_real_ns, INT),
};

static const struct column xid_event_columns[] = {
	ONE(xid_event, number, UINT, KEY),
	ONE(xid_event, pci_bus_id, TEXT),
	ONE(xid_event, entity, UINT, OF(GPUS), OR(READING_NONE)),
	ONE(xid_event, code, UINT),
	ONE(xid_event, gi, UINT),
	ONE(xid_event, ci, UINT),
	ONE(xid_event, sources, UINT),
	ONE(xid_event, real_ns, INT),
	ONE(xid_event, text, TEXT),
};

/* A row of struct snapshot.slot_sources. */
struct slot_sources {
	uint8_t source[GPU_SLOTS];
};
static const struct column slot_source_columns[] = {
	MANY(slot_sources, source, source[0], UINT, BELOW(SOURCES + 1), METRICS(gpu_metrics)),
};

static const struct column trace_columns[] = {
	ONE(trace_view, enabled, UINT),
	ONE(trace_view, why, TEXT),
	ONE(trace_view, backend, TEXT),
	ONE(trace_view, boot_ns, TIME),
	ONE(trace_view, left_out, UINT),
	ONE(trace_view, stacks_error, INT),
	MANY(trace_view, agent, agent[0], REAL, METRICS(agent_metrics)),
	MANY(trace_view, agent_p, agent_p[0], PRESENCE, METRICS(agent_metrics)),
};

static const struct column traced_process_columns[] = {
	ONE(traced_process, id.pid, UINT, KEY),
	ONE(traced_process, id.start_ticks, UINT, KEY),
	ONE(traced_process, ns_pid, UINT),
	ONE(traced_process, comm, TEXT),
	ONE(traced_process, first_real_ns, INT),
	ONE(traced_process, exited, UINT),
	ONE(traced_process, has_series, UINT),
	ONE(traced_process, incomplete, UINT),
	ONE(traced_process, unplaced, UINT, BELOW(TRACED_UNPLACEDS)),
	ONE(traced_process, overhead, REAL),
	ONE(traced_process, threads_p, PRESENCE),
	ONE(traced_process, threads_n, UINT, BELOW(TRACED_THREADS_MAX + 1)),
	EACH(traced_process, threads, tid, UINT),
	EACH(traced_process, threads, bytes, UINT),
	ONE(traced_process, other_threads_bytes, UINT),
	ONE(traced_process, leaked_p, PRESENCE),
	ONE(traced_process, leaked_allocations, UINT),
	ONE(traced_process, leaked_bytes, UINT),
	ONE(traced_process, leaked_n, UINT, BELOW(TRACED_SIZES_MAX + 1)),
	EACH(traced_process, leaked, bytes, UINT),
	EACH(traced_process, leaked, allocations, UINT),
};

static const struct column traced_device_columns[] = {
	ONE(traced_device, process, UINT, OF(TRACED_PROCESSES), KEY),
	ONE(traced_device, uuid, TEXT, KEY),
	MANY(traced_device, v, v[0], REAL, METRICS(traced_metrics)),
	MANY(traced_device, p, p[0], PRESENCE, METRICS(traced_metrics)),
};

static const struct column call_columns[] = {
	ONE(traced_call, process, UINT, OF(TRACED_PROCESSES), OR(UINT32_MAX), KEY),
	ONE(traced_call, api, STRING, KEY),
	ONE(traced_call, layer, STRING, KEY),
	ONE(traced_call, library, STRING, KEY),
	ONE(traced_call, count, UINT),
	ONE(traced_call, nested, UINT),
	ONE(traced_call, timed, UINT),
	ONE(traced_call, errors, UINT),
	ONE(traced_call, bytes, UINT),
	ONE(traced_call, seconds, REAL),
	ONE(traced_call, p50_ns, REAL),
	ONE(traced_call, p95_ns, REAL),
	ONE(traced_call, p99_ns, REAL),
	ONE(traced_call, errors_first, UINT),
	ONE(traced_call, errors_n, UINT),
	MANY(traced_call, within, within[0], UINT),
	ONE(traced_call, has_series, UINT),
};

static const struct column error_columns[] = {
	ONE(traced_error, code, INT),
	ONE(traced_error, count, UINT),
	ONE(traced_error, words, STRING),
};

static const struct column total_columns[] = {
	ONE(traced_total, uuid, TEXT, KEY),
	MANY(traced_total, v, v[0], REAL, METRICS(traced_metrics)),
	MANY(traced_total, p, p[0], PRESENCE, METRICS(traced_metrics)),
	MANY(traced_total, other, other[0], REAL, METRICS(traced_metrics)),
	ONE(traced_total, gaps.count, UINT),
	MANY(traced_total, gaps.within, gaps.within[0], UINT),
	ONE(traced_total, gaps.seconds, REAL),
	ONE(traced_total, kernels.launches, UINT),
	ONE(traced_total, kernels.threads, UINT),
	ONE(traced_total, kernels.seconds, REAL),
	ONE(traced_total, kernels_other.launches, UINT),
	ONE(traced_total, kernels_other.threads, UINT),
	ONE(traced_total, kernels_other.seconds, REAL),
};

static const struct column kernel_columns[] = {
	ONE(stored_kernel, launches.process, UINT, OF(TRACED_PROCESSES), KEY),
	ONE(stored_kernel, launches.uuid, TEXT, KEY),
	ONE(stored_kernel, symbol, STRING, KEY),
	ONE(stored_kernel, name, STRING),
	ONE(stored_kernel, brief, STRING),
	ONE(stored_kernel, file, STRING),
	ONE(stored_kernel, offset, UINT, KEY),
	ONE(stored_kernel, source, UINT, BELOW(KERNEL_SOURCES)),
	ONE(stored_kernel, sm, UINT, KEY),
	ONE(stored_kernel, variant, UINT),
	ONE(stored_kernel, jit, UINT),
	MANY(stored_kernel, figures, figures[0], INT),
	ONE(stored_kernel, launches.p, PRESENCE),
	ONE(stored_kernel, launches.all.launches, UINT),
	ONE(stored_kernel, launches.all.threads, UINT),
	ONE(stored_kernel, launches.all.seconds, REAL),
	ONE(stored_kernel, launches.has_series, UINT),
	ONE(stored_kernel, launches.series.launches, UINT),
	ONE(stored_kernel, launches.series.threads, UINT),
	ONE(stored_kernel, launches.series.seconds, REAL),
	ONE(stored_kernel, launches.shapes_n, UINT, BELOW(TRACED_SHAPES_MAX + 1)),
	EACH(stored_kernel, launches.shapes, grid[0], UINT),
	EACH(stored_kernel, launches.shapes, grid[1], UINT),
	EACH(stored_kernel, launches.shapes, grid[2], UINT),
	EACH(stored_kernel, launches.shapes, block[0], UINT),
	EACH(stored_kernel, launches.shapes, block[1], UINT),
	EACH(stored_kernel, launches.shapes, block[2], UINT),
	EACH(stored_kernel, launches.shapes, shared_bytes, UINT),
	EACH(stored_kernel, launches.shapes, launches, UINT),
	ONE(stored_kernel, launches.other_shapes, UINT),
	ONE(stored_kernel, launches.occupancy_known, UINT),
	ONE(stored_kernel, launches.occupancy.blocks, UINT),
	ONE(stored_kernel, launches.occupancy.warps, UINT),
	ONE(stored_kernel, launches.occupancy.warps_max, UINT),
	ONE(stored_kernel, launches.occupancy.ratio, REAL),
	ONE(stored_kernel, launches.occupancy.limiter, UINT, BELOW(OCCUPANCY_LIMITERS)),
};

static const struct column operator_columns[] = {
	ONE(traced_operator, name, TEXT, KEY),
	ONE(traced_operator, has_series, UINT),
	MANY(traced_operator, v, v[0], REAL, METRICS(operator_metrics)),
	MANY(traced_operator, p, p[0], PRESENCE, METRICS(operator_metrics)),
};

static const struct column process_operator_columns[] = {
	ONE(process_operator, process, UINT, OF(TRACED_PROCESSES), KEY),
	ONE(process_operator, op.name, TEXT, KEY),
	MANY(process_operator, op.v, op.v[0], REAL, METRICS(operator_metrics)),
	MANY(process_operator, op.p, op.p[0], PRESENCE, METRICS(operator_metrics)),
};

struct traced_workload {
	uint16_t name;
};
static const struct column traced_workload_columns[] = {
	ONE(traced_workload, name, UINT, OF(WORKLOAD_NAMES), OR(READING_NONE)),
};

static const struct column workload_name_columns[] = {
	ONE(workload_name, kind, UINT, BELOW(WORKLOAD_KINDS)),
	ONE(workload_name, id, TEXT),
	ONE(workload_name, pod_uid, TEXT),
	ONE(workload_name, user, UINT),
};

static const struct column traced_use_columns[] = {
	ONE(traced_use, name, UINT, OF(WORKLOAD_NAMES), OR(READING_NONE), KEY),
	ONE(traced_use, uuid, TEXT, KEY),
	ONE(traced_use, live, UINT),
	MANY(traced_use, v, v[0], REAL, METRICS(traced_metrics)),
	MANY(traced_use, p, p[0], PRESENCE, METRICS(traced_metrics)),
};

static const struct column analysis_columns[] = {
	MANY(findings, evidence, evidence[0], STRING),
	ONE(findings, real_offset_ns, INT),
	ONE(findings, events, UINT),
	ONE(findings, late, UINT),
	ONE(findings, beyond, UINT),
};

static const struct column finding_rule_columns[] = {
	ONE(finding_rule, name, STRING, KEY), ONE(finding_rule, title, STRING),
	ONE(finding_rule, remedy, STRING),    ONE(finding_rule, missing, UINT),
	ONE(finding_rule, active, UINT),
};

static const struct column finding_columns[] = {
	ONE(finding, rule, UINT, OF(FINDING_RULES), KEY),
	ONE(finding, active, UINT),
	ONE(finding, id, UINT),
	ONE(finding, cause, UINT),
	ONE(finding, pid, UINT, KEY),
	ONE(finding, node, TEXT),
	ONE(finding, device, TEXT, KEY),
	ONE(finding, subject, TEXT, KEY),
	ONE(finding, communicator, UINT),
	ONE(finding, begin_ns, UINT, KEY),
	ONE(finding, end_ns, UINT),
	ONE(finding, confidence, REAL),
	ONE(finding, without, UINT),
	ONE(finding, values_n, UINT, BELOW(FINDING_VALUES + 1)),
	EACH(finding, values, name, STRING),
	EACH(finding, values, unit, UINT, BELOW(UNIT_MAX)),
	EACH(finding, values, value, REAL),
};

#define TABLE(id_, name_, struct_, columns_, max_) \
	[STORE_##id_] = { name_, columns_, ARRAY_SIZE(columns_), sizeof(struct struct_), max_ }

const struct record_table store_tables[STORE_TABLES] = {
	TABLE(NODE, "node", snapshot, node_columns, 1),
	TABLE(SOURCES, "sources", source, source_columns, SOURCES),
	TABLE(GPUS, "gpus", entity, gpu_columns, READING_ENTITIES_MAX),
	TABLE(PROCESSES, "processes", process, process_columns, READING_PROCESSES_MAX),
	TABLE(EXITED, "exited", process, exited_columns, READING_PROCESSES_MAX),
	TABLE(WORKLOADS, "workloads", workload, workload_columns, 8192),
	TABLE(WORKLOAD_OWNERS, "workload_owners", owner, owner_columns, 8192),
	TABLE(ALLOCATED, "allocated", allocated, allocated_columns, 8192),
	TABLE(JOBS, "jobs", job, job_columns, 8192),
	TABLE(XIDS, "xids", xid, xid_columns, 1024),
	TABLE(XID_EVENTS, "xid_events", xid_event, xid_event_columns, 1024),
	TABLE(SLOT_SOURCES, "slot_sources", slot_sources, slot_source_columns, READING_ENTITIES_MAX),
	TABLE(OWNERS, "owners", owner, owner_columns, OWNERS_MAX *SOURCES),
	TABLE(TRACE, "trace", trace_view, trace_columns, 1),
	TABLE(TRACED_PROCESSES, "traced_processes", traced_process, traced_process_columns, 4096),
	TABLE(TRACED_DEVICES, "traced_devices", traced_device, traced_device_columns, 8192),
	TABLE(TRACED_CALLS, "calls", traced_call, call_columns, 16384),
	TABLE(ALL_CALLS, "all_calls", traced_call, call_columns, 4096),
	TABLE(TRACED_ERRORS, "errors", traced_error, error_columns, 16384),
	TABLE(TRACED_TOTALS, "totals", traced_total, total_columns, READING_ENTITIES_MAX + 1),
	TABLE(KERNELS, "kernels", stored_kernel, kernel_columns, 512),
	TABLE(OPERATORS, "operators", traced_operator, operator_columns, 512),
	TABLE(PROCESS_OPERATORS, "process_operators", process_operator, process_operator_columns, 4096),
	TABLE(TRACED_WORKLOADS, "traced_workloads", traced_workload, traced_workload_columns, 4096),
	TABLE(WORKLOAD_NAMES, "workload_names", workload_name, workload_name_columns, 8192),
	TABLE(NAME_OWNERS, "name_owners", owner, owner_columns, 8192),
	TABLE(TRACED_USES, "traced_uses", traced_use, traced_use_columns, 8192),
	TABLE(ANALYSIS, "analysis", findings, analysis_columns, 1),
	TABLE(FINDING_RULES, "finding_rules", finding_rule, finding_rule_columns, 256),
	TABLE(FINDINGS, "findings", finding, finding_columns, 1024),
};

/* ---- fields ---- */

static const struct metric *slot_metric(const struct column *column, unsigned slot)
{
	for (uint16_t i = 0; i < column->metrics_n; i++)
		if (slot >= column->metrics[i].slot &&
		    slot < (unsigned)column->metrics[i].slot + column->metrics[i].count)
			return &column->metrics[i];
	return NULL;
}

void field_name(const struct field *field, char buf[static FIELD_NAME])
{
	const struct column *column = field->column;
	const struct metric *m = column->metrics ? slot_metric(column, field->index) : NULL;

	if (m)
		snprintf(buf, FIELD_NAME, "%s.%s[%u]", column->name, m->id, field->index - m->slot);
	else if (column->count > 1)
		snprintf(buf, FIELD_NAME, "%s[%u]", column->name, field->index);
	else
		snprintf(buf, FIELD_NAME, "%s", column->name);
}

static struct field make_field(const struct column *column, uint16_t i)
{
	struct field field = {
		.offset = column->offset + i * column->stride,
		.size = column->size,
		.kind = column->kind,
		.key = column->key,
		.column = column,
		.index = i,
	};
	char name[FIELD_NAME];

	field_name(&field, name);
	field.hash = hash_bytes(name, strlen(name));
	return field;
}

static int add_fields(struct fields *fields, const struct record_table *table)
{
	for (uint32_t c = 0; c < table->columns_n; c++)
		fields->n += table->columns[c].count;
	fields->list = calloc(fields->n, sizeof(*fields->list));
	if (!fields->list)
		return -ENOMEM;
	fields->n = 0;
	for (uint32_t c = 0; c < table->columns_n; c++) {
		const struct column *column = &table->columns[c];

		for (uint16_t i = 0; i < column->count; i++)
			fields->list[fields->n++] = make_field(column, i);
	}
	return 0;
}

int fields_new(struct fields ret_fields[STORE_TABLES])
{
	int r = 0;

	memset(ret_fields, 0, STORE_TABLES * sizeof(*ret_fields));
	for (unsigned t = 0; r == 0 && t < STORE_TABLES; t++)
		r = add_fields(&ret_fields[t], &store_tables[t]);
	if (r < 0)
		fields_done(ret_fields);
	return r;
}

void fields_done(struct fields fields[STORE_TABLES])
{
	for (unsigned t = 0; t < STORE_TABLES; t++)
		free(fields[t].list);
	memset(fields, 0, STORE_TABLES * sizeof(*fields));
}

/* ---- layouts ---- */

int layout_write(const struct fields fields[STORE_TABLES], struct strbuf *out)
{
	char name[FIELD_NAME];

	for (unsigned t = 0; t < STORE_TABLES; t++) {
		strbuf_addf(out, "%s\n", store_tables[t].name);
		for (uint32_t f = 0; f < fields[t].n; f++) {
			field_name(&fields[t].list[f], name);
			strbuf_addf(out, " %u %s\n", fields[t].list[f].kind, name);
		}
	}
	return out->failed ? -ENOMEM : 0;
}

static int find_table(const char *name)
{
	for (int t = 0; t < STORE_TABLES; t++)
		if (STRV_EQ(store_tables[t].name, name))
			return t;
	return -1;
}

/* @guess: where it is if nothing has changed. */
static int32_t find_field(const struct fields *fields, const char *name, uint32_t guess)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	char ours[FIELD_NAME];

	for (uint32_t i = 0; i < fields->n; i++) {
		uint32_t at = (guess + i) % fields->n;

		if (fields->list[at].hash != hash)
			continue;
		field_name(&fields->list[at], ours);
		if (STRV_EQ(ours, name))
			return (int32_t)at;
	}
	return -1;
}

/* A text and a number are told apart; how a number is stored is known from the layout. */
static bool kinds_agree(unsigned a, unsigned b)
{
	bool a_text = a == COLUMN_TEXT || a == COLUMN_STRING, b_text = b == COLUMN_TEXT || b == COLUMN_STRING;

	return a_text == b_text && (a == COLUMN_REAL) == (b == COLUMN_REAL);
}

static int add_table(struct stored_layout *layout, const char *name)
{
	struct stored_table *tables;

	if (layout->n >= 4 * STORE_TABLES)
		return -EBADMSG;
	tables = reallocarray(layout->tables, layout->n + 1, sizeof(*tables));
	if (!tables)
		return -ENOMEM;
	layout->tables = tables;
	tables[layout->n] = (struct stored_table){ .table = find_table(name) };
	for (uint32_t i = 0; i < layout->n; i++)
		if (tables[i].table >= 0 && tables[i].table == tables[layout->n].table)
			return -EBADMSG;
	layout->n++;
	return 0;
}

static int add_field(const struct fields fields[STORE_TABLES], struct stored_layout *layout, unsigned kind,
		     const char *name)
{
	struct stored_table *table = layout->n ? &layout->tables[layout->n - 1] : NULL;
	int32_t *field;
	uint8_t *kinds;

	if (!table || table->n >= FIELDS_MAX || kind > COLUMN_PRESENCE)
		return -EBADMSG;
	field = reallocarray(table->field, table->n + 1, sizeof(*field));
	if (field)
		table->field = field;
	kinds = field ? reallocarray(table->kind, table->n + 1, sizeof(*kinds)) : NULL;
	if (!kinds)
		return -ENOMEM;
	table->kind = kinds;
	kinds[table->n] = (uint8_t)kind;
	field[table->n] = -1;
	if (table->table >= 0) {
		int32_t found = find_field(&fields[table->table], name, table->n);

		if (found >= 0 && kinds_agree(kind, fields[table->table].list[found].kind))
			field[table->n] = found;
	}
	table->n++;
	return 0;
}

static int read_line(const struct fields fields[STORE_TABLES], const char *line, size_t n,
		     struct stored_layout *layout)
{
	char text[FIELD_NAME + 8];

	if (n == 0 || n >= sizeof(text) || memchr(line, '\0', n))
		return -EBADMSG;
	memcpy(text, line, n);
	text[n] = '\0';
	if (text[0] != ' ')
		return add_table(layout, text);
	if (n < 4 || text[1] < '0' || text[1] > '9' || text[2] != ' ')
		return -EBADMSG;
	return add_field(fields, layout, (unsigned)(text[1] - '0'), text + 3);
}

int layout_read(const struct fields fields[STORE_TABLES], const char *text, size_t n,
		struct stored_layout *ret_layout)
{
	struct stored_layout layout = { 0 };
	const char *end = text + n;
	int r = n > 0 ? 0 : -EBADMSG;

	while (r == 0 && text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));

		if (!line_end) {
			r = -EBADMSG;
			break;
		}
		r = read_line(fields, text, (size_t)(line_end - text), &layout);
		text = line_end + 1;
	}
	if (r < 0)
		layout_done(&layout);
	else
		*ret_layout = layout;
	return r;
}

void layout_done(struct stored_layout *layout)
{
	for (uint32_t i = 0; i < layout->n; i++) {
		free(layout->tables[i].field);
		free(layout->tables[i].kind);
	}
	free(layout->tables);
	*layout = (struct stored_layout){ 0 };
}
