// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/hashmap.h"

/*
 * Device memory has addresses without memory. They are in a reserved range, in which every access faults. A
 * freed address is reused for the next request of its size class, as by real drivers. Managed and host memory
 * is real.
 */
enum { CLASS_COUNT = 64 * 8, SMALLEST = 512, BIG_ALIGNMENT = 2 << 20, PITCH_ALIGNMENT = 512 };

#define RANGE_BYTES (UINT64_C(8) << 40)

static struct pool memories = { .size = sizeof(struct memory), .capacity = 1 << 22 };
static struct hashmap by_address;
static uint64_t range_begin, range_next;
/*
 * Freed records with their addresses, by class; linked as the pool links its own, and no longer the pool's.
 */
static struct memory *freed[CLASS_COUNT];

/* Eight classes for each power of two. */
static uint32_t size_class(size_t bytes, size_t *ret_rounded)
{
	size_t rounded = MAX(bytes, (size_t)SMALLEST), step;
	unsigned bits = 63 - (unsigned)__builtin_clzll(rounded);

	step = (size_t)1 << (bits - 3);
	rounded = (rounded + step - 1) & ~(step - 1);
	bits = 63 - (unsigned)__builtin_clzll(rounded);
	*ret_rounded = rounded;
	return bits * 8 + (uint32_t)(rounded >> (bits - 3) & 7);
}

static bool has_range_address(enum memory_kind kind)
{
	return kind == MEMORY_DEVICE || kind == MEMORY_RESERVED;
}

static uint64_t new_addresses(size_t rounded)
{
	uint64_t alignment = rounded < BIG_ALIGNMENT ? SMALLEST : BIG_ALIGNMENT, address;

	if (range_begin == 0) {
		void *map = mmap(NULL, RANGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0);

		if (map == MAP_FAILED)
			return 0;
		range_begin = range_next = ((uintptr_t)map + BIG_ALIGNMENT) & ~(uint64_t)(BIG_ALIGNMENT - 1);
	}
	address = (range_next + alignment - 1) & ~(alignment - 1);
	if (rounded > range_begin + RANGE_BYTES - 2 * BIG_ALIGNMENT - address)
		return 0;
	range_next = address + rounded;
	return address;
}

static struct memory *new_with_address(size_t bytes)
{
	size_t rounded;
	uint32_t class = size_class(bytes, &rounded);
	struct memory *memory = freed[class];
	uint64_t address;

	if (memory) {
		freed[class] = memory->physical;
		address = memory->address;
		*memory = (struct memory){ .slot.live = 1, .address = address };
		return memory;
	}
	address = new_addresses(rounded);
	memory = address ? pool_new(&memories) : NULL;
	if (memory)
		memory->address = address;
	return memory;
}

static uint32_t index_of(const struct memory *memory)
{
	return (uint32_t)((size_t)((const char *)memory - memories.base) / memories.size);
}

static void take_back(struct memory *memory)
{
	size_t rounded;

	if (has_range_address(memory->kind)) {
		uint32_t class = size_class(memory->bytes, &rounded);

		memory->physical = freed[class];
		freed[class] = memory;
		memory->slot.live = 0;
	} else {
		pool_free(&memories, memory);
	}
}

int memory_add(enum memory_kind kind, struct cu_context *context, int device, uint64_t address, size_t bytes,
	       struct memory **ret_memory)
{
	struct memory *memory;

	if (bytes > RANGE_BYTES / 2)
		return CU_OUT_OF_MEMORY;
	if (device >= 0 && !device_charge(&driver.devices[device], (int64_t)bytes, true))
		return CU_OUT_OF_MEMORY;
	memory = has_range_address(kind) ? new_with_address(bytes) : pool_new(&memories);
	if (memory) {
		memory->kind = kind;
		memory->context = context;
		memory->device = device;
		memory->bytes = bytes;
		if (kind == MEMORY_ARRAY || kind == MEMORY_PHYSICAL)
			memory->address = (uintptr_t)memory;
		else if (!has_range_address(kind))
			memory->address = address;
		if (hashmap_put(&by_address, memory->address, index_of(memory)) == 0) {
			*ret_memory = memory;
			return CU_SUCCESS;
		}
		take_back(memory);
	}
	if (device >= 0)
		device_charge(&driver.devices[device], -(int64_t)bytes, true);
	return CU_OUT_OF_MEMORY;
}

struct memory *memory_find(uint64_t address)
{
	uint32_t index;

	if (!hashmap_get(&by_address, address, &index))
		return NULL;
	return (struct memory *)(memories.base + index * memories.size);
}

void memory_drop(struct memory *memory)
{
	if (memory->device >= 0)
		device_charge(&driver.devices[memory->device], -(int64_t)memory->bytes, true);
	if (memory->kind == MEMORY_MANAGED)
		munmap((void *)(uintptr_t)memory->address, memory->bytes);
	else if (memory->kind == MEMORY_HOST)
		free((void *)(uintptr_t)memory->address);
	hashmap_del(&by_address, memory->address);
	take_back(memory);
}

void memory_of_context_gone(struct cu_context *context)
{
	for (struct memory *memory = NULL; (memory = pool_next(&memories, memory));) {
		if (memory->context == context)
			memory_drop(memory);
	}
}

/* Allocates real memory for managed and host memory; 0: out of memory. */
static uint64_t back(enum memory_kind kind, size_t bytes)
{
	void *memory;

	if (kind == MEMORY_HOST)
		return posix_memalign(&memory, 4096, bytes) == 0 ? (uintptr_t)memory : 0;
	memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? 0 : (uintptr_t)memory;
}

int memory_alloc(struct call *call, uint64_t *ret_address, size_t bytes, enum memory_kind kind)
{
	struct cu_context *context;
	int result = context_current(call, &context);
	struct memory *memory;
	uint64_t address = 0;

	call->bytes = bytes;
	if (result != CU_SUCCESS)
		return result;
	if (!ret_address || bytes == 0)
		return CU_INVALID_VALUE;
	if (context->captures > 0 && kind != MEMORY_HOST)
		return CU_CAPTURE_UNSUPPORTED;
	if (kind == MEMORY_MANAGED || kind == MEMORY_HOST) {
		address = back(kind, bytes);
		if (address == 0)
			return CU_OUT_OF_MEMORY;
	}
	driver_lock();
	result = memory_add(kind, context, kind == MEMORY_DEVICE ? context->device : -1, address, bytes,
			    &memory);
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	*ret_address = call->address = memory->address;
	return CU_SUCCESS;
}

int memory_alloc_stream(struct call *call, uint64_t *ret_address, size_t bytes, struct cu_stream *handle)
{
	static const struct cu_graph nothing;
	struct sim_work work = { .correlation = 0 }; /* it takes no time */
	struct cu_stream *stream;
	struct memory *memory;
	int result = stream_resolve(call, handle, &stream);

	call->bytes = bytes;
	if (result != CU_SUCCESS)
		return result;
	if (!ret_address || bytes == 0)
		return CU_INVALID_VALUE;
	result = stream_work(stream, 0, &nothing, &work);
	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	result = memory_add(MEMORY_DEVICE, stream->context, stream->context->device, 0, bytes, &memory);
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	*ret_address = call->address = memory->address;
	return CU_SUCCESS;
}

int memory_alloc_pitch(struct call *call, uint64_t *ret_address, size_t *ret_pitch, size_t width,
		       size_t height, uint32_t element)
{
	size_t pitch, bytes;

	if (!ret_pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16) ||
	    width > SIZE_MAX - PITCH_ALIGNMENT)
		return CU_INVALID_VALUE;
	pitch = (width + PITCH_ALIGNMENT - 1) & ~(size_t)(PITCH_ALIGNMENT - 1);
	if (__builtin_mul_overflow(pitch, height, &bytes))
		return CU_OUT_OF_MEMORY;
	*ret_pitch = pitch;
	return memory_alloc(call, ret_address, bytes, MEMORY_DEVICE);
}

int memory_alloc_host(struct call *call, void **ret_address, size_t bytes)
{
	uint64_t address;
	int result;

	if (!ret_address)
		return CU_INVALID_VALUE;
	result = memory_alloc(call, &address, bytes, MEMORY_HOST);
	if (result == CU_SUCCESS)
		*ret_address = (void *)(uintptr_t)address;
	return result;
}

/* Frees memory of one of these kinds; for any other address, the result is an invalid value. */
static int release(struct call *call, uint64_t address, uint32_t kinds)
{
	struct memory *memory;
	int result = CU_SUCCESS;

	call->address = address;
	driver_lock();
	memory = memory_find(address);
	if (memory && kinds >> memory->kind & 1) {
		call->bytes = memory->bytes;
		memory_drop(memory);
	} else {
		result = CU_INVALID_VALUE;
	}
	driver_unlock();
	return result;
}

static const uint32_t freeable = 1U << MEMORY_DEVICE | 1U << MEMORY_MANAGED;

/* Waits for the device, as the real one does. */
int memory_free(struct call *call, uint64_t address)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (address == 0)
		return CU_SUCCESS;
	if (context->captures > 0)
		return CU_CAPTURE_UNSUPPORTED;
	stream_wait_until(context->all_done_ns);
	return release(call, address, freeable);
}

int memory_free_stream(struct call *call, uint64_t address, struct cu_stream *handle)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	if (result != CU_SUCCESS)
		return result;
	return release(call, address, freeable);
}

int memory_free_host(struct call *call, void *address)
{
	if (!address)
		return CU_SUCCESS;
	return release(call, (uintptr_t)address, 1U << MEMORY_HOST);
}

int memory_register(struct call *call, void *address, size_t bytes)
{
	struct cu_context *context;
	int result = context_current(call, &context);
	struct memory *memory;

	call->bytes = bytes;
	call->address = (uintptr_t)address;
	if (result != CU_SUCCESS)
		return result;
	if (!address || bytes == 0)
		return CU_INVALID_VALUE;
	driver_lock();
	if (memory_find((uintptr_t)address))
		result = CU_HOST_MEMORY_ALREADY_REGISTERED;
	else
		result = memory_add(MEMORY_REGISTERED, context, -1, (uintptr_t)address, bytes, &memory);
	driver_unlock();
	return result;
}

int memory_unregister(struct call *call, void *address)
{
	int result = release(call, (uintptr_t)address, 1U << MEMORY_REGISTERED);

	return result == CU_INVALID_VALUE ? CU_HOST_MEMORY_NOT_REGISTERED : result;
}

int memory_range(struct call *call, uint64_t *ret_base, size_t *ret_bytes, uint64_t address)
{
	struct memory *memory;
	int result = CU_SUCCESS;

	call->address = address;
	driver_lock();
	for (memory = NULL; (memory = pool_next(&memories, memory));) {
		if (address - memory->address < memory->bytes && freeable >> memory->kind & 1)
			break;
	}
	if (!memory)
		result = CU_NOT_FOUND;
	if (memory && ret_base)
		*ret_base = memory->address;
	if (memory && ret_bytes)
		*ret_bytes = memory->bytes;
	driver_unlock();
	return result;
}

int memory_host_pointer(struct call *call, uint64_t *ret_address, void *host)
{
	struct memory *memory;
	bool known;

	call->address = (uintptr_t)host;
	driver_lock();
	memory = memory_find((uintptr_t)host);
	known = memory && (memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED);
	driver_unlock();
	if (!ret_address || !known)
		return CU_INVALID_VALUE;
	*ret_address = (uintptr_t)host;
	return CU_SUCCESS;
}
