// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot: the state of the node at one instant, for the views. Immutable once published, reference
 * counted, readable from any thread. The model publishes one a tick, even if the driver did not answer: then
 * values are older and marked stale.
 *
 * Snapshots are recycled: publishing allocates only when the node has grown.
 */
#pragma once

#include <stdatomic.h>

#include "base/process_id.h"
#include "model/allocated.h"
#include "model/clock_events.h"
#include "model/gpu_time.h"
#include "model/health.h"
#include "model/host.h"
#include "model/job.h"
#include "model/nccl_measured.h"
#include "model/node_tag.h"
#include "model/owner.h"
#include "model/scraped.h"
#include "model/server.h"
#include "model/source.h"
#include "model/trace.h"
#include "model/xid_event.h"

/* A GPU or MIG instance. The array is ordered by (GPU index, GPU before its instances, gi, ci). */
struct entity {
	/* identity; its v and p are the current, accumulated values that views show */
	struct reading_entity id;
	enum source_id source; /* the first, by priority, of the sources that know it */
	/* if more than one source knows it: its index in the snapshot's slot_sources plus 1; else 0 */
	uint16_t mixed;
	uint32_t numbers_from; /* bits 1 << enum source_id: whose numbers are shown */
	bool present; /* false: no source lists it any more, or it is lost */
	bool stale; /* the newest reading is too old */
	int64_t sampled_boot_ns; /* end of the newest good reading; 0 never */
	int64_t sampled_real_ns;
	int64_t stamped_boot_ns, stamped_real_ns; /* end of the reading that id.stamps are of; 0: none */
	uint64_t samples; /* ticks that delivered a utilisation, for atop */
	double percent_sum[2]; /* sum over those ticks of the tick's mean percent: GPU, memory */
	double memory_kib_sum; /* sum over those ticks of memory in use, KiB */
	uint32_t clock_events[CLOCK_EVENTS]; /* readings that found each, in the snapshot's clock_window_ns */
	uint8_t health[HEALTH_KINDS]; /* enum health */
	uint32_t processes_live; /* UINT32_MAX: not contained in another agent's document */
	/* sums over all processes that ever ran here, including exited ones (INCREMENT rows) */
	double process_total[PROCESS_METRICS];
	/* increments of processes that had no series of their own */
	double process_other[PROCESS_METRICS];
};

#define TRACED_NONE UINT32_MAX

/* What a process did over the last so many seconds, or since it was first seen. */
enum { RECENTS = 3 };
extern const unsigned recent_seconds[RECENTS]; /* 10, 60, 300 (model/look_back.c) */
enum recent_figure {
	RECENT_UTILIZATION, /* share of the time that multiprocessors worked for it */
	RECENT_MEMORY_UTILIZATION,
	RECENT_MEMORY, /* mean bytes held */
	RECENT_FIGURES
};
struct recent {
	double seconds; /* really covered; 0: nothing is known */
	double v[RECENT_FIGURES];
	uint8_t p[RECENT_FIGURES]; /* presences */
};

/* One process on one GPU or MIG instance. */
struct process {
	struct process_id id;
	int64_t first_real_ns, last_real_ns;
	char comm[64]; /* sanitised UTF-8; empty when unknown */
	uint32_t uid; /* UINT32_MAX unknown */
	uint32_t ns_pid; /* in its own PID name space, as its container sees it; 0: unknown */
	uint16_t entity; /* index in the snapshot's entities */
	uint16_t workload; /* index in workloads, READING_NONE */
	uint32_t job; /* index in jobs; JOB_NONE */
	struct rank rank;
	uint32_t traced; /* index in trace->devices of its traced data; TRACED_NONE */
	uint8_t types; /* enum process_type bits */
	bool exited; /* true only in the list of exited processes */
	bool has_series; /* it has one of the limited process series of /metrics */
	uint64_t exit_seq; /* exited: 1, 2, ... in order of exit */
	uint64_t samples;
	double percent_sum[2]; /* as in struct entity */
	double memory_kib_sum;
	/* accumulated over its life; gauges: present if its device's newest reading contained it */
	double v[PROCESS_METRICS];
	uint8_t p[PROCESS_METRICS];
	double series[PROCESS_METRICS]; /* INCREMENT rows: credited to its own series */
	struct recent recent[RECENTS];
};

/* The use of one GPU or MIG instance by one workload: its live processes and all exited ones. */
struct workload {
	enum workload_kind kind;
	char id[96]; /* container id, pod uid, job id or unit name */
	char pod_uid[48]; /* of a container in a pod; else empty */
	uint32_t user; /* whose own cgroup it is; 0: root's, or not contained in another agent's document */
	/* of the workload itself, else of its pod; NULL: unknown. Valid as long as the snapshot. */
	const struct owner *owner;
	uint32_t job; /* of a job: index in jobs of the name and user that a process of it claims; JOB_NONE */
	uint32_t uid; /* of a job: whose its first process was; UINT32_MAX: not known, or HTCondor's slot */
	uint16_t entity;
	uint16_t allocated; /* index in the snapshot's `allocated` plus 1; 0: nobody says it was given this */
	uint32_t live, exited;
	double v[PROCESS_METRICS]; /* INCREMENT rows: totals; memory in use: of the live ones */
	uint8_t p[PROCESS_METRICS];
};

/* A workload of traced processes, on any devices. */
struct workload_name {
	enum workload_kind kind; /* WORKLOAD_NONE: unused entry */
	char id[96];
	char pod_uid[48];
	uint32_t user; /* this and `owner` as in struct workload */
	const struct owner *owner;
};

/* Where a traced process (struct traced_device) runs, according to the driver. */
struct traced_place {
	/* index in the snapshot's entities; READING_NONE: the driver does not list the device */
	uint16_t entity;
	bool listed; /* one of the snapshot's processes has it as `traced` */
};

/*
 * Workloads have 16-bit indexes, and each device has one more for increments that fit no other workload.
 */
enum { SNAPSHOT_WORKLOADS_MAX = UINT16_MAX - READING_ENTITIES_MAX };

struct snapshot {
	atomic_uint refs;
	uint64_t seq; /* 1, 2, ...: changes with each publication */
	int64_t real_ns, boot_ns; /* when published */
	struct source sources[SOURCES];
	enum source_id device_source; /* whose state and versions represent the node: snapshot_driver() */
	bool simulated; /* part of the data comes from gpusonde's simulated driver */
	bool fresh; /* the device sources' data are recent: /readyz */
	char not_fresh_reason[REASON_MAX];
	/* the same without times, so that it does not change during an outage */
	char not_fresh_cause[REASON_MAX];
	char hostname[65];
	char node_name[NODE_NAME_MAX]; /* that was given to the node; "": none, snapshot_node_name() */
	uint32_t tags_n;
	struct node_tag tags[NODE_TAGS_MAX]; /* that were given to the node */
	char agent_version[32]; /* of the agent whose document was decoded; empty: this program */
	int64_t period_ns;
	int64_t clock_window_ns; /* of the entities' clock_events */
	uint32_t gpus_unidentified; /* as in struct reading; lost GPUs may be among them */
	uint32_t topology_n; /* by `index` of the GPUs, as in struct reading */
	uint8_t topology[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint8_t topology_nvlinks[READING_TOPOLOGY_MAX][READING_TOPOLOGY_MAX];
	uint64_t rejected[GPU_METRICS];
	uint64_t rejected_process[PROCESS_METRICS];
	double agent[AGENT_METRICS];
	uint8_t agent_p[AGENT_METRICS];
	struct host host;
	struct servers servers;
	uint32_t entities_n, processes_n, exited_n, workloads_n, xids_n, xid_events_n, workload_names_n;
	uint32_t traced_uses_n, slot_sources_n, allocated_n, jobs_n;
	struct entity *entities;
	struct process *processes; /* live; by (entity, pid), decoded ones as in their document */
	struct process *exited; /* ordered by exit_seq, oldest first; bounded */
	struct workload *workloads;
	struct allocated *allocated; /* by entity */
	struct job *jobs; /* by index; some are those of nobody any more */
	struct xid *xids; /* sorted by (entity, code) */
	struct xid_event *xid_events; /* the newest, oldest first */
	uint8_t (*slot_sources)[GPU_SLOTS]; /* see snapshot_slot_source() */
	struct owners *owners; /* NULL: no source has given any; the snapshot's own reference */
	struct scraped *scraped; /* NULL: no DCGM exporter is read; the snapshot's own reference */
	struct nccl_measurements *measured; /* NULL: nothing was; the snapshot's own reference */
	struct gpu_times *gpu_times; /* the same */
	struct trace_view *trace; /* NULL: no tracing; the snapshot's own reference */
	bool trace_stale; /* tracing is on, and its newest data are too old */
	/* The model's data about traced processes; not part of the view, which several snapshots share. */
	struct workload_name *workload_names;
	uint16_t *traced_workloads; /* by index in trace->processes: index in workload_names, READING_NONE */
	struct traced_use *traced_uses;
	struct traced_place *traced_places; /* by index in trace->devices */
};

/* The GPU that contains an instance, or the entity itself. */
static inline const struct entity *snapshot_gpu(const struct snapshot *s, const struct entity *e)
{
	return e->id.parent == READING_NONE ? e : &s->entities[e->id.parent];
}

/* The job with this index (of a process, of a workload); NULL: none. */
static inline const struct job *snapshot_job(const struct snapshot *s, uint32_t job)
{
	return job < s->jobs_n ? &s->jobs[job] : NULL;
}

/* Whether there is a GPU with this index. */
static inline bool snapshot_has_gpu(const struct snapshot *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (s->entities[i].present && s->entities[i].id.parent == READING_NONE &&
		    s->entities[i].id.index == index)
			return true;
	return false;
}

/* The source of the entity's value in this slot; SOURCES: none. */
static inline enum source_id snapshot_slot_source(const struct snapshot *s, const struct entity *e,
						  unsigned slot)
{
	if (e->mixed)
		return s->slot_sources[e->mixed - 1][slot];
	return presence_is(e->id.p[slot]) ? e->source : SOURCES;
}

/*
 * The device source whose state and versions represent the node: fresh sources before others, then by
 * priority.
 */
static inline const struct source *snapshot_driver(const struct snapshot *s)
{
	return &s->sources[s->device_source];
}

/*
 * Fills traced_places, which must have space for trace->devices, and `traced` of all live processes. For the
 * model, and for code that builds snapshots otherwise: from an agent's document, in tests.
 */
void snapshot_join_trace(struct snapshot *s);

struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot);

/* Holds the newest snapshot: one writer, readers in any thread. */
struct publisher;
int publisher_new(struct publisher **ret_publisher);
void publisher_free(struct publisher *publisher);
/* A reference to the newest snapshot, which the caller must unref; NULL before the first. */
struct snapshot *publisher_get(struct publisher *publisher);
