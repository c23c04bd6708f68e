// SPDX-License-Identifier: Apache-2.0
/* What processes and devices did in the window: the sums that most rules judge by. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/private.h"
#include "base/clock.h"

struct usage {
	struct row_list processes, devices;
	struct hashmap process_by, device_by;
};

static struct usage *usage_of(const struct analysis *a)
{
	return a->parts[ANALYSIS_PART_usage];
}

int usage_new(void **ret_state)
{
	struct usage *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->processes =
		(struct row_list){ .size = sizeof(struct process_usage), .max = ANALYSIS_PROCESSES_MAX };
	u->devices = (struct row_list){ .size = sizeof(struct device_usage), .max = ANALYSIS_DEVICES_MAX };
	*ret_state = u;
	return 0;
}

void usage_free(void *state)
{
	struct usage *u = state;

	if (!u)
		return;
	row_list_done(&u->processes);
	row_list_done(&u->devices);
	hashmap_done(&u->process_by);
	hashmap_done(&u->device_by);
	free(u);
}

struct process_usage *usage_processes(const struct analysis *a, uint32_t *ret_n)
{
	*ret_n = usage_of(a)->processes.n;
	return usage_of(a)->processes.list;
}

struct device_usage *usage_devices(const struct analysis *a, uint32_t *ret_n)
{
	*ret_n = usage_of(a)->devices.n;
	return usage_of(a)->devices.list;
}

static uint64_t usage_key(uint32_t node, uint32_t id)
{
	return (uint64_t)node << 32 | id;
}

/* The row of a key in one of the lists, made at its first use; NULL: no room, which is counted. */
static void *usage_row(struct analysis *a, struct row_list *list, struct hashmap *by, uint64_t key)
{
	uint32_t index;
	void *row;

	if (hashmap_get(by, key, &index))
		return (char *)list->list + (size_t)index * list->size;
	row = row_list_add(list);
	if (row && hashmap_put(by, key, list->n - 1) < 0) {
		list->n--;
		row = NULL;
	}
	a->counts.beyond += row == NULL;
	return row;
}

static struct process_usage *process_get(struct analysis *a, struct usage *u,
					 const struct analysis_event *event)
{
	struct process_usage *p =
		usage_row(a, &u->processes, &u->process_by, usage_key(event->node, event->pid));

	if (p && p->pid == 0)
		*p = (struct process_usage){ .node = event->node,
					     .pid = event->pid,
					     .begin_ns = event->begin_ns,
					     .active_ns = event->end_ns };
	return p;
}

/* NULL: it has more devices than are kept. */
static struct process_device *process_device_of(struct process_usage *p, uint32_t device)
{
	for (uint32_t i = 0; i < p->devices_n; i++)
		if (p->devices[i].device == device)
			return &p->devices[i];
	if (p->devices_n == PROCESS_DEVICES)
		return NULL;
	p->devices[p->devices_n] = (struct process_device){ .device = device };
	return &p->devices[p->devices_n++];
}

static struct device_usage *device_get(struct analysis *a, struct usage *u,
				       const struct analysis_event *event)
{
	struct device_usage *d =
		usage_row(a, &u->devices, &u->device_by, usage_key(event->node, event->device));

	if (d && d->device == 0) {
		d->node = event->node;
		d->device = event->device;
		d->used_ns = event->end_ns;
	}
	return d;
}

struct device_usage *usage_device(const struct analysis *a, uint32_t node, uint32_t device)
{
	struct usage *u = usage_of(a);
	uint32_t index;

	return hashmap_get(&u->device_by, usage_key(node, device), &index) ?
		       &((struct device_usage *)u->devices.list)[index] :
		       NULL;
}

struct process_usage *usage_process(const struct analysis *a, uint32_t node, uint32_t pid)
{
	struct usage *u = usage_of(a);
	uint32_t index;

	return hashmap_get(&u->process_by, usage_key(node, pid), &index) ?
		       &((struct process_usage *)u->processes.list)[index] :
		       NULL;
}

static double seconds_of(const struct analysis_event *event)
{
	return (double)(event->end_ns - event->begin_ns) / (double)NSEC_PER_SEC;
}

static void sum_call(struct call_sum *sum, const struct analysis_event *event)
{
	sum->n++;
	sum->bytes += event->bytes;
	sum->seconds += seconds_of(event);
}

static void add_copy(struct process_usage *p, const struct analysis_event *event)
{
	if (event->flags & ANALYSIS_PAGEABLE)
		sum_call(&p->pageable_copies, event);
	if (event->flags & ANALYSIS_PINNED)
		sum_call(&p->pinned_copies, event);
	if (!(event->flags & ANALYSIS_BLOCKS))
		return;
	sum_call(&p->blocking_copies, event);
	if (event->stack != 0 && seconds_of(event) > p->stack_seconds) {
		p->stack = event->stack;
		p->stack_seconds = seconds_of(event);
	}
}

static void add_launch(struct process_usage *p, const struct analysis_event *event)
{
	p->sized_launches += event->threads > 0;
	p->small_launches += event->threads > 0 && event->threads < USAGE_SMALL_LAUNCH;
}

/* Where launches do not say their device, their work does. */
static void works_with(struct process_usage *p, uint32_t number)
{
	struct process_device *device = number != 0 ? process_device_of(p, number) : NULL;

	if (device)
		device->launches++;
}

static void add_of_process(struct process_usage *p, const struct analysis_event *event)
{
	p->ended |= event->kind == ANALYSIS_EXIT;
	p->active_ns = MAX(p->active_ns, event->end_ns);
	if (event->stack != 0)
		p->newest_stack = event->stack;
	if (event->flags & ANALYSIS_NESTED)
		return;
	if (event->device != 0)
		p->device = event->device;
	if (event->kind == ANALYSIS_COLLECTIVE && event->flags & ANALYSIS_TRUE)
		return; /* its call is counted */
	sum_call(&p->kinds[event->kind], event);
	if (event->kind == ANALYSIS_WORK && event->flags & ANALYSIS_TRUE)
		sum_call(&p->true_work, event);
	if (event->kind == ANALYSIS_COPY)
		add_copy(p, event);
	if (event->kind == ANALYSIS_LAUNCH)
		add_launch(p, event);
	if (event->kind == ANALYSIS_LAUNCH || event->kind == ANALYSIS_WORK)
		works_with(p, event->device);
	if (event->kind == ANALYSIS_ALLOCATE && !(event->flags & (ANALYSIS_HOST | ANALYSIS_CACHED)))
		sum_call(&p->device_allocations, event);
	if (event->kind == ANALYSIS_COLLECTIVE)
		p->collective_ns = MAX(p->collective_ns, event->end_ns);
	if (event->kind == ANALYSIS_COLLECTIVE && event->communicator != 0) {
		p->communicator = event->communicator;
		p->ranks = event->ranks;
	}
}

static void add_figure_of_process(struct process_usage *p, const struct analysis_event *event)
{
	struct process_device *device = event->device != 0 ? process_device_of(p, event->device) : NULL;

	if (event->counter == ANALYSIS_COUNTER_PROCESS_MEMORY && device) {
		device->memory = event->value;
		device->memory_known = true;
	}
	if (event->counter == ANALYSIS_COUNTER_PROCESS_CPU) {
		p->cpu_known = true;
		if (event->value >= USAGE_CPU_NONE)
			p->active_ns = MAX(p->active_ns, event->end_ns);
	}
}

static void device_figure(struct device_usage *d, const struct analysis_event *event)
{
	d->counters[event->counter].sum += event->value;
	d->counters[event->counter].n++;
	d->counters[event->counter].last = event->value;
	d->counters[event->counter].known = true;
	if (event->counter == ANALYSIS_COUNTER_UTILIZATION && event->value >= USAGE_IDLE)
		d->used_ns = event->end_ns;
}

static void add_reason(struct device_usage *d, const struct analysis_event *event)
{
	uint32_t i = 0;

	while (i < d->reasons_n && d->reasons[i].reason != event->name)
		i++;
	if (i == DEVICE_REASONS)
		return;
	d->reasons[i].reason = event->name;
	d->reasons[i].seconds += seconds_of(event);
	d->reasons_n = MAX(d->reasons_n, i + 1);
}

void usage_event(struct analysis *a, void *state, const struct analysis_event *event)
{
	struct usage *u = state;
	struct process_usage *p = event->pid != 0 ? process_get(a, u, event) : NULL;
	struct device_usage *d = event->device != 0 ? device_get(a, u, event) : NULL;

	if (p && event->kind == ANALYSIS_COUNTER)
		add_figure_of_process(p, event);
	else if (p)
		add_of_process(p, event);
	if (d && event->kind == ANALYSIS_COUNTER && event->pid == 0)
		device_figure(d, event);
	if (d && event->kind == ANALYSIS_THROTTLE)
		add_reason(d, event);
}

bool usage_figure(const struct device_usage *d, enum analysis_counter counter, double *ret_value)
{
	if (!d || !d->counters[counter].known)
		return false;
	*ret_value = d->counters[counter].n > 0 ? d->counters[counter].sum / (double)d->counters[counter].n :
						  d->counters[counter].last;
	return true;
}

void usage_window(_unused_ struct analysis *a, _unused_ void *state, _unused_ const struct analysis_window *w)
{
	/* The rules read the sums as they are. */
}

void usage_say_times(const struct process_usage *p, struct analysis_finding *finding)
{
	const struct call_sum *all = &p->kinds[ANALYSIS_WORK];

	if (all->n > p->true_work.n)
		finding->without |= 1U << EVIDENCE_TRUE_TIMES;
	if (p->true_work.n > 0 && all->seconds > 0)
		finding_value(finding, "work_measured_share", ANALYSIS_RATIO,
			      p->true_work.seconds / all->seconds);
}

bool usage_waits(const struct process_usage *p, double *ret_share)
{
	if (p->steps.n == 0 || p->steps.seconds <= 0)
		return false;
	*ret_share = (p->steps.part[ANALYSIS_STEP_SYNC] + p->steps.part[ANALYSIS_STEP_COLLECTIVES]) /
		     p->steps.seconds;
	return true;
}

double usage_held(const struct analysis *a, const struct device_usage *d)
{
	const struct usage *u = usage_of(a);
	const struct process_usage *processes = u->processes.list;
	double held = 0;

	for (uint32_t i = 0; i < u->processes.n; i++)
		for (uint32_t k = 0; k < processes[i].devices_n; k++)
			if (processes[i].node == d->node && processes[i].devices[k].device == d->device)
				held += processes[i].devices[k].memory;
	return held;
}

/* Processes that have ended give their places. */
void usage_reset(const struct analysis *a)
{
	struct usage *u = usage_of(a);
	struct process_usage *processes = u->processes.list;
	struct device_usage *devices = u->devices.list;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < u->processes.n; i++) {
		const struct process_usage *p = &processes[i];

		hashmap_del(&u->process_by, usage_key(p->node, p->pid));
		if (p->ended)
			continue;
		struct process_usage next = {
			.node = p->node,
			.pid = p->pid,
			.device = p->device,
			.begin_ns = p->begin_ns,
			.active_ns = p->active_ns,
			.newest_stack = p->newest_stack,
			.communicator = p->communicator,
			.ranks = p->ranks,
			.collective_ns = p->collective_ns,
			.models = p->models,
			.devices_n = p->devices_n,
			.cpu_known = p->cpu_known,
			.uneven = p->uneven,
		};

		memcpy(next.devices, p->devices, sizeof(next.devices));
		processes[kept] = next;
		if (hashmap_put(&u->process_by, usage_key(p->node, p->pid), kept) == 0)
			kept++;
	}
	u->processes.n = kept;
	for (uint32_t i = 0; i < u->devices.n; i++) {
		devices[i].reasons_n = 0;
		memset(devices[i].reasons, 0, sizeof(devices[i].reasons));
		for (unsigned c = 0; c < ANALYSIS_COUNTERS; c++) {
			devices[i].counters[c].sum = 0;
			devices[i].counters[c].n = 0;
		}
	}
}
