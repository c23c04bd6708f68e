// SPDX-License-Identifier: Apache-2.0
#include "trace/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	RECORD_MAX = sizeof(struct trace_name) + TRACE_NAME_LARGE, /* the longest event */
	/* bytes read between two updates of the consumer position, which let the kernel reuse the space */
	RELEASE_BYTES = 64 << 10,
	/* at most this many times the ring's size are read at once, in case producers are faster */
	ROUNDS = 4,
};
_Static_assert(sizeof(struct trace_launch) <= RECORD_MAX && sizeof(struct trace_call) <= RECORD_MAX &&
		       sizeof(struct trace_process) <= RECORD_MAX,
	       "a record that wraps must fit");

int ring_map(int map_fd, uint32_t bytes, struct ring *ret_ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages_n = page + bytes;
	void *consumer, *pages;

	if (bytes < page || (bytes & (bytes - 1)))
		return -EINVAL;
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	pages = mmap(NULL, pages_n, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (pages == MAP_FAILED) {
		int r = -errno;

		munmap(consumer, page);
		return r;
	}
	*ret_ring = (struct ring){
		.consumer = consumer,
		.producer = pages,
		.data = (const uint8_t *)pages + page,
		.mask = bytes - 1,
		.pages = pages,
		.pages_n = pages_n,
	};
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->pages) {
		munmap(ring->consumer, (size_t)sysconf(_SC_PAGESIZE));
		munmap(ring->pages, ring->pages_n);
	}
	*ring = (struct ring){ 0 };
}

static uint32_t length_at(const struct ring *ring, uint64_t position)
{
	const uint32_t *length = (const uint32_t *)(ring->data + (position & ring->mask));

	return __atomic_load_n(length, __ATOMIC_ACQUIRE);
}

/* The record's bytes, copied to @copy if it wraps; NULL: it wraps and is longer than any event. */
static const void *contiguous(const struct ring *ring, uint64_t position, uint32_t size, uint8_t *copy)
{
	uint64_t begin = position & ring->mask;
	uint64_t first = ring->mask + 1 - begin;

	if (size <= first)
		return ring->data + begin;
	if (size > RECORD_MAX)
		return NULL;
	memcpy(copy, ring->data + begin, first);
	memcpy(copy + first, ring->data, size - first);
	return copy;
}

bool ring_pending(const struct ring *ring)
{
	uint64_t position = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);

	return position < __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) &&
	       !(length_at(ring, position) & BPF_RINGBUF_BUSY_BIT);
}

uint64_t ring_drain(struct ring *ring, ring_fn *fn, void *userdata)
{
	_Alignas(8) uint8_t copy[RECORD_MAX];
	uint64_t position = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
	uint64_t produced = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	uint64_t released = position, end = position + ROUNDS * (ring->mask + 1), n = 0;

	while (position < produced) {
		uint32_t length = length_at(ring, position);
		uint32_t size = length & ~(uint32_t)(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		uint64_t step = ((uint64_t)size + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7);
		const void *data;

		if (length & BPF_RINGBUF_BUSY_BIT)
			break;
		if (step > produced - position || produced - position > ring->mask + 1) {
			ring->torn++;
			position = produced;
			break;
		}
		if (!(length & BPF_RINGBUF_DISCARD_BIT)) {
			data = contiguous(ring, position + BPF_RINGBUF_HDR_SZ, size, copy);
			fn(data ? data : copy, data ? size : 0, userdata);
			n++;
		}
		position += step;
		if (position - released >= RELEASE_BYTES) {
			__atomic_store_n(ring->consumer, position, __ATOMIC_RELEASE);
			released = position;
		}
		if (position == produced && position < end)
			produced = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	}
	__atomic_store_n(ring->consumer, position, __ATOMIC_RELEASE);
	return n;
}
