// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

enum { FREE, GIVEN, FULL, TAKEN };
enum { LARGEST_RECORD = 216 }; /* CUpti_ActivityKernel10 */

static struct {
	struct {
		atomic_uint state;
		uint8_t *data; /* NULL: not mapped yet; the thread that makes it GIVEN owns it */
		size_t valid;
	} at[BUFFERS];
	uint8_t *waste; /* for CUPTIs that must be given one; nothing in it is read */
	atomic_bool accept;
	atomic_uint filled; /* a futex */
	atomic_uint_fast64_t dropped;
} buffers;

static uint8_t *buffer_map(void)
{
	void *data = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return data == MAP_FAILED ? NULL : data;
}

static uint8_t *buffer_find(void)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		unsigned free = FREE;

		if (!atomic_compare_exchange_strong(&buffers.at[i].state, &free, GIVEN))
			continue;
		if (!buffers.at[i].data)
			buffers.at[i].data = buffer_map();
		if (buffers.at[i].data)
			return buffers.at[i].data;
		atomic_store(&buffers.at[i].state, FREE);
		return NULL;
	}
	return NULL;
}

void buffers_requested(uint8_t **buffer, size_t *size, size_t *records)
{
	const struct cupti *cupti = library_cupti();

	*records = 0; /* as many as fit */
	*buffer = atomic_load(&buffers.accept) ? buffer_find() : NULL;
	if (!*buffer && (!cupti || cupti->version < CUPTI_API_NULL_BUFFER))
		*buffer = buffers.waste;
	*size = *buffer ? BUFFER_BYTES : 0;
}

/* Since it was asked last. */
static void add_dropped(const struct cupti *cupti, void *context, uint32_t stream)
{
	size_t dropped = 0;

	if (cupti->ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
		atomic_fetch_add(&buffers.dropped, dropped);
}

void buffers_flush(const struct cupti *cupti, bool forced)
{
	cupti->ActivityFlushAll(forced);
	add_dropped(cupti, NULL, 0);
}

void buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	const struct cupti *cupti = library_cupti();

	(void)size;
	for (unsigned i = 0; buffer && i < BUFFERS; i++) {
		if (buffers.at[i].data != buffer || atomic_load(&buffers.at[i].state) != GIVEN)
			continue;
		buffers.at[i].valid = valid <= BUFFER_BYTES ? valid : BUFFER_BYTES;
		atomic_store(&buffers.at[i].state, valid > 0 ? FULL : FREE);
		break;
	}
	if (buffer && buffer == buffers.waste && atomic_load(&buffers.accept))
		atomic_fetch_add(&buffers.dropped, (valid + LARGEST_RECORD - 1) / LARGEST_RECORD);
	if (cupti)
		add_dropped(cupti, context, stream);
	buffers_wake();
}

void buffers_accept(bool accept)
{
	if (!buffers.waste)
		buffers.waste = buffer_map();
	atomic_store(&buffers.accept, accept);
}

bool buffers_take(struct buffer *ret_buffer)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		unsigned full = FULL;

		if (!atomic_compare_exchange_strong(&buffers.at[i].state, &full, TAKEN))
			continue;
		*ret_buffer = (struct buffer){ buffers.at[i].data, buffers.at[i].valid };
		return true;
	}
	return false;
}

void buffers_give(const struct buffer *buffer)
{
	for (unsigned i = 0; i < BUFFERS; i++)
		if (buffers.at[i].data == buffer->data)
			atomic_store(&buffers.at[i].state, FREE);
}

uint32_t buffers_given(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < BUFFERS; i++)
		n += atomic_load(&buffers.at[i].state) == GIVEN;
	return n;
}

void buffers_release(void)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		unsigned free = FREE;

		if (!buffers.at[i].data ||
		    !atomic_compare_exchange_strong(&buffers.at[i].state, &free, TAKEN))
			continue;
		madvise(buffers.at[i].data, BUFFER_BYTES, MADV_DONTNEED);
		atomic_store(&buffers.at[i].state, FREE);
	}
}

uint64_t buffers_dropped(void)
{
	return atomic_load(&buffers.dropped);
}

void buffers_wait(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (atomic_exchange(&buffers.filled, 0) == 0)
		syscall(SYS_futex, &buffers.filled, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	atomic_store(&buffers.filled, 0);
}

void buffers_wake(void)
{
	if (atomic_exchange(&buffers.filled, 1) == 0)
		syscall(SYS_futex, &buffers.filled, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
