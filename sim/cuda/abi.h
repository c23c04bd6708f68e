// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The part of CUDA's binary interface that the simulated libraries need, under different names, since
 * machines that build gpusonde have no CUDA headers. test/unit/simcuda/abi.py compares sizes and offsets with
 * those of the toolkit where there is one.
 *
 * Handles are pointers to opaque structs. Results are int: CUresult and cudaError_t have the same numbers
 * wherever they are used here.
 */
enum cu_result {
	CU_SUCCESS = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_INVALID_CONFIGURATION = 9, /* of the runtime */
	CU_INSUFFICIENT_DRIVER = 35, /* of the runtime */
	CU_INVALID_DEVICE_FUNCTION = 98, /* of the runtime */
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_IMAGE = 200,
	CU_INVALID_CONTEXT = 201,
	CU_INVALID_HANDLE = 400,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_ILLEGAL_ADDRESS = 700,
	CU_CONTEXT_IS_DESTROYED = 709,
	CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CU_HOST_MEMORY_NOT_REGISTERED = 713,
	CU_LAST_STICKY = 719,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_UNSUPPORTED = 900,
	CU_CAPTURE_WRONG_THREAD = 908,
	CU_CAPTURE_UNMATCHED = 903,
	CU_CAPTURE_IMPLICIT = 906,
	CU_UNKNOWN = 999,
};

enum {
	CU_NON_BLOCKING_STREAM = 1,
	CU_EVENT_WITHOUT_TIMING = 2,
	CU_MEMORY_TYPE_HOST = 1,
	CU_MEMORY_TYPE_DEVICE = 2,
	CU_MEMORY_TYPE_ARRAY = 3,
	CU_MEMORY_TYPE_UNIFIED = 4,
	CU_ENTRY_PER_THREAD = 2, /* cuGetProcAddress: flags */
	CU_ENTRY_NOT_FOUND = 1, /* cuGetProcAddress: status */
};

/* Handles of the default streams; NULL is either of them. */
#define CU_LEGACY_STREAM ((struct cu_stream *)(uintptr_t)1)
#define CU_PER_THREAD_STREAM ((struct cu_stream *)(uintptr_t)2)

struct cu_array;
struct cu_context;
struct cu_event;
struct cu_exec;
struct cu_function;
struct cu_graph;
struct cu_library;
struct cu_module;
struct cu_node;
struct cu_pool;
struct cu_stream;

struct cu_uuid {
	unsigned char bytes[16];
};

struct cu_launch_config {
	uint32_t grid[3], block[3], shared_bytes;
	struct cu_stream *stream;
	const void *attributes;
	uint32_t attribute_count;
};

struct cu_memcpy_2d {
	size_t src_x, src_y;
	uint32_t src_type;
	const void *src_host;
	uint64_t src_device;
	struct cu_array *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	uint32_t dst_type;
	void *dst_host;
	uint64_t dst_device;
	struct cu_array *dst_array;
	size_t dst_pitch;
	size_t width_bytes, height;
};

/* Of one device, or between two: there the reserved words are contexts. */
struct cu_memcpy_3d {
	size_t src_x, src_y, src_z, src_lod;
	uint32_t src_type;
	const void *src_host;
	uint64_t src_device;
	struct cu_array *src_array;
	void *src_reserved;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	uint32_t dst_type;
	void *dst_host;
	uint64_t dst_device;
	struct cu_array *dst_array;
	void *dst_reserved;
	size_t dst_pitch, dst_height;
	size_t width_bytes, height, depth;
};

struct cu_location {
	int32_t type, id;
};

struct cu_extent {
	size_t width, height, depth;
};

struct cu_operand_3d {
	uint32_t type; /* 1: a pointer, 2: an array */
	union {
		struct {
			uint64_t address;
			size_t row_length, layer_height;
			struct cu_location hint;
		} pointer;
		struct {
			struct cu_array *array;
			size_t offset[3];
		} array;
	};
};

struct cu_batch_3d {
	struct cu_operand_3d src, dst;
	struct cu_extent extent;
	uint32_t access_order, flags;
};

struct cu_array_descriptor {
	size_t width, height;
	uint32_t format, channels;
};

struct cu_array_descriptor_3d {
	size_t width, height, depth;
	uint32_t format, channels, flags;
};

struct cu_allocation_prop {
	uint32_t type, handle_types;
	struct cu_location location;
	void *win32;
	uint8_t flags[8];
};

struct cu_pool_props {
	uint32_t type, handle_types;
	struct cu_location location;
	void *win32;
	size_t max_size;
	uint16_t usage;
	uint8_t reserved[54];
};

struct cu_kernel_node {
	struct cu_function *function;
	uint32_t grid[3], block[3], shared_bytes;
	void **parameters, **extra;
	struct cu_function *kernel;
	struct cu_context *context;
};

struct cu_instantiate_params {
	uint64_t flags;
	struct cu_stream *upload;
	struct cu_node *error_node;
	uint32_t result;
};

/* Of the runtime. */
struct cuda_dim3 {
	uint32_t x, y, z;
};

struct cuda_launch_config {
	struct cuda_dim3 grid, block;
	size_t shared_bytes;
	struct cu_stream *stream;
	const void *attributes;
	uint32_t attribute_count;
};

struct cuda_pitched {
	void *address;
	size_t pitch, width, height;
};

struct cuda_memcpy_3d {
	struct cu_array *src_array;
	size_t src_position[3];
	struct cuda_pitched src;
	struct cu_array *dst_array;
	size_t dst_position[3];
	struct cuda_pitched dst;
	struct cu_extent extent;
	uint32_t kind;
};

struct cuda_memcpy_3d_peer {
	struct cu_array *src_array;
	size_t src_position[3];
	struct cuda_pitched src;
	int src_device;
	struct cu_array *dst_array;
	size_t dst_position[3];
	struct cuda_pitched dst;
	int dst_device;
	struct cu_extent extent;
};

struct cuda_channels {
	int bits[4];
	uint32_t kind;
};

struct cuda_kernel_node {
	void *function;
	struct cuda_dim3 grid, block;
	uint32_t shared_bytes;
	void **parameters, **extra;
};

/* What nvcc's start-up code hands to __cudaRegisterFatBinary. */
enum { CUDA_FATBIN_WRAPPER_MAGIC = 0x466243b1 };
#define CUDA_FATBIN_MAGIC UINT32_C(0xba55ed50)

struct cuda_fatbin_wrapper {
	uint32_t magic, version;
	const void *image;
	void *file;
};
