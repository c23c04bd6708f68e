// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "model/nccl.h"
#include "nccl_plugin/interface.h"
#include "nccl_plugin/plugin.h"

#define EXPORTED __attribute__((visibility("default")))

/* Of a communicator; before version 4 its events say which one it is. */
struct context {
	uint64_t comm;
	uint32_t ranks, nodes;
	int32_t rank;
};

/* ---- names ---- */

static uint8_t name_find(const char *name, const char *const *names, unsigned n)
{
	for (unsigned i = 1; name && i < n; i++)
		if (names[i] && strcasecmp(name, names[i]) == 0)
			return (uint8_t)i;
	return 0;
}

static uint8_t algorithm_of(const char *name)
{
	static const char *const names[NCCL_ALGORITHMS] = {
#define NCCL_ALGORITHM(id_, name_) [NCCL_ALGORITHM_##id_] = name_,
#define NCCL_PROTOCOL(id_, name_)
#include "model/nccl_names.def"
	};

	return name_find(name, names, NCCL_ALGORITHMS);
}

static uint8_t protocol_of(const char *name)
{
	static const char *const names[NCCL_PROTOCOLS] = {
#define NCCL_ALGORITHM(id_, name_)
#define NCCL_PROTOCOL(id_, name_) [NCCL_PROTOCOL_##id_] = name_,
#include "model/nccl_names.def"
	};

	return name_find(name, names, NCCL_PROTOCOLS);
}

/* NCCL_OPERATIONS: unknown. */
static uint8_t operation_of(const char *name)
{
	static const struct {
		const char *name;
		uint8_t operation;
	} of[] = {
		{ "AllReduce", NCCL_ALL_REDUCE },
		{ "ReduceScatter", NCCL_REDUCE_SCATTER },
		{ "Reduce", NCCL_REDUCE },
		{ "AllGather", NCCL_ALL_GATHER },
		{ "Broadcast", NCCL_BROADCAST },
		{ "AlltoAll", NCCL_ALL_TO_ALL },
		{ "AllToAll", NCCL_ALL_TO_ALL },
		{ "Gather", NCCL_GATHER },
		{ "Scatter", NCCL_SCATTER },
		{ "Send", NCCL_SEND },
		{ "Recv", NCCL_RECV },
	};

	for (unsigned i = 0; name && i < sizeof(of) / sizeof(of[0]); i++)
		if (strcmp(name, of[i].name) == 0)
			return of[i].operation;
	return NCCL_OPERATIONS;
}

/* "ncclFloat32": bytes of an element; 0: unknown. */
static uint32_t type_bytes(const char *name)
{
	static const struct {
		const char *part;
		uint32_t bytes;
	} of[] = { { "8", 1 }, { "16", 2 }, { "32", 4 }, { "64", 8 } };

	/* "ncclFloat8e4m3", "ncclFloat8e5m2" */
	if (name && strstr(name, "8e"))
		return 1;
	for (unsigned i = 0; name && i < sizeof(of) / sizeof(of[0]); i++)
		if (strlen(name) >= strlen(of[i].part) &&
		    strcmp(name + strlen(name) - strlen(of[i].part), of[i].part) == 0)
			return of[i].bytes;
	return 0;
}

static const char *function_v1(uint8_t function)
{
	static const char *const names[] = { "Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					     "AllReduce", "SendRecv", "Send",      "Recv" };

	return function < sizeof(names) / sizeof(names[0]) ? names[function] : NULL;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* ---- events ---- */

static void *context_begin(const struct context *context, struct plugin_operation *operation)
{
	if (operation->told.operation >= NCCL_OPERATIONS) {
		ring_lose(); /* one that is not known */
		return NULL;
	}
	if (context->comm)
		operation->told.comm = context->comm;
	operation->context = context;
	operation->told.ranks = context->ranks;
	operation->told.nodes = context->nodes;
	operation->told.channels = operation->told.channels ? operation->told.channels : 1;
	return (void *)operation_begin(operation);
}

/* Of a proxy of another process @parent is that one's pointer. */
static void proxy(void *parent, const struct profiler_proxy_op *op)
{
	if (op->pid == getpid())
		operation_proxy((uintptr_t)parent);
}

static int start_v1(void *context, void **handle, const void *event)
{
	const struct profiler_descr_v1 *d = event;
	struct plugin_operation operation = { .told.rank = d->rank };

	*handle = NULL;
	if (sender_is_child())
		return PROFILER_SUCCESS;
	if (d->type == PROFILER_COLL) {
		operation.told.comm = d->coll.comm;
		operation.told.sequence = d->coll.sequence;
		operation.told.operation = operation_of(function_v1(d->coll.function));
		operation.told.bytes = product(d->coll.count, nccl_type_bytes(d->coll.datatype));
		operation.told.channels = d->coll.channels;
		operation.told.algorithm =
			d->coll.algorithm + 1 < NCCL_ALGORITHMS ? (uint8_t)(d->coll.algorithm + 1) : 0;
		operation.told.protocol =
			d->coll.protocol + 1 < NCCL_PROTOCOLS ? (uint8_t)(d->coll.protocol + 1) : 0;
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_P2P) {
		operation.told.comm = d->p2p.comm;
		operation.told.operation = operation_of(function_v1(d->p2p.function));
		operation.told.bytes = product(d->p2p.count, nccl_type_bytes(d->p2p.datatype));
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_PROXY_OP) {
		proxy(d->parent, &d->proxy_op);
	}
	return PROFILER_SUCCESS;
}

/* Of versions 2 and 3, whose names are the same. */
#define FILL_COLL(operation_, coll_)                                                            \
	do {                                                                                    \
		(operation_).told.sequence = (coll_).sequence;                                  \
		(operation_).told.operation = operation_of((coll_).function);                   \
		(operation_).told.bytes = product((coll_).count, type_bytes((coll_).datatype)); \
		(operation_).told.channels = (coll_).channels;                                  \
		(operation_).told.algorithm = algorithm_of((coll_).algorithm);                  \
		(operation_).told.protocol = protocol_of((coll_).protocol);                     \
	} while (0)
#define FILL_P2P(operation_, p2p_)                                                            \
	do {                                                                                  \
		(operation_).told.operation = operation_of((p2p_).function);                  \
		(operation_).told.bytes = product((p2p_).count, type_bytes((p2p_).datatype)); \
	} while (0)

static int start_v2(void *context, void **handle, const void *event)
{
	const struct profiler_descr_v2 *d = event;
	struct plugin_operation operation = { .told.rank = d->rank };

	*handle = NULL;
	if (sender_is_child())
		return PROFILER_SUCCESS;
	if (d->type == PROFILER_COLL) {
		operation.told.comm = d->coll.comm;
		FILL_COLL(operation, d->coll);
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_P2P) {
		operation.told.comm = d->p2p.comm;
		FILL_P2P(operation, d->p2p);
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_PROXY_OP) {
		proxy(d->parent, &d->proxy_op);
	}
	return PROFILER_SUCCESS;
}

/* Channels of version 3 have no time of the GPU, and point to point operations no number of them. */
static int start_v3(void *context, void **handle, const void *event)
{
	const struct profiler_descr_v3 *d = event;
	struct plugin_operation operation = { .told.rank = d->rank };

	*handle = NULL;
	if (sender_is_child())
		return PROFILER_SUCCESS;
	if (d->type == PROFILER_COLL) {
		operation.told.comm = d->coll.comm;
		operation.timed = true;
		FILL_COLL(operation, d->coll);
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_P2P) {
		operation.told.comm = d->p2p.comm;
		FILL_P2P(operation, d->p2p);
		*handle = context_begin(context, &operation);
	} else if (d->type == PROFILER_PROXY_OP) {
		proxy(d->parent, &d->proxy_op);
	} else if (d->type == PROFILER_KERNEL_CH) {
		*handle = (void *)operation_channel_begin((uintptr_t)d->parent, 0);
	}
	return PROFILER_SUCCESS;
}

static void *start_timed(void *context, uint64_t type, void *parent, int rank,
			 const struct profiler_coll_v4 *coll, const struct profiler_p2p_v4 *p2p,
			 const struct profiler_proxy_op *proxy_op, const struct profiler_kernel_ch *kernel_ch)
{
	struct plugin_operation operation = { .told.rank = rank, .timed = true };

	if (sender_is_child())
		return NULL;
	switch (type) {
	case PROFILER_COLL:
		FILL_COLL(operation, *coll);
		return context_begin(context, &operation);
	case PROFILER_P2P:
		FILL_P2P(operation, *p2p);
		operation.told.channels = p2p->channels;
		return context_begin(context, &operation);
	case PROFILER_PROXY_OP:
		proxy(parent, proxy_op);
		return NULL;
	case PROFILER_KERNEL_CH:
		return (void *)operation_channel_begin((uintptr_t)parent, kernel_ch->gpu_ns);
	default:
		return NULL;
	}
}

static int start_v4(void *context, void **handle, const void *event)
{
	const struct profiler_descr_v4 *d = event;

	*handle = start_timed(context, d->type, d->parent, d->rank, &d->coll, &d->p2p, &d->proxy_op,
			      &d->kernel_ch);
	return PROFILER_SUCCESS;
}

static int start_v5(void *context, void **handle, const void *event)
{
	const struct profiler_descr_v5 *d = event;

	*handle = start_timed(context, d->type, d->parent, d->rank, &d->coll, &d->p2p, &d->proxy_op,
			      &d->kernel_ch);
	return PROFILER_SUCCESS;
}

static int stop(void *handle)
{
	if (!sender_is_child())
		operation_event_end((uintptr_t)handle);
	return PROFILER_SUCCESS;
}

static int no_state(void *handle, int state, const union profiler_state_args *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return PROFILER_SUCCESS;
}

static int channel_state(void *handle, int state, const union profiler_state_args *args)
{
	if (state == PROFILER_KERNEL_CH_STOP && args && !sender_is_child())
		operation_channel_time((uintptr_t)handle, args->kernel_ch.gpu_ns);
	return PROFILER_SUCCESS;
}

/* ---- communicators ---- */

/* Without memory NCCL goes on without the plugin. */
static int context_new(void **context, int *mask, int wanted, const struct context *told)
{
	struct context *new = malloc(sizeof(*new));

	if (!new)
		return 2; /* ncclSystemError */
	*new = *told;
	*context = new;
	*mask = wanted;
	sender_start();
	return PROFILER_SUCCESS;
}

static int init_v1(void **context, int *mask)
{
	return context_new(context, mask, PROFILER_COLL | PROFILER_P2P | PROFILER_PROXY_OP,
			   &(const struct context){ 0 });
}

enum { TIMED = PROFILER_COLL | PROFILER_P2P | PROFILER_PROXY_OP | PROFILER_KERNEL_CH };

static int init_v3(void **context, int *mask)
{
	return context_new(context, mask, TIMED, &(const struct context){ 0 });
}

static int init_v4(void **context, int *mask, const char *comm_name, uint64_t comm, int nodes, int ranks,
		   int rank, void *log)
{
	(void)comm_name;
	(void)log;
	return context_new(context, mask, TIMED,
			   &(const struct context){ comm, (uint32_t)ranks, (uint32_t)nodes, rank });
}

static int init_v5(void **context, uint64_t comm, int *mask, const char *comm_name, int nodes, int ranks,
		   int rank, void *log)
{
	return init_v4(context, mask, comm_name, comm, nodes, ranks, rank, log);
}

static int finalize(void *context)
{
	if (!sender_is_child())
		operations_end(context);
	free(context);
	sender_flush();
	return PROFILER_SUCCESS;
}

EXPORTED const struct profiler_v1 ncclProfiler_v1 = {
	"gpusonde", init_v1, start_v1, stop, no_state, finalize,
};
EXPORTED const struct profiler_v1 ncclProfiler_v2 = {
	"gpusonde", init_v1, start_v2, stop, no_state, finalize,
};
EXPORTED const struct profiler_v1 ncclProfiler_v3 = {
	"gpusonde", init_v3, start_v3, stop, no_state, finalize,
};
EXPORTED const struct profiler_v4 ncclProfiler_v4 = {
	"gpusonde", init_v4, start_v4, stop, channel_state, finalize,
};
EXPORTED const struct profiler_v5 ncclProfiler_v5 = {
	"gpusonde", init_v5, start_v5, stop, channel_state, finalize,
};
EXPORTED const struct profiler_v5 ncclProfiler_v6 = {
	"gpusonde", init_v5, start_v5, stop, channel_state, finalize,
};
