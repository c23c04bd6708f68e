// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/macro.h"
#include "sim/cuda/abi.h"
#include "sim/cuda/truth.h"

/*
 * The simulated libcudart: a thin layer over libcuda.so.1, which it opens at its first call, as the real one
 * does. So calls into libcuda are made inside calls into libcudart, and with another libcuda in the
 * library path it runs on that.
 */
struct driver_calls {
#define USE(field, name, version, parameters) int(*field) parameters;
#include "sim/cuda/calls.def"
#undef USE
};

/* The driver's functions for this call: those for per-thread default streams or the usual ones. */
const struct driver_calls *runtime_driver(const struct call *call);

/*
 * Opens libcuda, once in a process; before a call is counted, so that the depth is the driver's from the
 * first.
 */
void runtime_load(void);

/* libcuda is there and initialised (0, or 35, 100 and others), and this thread has its device's context. */
int runtime_admit(bool needs_context);

/* What cudaGetLastError gives: the thread's latest failure. */
int runtime_last_error(bool reset);
void runtime_note(int result);

/* Devices; runtime.c */
int runtime_set_device(struct call *call, int device);
int runtime_get_device(struct call *call, int *ret_device);
int runtime_device_count(struct call *call, int *ret_count);
int runtime_device_attribute(struct call *call, int *ret_value, int attribute, int device);
int runtime_reset(struct call *call);
int runtime_version(struct call *call, int *ret_version);
int runtime_driver_version(struct call *call, int *ret_version);
int runtime_entry_point(struct call *call, const char *symbol, void **ret_function, int version,
			uint64_t flags, uint32_t *ret_status);

/* Kernels; runtime_launch.c */
struct cu_function *runtime_kernel(struct call *call, const void *function);
int runtime_get_kernel(struct call *call, struct cu_function **ret_kernel, const void *function);
int runtime_get_function(struct call *call, struct cu_function **ret_function, const void *function);
int runtime_function_name(struct call *call, const char **ret_name, const void *function);
/* What start-up code registers; runtime_entry.c exports the calls. */
void runtime_register_function(void **fatbin, const void *function, const char *name);
int runtime_launch(struct call *call, const void *function, struct cuda_dim3 grid, struct cuda_dim3 block,
		   void **arguments, size_t shared_bytes, struct cu_stream *stream);
int runtime_launch_kernel(struct call *call, struct cu_function *kernel, struct cuda_dim3 grid,
			  struct cuda_dim3 block, void **arguments, size_t shared_bytes,
			  struct cu_stream *stream);
int runtime_launch_cooperative(struct call *call, const void *function, struct cuda_dim3 grid,
			       struct cuda_dim3 block, void **arguments, size_t shared_bytes,
			       struct cu_stream *stream);
int runtime_launch_config(struct call *call, const struct cuda_launch_config *config, const void *function,
			  void **arguments);
int runtime_graph_add_kernel(struct call *call, struct cu_node **ret_node, struct cu_graph *graph,
			     const void *dependencies, size_t count, const struct cuda_kernel_node *node);

/* Memory; runtime_memory.c */
int runtime_malloc(struct call *call, void **ret_address, size_t bytes);
int runtime_malloc_managed(struct call *call, void **ret_address, size_t bytes, unsigned flags);
int runtime_malloc_host(struct call *call, void **ret_address, size_t bytes, unsigned flags);
int runtime_malloc_pitch(struct call *call, void **ret_address, size_t *ret_pitch, size_t width,
			 size_t height);
int runtime_malloc_3d(struct call *call, struct cuda_pitched *ret_memory, struct cu_extent extent);
int runtime_malloc_array(struct call *call, struct cu_array **ret_array, const struct cuda_channels *channels,
			 struct cu_extent extent, unsigned flags, unsigned levels);
int runtime_malloc_async(struct call *call, void **ret_address, size_t bytes, struct cu_pool *pool,
			 struct cu_stream *stream);
int runtime_free(struct call *call, void *address);
int runtime_free_async(struct call *call, void *address, struct cu_stream *stream);
int runtime_register(struct call *call, void *address, size_t bytes, unsigned flags);

/* Copies and memsets; runtime_copy.c. Without a stream, the call waits. */
#define RUNTIME_SYNC ((struct cu_stream *)(uintptr_t)-1)
int runtime_copy(struct call *call, void *dst, const void *src, size_t bytes, int kind,
		 struct cu_stream *stream);
int runtime_copy_peer(struct call *call, void *dst, int to, const void *src, int from, size_t bytes,
		      struct cu_stream *stream);
int runtime_copy_2d(struct call *call, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
		    size_t width, size_t height, int kind, struct cu_stream *stream);
int runtime_copy_2d_array(struct call *call, struct cu_array *array, const void *memory, size_t pitch,
			  size_t width, size_t height, bool to_array, struct cu_stream *stream);
int runtime_copy_3d(struct call *call, const struct cuda_memcpy_3d *what, struct cu_stream *stream);
int runtime_copy_3d_peer(struct call *call, const struct cuda_memcpy_3d_peer *what, struct cu_stream *stream);
int runtime_copy_batch(struct call *call, void **dsts, void **srcs, size_t *sizes, size_t count,
		       void *attributes, size_t *indexes, size_t attribute_count, struct cu_stream *stream);
int runtime_fill(struct call *call, void *dst, int value, size_t bytes, struct cu_stream *stream);
int runtime_fill_2d(struct call *call, void *dst, size_t pitch, int value, size_t width, size_t height,
		    struct cu_stream *stream);
