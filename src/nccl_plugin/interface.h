// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL's profiler interface, versions 1 (NCCL 2.23) to 6 (2.30), as far as it is used here: what a
 * descriptor of an event has, by version. Of the names in NCCL's headers only the exported ones,
 * ncclProfiler_vN, matter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROFILER_SUCCESS = 0 };

/* Types of events: bits, of which init() says which are wanted. */
enum {
	PROFILER_COLL = 1 << 1,
	PROFILER_P2P = 1 << 2,
	PROFILER_PROXY_OP = 1 << 3,
	PROFILER_KERNEL_CH = 1 << 6, /* from version 3 on */
};
enum { PROFILER_KERNEL_CH_STOP = 22 }; /* a state; from version 4 on with the GPU's time */

struct profiler_proxy_op {
	pid_t pid; /* whose proxy it is: of another process, parent means nothing here */
	uint8_t channel;
	int peer, steps, chunk_size, is_send;
};

struct profiler_kernel_ch {
	uint8_t channel;
	uint64_t gpu_ns; /* from version 4 on: the GPU's clock */
};

/* Names are numbers in version 1. */
struct profiler_descr_v1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, sequence;
			uint8_t function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t op;
			size_t traffic;
			uint8_t channels, warps, algorithm, protocol;
			int is_collnet, is_nvls;
		} coll;
		struct {
			const char *name;
			uint64_t comm;
			uint8_t function;
			void *buffer;
			uint8_t datatype;
			size_t count;
			int peer;
		} p2p;
		struct profiler_proxy_op proxy_op;
	};
};

struct profiler_p2p_v2 {
	const char *name;
	uint64_t comm;
	const char *function;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
};

struct profiler_descr_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, sequence;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			size_t traffic;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct profiler_p2p_v2 p2p;
		struct profiler_proxy_op proxy_op;
	};
};

struct profiler_descr_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, sequence;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} coll;
		struct profiler_p2p_v2 p2p;
		struct profiler_proxy_op proxy_op;
		struct profiler_kernel_ch kernel_ch;
	};
};

/* From version 4 on the communicator is told by init(). */
struct profiler_coll_v4 {
	uint64_t sequence;
	const char *function;
	const void *send;
	void *recv;
	size_t count;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct profiler_p2p_v4 {
	const char *function;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t channels;
};

struct profiler_descr_v4 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct profiler_coll_v4 coll;
		struct profiler_p2p_v4 p2p;
		struct profiler_proxy_op proxy_op;
		struct profiler_kernel_ch kernel_ch;
	};
};

/* Version 6, too, which adds types of events only. */
struct profiler_descr_v5 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct profiler_coll_v4 coll;
		struct profiler_p2p_v4 p2p;
		struct profiler_proxy_op proxy_op;
		struct profiler_kernel_ch kernel_ch;
	};
};

union profiler_state_args {
	struct {
		uint64_t gpu_ns;
	} kernel_ch;
};

struct profiler_v1 {
	const char *name;
	int (*init)(void **context, int *mask);
	int (*start)(void *context, void **handle, const void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, const union profiler_state_args *args);
	int (*finalize)(void *context);
};

struct profiler_v4 {
	const char *name;
	int (*init)(void **context, int *mask, const char *comm_name, uint64_t comm, int nodes, int ranks,
		    int rank, void *log);
	int (*start)(void *context, void **handle, const void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, const union profiler_state_args *args);
	int (*finalize)(void *context);
};

struct profiler_v5 {
	const char *name;
	int (*init)(void **context, uint64_t comm, int *mask, const char *comm_name, int nodes, int ranks,
		    int rank, void *log);
	int (*start)(void *context, void **handle, const void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, const union profiler_state_args *args);
	int (*finalize)(void *context);
};

extern const struct profiler_v1 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const struct profiler_v4 ncclProfiler_v4;
extern const struct profiler_v5 ncclProfiler_v5, ncclProfiler_v6;
