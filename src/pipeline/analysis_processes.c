// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis_processes.h"

#include "base/clock.h"
#include "proc/proc.h"

#define CPU_EVERY_NS (5 * (uint64_t)NSEC_PER_SEC) /* half of a window */

uint32_t analysis_device_of(struct analysis *a, const struct entity *e)
{
	uint32_t device;

	return analysis_text(a, e->id.parent != READING_NONE ? e->id.mig_uuid : e->id.uuid, &device) < 0 ?
		       0 :
		       device;
}

static void tell_now(struct analysis *a, struct analysis_event event, uint64_t now_ns)
{
	event.rank = -1;
	event.begin_ns = event.end_ns = now_ns;
	analysis_add(a, &event);
}

static void ends(struct analysis *a, const struct analysis_holder *holder, uint64_t now_ns)
{
	tell_now(a, (struct analysis_event){ .kind = ANALYSIS_EXIT, .pid = holder->id.pid }, now_ns);
}

/* NULL: there are too many. */
static struct analysis_holder *holder_of(struct analysis_processes *l, struct analysis *a,
					 struct process_id id, uint64_t now_ns)
{
	for (uint32_t i = 0; i < l->n; i++) {
		struct analysis_holder *holder = &l->list[i];

		if (holder->id.pid != id.pid)
			continue;
		if (holder->id.start_ticks != id.start_ticks) {
			ends(a, holder, now_ns);
			*holder = (struct analysis_holder){ .id = id, .cpu_seconds = -1 };
		}
		return holder;
	}
	if (l->n == ANALYSIS_HOLDERS)
		return NULL;
	l->list[l->n] = (struct analysis_holder){ .id = id, .cpu_seconds = -1 };
	return &l->list[l->n++];
}

static void take_memory(struct analysis *a, const struct snapshot *node, const struct process *p,
			uint64_t now_ns)
{
	struct analysis_event event = { .kind = ANALYSIS_COUNTER,
					.counter = ANALYSIS_COUNTER_PROCESS_MEMORY,
					.pid = p->id.pid,
					.device = analysis_device_of(a, &node->entities[p->entity]),
					.value = p->v[PROCESS_MEMORY] };

	if (event.device && presence_is(p->p[PROCESS_MEMORY]))
		tell_now(a, event, now_ns);
}

static void take_cpu(struct analysis_processes *l, struct analysis *a, struct analysis_holder *holder,
		     uint64_t now_ns)
{
	double before = holder->cpu_seconds, seconds;
	struct analysis_event event = { .kind = ANALYSIS_COUNTER,
					.counter = ANALYSIS_COUNTER_PROCESS_CPU,
					.pid = holder->id.pid };

	if (proc_cpu_seconds(l->proc_root, holder->id.pid, &seconds) < 0)
		return;
	event.value = (seconds - before) * NSEC_PER_SEC / (double)(now_ns - holder->cpu_ns);
	if (before >= 0 && seconds >= before && now_ns > holder->cpu_ns)
		tell_now(a, event, now_ns);
	holder->cpu_seconds = seconds;
	holder->cpu_ns = now_ns;
}

/* One that holds nothing any more, and runs on, does not end. */
static void forget_gone(struct analysis_processes *l, struct analysis *a, uint64_t now_ns)
{
	for (uint32_t i = l->n; i > 0; i--) {
		struct analysis_holder *holder = &l->list[i - 1];

		if (holder->seen)
			continue;
		if (l->sees_all && !proc_is_alive(l->proc_root, holder->id.pid))
			ends(a, holder, now_ns);
		*holder = l->list[--l->n];
	}
}

void analysis_take_processes(struct analysis_processes *l, struct analysis *a, const struct snapshot *node,
			     uint64_t now_ns)
{
	for (uint32_t i = 0; i < l->n; i++)
		l->list[i].seen = false;
	for (uint32_t i = 0; i < node->processes_n; i++) {
		const struct process *p = &node->processes[i];
		struct analysis_holder *holder;

		if (p->entity >= node->entities_n || node->entities[p->entity].stale || p->id.pid == 0)
			continue;
		holder = holder_of(l, a, p->id, now_ns);
		if (holder)
			holder->seen = true;
		take_memory(a, node, p, now_ns);
	}
	forget_gone(l, a, now_ns);
	if (!l->sees_all || now_ns < l->cpu_ns + CPU_EVERY_NS)
		return;
	l->cpu_ns = now_ns;
	for (uint32_t i = 0; i < l->n; i++)
		take_cpu(l, a, &l->list[i], now_ns);
}
