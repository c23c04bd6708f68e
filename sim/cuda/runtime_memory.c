// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/runtime.h"

enum { PITCH_ELEMENT = 4, CHANNEL_UNSIGNED = 1, CHANNEL_FLOAT = 2 };

/* A request of no bytes succeeds without an allocation. */
static int nothing(void **ret_address)
{
	*ret_address = NULL;
	return CU_SUCCESS;
}

static int given(struct call *call, int result, uint64_t address, void **ret_address)
{
	if (result != CU_SUCCESS)
		return result;
	call->address = address;
	*ret_address = (void *)(uintptr_t)address;
	return CU_SUCCESS;
}

int runtime_malloc(struct call *call, void **ret_address, size_t bytes)
{
	uint64_t address = 0;
	int result;

	call->bytes = bytes;
	if (!ret_address)
		return CU_INVALID_VALUE;
	if (bytes == 0)
		return nothing(ret_address);
	result = runtime_driver(call)->alloc(&address, bytes);
	return given(call, result, address, ret_address);
}

int runtime_malloc_managed(struct call *call, void **ret_address, size_t bytes, unsigned flags)
{
	uint64_t address = 0;
	int result;

	call->bytes = bytes;
	if (!ret_address || bytes == 0)
		return CU_INVALID_VALUE;
	result = runtime_driver(call)->alloc_managed(&address, bytes, flags);
	return given(call, result, address, ret_address);
}

int runtime_malloc_host(struct call *call, void **ret_address, size_t bytes, unsigned flags)
{
	int result;

	call->bytes = bytes;
	if (!ret_address)
		return CU_INVALID_VALUE;
	if (bytes == 0)
		return nothing(ret_address);
	result = runtime_driver(call)->alloc_host(ret_address, bytes, flags);
	if (result == CU_SUCCESS)
		call->address = (uintptr_t)*ret_address;
	return result;
}

int runtime_malloc_pitch(struct call *call, void **ret_address, size_t *ret_pitch, size_t width,
			 size_t height)
{
	uint64_t address = 0;
	int result;

	if (!ret_address || !ret_pitch)
		return CU_INVALID_VALUE;
	if (width == 0 || height == 0)
		return nothing(ret_address);
	result = runtime_driver(call)->alloc_pitch(&address, ret_pitch, width, height, PITCH_ELEMENT);
	if (result == CU_SUCCESS)
		call->bytes = *ret_pitch * height;
	return given(call, result, address, ret_address);
}

int runtime_malloc_3d(struct call *call, struct cuda_pitched *ret_memory, struct cu_extent extent)
{
	size_t rows;
	int result;

	if (!ret_memory)
		return CU_INVALID_VALUE;
	if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return CU_OUT_OF_MEMORY;
	result = runtime_malloc_pitch(call, &ret_memory->address, &ret_memory->pitch, extent.width, rows);
	if (result == CU_SUCCESS) {
		ret_memory->width = extent.width;
		ret_memory->height = extent.height;
	}
	return result;
}

/* CUarray_format: unsigned 1, 2, 3, signed 8, 9, 10 for 8, 16, 32 bits; halves 16, floats 32 */
static uint32_t format_of(const struct cuda_channels *channels)
{
	uint32_t size = channels->bits[0] <= 8 ? 0 : channels->bits[0] <= 16 ? 1 : 2;

	if (channels->kind == CHANNEL_FLOAT)
		return size == 1 ? 0x10 : 0x20;
	return (channels->kind == CHANNEL_UNSIGNED ? 1 : 8) + size;
}

static size_t bytes_of(const struct cuda_channels *channels, struct cu_extent extent)
{
	size_t bits = 0;

	for (int i = 0; i < 4; i++)
		bits += (size_t)channels->bits[i];
	return extent.width * MAX(extent.height, (size_t)1) * MAX(extent.depth, (size_t)1) * bits / 8;
}

int runtime_malloc_array(struct call *call, struct cu_array **ret_array, const struct cuda_channels *channels,
			 struct cu_extent extent, unsigned flags, unsigned levels)
{
	struct cu_array_descriptor_3d what;
	int result;

	if (!ret_array || !channels)
		return CU_INVALID_VALUE;
	what = (struct cu_array_descriptor_3d){
		.width = extent.width,
		.height = extent.height,
		.depth = extent.depth,
		.format = format_of(channels),
		.flags = flags,
	};
	for (int i = 0; i < 4; i++)
		what.channels += channels->bits[i] > 0;
	if (levels > 0)
		result = runtime_driver(call)->mipmapped_create(ret_array, &what, levels);
	else
		result = runtime_driver(call)->array_create(ret_array, &what);
	if (result == CU_SUCCESS) {
		call->bytes = bytes_of(channels, extent);
		call->handle = (uintptr_t)*ret_array;
	}
	return result;
}

/* Without a pool, the device's default one. */
int runtime_malloc_async(struct call *call, void **ret_address, size_t bytes, struct cu_pool *pool,
			 struct cu_stream *stream)
{
	const struct driver_calls *driver = runtime_driver(call);
	uint64_t address = 0;
	int result;

	call->bytes = bytes;
	call->stream = (uintptr_t)stream;
	if (!ret_address)
		return CU_INVALID_VALUE;
	if (bytes == 0)
		return nothing(ret_address);
	if (pool)
		result = driver->alloc_pool(&address, bytes, pool, stream);
	else
		result = driver->alloc_async(&address, bytes, stream);
	return given(call, result, address, ret_address);
}

int runtime_free(struct call *call, void *address)
{
	call->address = (uintptr_t)address;
	return address ? runtime_driver(call)->free((uintptr_t)address) : CU_SUCCESS;
}

int runtime_free_async(struct call *call, void *address, struct cu_stream *stream)
{
	call->address = (uintptr_t)address;
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->free_async((uintptr_t)address, stream);
}

int runtime_register(struct call *call, void *address, size_t bytes, unsigned flags)
{
	call->address = (uintptr_t)address;
	call->bytes = bytes;
	return runtime_driver(call)->host_register(address, bytes, flags);
}
