// SPDX-License-Identifier: Apache-2.0
/*
 * What PyTorch's allocators say of themselves, and steps of optimizers: of processes with series of their
 * own.
 */
#include "view/walk/private.h"

#include "base/macro.h"

struct torch_walk {
	struct walk *walk;
	const struct torch_view *view;
	const struct label_set **processes; /* pid, comm; NULL: no series */
	const struct label_set **devices; /* of memories */
};

static bool torch_walk_init(struct torch_walk *tw, struct walk *walk)
{
	const struct torch_view *view = walk->s->trace->torch;
	char device[TORCH_DEVICE_TEXT];

	*tw = (struct torch_walk){ .walk = walk, .view = view };
	tw->processes = walk_zeroes(walk, view->processes_n + 1, sizeof(*tw->processes));
	tw->devices = walk_zeroes(walk, view->memories_n + 1, sizeof(*tw->devices));
	if (!tw->processes || !tw->devices)
		return false;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct torch_process *p = &view->processes[i];

		/* Of those with one PID, the youngest, which comes last. */
		if (p->has_series && !(i + 1 < view->processes_n && p[1].pid == p->pid))
			tw->processes[i] = WALK_SET(walk, true, { "pid", walk_number(walk, p->pid) },
						    { "comm", walk_text(walk, p->comm, "") });
	}
	for (uint32_t i = 0; i < view->memories_n; i++) {
		torch_device_text(view->memories[i].device, device);
		tw->devices[i] = WALK_SET(walk, true, { "allocator", walk_text(walk, device, "") });
	}
	return true;
}

static void torch_value(struct torch_walk *tw, const struct label_set *process,
			const struct label_set *device, double value)
{
	walk_series(tw->walk, &(struct series){ .sets = { process, device },
						.value = value,
						.presence = PRESENCE_PRESENT,
						.entity = UINT32_MAX });
}

enum memory_figure { ALLOCATED, ALLOCATED_PEAK, RESERVED, RESERVED_PEAK, OOMS };

static double figure_of(const struct torch_memory *memory, enum memory_figure figure)
{
	switch (figure) {
	case ALLOCATED:
		return (double)memory->allocated;
	case ALLOCATED_PEAK:
		return (double)memory->allocated_peak;
	case RESERVED:
		return (double)memory->reserved;
	case RESERVED_PEAK:
		return (double)memory->reserved_peak;
	default:
		return (double)memory->ooms;
	}
}

static void walk_memories(struct torch_walk *tw, enum memory_figure figure)
{
	for (uint32_t i = 0; i < tw->view->processes_n; i++) {
		const struct torch_process *p = &tw->view->processes[i];

		for (uint32_t k = p->memories_first;
		     tw->processes[i] && k < p->memories_first + p->memories_n; k++)
			torch_value(tw, tw->processes[i], tw->devices[k],
				    figure_of(&tw->view->memories[k], figure));
	}
}

static void walk_steps(struct torch_walk *tw)
{
	for (uint32_t i = 0; i < tw->view->processes_n; i++)
		if (tw->processes[i] && tw->view->processes[i].steps > 0)
			torch_value(tw, tw->processes[i], NULL, (double)tw->view->processes[i].steps);
}

static void walk_beside(struct torch_walk *tw)
{
	for (uint32_t i = 0; i < tw->view->processes_n; i++) {
		uint64_t reserved, beside;

		if (tw->processes[i] && torch_beside(tw->view, &tw->view->processes[i], &reserved, &beside))
			torch_value(tw, tw->processes[i], NULL, (double)beside);
	}
}

static const struct {
	const char *name;
	enum family_type type;
	enum metric_unit unit;
	enum memory_figure figure;
	const char *help;
} families[] = {
	{ "process_torch_allocated_bytes", FAMILY_GAUGE, UNIT_BYTES, ALLOCATED,
	  "Bytes that PyTorch's allocator says it has given to tensors." },
	{ "process_torch_allocated_peak_bytes", FAMILY_GAUGE, UNIT_BYTES, ALLOCATED_PEAK,
	  "The greatest of these, as far as it was seen." },
	{ "process_torch_reserved_bytes", FAMILY_GAUGE, UNIT_BYTES, RESERVED,
	  "Bytes that PyTorch's allocator says it holds, those of tensors included." },
	{ "process_torch_reserved_peak_bytes", FAMILY_GAUGE, UNIT_BYTES, RESERVED_PEAK,
	  "The greatest of these, as far as it was seen." },
	{ "process_torch_out_of_memory_total", FAMILY_COUNTER, UNIT_NONE, OOMS,
	  "Allocations of tensors that failed for want of memory." },
};

void walk_torch(struct walk *walk)
{
	struct torch_walk tw;

	if (!walk->s->trace || !walk->s->trace->torch || !torch_walk_init(&tw, walk))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (walk_family_named(walk, families[i].name, families[i].type, families[i].unit,
				      families[i].help))
			walk_memories(&tw, families[i].figure);
	if (walk_family_named(walk, "process_torch_beside_bytes", FAMILY_GAUGE, UNIT_BYTES,
			      "Estimate: GPU memory that NVML says the process holds, less what PyTorch's "
			      "allocators have reserved."))
		walk_beside(&tw);
	if (walk_family_named(walk, "process_torch_optimizer_steps_total", FAMILY_COUNTER, UNIT_NONE,
			      "Steps of optimizers (torch.optim)."))
		walk_steps(&tw);
}
