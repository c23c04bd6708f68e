// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "trace/perf_record.h"

static size_t heard;

static void hear(const struct perf_record *record, void *userdata)
{
	(void)userdata;
	heard++;
	if (record->kind == PERF_RECORD_KIND_MAP && (!record->path || strlen(record->path) > 65536))
		abort();
	if (record->kind == PERF_RECORD_KIND_MAP && record->start >= record->end)
		abort();
}

/* The first byte turns the ring, so that records wrap; the rest is what is in it. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static uint8_t ring[4096];
	uint64_t tail;

	if (size < 1 || size - 1 > sizeof(ring))
		return 0;
	tail = (uint64_t)data[0] * 16;
	memset(ring, 0xff, sizeof(ring));
	for (size_t i = 0; i < size - 1; i++)
		ring[(tail + i) % sizeof(ring)] = data[1 + i];
	heard = 0;
	perf_ring_walk(ring, sizeof(ring), tail, tail + size - 1, hear, NULL);
	if (heard > size / 8)
		abort();
	return 0;
}
