// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/runtime.h"

/* cudaMemcpyKind */
enum { KIND_HOST_HOST, KIND_HOST_DEVICE, KIND_DEVICE_HOST, KIND_DEVICE_DEVICE, KIND_DEFAULT, KIND_COUNT };

int runtime_copy(struct call *call, void *dst, const void *src, size_t bytes, int kind,
		 struct cu_stream *stream)
{
	const struct driver_calls *driver = runtime_driver(call);
	uint64_t to = (uintptr_t)dst, from = (uintptr_t)src;
	bool sync = stream == RUNTIME_SYNC;

	call->bytes = bytes;
	call->address = to;
	call->stream = sync ? 0 : (uintptr_t)stream;
	if (kind < 0 || kind >= KIND_COUNT)
		return CU_INVALID_VALUE;
	if (bytes == 0)
		return CU_SUCCESS;
	switch (kind) {
	case KIND_HOST_DEVICE:
		return sync ? driver->copy_to_device(to, src, bytes) :
			      driver->copy_to_device_async(to, src, bytes, stream);
	case KIND_DEVICE_HOST:
		return sync ? driver->copy_to_host(dst, from, bytes) :
			      driver->copy_to_host_async(dst, from, bytes, stream);
	case KIND_DEVICE_DEVICE:
		return sync ? driver->copy_on_device(to, from, bytes) :
			      driver->copy_on_device_async(to, from, bytes, stream);
	default:
		return sync ? driver->copy(to, from, bytes) : driver->copy_async(to, from, bytes, stream);
	}
}

/* The simulated driver does not look at the contexts. */
int runtime_copy_peer(struct call *call, void *dst, _unused_ int to, const void *src, _unused_ int from,
		      size_t bytes, struct cu_stream *stream)
{
	const struct driver_calls *driver = runtime_driver(call);

	call->bytes = bytes;
	call->address = (uintptr_t)dst;
	if (stream == RUNTIME_SYNC)
		return driver->copy_peer((uintptr_t)dst, NULL, (uintptr_t)src, NULL, bytes);
	call->stream = (uintptr_t)stream;
	return driver->copy_peer_async((uintptr_t)dst, NULL, (uintptr_t)src, NULL, bytes, stream);
}

static int do_copy_2d(struct call *call, const struct cu_memcpy_2d *what, struct cu_stream *stream)
{
	call->bytes = what->width_bytes * what->height;
	if (stream == RUNTIME_SYNC)
		return runtime_driver(call)->copy_2d(what);
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->copy_2d_async(what, stream);
}

int runtime_copy_2d(struct call *call, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
		    size_t width, size_t height, int kind, struct cu_stream *stream)
{
	const struct cu_memcpy_2d what = {
		.src_type = CU_MEMORY_TYPE_UNIFIED,
		.src_device = (uintptr_t)src,
		.src_pitch = src_pitch,
		.dst_type = CU_MEMORY_TYPE_UNIFIED,
		.dst_device = (uintptr_t)dst,
		.dst_pitch = dst_pitch,
		.width_bytes = width,
		.height = height,
	};

	call->address = (uintptr_t)dst;
	if (kind < 0 || kind >= KIND_COUNT || width > dst_pitch || width > src_pitch)
		return CU_INVALID_VALUE;
	return do_copy_2d(call, &what, stream);
}

int runtime_copy_2d_array(struct call *call, struct cu_array *array, const void *memory, size_t pitch,
			  size_t width, size_t height, bool to_array, struct cu_stream *stream)
{
	struct cu_memcpy_2d what = { .width_bytes = width, .height = height };

	if (!array)
		return CU_INVALID_HANDLE;
	what.src_type = to_array ? CU_MEMORY_TYPE_UNIFIED : CU_MEMORY_TYPE_ARRAY;
	what.dst_type = to_array ? CU_MEMORY_TYPE_ARRAY : CU_MEMORY_TYPE_UNIFIED;
	if (to_array) {
		what.src_device = (uintptr_t)memory;
		what.src_pitch = pitch;
		what.dst_array = array;
	} else {
		what.src_array = array;
		what.dst_device = (uintptr_t)memory;
		what.dst_pitch = pitch;
	}
	return do_copy_2d(call, &what, stream);
}

static struct cu_memcpy_3d three(const struct cuda_pitched *src, struct cu_array *src_array,
				 const struct cuda_pitched *dst, struct cu_array *dst_array,
				 struct cu_extent extent)
{
	return (struct cu_memcpy_3d){
		.src_type = src_array ? CU_MEMORY_TYPE_ARRAY : CU_MEMORY_TYPE_UNIFIED,
		.src_device = (uintptr_t)src->address,
		.src_array = src_array,
		.src_pitch = src->pitch,
		.src_height = src->height,
		.dst_type = dst_array ? CU_MEMORY_TYPE_ARRAY : CU_MEMORY_TYPE_UNIFIED,
		.dst_device = (uintptr_t)dst->address,
		.dst_array = dst_array,
		.dst_pitch = dst->pitch,
		.dst_height = dst->height,
		.width_bytes = extent.width,
		.height = extent.height,
		.depth = extent.depth,
	};
}

int runtime_copy_3d(struct call *call, const struct cuda_memcpy_3d *what, struct cu_stream *stream)
{
	struct cu_memcpy_3d driver_what;

	if (!what)
		return CU_INVALID_VALUE;
	driver_what = three(&what->src, what->src_array, &what->dst, what->dst_array, what->extent);
	call->bytes = what->extent.width * what->extent.height * what->extent.depth;
	if (stream == RUNTIME_SYNC)
		return runtime_driver(call)->copy_3d(&driver_what);
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->copy_3d_async(&driver_what, stream);
}

int runtime_copy_3d_peer(struct call *call, const struct cuda_memcpy_3d_peer *what, struct cu_stream *stream)
{
	struct cu_memcpy_3d driver_what;

	if (!what)
		return CU_INVALID_VALUE;
	driver_what = three(&what->src, what->src_array, &what->dst, what->dst_array, what->extent);
	call->bytes = what->extent.width * what->extent.height * what->extent.depth;
	if (stream == RUNTIME_SYNC)
		return runtime_driver(call)->copy_3d_peer(&driver_what);
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->copy_3d_peer_async(&driver_what, stream);
}

int runtime_copy_batch(struct call *call, void **dsts, void **srcs, size_t *sizes, size_t count,
		       void *attributes, size_t *indexes, size_t attribute_count, struct cu_stream *stream)
{
	call->stream = (uintptr_t)stream;
	for (size_t i = 0; sizes && i < count; i++)
		call->bytes += sizes[i];
	return runtime_driver(call)->copy_batch((uint64_t *)(void *)dsts, (uint64_t *)(void *)srcs, sizes,
						count, attributes, indexes, attribute_count, stream);
}

int runtime_fill(struct call *call, void *dst, int value, size_t bytes, struct cu_stream *stream)
{
	call->bytes = bytes;
	call->address = (uintptr_t)dst;
	if (stream == RUNTIME_SYNC)
		return runtime_driver(call)->fill((uintptr_t)dst, (unsigned char)value, bytes);
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->fill_async((uintptr_t)dst, (unsigned char)value, bytes, stream);
}

int runtime_fill_2d(struct call *call, void *dst, size_t pitch, int value, size_t width, size_t height,
		    struct cu_stream *stream)
{
	call->bytes = width * height;
	call->address = (uintptr_t)dst;
	if (stream == RUNTIME_SYNC)
		return runtime_driver(call)->fill_2d((uintptr_t)dst, pitch, (unsigned char)value, width,
						     height);
	call->stream = (uintptr_t)stream;
	return runtime_driver(call)->fill_2d_async((uintptr_t)dst, pitch, (unsigned char)value, width, height,
						   stream);
}
