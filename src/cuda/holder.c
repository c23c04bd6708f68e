// SPDX-License-Identifier: Apache-2.0
/*
 * Which threads of a process have allocated its device memory. The number of threads is limited (struct
 * cuda_limits); the others' allocations are only in the process's sum.
 */
#include "cuda/private.h"

uint32_t holder_add(struct cuda *cuda, struct process *p, uint32_t tid, uint64_t bytes)
{
	struct holder *h;
	uint32_t index;

	if (!hashmap_get(&p->holder_map, tid, &index)) {
		index = pool_take(&p->holders, sizeof(*h), cuda->limits.threads);
		if (index != NONE && hashmap_put(&p->holder_map, tid, index) < 0) {
			pool_give(&p->holders, index);
			index = NONE;
		}
		if (index == NONE) {
			cuda->stats.overflow[CUDA_LIMIT_THREADS]++;
			return NONE;
		}
	}
	h = pool_at(&p->holders, index);
	h->tid = tid;
	h->bytes += bytes;
	h->allocations++;
	return index;
}

void holder_remove(struct process *p, uint32_t index, uint64_t bytes)
{
	struct holder *h = pool_at(&p->holders, index);

	h->bytes -= bytes;
	if (--h->allocations > 0)
		return;
	hashmap_del(&p->holder_map, h->tid);
	pool_give(&p->holders, index);
}

/* Descending by bytes, then ascending by thread. */
static bool is_before(const struct holder *h, const struct traced_thread *t)
{
	return h->bytes != t->bytes ? h->bytes > t->bytes : h->tid < t->tid;
}

void holders_top(const struct process *p, struct traced_process *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->holders.n; i++) {
		const struct holder *h = pool_at(&p->holders, i);
		uint32_t at = n;

		if (h->allocations == 0)
			continue; /* a free row */
		for (; at > 0 && is_before(h, &ret->threads[at - 1]); at--)
			if (at < TRACED_THREADS_MAX)
				ret->threads[at] = ret->threads[at - 1];
		if (at < TRACED_THREADS_MAX)
			ret->threads[at] = (struct traced_thread){ h->tid, h->bytes };
		n += n < TRACED_THREADS_MAX;
	}
	ret->threads_n = n;
	ret->other_threads_bytes = 0;
	for (uint32_t i = 0; i < p->usages_n; i++)
		ret->other_threads_bytes += p->usages[i].device_live;
	for (uint32_t i = 0; i < n; i++)
		ret->other_threads_bytes -= ret->threads[i].bytes;
}
