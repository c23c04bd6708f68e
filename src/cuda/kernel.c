// SPDX-License-Identifier: Apache-2.0
/*
 * Counts a launch: for its kernel, by its shape, with its weight in splitting the estimated time (share.c).
 * Nothing here allocates or walks a list that grows.
 */
#include "cuda/private.h"

/* ---- weight ---- */

/*
 * Waves of threads: how many times a launch fills the device. A multiprocessor holds 2,048 threads (1,024 to
 * 2,048, by architecture) and has 128 cores (64 to 128): 16 a core. Less than a wave takes its time all the
 * same.
 */
static double launch_waves(const struct cuda *cuda, const struct usage *usage, uint64_t launches,
			   uint64_t threads)
{
	uint64_t wave = (uint64_t)THREADS_PER_CORE * cuda->totals[usage->device].device_cores;

	return wave && threads / wave >= launches ? (double)threads / (double)wave : (double)launches;
}

/*
 * Work that its stream is still executing keeps its slot; work that must be dropped counts in this window
 * only.
 */
static void launch_weigh(struct share *share, const struct stream *s, uint32_t stream, double weight)
{
	struct pending_slot *slot = &share->pending[0];

	if (slot->epoch != s->epoch) {
		struct pending_slot *second = &share->pending[1];

		if (second->epoch != s->epoch) {
			share->unplaced += second->fresh + second->old;
			*second = *slot;
			*slot = (struct pending_slot){ .epoch = s->epoch, .stream = stream };
		} else {
			slot = second;
		}
	}
	slot->fresh += weight;
}

void share_add(struct share *into, const struct share *from)
{
	into->now.launches += from->now.launches;
	into->now.threads = add_saturated(into->now.threads, from->now.threads);
	into->now.ns += from->now.ns;
	into->shown.launches += from->shown.launches;
	into->shown.threads = add_saturated(into->shown.threads, from->shown.threads);
	into->shown.ns += from->shown.ns;
	into->dynamic += from->dynamic;
	into->unplaced += from->unplaced;
	for (unsigned i = 0; i < PENDING_SLOTS; i++) {
		const struct pending_slot *slot = &from->pending[i];
		struct pending_slot *place = NULL;

		for (unsigned k = 0; k < PENDING_SLOTS; k++)
			if (into->pending[k].epoch == slot->epoch || (!place && into->pending[k].epoch == 0))
				place = &into->pending[k];
		if (!place) {
			into->unplaced += slot->fresh + slot->old;
			continue;
		}
		place->epoch = slot->epoch;
		place->stream = slot->stream;
		place->fresh += slot->fresh;
		place->old += slot->old;
	}
}

/* ---- shapes ---- */

enum { SHAPE_BYTES = offsetof(struct shape, shared) + sizeof(uint32_t) };
_Static_assert(offsetof(struct trace_launch, shared_bytes) - offsetof(struct trace_launch, grid) ==
		       offsetof(struct shape, shared),
	       "struct shape begins as a launch has it");

/* Without a branch for each member, since those could not be predicted. */
static bool is_shape(const struct shape *shape, const struct trace_launch *launch)
{
	const char *a = (const char *)shape, *b = (const char *)launch + offsetof(struct trace_launch, grid);
	uint64_t differ = 0, x, y;

	_Static_assert(SHAPE_BYTES == 28, "the last word overlaps");
	for (unsigned at = 0; at < SHAPE_BYTES; at += sizeof(x)) {
		unsigned from = MIN(at, (unsigned)(SHAPE_BYTES - sizeof(x)));

		memcpy(&x, a + from, sizeof(x));
		memcpy(&y, b + from, sizeof(y));
		differ |= x ^ y;
	}
	return differ == 0;
}

static void set_shape(struct shape *shape, const struct trace_launch *launch)
{
	*shape = (struct shape){ .shared = launch->shared_bytes };
	memcpy(shape->grid, launch->grid, sizeof(shape->grid));
	memcpy(shape->block, launch->block, sizeof(shape->block));
}

/*
 * All places taken: each launch in a further shape takes half of the credit of one of them, in turn, and the
 * place when none is left. So a shape that is often used keeps its place, and one that was used at the
 * beginning only does not.
 */
static void slot_displace(struct kernel_row *row, const struct trace_launch *launch)
{
	struct shape *shape = &row->shapes[row->hand];

	shape->credit /= 2;
	if (shape->credit > 0) {
		row->hand = (uint8_t)((row->hand + 1) % TRACED_SHAPES_MAX);
		row->other_shapes++;
		return;
	}
	row->other_shapes += shape->launches;
	row->shape = row->hand;
	set_shape(shape, launch);
	shape->credit = 1;
	shape->launches = 1;
	row->hand = (uint8_t)((row->hand + 1) % TRACED_SHAPES_MAX);
}

static void count_shape(struct kernel_row *row, const struct trace_launch *launch)
{
	unsigned at = row->shape;

	if (row->shapes_n == 0 || !is_shape(&row->shapes[at], launch)) {
		for (at = 0; at < row->shapes_n && !is_shape(&row->shapes[at], launch);)
			at++;
		if (at == TRACED_SHAPES_MAX) {
			slot_displace(row, launch);
			return;
		}
		if (at == row->shapes_n)
			set_shape(&row->shapes[row->shapes_n++], launch);
		row->shape = (uint8_t)at;
	}
	row->shapes[at].launches++;
	row->shapes[at].credit += row->shapes[at].credit < UINT32_MAX;
}

/* ---- launches ---- */

void kernel_launched(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_launch *launch,
		     uint64_t threads)
{
	struct stream *s = stream_at(p, stream);
	uint32_t at = p->contexts[s->context].usage;
	uint32_t index = function_row(cuda, p, at, launch);
	struct usage *usage = &p->usages[at];
	struct share *share = &usage->rest;

	s->launched = cuda->window;
	if (index != NONE) {
		struct kernel_row *row = row_at(p, index);

		share = &row->share;
		share->dynamic += launch->shared_bytes;
		count_shape(row, launch);
	}
	share->now.launches++;
	share->now.threads = add_saturated(share->now.threads, threads);
	launch_weigh(share, s, stream, launch_waves(cuda, usage, 1, threads));
	operator_launch(cuda, p, at, &launch->header, 1, launch_waves(cuda, usage, 1, threads));
}

void kernel_graph(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_header *header,
		  uint64_t launches, uint64_t threads)
{
	struct stream *s = stream_at(p, stream);
	struct usage *usage = &p->usages[p->contexts[s->context].usage];

	if (launches == 0)
		return;
	s->launched = cuda->window;
	launch_weigh(&usage->rest, s, stream, launch_waves(cuda, usage, launches, threads));
	operator_launch(cuda, p, p->contexts[s->context].usage, header, launches,
			launch_waves(cuda, usage, launches, threads));
}
