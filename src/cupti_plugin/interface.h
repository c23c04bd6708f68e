// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI, as far as it is used here, for the versions of its API that CUDA 11 to 13 have. Each version appends
 * to a kind's record, so what all of them share is declared, with the least size that a record has.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	CUPTI_SUCCESS = 0,
	CUPTI_ERROR_INVALID_PARAMETER = 1,
	CUPTI_ERROR_NO_MORE = 12, /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	CUPTI_ERROR_SUBSCRIBED = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
};

/* From this version on a buffer may be refused by NULL. */
enum { CUPTI_API_NULL_BUFFER = 27 };

/* CUpti_ActivityKind */
enum {
	ACTIVITY_MEMCPY = 1,
	ACTIVITY_MEMSET = 2,
	ACTIVITY_KERNEL = 10, /* CONCURRENT_KERNEL */
	ACTIVITY_MEMCPY_PEER = 22, /* MEMCPY2 */
	ACTIVITY_GRAPH = 51, /* GRAPH_TRACE */
};

/* CUpti_ActivityKernel5 to 10: 160 to 216 bytes. */
struct activity_kernel {
	uint32_t kind;
	uint8_t before_start[12];
	uint64_t start_ns, end_ns;
	uint64_t completed_ns;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t shared[2];
	uint32_t memory_per_thread, memory_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued_ns, submitted_ns;
	uint8_t before_node[8];
	uint64_t node;
	uint32_t shared_executed, graph;
};
_Static_assert(offsetof(struct activity_kernel, start_ns) == 16, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, device) == 40, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, grid) == 52, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, correlation) == 92, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, name) == 104, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, queued_ns) == 120, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, node) == 144, "CUpti_ActivityKernel");
_Static_assert(offsetof(struct activity_kernel, graph) == 156, "CUpti_ActivityKernel");
_Static_assert(sizeof(struct activity_kernel) == 160, "CUpti_ActivityKernel5");

/* CUpti_ActivityMemcpy4 to 6 (80 to 96 bytes), and CUpti_ActivityMemset4, whose first byte is a value. */
struct activity_memory {
	uint32_t kind;
	uint8_t copy, before_bytes[3];
	uint64_t bytes;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, correlation;
	uint8_t before_node[16];
	uint64_t node;
	uint32_t graph, channel;
	uint8_t rest[8];
};
_Static_assert(offsetof(struct activity_memory, start_ns) == 16, "CUpti_ActivityMemcpy");
_Static_assert(offsetof(struct activity_memory, correlation) == 44, "CUpti_ActivityMemcpy");
_Static_assert(offsetof(struct activity_memory, node) == 64, "CUpti_ActivityMemcpy");
_Static_assert(sizeof(struct activity_memory) == 88, "CUpti_ActivityMemcpy5");

/* CUpti_ActivityMemcpyPtoP, all versions; what follows differs. */
struct activity_peer {
	uint32_t kind;
	uint8_t copy, before_bytes[3];
	uint64_t bytes;
	uint64_t start_ns, end_ns;
	uint32_t device, context, stream, pad;
};

/* CUpti_ActivityGraphTrace and 2: 48 and 56 bytes. */
struct activity_graph {
	uint32_t kind, correlation;
	uint64_t start_ns, end_ns;
	uint32_t device, graph, context, stream;
	uint64_t reserved;
};
_Static_assert(offsetof(struct activity_graph, device) == 24, "CUpti_ActivityGraphTrace");
_Static_assert(sizeof(struct activity_graph) == 48, "CUpti_ActivityGraphTrace");

/* CUpti_CallbackData */
struct callback_data {
	uint32_t site, pad; /* 0: the function is entered */
	const char *function;
	const void *parameters;
	void *return_value;
	const char *symbol;
	void *context;
	uint32_t context_number, pad2;
	uint64_t *correlation_data;
	uint32_t correlation, pad3;
};
_Static_assert(offsetof(struct callback_data, correlation) == 64, "CUpti_CallbackData");

enum { CALLBACK_DRIVER = 1, CALLBACK_ENTER = 0 }; /* CUpti_CallbackDomain, CUpti_ApiCallbackSite */

typedef void (*cupti_requested)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*cupti_called)(void *userdata, int domain, uint32_t function, const struct callback_data *data);
typedef uint64_t (*cupti_time)(void);

/* FUNCTION(name in CUPTI, without "cupti"; needed, or 0; parameters) */
#define CUPTI_FUNCTIONS                                                            \
	FUNCTION(GetVersion, 1, (uint32_t *))                                      \
	FUNCTION(GetTimestamp, 1, (uint64_t *))                                    \
	FUNCTION(Subscribe, 1, (void **, cupti_called, void *))                    \
	FUNCTION(Unsubscribe, 1, (void *))                                         \
	FUNCTION(EnableCallback, 1, (uint32_t, void *, int, uint32_t))             \
	FUNCTION(ActivityRegisterCallbacks, 1, (cupti_requested, cupti_completed)) \
	FUNCTION(ActivityEnable, 1, (int))                                         \
	FUNCTION(ActivityDisable, 1, (int))                                        \
	FUNCTION(ActivityFlushAll, 1, (uint32_t))                                  \
	FUNCTION(ActivityGetNextRecord, 1, (uint8_t *, size_t, void **))           \
	FUNCTION(ActivityGetNumDroppedRecords, 1, (void *, uint32_t, size_t *))    \
	FUNCTION(ActivityRegisterTimestampCallback, 0, (cupti_time))

struct cupti {
#define FUNCTION(name_, needed_, parameters_) int(*name_) parameters_;
	CUPTI_FUNCTIONS
#undef FUNCTION
	uint32_t version;
};
