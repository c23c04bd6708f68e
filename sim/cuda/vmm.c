// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/memory.h"

/* Arrays, memory pools, and the calls that allocate addresses and memory separately. */
enum { GRANULARITY = 2 << 20, MEMORY_DEVICE_LOCATION = 1 };

struct cu_pool {
	struct slot slot;
	int device;
	bool is_default;
};

static struct pool pools = { .size = sizeof(struct cu_pool), .capacity = 4096 };
static struct cu_pool *default_pools[SCENARIO_MAX_GPUS];

/* Bytes of one element of CUarray_format; newer formats have 4. */
static size_t format_bytes(uint32_t format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2;
	default:
		return 4;
	}
}

int array_create_3d(struct call *call, struct cu_array **ret_array, const struct cu_array_descriptor_3d *what,
		    uint32_t levels)
{
	struct cu_context *context;
	struct memory *memory;
	int result = context_current(call, &context);
	size_t bytes;

	if (result != CU_SUCCESS)
		return result;
	if (!ret_array || !what || what->width == 0 || what->channels == 0 || what->channels > 4 ||
	    levels == 0 || levels > 32)
		return CU_INVALID_VALUE;
	if (__builtin_mul_overflow(what->width, MAX(what->height, (size_t)1), &bytes) ||
	    __builtin_mul_overflow(bytes, MAX(what->depth, (size_t)1), &bytes) ||
	    __builtin_mul_overflow(bytes, format_bytes(what->format) * what->channels, &bytes))
		return CU_INVALID_VALUE;
	call->bytes = bytes;
	driver_lock();
	result = memory_add(MEMORY_ARRAY, context, context->device, 0, bytes, &memory);
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	*ret_array = (struct cu_array *)memory;
	call->handle = (uintptr_t)memory;
	return CU_SUCCESS;
}

int array_create(struct call *call, struct cu_array **ret_array, const struct cu_array_descriptor *what)
{
	struct cu_array_descriptor_3d flat;

	if (!what)
		return CU_INVALID_VALUE;
	flat = (struct cu_array_descriptor_3d){ .width = what->width,
						.height = what->height,
						.format = what->format,
						.channels = what->channels };
	return array_create_3d(call, ret_array, &flat, 1);
}

int array_destroy(struct call *call, struct cu_array *array)
{
	struct memory *memory;
	int result = CU_SUCCESS;

	call->handle = (uintptr_t)array;
	driver_lock();
	memory = memory_find((uintptr_t)array);
	if (memory && memory->kind == MEMORY_ARRAY) {
		call->bytes = memory->bytes;
		memory_drop(memory);
	} else {
		result = CU_INVALID_HANDLE;
	}
	driver_unlock();
	return result;
}

static struct cu_pool *make_pool(int device, bool is_default)
{
	struct cu_pool *pool = pool_new(&pools);

	if (pool) {
		pool->device = device;
		pool->is_default = is_default;
	}
	return pool;
}

int pool_default(struct call *call, struct cu_pool **ret_pool, int device)
{
	call->has_device = true;
	call->device = device;
	if (!ret_pool)
		return CU_INVALID_VALUE;
	if (device < 0 || (uint32_t)device >= driver.device_count)
		return CU_INVALID_DEVICE;
	driver_lock();
	if (!default_pools[device])
		default_pools[device] = make_pool(device, true);
	*ret_pool = default_pools[device];
	driver_unlock();
	return *ret_pool ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int pool_create(struct call *call, struct cu_pool **ret_pool, const struct cu_pool_props *props)
{
	if (!ret_pool || !props || props->location.id < 0 ||
	    (uint32_t)props->location.id >= driver.device_count)
		return CU_INVALID_VALUE;
	driver_lock();
	*ret_pool = make_pool(props->location.id, false);
	driver_unlock();
	call->handle = (uintptr_t)*ret_pool;
	return *ret_pool ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int pool_destroy(struct call *call, struct cu_pool *pool)
{
	int result = CU_SUCCESS;

	call->handle = (uintptr_t)pool;
	driver_lock();
	if (pool_has(&pools, pool) && !pool->is_default)
		pool_free(&pools, pool);
	else
		result = CU_INVALID_VALUE;
	driver_unlock();
	return result;
}

/* A pool caches nothing: freed memory is released at once. */
int pool_trim(struct call *call, struct cu_pool *pool)
{
	call->handle = (uintptr_t)pool;
	return pool_has(&pools, pool) ? CU_SUCCESS : CU_INVALID_VALUE;
}

int memory_alloc_pool(struct call *call, uint64_t *ret_address, size_t bytes, struct cu_pool *pool,
		      struct cu_stream *stream)
{
	call->handle = (uintptr_t)pool;
	if (!pool_has(&pools, pool))
		return CU_INVALID_VALUE;
	return memory_alloc_stream(call, ret_address, bytes, stream);
}

int vmm_reserve(struct call *call, uint64_t *ret_address, size_t bytes, _unused_ uint64_t wanted)
{
	struct memory *memory;
	int result;

	call->bytes = bytes;
	if (!ret_address || bytes == 0 || bytes % GRANULARITY != 0)
		return CU_INVALID_VALUE;
	driver_lock();
	result = memory_add(MEMORY_RESERVED, NULL, -1, 0, bytes, &memory);
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	*ret_address = call->address = memory->address;
	return CU_SUCCESS;
}

/* The range as it was reserved. */
int vmm_release_range(struct call *call, uint64_t address, size_t bytes)
{
	struct memory *memory;
	int result = CU_INVALID_VALUE;

	call->address = address;
	driver_lock();
	memory = memory_find(address);
	if (memory && memory->kind == MEMORY_RESERVED && memory->bytes == bytes) {
		memory_drop(memory);
		call->bytes = bytes;
		result = CU_SUCCESS;
	}
	driver_unlock();
	return result;
}

int vmm_create(struct call *call, uint64_t *ret_handle, size_t bytes, const struct cu_allocation_prop *prop)
{
	struct memory *memory;
	int result, device;

	call->bytes = bytes;
	if (!ret_handle || !prop || bytes == 0 || bytes % GRANULARITY != 0)
		return CU_INVALID_VALUE;
	device = prop->location.type == MEMORY_DEVICE_LOCATION ? prop->location.id : -1;
	if (device >= (int)driver.device_count ||
	    (device < 0 && prop->location.type == MEMORY_DEVICE_LOCATION))
		return CU_INVALID_DEVICE;
	driver_lock();
	result = memory_add(MEMORY_PHYSICAL, NULL, device, 0, bytes, &memory);
	if (result == CU_SUCCESS)
		memory->references = 1;
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	*ret_handle = call->handle = memory->address;
	return CU_SUCCESS;
}

static struct memory *find_kind(uint64_t address, enum memory_kind kind)
{
	struct memory *memory = memory_find(address);

	return memory && memory->kind == kind ? memory : NULL;
}

/* Memory is freed with its last mapping and its handle. */
static void unreference(struct memory *physical)
{
	if (--physical->references == 0)
		memory_drop(physical);
}

int vmm_release(struct call *call, uint64_t handle)
{
	struct memory *memory;
	int result = CU_SUCCESS;

	call->handle = handle;
	driver_lock();
	memory = find_kind(handle, MEMORY_PHYSICAL);
	if (memory && !memory->released) {
		call->bytes = memory->bytes;
		memory->released = true;
		unreference(memory);
	} else {
		result = CU_INVALID_VALUE;
	}
	driver_unlock();
	return result;
}

/*
 * A mapping is kept under the address after its first byte, because the first may be that of the reserved
 * range itself.
 */
int vmm_map(struct call *call, uint64_t address, size_t bytes, size_t offset, uint64_t handle)
{
	struct memory *physical, *mapping;
	int result;

	call->bytes = bytes;
	call->address = address;
	call->handle = handle;
	if (address == 0 || bytes == 0 || address % GRANULARITY != 0 || bytes % GRANULARITY != 0)
		return CU_INVALID_VALUE;
	driver_lock();
	physical = find_kind(handle, MEMORY_PHYSICAL);
	if (!physical || physical->released || offset > physical->bytes || bytes > physical->bytes - offset ||
	    memory_find(address + 1)) {
		driver_unlock();
		return CU_INVALID_VALUE;
	}
	result = memory_add(MEMORY_MAPPED, NULL, -1, address + 1, bytes, &mapping);
	if (result == CU_SUCCESS) {
		mapping->physical = physical;
		physical->references++;
	}
	driver_unlock();
	return result;
}

/* Whether adjacent mappings cover exactly that range. */
static bool is_mapped(uint64_t address, size_t bytes)
{
	const struct memory *mapping;
	uint64_t at = address;

	while (at - address < bytes && (mapping = find_kind(at + 1, MEMORY_MAPPED)))
		at += mapping->bytes;
	return bytes > 0 && at - address == bytes;
}

int vmm_unmap(struct call *call, uint64_t address, size_t bytes)
{
	int result = CU_INVALID_VALUE;

	call->address = address;
	call->bytes = bytes;
	driver_lock();
	if (is_mapped(address, bytes)) {
		for (uint64_t at = address; at - address < bytes;) {
			struct memory *mapping = find_kind(at + 1, MEMORY_MAPPED);

			at += mapping->bytes;
			unreference(mapping->physical);
			memory_drop(mapping);
		}
		result = CU_SUCCESS;
	}
	driver_unlock();
	return result;
}

int vmm_access(struct call *call, uint64_t address, size_t bytes, const void *access, size_t count)
{
	bool mapped;

	call->address = address;
	driver_lock();
	mapped = find_kind(address + 1, MEMORY_MAPPED) != NULL;
	driver_unlock();
	return access && count > 0 && bytes > 0 && mapped ? CU_SUCCESS : CU_INVALID_VALUE;
}

int vmm_granularity(_unused_ struct call *call, size_t *ret_bytes, const struct cu_allocation_prop *prop)
{
	if (!ret_bytes || !prop)
		return CU_INVALID_VALUE;
	*ret_bytes = GRANULARITY;
	return CU_SUCCESS;
}
