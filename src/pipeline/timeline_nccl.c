// SPDX-License-Identifier: Apache-2.0
/* Operations of NCCL in a timeline: what they are on, and a track for each communicator. */
#include <inttypes.h>
#include <stdio.h>

#include "nccl/nccl.h"
#include "pipeline/timeline_private.h"

enum { COMMUNICATOR_NAME = 96 };

static bool moves(const struct trace_header *event)
{
	return nccl_is_event(event) && event->op <= TRACE_OP_NCCL_LAST_MOVING;
}

/* Of a collective that was enqueued: its number there, from 1; 0: not known. */
static uint64_t sequence_of(const struct trace_call *call, const struct nccl_communicator *c)
{
	bool enqueued = !(call->header.flags & TRACE_FLAG_NO_RESULT) && call->result == 0;

	return enqueued && !c->late && nccl_is_collective(&call->header) ? c->sequence : 0;
}

static void communicator_name(const struct nccl_communicator *c, char name[static COMMUNICATOR_NAME])
{
	int n = snprintf(name, COMMUNICATOR_NAME, "communicator 0x%" PRIx64, c->id ? c->id : c->handle);

	if (c->rank != NCCL_RANK_UNKNOWN && c->ranks)
		snprintf(name + n, COMMUNICATOR_NAME - (size_t)n, " (rank %" PRId32 " of %" PRIu32 ")",
			 c->rank, c->ranks);
}

/* The same once more among those of its communicator. */
static void add_to_communicator(struct trace_timeline *t, const struct timeline_event *call, uint32_t process,
				const struct nccl_communicator *c, uint64_t bytes, uint64_t sequence)
{
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.category = TIMELINE_NCCL,
					.name = call->name,
					.begin_ns = call->begin_ns,
					.end_ns = call->end_ns };
	char name[COMMUNICATOR_NAME];
	struct timeline_lane *lane;

	communicator_name(c, name);
	lane = timeline_lane(t, process, &t->communicator_by, c->handle ^ c->id, name);
	if (!lane) {
		t->missing.dropped++;
		return;
	}
	if (sequence > 0)
		timeline_put_arg(t, &event, "sequence", TIMELINE_UNSIGNED, sequence);
	timeline_put_arg(t, &event, "bytes", TIMELINE_UNSIGNED, bytes);
	timeline_add_to_lane(t, lane, &event);
}

void timeline_nccl(struct trace_timeline *t, const struct trace_header *header, struct timeline_event *event,
		   uint32_t process)
{
	const struct trace_call *call = (const struct trace_call *)header;
	const struct nccl_communicator *c;
	uint64_t sequence;

	if (!moves(header))
		return;
	if (nccl_type_bytes(call->kind) > 0)
		timeline_put_arg(t, event, "count", TIMELINE_UNSIGNED,
				 call->size / nccl_type_bytes(call->kind));
	c = pipeline_communicator(t->pipeline, header->tgid, call->addr);
	if (!c)
		return;
	sequence = sequence_of(call, c);
	if (c->id)
		timeline_put_arg(t, event, "communicator", TIMELINE_POINTER, c->id);
	if (c->rank != NCCL_RANK_UNKNOWN)
		timeline_put_arg(t, event, "rank", TIMELINE_UNSIGNED, (uint32_t)c->rank);
	if (c->ranks)
		timeline_put_arg(t, event, "ranks", TIMELINE_UNSIGNED, c->ranks);
	if (sequence > 0)
		timeline_put_arg(t, event, "sequence", TIMELINE_UNSIGNED, sequence);
	if (event->type == TIMELINE_SLICE && call->result == 0)
		add_to_communicator(t, event, process, c, call->size, sequence);
}
