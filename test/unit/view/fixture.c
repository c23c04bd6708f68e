// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define GIB (1024.0 * 1024 * 1024)

static const int64_t now_real_ns = INT64_C(1790000000) * SECOND + 250000000; /* 2026-09-21T14:13:20.250Z */
static const int64_t now_boot_ns = INT64_C(86400) * SECOND;

enum { JOBS = 2 };

static void *array(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (!p)
		abort();
	return p;
}

static struct snapshot *snapshot_new(uint32_t entities, uint32_t processes, uint32_t exited,
				     uint32_t workloads, uint32_t xids)
{
	struct snapshot *s = array(1, sizeof(*s));

	s->seq = 1;
	s->real_ns = now_real_ns;
	s->boot_ns = now_boot_ns;
	s->fresh = true;
	s->period_ns = SECOND;
	strcpy(s->hostname, "node-1");
	s->entities = array(entities, sizeof(*s->entities));
	s->processes = array(processes, sizeof(*s->processes));
	s->exited = array(exited, sizeof(*s->exited));
	s->workloads = array(workloads, sizeof(*s->workloads));
	s->jobs = array(JOBS, sizeof(*s->jobs));
	s->xids = array(xids, sizeof(*s->xids));
	s->xid_events = array(xids, sizeof(*s->xid_events));
	s->allocated = array(workloads, sizeof(*s->allocated));
	return s;
}

void fixture_join(struct snapshot *s)
{
	free(s->traced_places);
	free(s->traced_workloads);
	s->traced_places = array(s->trace->devices_n, sizeof(*s->traced_places));
	s->traced_workloads = array(s->trace->processes_n, sizeof(*s->traced_workloads));
	for (uint32_t i = 0; i < s->trace->processes_n; i++)
		s->traced_workloads[i] = READING_NONE;
	snapshot_join_trace(s);
}

void fixture_free(struct snapshot *s)
{
	if (!s)
		return;
	free(s->entities);
	free(s->processes);
	free(s->exited);
	free(s->workloads);
	free(s->jobs);
	free(s->xids);
	free(s->xid_events);
	free(s->allocated);
	free(s->traced_places);
	free(s->traced_workloads);
	free(s->workload_names);
	free(s->traced_uses);
	trace_view_unref(s->trace);
	nccl_measurements_unref(s->measured);
	gpu_times_unref(s->gpu_times);
	free(s);
}

static struct entity *add_entity(struct snapshot *s, uint32_t index, int64_t age_ns)
{
	struct entity *e = &s->entities[s->entities_n++];
	struct reading_entity *id = &e->id;

	snprintf(id->uuid, sizeof(id->uuid), "GPU-%08x-0000-4000-8000-0000000000%02x", 0xabc00000 + index,
		 index);
	strcpy(id->name, "NVIDIA H100 80GB HBM3");
	snprintf(id->pci_bus_id, sizeof(id->pci_bus_id), "00000000:%02X:00.0", 0x1b + index * 0x10);
	snprintf(id->serial, sizeof(id->serial), "16530%08u", index);
	strcpy(id->vbios, "96.00.74.00.0D");
	strcpy(id->architecture, "hopper");
	strcpy(id->compute_capability, "9.0");
	id->index = index;
	id->minor = index;
	id->numa_node = (int32_t)(index / 4);
	id->gi = id->ci = UINT32_MAX;
	id->parent = READING_NONE;
	id->process_list = id->process_util = PRESENCE_PRESENT;
	e->present = true;
	e->numbers_from = 1u << SOURCE_NVML;
	e->sampled_boot_ns = now_boot_ns - age_ns;
	e->sampled_real_ns = now_real_ns - age_ns;
	return e;
}

static struct entity *add_instance(struct snapshot *s, uint16_t parent, uint32_t gi, uint32_t ci,
				   const char *profile)
{
	struct entity *e = add_entity(s, s->entities[parent].id.index, SECOND / 4);

	e->id.parent = parent;
	e->id.gi = gi;
	e->id.ci = ci;
	e->id.process_util = PRESENCE_UNSUPPORTED;
	snprintf(e->id.mig_uuid, sizeof(e->id.mig_uuid), "MIG-%08x-1111-4000-8000-00000000000%x", gi, ci);
	snprintf(e->id.mig_profile, sizeof(e->id.mig_profile), "%s", profile);
	return e;
}

static void set(struct entity *e, enum gpu_slot slot, double v)
{
	e->id.v[slot] = v;
	e->id.p[slot] = PRESENCE_PRESENT;
}

static void set_basic(struct entity *e, double utilization)
{
	set(e, SLOT_BUSY_GPU, 1234.5678901234567 * utilization);
	set(e, SLOT_BUSY_MEMORY, 400.25);
	set(e, SLOT_OBSERVED, 86399.75);
	set(e, SLOT_UTILIZATION_GPU, utilization);
	set(e, SLOT_UTILIZATION_MEMORY, 0.29);
	set(e, SLOT_MEMORY_TOTAL, 80 * GIB);
	set(e, SLOT_MEMORY_USED, 42.5 * GIB);
	set(e, SLOT_MEMORY_FREE, 37 * GIB);
	set(e, SLOT_MEMORY_RESERVED, 0.5 * GIB);
	set(e, SLOT_POWER, 412.533);
	set(e, SLOT_POWER_LIMIT_ENFORCED, 700);
	set(e, SLOT_ENERGY, 35640000.125);
	set(e, SLOT_TEMPERATURE, 57);
	set(e, SLOT_CLOCK_SM, 1980e6);
	set(e, SLOT_EVENT_REASONS, 4);
	set(e, SLOT_EVENT_REASON_GPU_IDLE, 0);
	set(e, SLOT_EVENT_REASON_SW_POWER_CAP, 1);
	set(e, SLOT_THROTTLE_POWER, 12.000000345);
	e->id.stamps.offset_ns = -192 * SECOND / 1000;
	e->id.stamps.error_ns = 1002000;
	e->id.stamps.at_ns[STAMPED_UTILIZATION_GPU] = e->sampled_boot_ns - 1030 * (SECOND / 1000);
	e->stamped_boot_ns = e->sampled_boot_ns;
	e->stamped_real_ns = e->sampled_real_ns;
	e->samples = 86400;
	e->percent_sum[0] = 86400 * 57.0;
	e->percent_sum[1] = 86400 * 29.0;
	e->memory_kib_sum = 86400 * 42.5 * 1024 * 1024;
}

static struct process *add_process(struct snapshot *s, uint16_t entity, uint32_t pid, const char *comm)
{
	struct process *process = &s->processes[s->processes_n++];

	*process = (struct process){
		.id.pid = pid,
		.first_real_ns = now_real_ns - 600 * SECOND,
		.last_real_ns = now_real_ns - SECOND / 4,
		.uid = 0,
		.ns_pid = 17,
		.entity = entity,
		.workload = READING_NONE,
		.job = JOB_NONE,
		.rank = { RANK_UNKNOWN, RANK_UNKNOWN, RANK_UNKNOWN },
		.types = PROCESS_TYPE_COMPUTE,
		.has_series = true,
		.samples = 600,
		.percent_sum = { 600 * 25.0, 600 * 7.5 },
		.memory_kib_sum = 600 * 1024.0 * 1024,
	};
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	s->entities[entity].processes_live++;
	return process;
}

static void set_process(struct process *process, enum process_metric row, double v, double series)
{
	process->v[row] = v;
	process->series[row] = series;
	process->p[row] = PRESENCE_PRESENT;
}

static void set_process_basic(struct process *process, double busy, double memory)
{
	set_process(process, PROCESS_BUSY, busy, busy * 0.75);
	set_process(process, PROCESS_BUSY_MEMORY, busy / 4, busy / 8);
	set_process(process, PROCESS_OBSERVED, 600, 450);
	set_process(process, PROCESS_UTILIZATION, busy / 600, 0);
	set_process(process, PROCESS_MEMORY, memory, 0);
	set_process(process, PROCESS_MEMORY_PEAK, memory * 1.5, 0);
	set_process(process, PROCESS_MEMORY_BYTE_SECONDS, memory * 600, memory * 450);
	for (unsigned i = 0; i < RECENTS; i++) {
		process->recent[i].seconds = recent_seconds[i] + 5.5;
		process->recent[i].v[RECENT_UTILIZATION] = 0.25 * (i + 1);
		process->recent[i].p[RECENT_UTILIZATION] = PRESENCE_PRESENT;
		process->recent[i].v[RECENT_MEMORY] = memory;
		process->recent[i].p[RECENT_MEMORY] = PRESENCE_PRESENT;
	}
}

static void add_exited(struct snapshot *s, uint16_t entity, uint32_t pid, uint64_t seq)
{
	struct process *process = add_process(s, entity, pid, "ended");
	struct process *record = &s->exited[s->exited_n++];

	set_process_basic(process, 90, GIB);
	*record = *process;
	record->exited = true;
	record->has_series = false;
	record->exit_seq = seq;
	record->types = PROCESS_TYPE_GRAPHICS;
	s->processes_n--;
	s->entities[entity].processes_live--;
}

static struct workload *add_workload(struct snapshot *s, uint16_t entity, enum workload_kind kind,
				     const char *id)
{
	struct workload *w = &s->workloads[s->workloads_n++];

	w->kind = kind;
	w->job = JOB_NONE;
	w->uid = UINT32_MAX;
	w->entity = entity;
	w->live = 1;
	w->exited = 2;
	snprintf(w->id, sizeof(w->id), "%s", id);
	w->v[PROCESS_BUSY] = 300.5;
	w->p[PROCESS_BUSY] = PRESENCE_PRESENT;
	w->v[PROCESS_MEMORY] = 2 * GIB;
	w->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	return w;
}

/* The last report; each has come from other sources, with more or less. */
static void add_xid_event(struct snapshot *s, const struct xid *xid)
{
	uint32_t n = s->xid_events_n++;
	struct xid_event *event = &s->xid_events[n];

	event->number = 3 + n;
	event->entity = xid->entity;
	event->code = xid->code;
	event->gi = n % 2 ? UINT32_MAX : 1;
	event->ci = n % 2 ? UINT32_MAX : 0;
	event->sources = n % 2 ? 1u << SOURCE_NVML : 1u << SOURCE_NVML | 1u << SOURCE_KMSG;
	event->real_ns = xid->last_real_ns;
	memcpy(event->pci_bus_id, xid->pci_bus_id, sizeof(event->pci_bus_id));
	if (n % 2 == 0)
		strcpy(event->text, "pid=1234, name=python, \"a\" \xc3\xa9");
}

static void add_xid(struct snapshot *s, uint16_t entity, uint32_t code, uint64_t count, int64_t ago_s)
{
	struct xid *xid = &s->xids[s->xids_n++];

	xid->entity = entity;
	xid->code = code;
	xid->count = count;
	xid->last_real_ns = now_real_ns - ago_s * SECOND;
	snprintf(xid->pci_bus_id, sizeof(xid->pci_bus_id), "%s",
		 entity == READING_NONE ? "00000000:E1:00.0" : s->entities[entity].id.pci_bus_id);
	add_xid_event(s, xid);
}

static void add_small_gpus(struct snapshot *s)
{
	struct entity *e = add_entity(s, 0, SECOND / 4);

	set_basic(e, 0.57);
	e->id.p[SLOT_ENERGY] |= PRESENCE_ESTIMATED;
	e->id.p[SLOT_FAN_SPEED] = PRESENCE_UNSUPPORTED;
	e->id.p[SLOT_TEMPERATURE_MEMORY] = PRESENCE_REJECTED;
	e->id.p[SLOT_PCIE_REPLAY] = PRESENCE_NO_PERMISSION;
	set(e, SLOT_NVLINK_TX_RATE, 1024000 * 100.0);
	set(e, SLOT_NVLINK_RX_RATE, 1024000 * 50.0);
	set(e, SLOT_NVLINK_LINK_UP, 1);
	set(e, SLOT_NVLINK_LINK_UP + 2, 0);
	e->id.p[SLOT_NVLINK_LINK_UP + 1] = PRESENCE_FAILED;
	set(e, SLOT_NVLINK_LINK_BER_EFFECTIVE, 1.5e-12);
	set(e, SLOT_ECC_CORRECTED_ALL, 3);
	set(e, SLOT_PROCESSES_COMPUTE, 4);
	set(e, SLOT_PROCESSES_GRAPHICS, 0);
	e->process_total[PROCESS_BUSY] = 4321.125;
	e->health[HEALTH_ALLOCATABLE] = HEALTH_BAD;
	e->health[HEALTH_POD_STATUS] = HEALTH_GOOD;
	e->process_other[PROCESS_BUSY] = 17.25;

	e = add_entity(s, 1, 42 * SECOND);
	strcpy(e->id.name, "GPU \"one\" \\ two\nthree \xff\xfe \xe2\x82\xac@#");
	e->id.serial[0] = e->id.vbios[0] = '\0';
	e->id.minor = UINT32_MAX;
	e->id.numa_node = -1;
	e->stale = true;
	set_basic(e, 1);
	e->id.process_util = PRESENCE_NO_PERMISSION;
}

static void add_small_mig(struct snapshot *s)
{
	struct entity *e = add_entity(s, 2, SECOND / 4);

	set_basic(e, 0);
	e->id.p[SLOT_BUSY_GPU] = e->id.p[SLOT_UTILIZATION_GPU] = PRESENCE_UNSUPPORTED;
	e->id.p[SLOT_BUSY_MEMORY] = e->id.p[SLOT_UTILIZATION_MEMORY] = PRESENCE_UNSUPPORTED;
	e->id.process_util = PRESENCE_UNSUPPORTED;
	e->samples = 0;
	e->percent_sum[0] = e->percent_sum[1] = 0;
	set(e, SLOT_MIG_MODE_CURRENT, 1);
	e = add_instance(s, 2, 1, 0, "1g.10gb");
	set(e, SLOT_MEMORY_TOTAL, 10 * GIB);
	set(e, SLOT_MEMORY_USED, 2.25 * GIB);
	set(e, SLOT_BUSY_GPU, 100);
	set(e, SLOT_OBSERVED, 400);
	set(e, SLOT_UTILIZATION_GPU, 0.25);
	e->id.p[SLOT_UTILIZATION_GPU] |= PRESENCE_ESTIMATED;
	set(e, SLOT_SM_ACTIVE, 0.125);
	e = add_instance(s, 2, 2, 0, "1c.2g.20gb");
	set(e, SLOT_MEMORY_TOTAL, 20 * GIB);
	e = add_instance(s, 2, 2, 1, "1c.2g.20gb");
	set(e, SLOT_MEMORY_TOTAL, 20 * GIB);
	e = add_instance(s, 2, 9, 0, "1g.10gb");
	e->present = false;
	set(e, SLOT_BUSY_GPU, 5);
}

static void add_small_processes(struct snapshot *s)
{
	struct process *process = add_process(s, 0, 1001, "train \"a\\b\"\n");

	set_process_basic(process, 150, 8 * GIB);
	process->workload = 0;
	process = add_process(s, 0, 1002, "bad\xff\xc3(\x1b[31mred\xe2\x80\xae");
	set_process_basic(process, 30.0625, 1.5 * GIB);
	process->types = PROCESS_TYPE_COMPUTE | PROCESS_TYPE_GRAPHICS;
	process->uid = 4000000000u;
	process->workload = 1;
	process->job = s->workloads[1].job;
	process->rank = (struct rank){ 3, 1, 8 };
	process = add_process(s, 0, 1003, "small");
	set_process_basic(process, 3, 0.5 * GIB);
	process->has_series = false;
	process->types = PROCESS_TYPE_MPS;
	process->job = 1;
	process = add_process(s, 0, 1004, "");
	set_process(process, PROCESS_MEMORY, 0.25 * GIB, 0);
	process->p[PROCESS_BUSY] = PRESENCE_NO_PERMISSION;
	process->has_series = false;
	process->uid = UINT32_MAX;
	process = add_process(s, 3, 2001, "in-mig");
	set_process(process, PROCESS_MEMORY, 2 * GIB, 0);
	process->p[PROCESS_BUSY] = PRESENCE_UNSUPPORTED;
	process->workload = 2;
	add_exited(s, 0, 900, 1);
	add_exited(s, 3, 901, 2);
}

/* A container whose names are all known, and a pod. */
static const struct owner train = { .namespace = "ml", .pod = "train-0", .container = "main" };
static const struct owner infer = { .namespace = "serve", .pod = "infer-6d5f8c7b9-x2x7k" };

/* One that a cgroup tells, and one that a process claims to be of. */
static const struct job jobs[JOBS] = {
	{ .manager = JOB_MANAGER_SLURM,
	  .id = "4711",
	  .step = "0",
	  .name = "train \"llm\"\n",
	  .user = "alice" },
	{ .manager = JOB_MANAGER_LSF, .id = "2022[3]", .run = "r-17", .group = "sweep", .claimed = true },
};

static void add_small_workloads(struct snapshot *s)
{
	struct workload *w = add_workload(s, 0, WORKLOAD_CONTAINER,
					  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");

	strcpy(w->pod_uid, "2f6f1ad2-0f5c-4a8e-9a39-0f1e2d3c4b5a");
	w->owner = &train;
	memcpy(s->jobs, jobs, sizeof(jobs));
	s->jobs_n = JOBS;
	w = add_workload(s, 0, WORKLOAD_JOB, "4711");
	w->job = 0;
	w->uid = 4000000000u;
	add_workload(s, 3, WORKLOAD_UNIT, "ollama.service");
	add_workload(s, 7, WORKLOAD_POD, "9d1b6c1e-6c1b-4d3f-8d8f-1c2b3a495867")->owner = &infer;
}

static struct allocated *add_allocated(struct snapshot *s, uint16_t entity, enum workload_kind kind,
				       const char *id, enum source_id source, double seconds)
{
	struct allocated *a = &s->allocated[s->allocated_n++];

	*a = (struct allocated){ .kind = kind,
				 .source = source,
				 .count = 1,
				 .entity = entity,
				 .since_real_ns = now_real_ns - (int64_t)seconds * SECOND,
				 .seconds = seconds,
				 .idle_seconds = seconds / 4,
				 .idle_p = PRESENCE_PRESENT };
	snprintf(a->id, sizeof(a->id), "%s", id);
	strcpy(a->resource, source == SOURCE_KUBELET ? "nvidia.com/gpu.shared" : "NVIDIA_VISIBLE_DEVICES");
	return a;
}

/* Two share a GPU, one of them unused; a job whose idle time is not known; some that did not fit. */
static void add_small_allocations(struct snapshot *s)
{
	struct allocated *a =
		add_allocated(s, 0, WORKLOAD_CONTAINER, s->workloads[0].id, SOURCE_KUBELET, 1200);

	strcpy(a->pod_uid, s->workloads[0].pod_uid);
	strcpy(a->namespace, "ml");
	strcpy(a->pod, "train-0");
	strcpy(a->container, "main");
	a->slots = 3;
	a->processes = 1;
	s->workloads[0].allocated = 1;
	a = add_allocated(s, 0, WORKLOAD_CONTAINER, "", SOURCE_KUBELET, 7200.5);
	strcpy(a->namespace, "ml");
	strcpy(a->pod, "notebook-\"7\"");
	strcpy(a->container, "jupyter");
	a->slots = 1;
	a->idle_seconds = a->seconds;
	a->idle_p |= PRESENCE_ESTIMATED;
	a = add_allocated(s, 1, WORKLOAD_JOB, "4712", SOURCE_JOBS, 60);
	a->claimed = true;
	a->idle_p = PRESENCE_ABSENT;
	a->stale = true;
	add_allocated(s, 3, WORKLOAD_CONTAINER, "fedcba9876543210", SOURCE_FILES, 30)->estimated = true;
	a = add_allocated(s, 7, WORKLOAD_NONE, "other", SOURCE_FILES, 90);
	a->count = 2;
	a->resource[0] = '\0';
	a->idle_p = PRESENCE_ABSENT;
}

/*
 * Without pressure: this kernel has none. A disk that has done nothing, and one whose busy time makes no
 * sense.
 */
static void add_small_host(struct host *host)
{
	host->read = true;
	for (unsigned row = 0; row < HOST_METRICS; row++) {
		host->p[row] = PRESENCE_PRESENT;
		host->v[row] = row;
	}
	for (unsigned row = HOST_PRESSURE_CPU_SOME; row <= HOST_PRESSURE_IO_FULL; row++)
		host->p[row] = PRESENCE_UNSUPPORTED;
	host->v[HOST_CPU_USER] = 8123.07;
	host->v[HOST_MEMORY_TOTAL] = 1024 * GIB;
	host->v[HOST_SWAP_TOTAL] = host->v[HOST_SWAP_USED] = 0;
	host->v[HOST_DISKS_LEFT_OUT] = 0;
	host->v[HOST_INTERFACES_LEFT_OUT] = 240;
	host->devices[HOST_DISKS].n = 2;
	strcpy(host->devices[HOST_DISKS].list[0].name, "nvme0n1");
	strcpy(host->devices[HOST_DISKS].list[1].name, "sda");
	host->devices[HOST_INTERFACES].n = 1;
	strcpy(host->devices[HOST_INTERFACES].list[0].name, "ib\"0");
	for (unsigned k = 0; k < HOST_LISTS; k++)
		for (uint32_t i = 0; i < host->devices[k].n; i++)
			memset(host->devices[k].list[i].p, PRESENCE_PRESENT, host_lists[k].n);
	host->devices[HOST_DISKS].list[0].v[DISK_READ_BYTES] = 3 * GIB;
	host->devices[HOST_DISKS].list[0].v[DISK_BUSY] = 4294967.298;
	host->devices[HOST_DISKS].list[1].p[DISK_BUSY] = PRESENCE_FAILED;
	host->devices[HOST_INTERFACES].list[0].v[INTERFACE_SENT_BYTES] = 9007199254740992.0;
}

/* One whose GPU is another one's, too, and one that cannot be reached. */
static void add_small_servers(struct servers *servers)
{
	struct inference_server *read = &servers->list[0], *elsewhere = &servers->list[1];

	servers->read = true;
	servers->n = 2;
	servers->left_out = 3;
	*read = (struct inference_server){
		.id = { 4711, 0 }, .uid = 1000, .kind = SERVER_VLLM, .state = SERVER_STATE_READ, .port = 8000
	};
	for (unsigned row = 0; row < SERVER_METRICS; row++) {
		read->v[row] = row + 0.5;
		read->p[row] = PRESENCE_PRESENT;
	}
	read->v[SERVER_TOKENS_GENERATED] = 9007199254740992.0;
	for (unsigned row = SERVER_TOLD; row < SERVER_METRICS; row++)
		read->p[row] |= PRESENCE_ESTIMATED;
	read->p[SERVER_CACHE] = PRESENCE_ABSENT;
	*elsewhere = (struct inference_server){ .id = { 4712, 0 },
				      .uid = UINT32_MAX,
				      .kind = SERVER_LLAMA_CPP,
				      .state = SERVER_STATE_ELSEWHERE };
	strcpy(elsewhere->error, "a \"reason\"");
}

struct snapshot *fixture_small(void)
{
	struct snapshot *s = snapshot_new(8, 8, 8, 8, 8);
	struct entity *e;

	s->simulated = true;
	s->tags_n = 1;
	s->tags[0] = (struct node_tag){ "rack", "r2 \"u7\"" };
	strcpy(s->sources[SOURCE_NVML].driver_version, "580.95.05");
	strcpy(s->sources[SOURCE_NVML].library_version, "13.580.95.05");
	strcpy(s->sources[SOURCE_NVML].library, "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
	s->sources[SOURCE_NVML].cuda_version = 13010;
	add_small_gpus(s);
	add_small_mig(s);
	e = add_entity(s, 3, 3600 * SECOND);
	set_basic(e, 0.5);
	e->present = false;
	e->stale = true;
	e->id.lost = 1;
	add_small_workloads(s);
	add_small_allocations(s);
	add_small_processes(s);
	add_xid(s, 0, 31, 2, 100);
	add_xid(s, 0, 63, 1, 5000);
	add_xid(s, 7, 79, 1, 3600);
	add_xid(s, READING_NONE, 48, 5, 7200);
	s->gpus_unidentified = 2; /* one of them is absent */
	s->topology_n = 3;
	s->topology[0][1] = s->topology[1][0] = 6;
	s->topology_nvlinks[0][1] = s->topology_nvlinks[1][0] = 18;
	s->topology[0][2] = s->topology[2][0] = 2;
	add_small_host(&s->host);
	add_small_servers(&s->servers);
	s->rejected[GPU_TEMPERATURE_MEMORY] = 7;
	s->rejected_process[PROCESS_MEMORY] = 2;
	s->agent[AGENT_TICKS] = 86400;
	s->agent_p[AGENT_TICKS] = PRESENCE_PRESENT;
	s->agent[AGENT_SOURCE_UP_NVML] = 1;
	s->agent_p[AGENT_SOURCE_UP_NVML] = PRESENCE_PRESENT;
	s->agent[AGENT_CPU_SECONDS] = 12.5;
	s->agent_p[AGENT_CPU_SECONDS] = PRESENCE_PRESENT;
	s->agent[AGENT_RESIDENT_BYTES] = 9 * 1024 * 1024;
	s->agent_p[AGENT_RESIDENT_BYTES] = PRESENCE_PRESENT;
	return s;
}

struct snapshot *fixture_full(void)
{
	enum { GPUS = 8, PROCESSES = 64 };
	struct snapshot *s = snapshot_new(GPUS, PROCESSES, 0, PROCESSES, 0);
	uint64_t state = 1;
	char id[32];

	strcpy(s->sources[SOURCE_NVML].driver_version, "580.95.05");
	strcpy(s->sources[SOURCE_NVML].library_version, "13.580.95.05");
	s->sources[SOURCE_NVML].cuda_version = 13000;
	for (uint32_t i = 0; i < GPUS; i++) {
		struct entity *e = add_entity(s, i, SECOND / 4);

		for (unsigned slot = 0; slot < GPU_SLOTS; slot++) {
			const struct metric *m = gpu_slot_metric(slot);

			/*
			 * Half the links of an H100's successor, no fans: as a real board, and as large as
			 * one.
			 */
			if (m->index && slot - m->slot >= 18)
				continue;
			state = state * 6364136223846793005u + 1442695040888963407u;
			set(e, slot,
			    (double)(state >> 40) / (m->unit == UNIT_RATIO ? (double)(1 << 24) : 7.0));
		}
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *process = add_process(s, (uint16_t)(i / 8), 10000 + i, "python3");

		for (unsigned row = 0; row < PROCESS_METRICS; row++)
			set_process(process, row, 1e6 / (i + row + 3.0), 1e5 / (i + row + 3.0));
		process->workload = (uint16_t)i;
		snprintf(id, sizeof(id), "%u", 500 + i);
		add_workload(s, process->entity, WORKLOAD_JOB, id);
	}
	return s;
}

struct snapshot *fixture_busy(uint32_t live, uint32_t exited)
{
	struct snapshot *s = snapshot_new(1, live + 1, exited, 0, 0);

	set_basic(add_entity(s, 0, SECOND / 4), 0.5);
	for (uint32_t i = 0; i < exited; i++)
		add_exited(s, 0, 5000 + i, i + 1);
	for (uint32_t i = 0; i < live; i++)
		set_process_basic(add_process(s, 0, 100000 + i, "worker"), i, GIB);
	return s;
}

struct snapshot *fixture_empty(void)
{
	struct snapshot *s = snapshot_new(0, 0, 0, 0, 0);

	s->sources[SOURCE_NVML].state = READING_NO_LIBRARY;
	strcpy(s->sources[SOURCE_NVML].error,
	       "libnvidia-ml.so.1: cannot be loaded; install the NVIDIA driver");
	return s;
}
