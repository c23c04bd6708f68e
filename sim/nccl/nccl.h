// SPDX-License-Identifier: Apache-2.0
/* The part of NCCL's interface that is simulated, from its public documentation. */
#pragma once

#include <stddef.h>

struct ncclComm;
typedef void *ncclStream_t; /* cudaStream_t */
struct ncclUniqueId {
	char internal[128];
};

typedef int ncclResult_t;
enum { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInvalidUsage = 5, ncclInProgress = 7 };
enum {
	ncclInt8 = 0,
	ncclInt32 = 2,
	ncclInt64 = 4,
	ncclFloat16 = 6,
	ncclFloat32 = 7,
	ncclFloat64 = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10
};
enum { ncclSum = 0, ncclMax = 2, ncclAvg = 4 };

/* A name, and the same with a p before it. */
#define NCCL(name_, ...)                 \
	ncclResult_t name_(__VA_ARGS__); \
	ncclResult_t p##name_(__VA_ARGS__);
NCCL(ncclGetUniqueId, struct ncclUniqueId *id)
NCCL(ncclCommInitRank, struct ncclComm **comm, int nranks, struct ncclUniqueId id, int rank)
NCCL(ncclCommInitRankConfig, struct ncclComm **comm, int nranks, struct ncclUniqueId id, int rank,
     void *config)
NCCL(ncclCommInitRankScalable, struct ncclComm **comm, int nranks, int rank, int n, struct ncclUniqueId *ids,
     void *config)
NCCL(ncclCommInitAll, struct ncclComm **comms, int n, const int *devices)
NCCL(ncclCommSplit, struct ncclComm *comm, int color, int key, struct ncclComm **new, void *config)
NCCL(ncclCommShrink, struct ncclComm *comm, int *excluded, int n, struct ncclComm **new, void *config,
     int flags)
NCCL(ncclCommFinalize, struct ncclComm *comm)
NCCL(ncclCommDestroy, struct ncclComm *comm)
NCCL(ncclCommAbort, struct ncclComm *comm)
NCCL(ncclCommCount, struct ncclComm *comm, int *count)
NCCL(ncclCommUserRank, struct ncclComm *comm, int *rank)
NCCL(ncclCommGetAsyncError, struct ncclComm *comm, ncclResult_t *error)
NCCL(ncclCommRegister, struct ncclComm *comm, void *buffer, size_t size, void **handle)
NCCL(ncclCommDeregister, struct ncclComm *comm, void *handle)
NCCL(ncclMemAlloc, void **memory, size_t size)
NCCL(ncclMemFree, void *memory)
NCCL(ncclGroupStart, void)
NCCL(ncclGroupEnd, void)
NCCL(ncclAllReduce, const void *send, void *recv, size_t n, int type, int op, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclReduceScatter, const void *send, void *recv, size_t n, int type, int op, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclReduce, const void *send, void *recv, size_t n, int type, int op, int root, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclBroadcast, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclBcast, void *buffer, size_t n, int type, int root, struct ncclComm *comm, ncclStream_t stream)
NCCL(ncclAllGather, const void *send, void *recv, size_t n, int type, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclAlltoAll, const void *send, void *recv, size_t n, int type, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclGather, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclScatter, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
NCCL(ncclSend, const void *send, size_t n, int type, int peer, struct ncclComm *comm, ncclStream_t stream)
NCCL(ncclRecv, void *recv, size_t n, int type, int peer, struct ncclComm *comm, ncclStream_t stream)
#undef NCCL
