// SPDX-License-Identifier: Apache-2.0
/* The part of NCCL's interface that is simulated, from its public documentation. */
#pragma once

#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef void *ncclStream_t; /* cudaStream_t */
typedef struct {
	char internal[128];
} ncclUniqueId;

typedef int ncclResult_t;
enum { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInvalidUsage = 5, ncclInProgress = 7 };
enum { ncclInt8 = 0, ncclInt32 = 2, ncclInt64 = 4, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat64 = 8,
       ncclBfloat16 = 9, ncclFloat8e4m3 = 10 };
enum { ncclSum = 0, ncclMax = 2, ncclAvg = 4 };

/* A name, and the same with a p before it. */
#define NCCL(name_, ...)                     \
	ncclResult_t name_(__VA_ARGS__);     \
	ncclResult_t p##name_(__VA_ARGS__);
NCCL(ncclGetUniqueId, ncclUniqueId *id)
NCCL(ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
NCCL(ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, void *config)
NCCL(ncclCommInitRankScalable, ncclComm_t *comm, int nranks, int rank, int n, ncclUniqueId *ids, void *config)
NCCL(ncclCommInitAll, ncclComm_t *comms, int n, const int *devices)
NCCL(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *new, void *config)
NCCL(ncclCommShrink, ncclComm_t comm, int *excluded, int n, ncclComm_t *new, void *config, int flags)
NCCL(ncclCommFinalize, ncclComm_t comm)
NCCL(ncclCommDestroy, ncclComm_t comm)
NCCL(ncclCommAbort, ncclComm_t comm)
NCCL(ncclCommCount, ncclComm_t comm, int *count)
NCCL(ncclCommUserRank, ncclComm_t comm, int *rank)
NCCL(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *error)
NCCL(ncclCommRegister, ncclComm_t comm, void *buffer, size_t size, void **handle)
NCCL(ncclCommDeregister, ncclComm_t comm, void *handle)
NCCL(ncclMemAlloc, void **memory, size_t size)
NCCL(ncclMemFree, void *memory)
NCCL(ncclGroupStart, void)
NCCL(ncclGroupEnd, void)
NCCL(ncclAllReduce, const void *send, void *recv, size_t n, int type, int op, ncclComm_t comm, ncclStream_t stream)
NCCL(ncclReduceScatter, const void *send, void *recv, size_t n, int type, int op, ncclComm_t comm,
     ncclStream_t stream)
NCCL(ncclReduce, const void *send, void *recv, size_t n, int type, int op, int root, ncclComm_t comm,
     ncclStream_t stream)
NCCL(ncclBroadcast, const void *send, void *recv, size_t n, int type, int root, ncclComm_t comm,
     ncclStream_t stream)
NCCL(ncclBcast, void *buffer, size_t n, int type, int root, ncclComm_t comm, ncclStream_t stream)
NCCL(ncclAllGather, const void *send, void *recv, size_t n, int type, ncclComm_t comm, ncclStream_t stream)
NCCL(ncclAlltoAll, const void *send, void *recv, size_t n, int type, ncclComm_t comm, ncclStream_t stream)
NCCL(ncclGather, const void *send, void *recv, size_t n, int type, int root, ncclComm_t comm,
     ncclStream_t stream)
NCCL(ncclScatter, const void *send, void *recv, size_t n, int type, int root, ncclComm_t comm,
     ncclStream_t stream)
NCCL(ncclSend, const void *send, size_t n, int type, int peer, ncclComm_t comm, ncclStream_t stream)
NCCL(ncclRecv, void *recv, size_t n, int type, int peer, ncclComm_t comm, ncclStream_t stream)
#undef NCCL
