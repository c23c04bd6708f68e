// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

#include "sim/cuda/settings.h"

/* Nothing is copied, but time and bytes are the same as for a real copy. */
static int work(struct call *call, uint64_t bytes, struct cu_stream *handle, enum copy_wait wait,
		enum sim_work_kind kind)
{
	struct sim_work observed = { .kind = kind, .correlation = observe_call(0), .bytes = bytes };
	const struct cu_graph what = { .copies = 1, .bytes = bytes };
	struct cu_stream *stream;
	int64_t done_ns, ns = 0;
	int result = stream_resolve(call, handle, &stream);

	call->bytes = bytes;
	if (result != CU_SUCCESS)
		return result;
	if (settings.copy_bytes_per_ns > 0)
		ns = (int64_t)((double)bytes / settings.copy_bytes_per_ns);
	if (wait == COPY_SYNC && stream->context->captures > 0)
		return CU_CAPTURE_IMPLICIT;
	result = stream_work(stream, ns, &what, &observed);
	observe_work(stream, &observed);
	if (result != CU_SUCCESS || wait == COPY_ASYNC)
		return result;
	driver_lock();
	done_ns = stream_done(stream);
	driver_unlock();
	stream_wait_until(done_ns);
	return CU_SUCCESS;
}

int copy(struct call *call, uint64_t dst, uint64_t src, size_t bytes, struct cu_stream *stream,
	 enum copy_wait wait)
{
	call->address = dst;
	if (bytes > 0 && (dst == 0 || src == 0))
		return CU_INVALID_VALUE;
	return work(call, bytes, stream, wait, SIM_COPY);
}

static bool bytes_of(size_t width, size_t height, size_t depth, uint64_t *ret_bytes)
{
	return !__builtin_mul_overflow((uint64_t)width, height, ret_bytes) &&
	       !__builtin_mul_overflow(*ret_bytes, depth, ret_bytes);
}

static bool is_type(uint32_t type)
{
	return type >= CU_MEMORY_TYPE_HOST && type <= CU_MEMORY_TYPE_UNIFIED;
}

int copy_2d(struct call *call, const struct cu_memcpy_2d *what, struct cu_stream *stream, enum copy_wait wait)
{
	uint64_t bytes;

	if (!what || !is_type(what->src_type) || !is_type(what->dst_type) ||
	    !bytes_of(what->width_bytes, what->height, 1, &bytes))
		return CU_INVALID_VALUE;
	return work(call, bytes, stream, wait, SIM_COPY);
}

int copy_3d(struct call *call, const struct cu_memcpy_3d *what, struct cu_stream *stream, enum copy_wait wait)
{
	uint64_t bytes;

	if (!what || !is_type(what->src_type) || !is_type(what->dst_type) ||
	    !bytes_of(what->width_bytes, what->height, what->depth, &bytes))
		return CU_INVALID_VALUE;
	return work(call, bytes, stream, wait, SIM_COPY);
}

int copy_batch(struct call *call, const uint64_t *dsts, const uint64_t *srcs, const size_t *sizes,
	       size_t count, struct cu_stream *stream)
{
	uint64_t bytes = 0;

	if (!dsts || !srcs || !sizes || count == 0)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (__builtin_add_overflow(bytes, sizes[i], &bytes))
			return CU_INVALID_VALUE;
	}
	return work(call, bytes, stream, COPY_ASYNC, SIM_COPY);
}

int copy_batch_3d(struct call *call, const struct cu_batch_3d *operations, size_t count,
		  struct cu_stream *stream)
{
	uint64_t bytes = 0, one;

	if (!operations || count == 0)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		const struct cu_extent *extent = &operations[i].extent;

		if (!bytes_of(extent->width, extent->height, extent->depth, &one) ||
		    __builtin_add_overflow(bytes, one, &bytes))
			return CU_INVALID_VALUE;
	}
	return work(call, bytes, stream, COPY_ASYNC, SIM_COPY);
}

int fill(struct call *call, uint64_t dst, size_t pitch, size_t width, size_t height, uint32_t element,
	 struct cu_stream *stream)
{
	uint64_t bytes;

	call->address = dst;
	if (!bytes_of(width, height, element, &bytes) || (bytes > 0 && dst == 0) || dst % element != 0 ||
	    (height > 1 && pitch < width * element))
		return CU_INVALID_VALUE;
	return work(call, bytes, stream, COPY_ASYNC, SIM_SET);
}
