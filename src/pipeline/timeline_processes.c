// SPDX-License-Identifier: Apache-2.0
/* Processes of a timeline as counters: GPU memory and use of GPUs by the driver's figures, and CPU time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"
#include "proc/proc.h"

/* Known ones of PyTorch's allocators are below this. */
#define COUNTER_OF_DRIVER (UINT64_C(1) << 32)

static const struct {
	enum process_metric metric;
	uint8_t unit; /* enum timeline_unit */
	const char *name;
} figures[] = {
	{ PROCESS_MEMORY, TIMELINE_BYTES, "memory held, bytes" },
	{ PROCESS_UTILIZATION, TIMELINE_NUMBER, "utilization by it" },
};

static void tell_value(struct trace_timeline *t, uint32_t process, const char *name, uint8_t unit,
		       uint64_t id, uint64_t time_ns, double value)
{
	struct timeline_track track = { .kind = TIMELINE_COUNTER, .unit = unit };
	struct timeline_event event = {
		.type = TIMELINE_VALUE, .category = TIMELINE_GPU, .begin_ns = time_ns, .value = value
	};

	if (timeline_child(t, process, &track, name, &t->counter_by, COUNTER_OF_DRIVER + id, &event.track))
		trace_timeline_add(t, &event);
	else
		t->missing.dropped++;
}

static void take_figures(struct trace_timeline *t, uint32_t process, const struct snapshot *s,
			 const struct process *p, uint64_t time_ns)
{
	const struct reading_entity *id = &s->entities[p->entity].id;
	const char *uuid = id->parent != READING_NONE ? id->mig_uuid : id->uuid;
	char gpu[32], name[80];

	trace_timeline_gpu_name(t, uuid, gpu, sizeof(gpu));
	for (unsigned i = 0; i < ARRAY_SIZE(figures); i++) {
		if (!presence_is(p->p[figures[i].metric]))
			continue;
		snprintf(name, sizeof(name), "%s %s", gpu, figures[i].name);
		tell_value(t, process, name, figures[i].unit, hash_bytes(name, strlen(name)) >> 1, time_ns,
			   p->v[figures[i].metric]);
	}
}

/* A mean since the last time, which it is told at. */
static void take_cpu(struct trace_timeline *t, uint32_t index, uint32_t pid)
{
	struct timeline_process *process = timeline_process_at(t, index);
	uint64_t now_ns = (uint64_t)clock_mono_ns(), begin_ns = process->cpu_ns;
	double before = process->cpu_seconds, seconds;

	if (begin_ns && now_ns - begin_ns < (uint64_t)NSEC_PER_SEC / 2)
		return;
	if (proc_cpu_seconds("/proc", pid, &seconds) < 0)
		return;
	process->cpu_seconds = seconds;
	process->cpu_ns = now_ns;
	if (begin_ns && seconds >= before)
		tell_value(t, index, "CPU, cores", TIMELINE_NUMBER, 0, begin_ns,
			   (seconds - before) * NSEC_PER_SEC / (double)(now_ns - begin_ns));
}

void timeline_processes_take(struct trace_timeline *t, const struct snapshot *s,
			     const uint64_t at_ns[static READING_ENTITIES_MAX])
{
	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *p = &s->processes[i];
		uint32_t process;

		if (p->entity >= MIN(s->entities_n, (uint32_t)READING_ENTITIES_MAX) || !at_ns[p->entity] ||
		    !hashmap_get(&t->process_by, p->id.pid, &process) || (t->pid && p->id.pid != t->pid))
			continue;
		take_figures(t, process, s, p, at_ns[p->entity]);
		if (t->sees_all)
			take_cpu(t, process, p->id.pid);
	}
}
