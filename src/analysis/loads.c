// SPDX-License-Identifier: Apache-2.0
/*
 * Where only the begin of a loader's turn is known, as PyTorch's ranges are told, it lasts until its thread
 * calls CUDA or NCCL again. Threads share places, by a secret hash: of two with the same the newer one
 * counts.
 */
#include "analysis/private.h"

static struct load *load_of(struct loads *l, const struct analysis_event *event, uint64_t *ret_key)
{
	const uint32_t parts[] = { event->node, event->pid, event->tid };

	*ret_key = hash_bytes_secret(parts, sizeof(parts));
	return &l->list[*ret_key % LOADS];
}

bool load_begins(struct loads *l, const struct analysis_event *event)
{
	struct load *load;
	uint64_t key;

	if (event->kind != ANALYSIS_DATA || event->begin_ns != event->end_ns)
		return false;
	load = load_of(l, event, &key);
	l->n += load->begin_ns == 0;
	*load = (struct load){ key, event->begin_ns };
	return true;
}

bool load_ends(struct loads *l, const struct analysis_event *event, struct analysis_event *ret_load)
{
	struct load *load;
	uint64_t key;

	if (l->n == 0 || event->pid == 0 ||
	    !(event->kind <= ANALYSIS_FREE || event->kind == ANALYSIS_COLLECTIVE) ||
	    event->flags & ANALYSIS_TRUE)
		return false;
	load = load_of(l, event, &key);
	if (load->begin_ns == 0 || load->key != key || load->begin_ns > event->begin_ns)
		return false;
	*ret_load = (struct analysis_event){ .kind = ANALYSIS_DATA,
					     .flags = ANALYSIS_ESTIMATED,
					     .rank = -1,
					     .node = event->node,
					     .user = event->user,
					     .pid = event->pid,
					     .tid = event->tid,
					     .begin_ns = load->begin_ns,
					     .end_ns = event->begin_ns };
	*load = (struct load){ 0 };
	l->n--;
	return true;
}
