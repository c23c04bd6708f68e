// SPDX-License-Identifier: Apache-2.0
/* Kernels of the last window into a view. */
#include "cuda/private.h"

#include "base/clock.h"

static bool is_shown(const struct share *share)
{
	return share->shown.launches > 0 || share->shown.ns > 0;
}

uint32_t kernels_shown(const struct cuda *cuda)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		const struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->usages_n; k++)
			n += is_shown(&p->usages[k].rest);
		for (uint32_t k = 0; k < p->rows.n; k++)
			n += row_at(p, k)->kernel && is_shown(&row_at(p, k)->share);
	}
	return n;
}

struct traced_launches launches_of(const struct launch_sums *sums)
{
	return (struct traced_launches){ sums->launches, sums->threads, (double)sums->ns / NSEC_PER_SEC };
}

static void add_shape(struct traced_kernel *kernel, const struct shape *shape)
{
	uint32_t at = kernel->shapes_n++;

	for (; at > 0 && kernel->shapes[at - 1].launches < shape->launches; at--)
		kernel->shapes[at] = kernel->shapes[at - 1];
	kernel->shapes[at].shared_bytes = shape->shared;
	kernel->shapes[at].launches = shape->launches;
	memcpy(kernel->shapes[at].grid, shape->grid, sizeof(shape->grid));
	memcpy(kernel->shapes[at].block, shape->block, sizeof(shape->block));
}

/* For the shape of most of its launches. */
static void fill_occupancy(struct traced_kernel *kernel, uint16_t sm)
{
	const struct traced_shape *shape = &kernel->shapes[0];
	uint64_t threads;

	if (kernel->shapes_n == 0 || sm == 0)
		return;
	threads = multiply_saturated((uint64_t)shape->block[0] * shape->block[1], shape->block[2]);
	if (threads > UINT32_MAX)
		return;
	kernel->occupancy_known = occupancy_of(sm, kernel->kernel->figures, (uint32_t)threads,
					       shape->shared_bytes, &kernel->occupancy) == 0;
}

static struct traced_kernel *fill_share(const struct cuda *cuda, const struct process *p, uint32_t usage,
					const struct share *share, uint32_t process, struct trace_view *view)
{
	struct traced_kernel *kernel;

	if (!is_shown(share) || view->kernels_n >= cuda->shown_kernels)
		return NULL;
	kernel = &view->kernels[view->kernels_n++];
	memset(kernel, 0, sizeof(*kernel));
	kernel->process = process;
	memcpy(kernel->uuid, cuda->uuids[p->usages[usage].device], sizeof(kernel->uuid));
	kernel->p = counter_presence(p, TRACED_LAUNCHES);
	kernel->all = launches_of(&share->shown);
	kernel->series = launches_of(&share->series);
	return kernel;
}

static void fill_row(const struct cuda *cuda, const struct process *p, const struct kernel_row *row,
		     uint32_t process, struct trace_view *view)
{
	struct traced_kernel *kernel = fill_share(cuda, p, row->usage, &row->share, process, view);
	const struct cuda_device *device = device_find(cuda, p->usages[row->usage].device);

	if (!kernel)
		return;
	kernel->kernel = kernel_ref(row->kernel);
	kernel->has_series = row->claim.has;
	for (unsigned i = 0; i < row->shapes_n; i++)
		add_shape(kernel, &row->shapes[i]);
	kernel->other_shapes = row->other_shapes;
	fill_occupancy(kernel, device ? device->sm : 0);
}

/* Descending by time, then by launches. */
static int by_seconds(const void *a, const void *b)
{
	const struct traced_kernel *x = a, *y = b;

	if (x->all.seconds < y->all.seconds || x->all.seconds > y->all.seconds)
		return x->all.seconds < y->all.seconds ? 1 : -1;
	return x->all.launches < y->all.launches ? 1 : -(x->all.launches > y->all.launches);
}

void kernels_fill(const struct cuda *cuda, const struct process *p, struct traced_process *process,
		  uint32_t index, struct trace_view *view)
{
	uint32_t first = view->kernels_n;

	for (uint32_t i = 0; i < p->usages_n; i++)
		fill_share(cuda, p, i, &p->usages[i].rest, index, view);
	for (uint32_t i = 0; i < p->rows.n; i++)
		if (row_at(p, i)->kernel)
			fill_row(cuda, p, row_at(p, i), index, view);
	process->kernels_first = first;
	process->kernels_n = view->kernels_n - first;
	if (process->kernels_n > 1)
		qsort(view->kernels + first, process->kernels_n, sizeof(*view->kernels), by_seconds);
}
