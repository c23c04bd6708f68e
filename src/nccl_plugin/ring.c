// SPDX-License-Identifier: Apache-2.0
/* A bounded queue of many writers: a cell's turn says whether it may be written or read. */
#include "nccl_plugin/plugin.h"

#include <stdatomic.h>

static struct {
	struct {
		atomic_uint_fast64_t turn; /* 2i: to be written the i-th time; 2i + 1: to be read */
		struct nccl_wire_operation operation;
	} cells[PLUGIN_RING];
	atomic_uint_fast64_t written, read;
	atomic_uint_fast64_t lost;
} ring;

bool ring_put(const struct nccl_wire_operation *operation)
{
	uint64_t at = atomic_load(&ring.written);

	for (;;) {
		uint64_t turn = atomic_load(&ring.cells[at % PLUGIN_RING].turn),
			 wanted = at / PLUGIN_RING * 2;

		if (turn == wanted) {
			if (atomic_compare_exchange_weak(&ring.written, &at, at + 1))
				break;
		} else if (turn < wanted) {
			ring_lose();
			return false;
		} else {
			at = atomic_load(&ring.written);
		}
	}
	ring.cells[at % PLUGIN_RING].operation = *operation;
	atomic_store(&ring.cells[at % PLUGIN_RING].turn, at / PLUGIN_RING * 2 + 1);
	return true;
}

/* By one thread at a time. */
bool ring_take(struct nccl_wire_operation *ret_operation)
{
	uint64_t at = atomic_load(&ring.read);

	if (atomic_load(&ring.cells[at % PLUGIN_RING].turn) != at / PLUGIN_RING * 2 + 1)
		return false;
	*ret_operation = ring.cells[at % PLUGIN_RING].operation;
	atomic_store(&ring.cells[at % PLUGIN_RING].turn, at / PLUGIN_RING * 2 + 2);
	atomic_store(&ring.read, at + 1);
	return true;
}

void ring_lose(void)
{
	atomic_fetch_add(&ring.lost, 1);
}

uint64_t ring_lost(void)
{
	return atomic_load(&ring.lost);
}
