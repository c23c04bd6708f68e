// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/nccl.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MAGIC UINT64_C(0x6e63636c636f6d6d)

struct ncclComm {
	uint64_t magic;
	int ranks, rank;
};

static _Thread_local int depth;

/* A function and its pnccl... name, which is the same one. */
#define EXPORTED __attribute__((visibility("default"), noinline))
#define NCCL(name_, ...)                                                            \
	EXPORTED ncclResult_t p##name_(__VA_ARGS__) __attribute__((alias(#name_))); \
	EXPORTED ncclResult_t name_(__VA_ARGS__)

static ncclResult_t make(struct ncclComm **comm, int ranks, int rank)
{
	if (!comm || ranks <= 0 || rank < 0 || rank >= ranks)
		return ncclInvalidArgument;
	*comm = malloc(sizeof(**comm));
	if (*comm)
		**comm = (struct ncclComm){ MAGIC, ranks, rank };
	return *comm ? ncclSuccess : 2;
}

static ncclResult_t check(struct ncclComm *comm)
{
	return comm && comm->magic == MAGIC ? ncclSuccess : ncclInvalidArgument;
}

static ncclResult_t check_type(struct ncclComm *comm, int type)
{
	return type < 0 || type > 11 ? ncclInvalidArgument : check(comm);
}

static ncclResult_t destroy(struct ncclComm *comm)
{
	ncclResult_t result = check(comm);

	if (result == ncclSuccess) {
		comm->magic = 0;
		free(comm);
	}
	return result;
}

NCCL(ncclGetUniqueId, struct ncclUniqueId *id)
{
	for (size_t i = 0; i < sizeof(id->internal); i++)
		id->internal[i] = (char)i;
	return ncclSuccess;
}

NCCL(ncclCommInitRank, struct ncclComm **comm, int nranks, struct ncclUniqueId id, int rank)
{
	(void)id;
	return make(comm, nranks, rank);
}

/* As one that does not block: it goes on. */
NCCL(ncclCommInitRankConfig, struct ncclComm **comm, int nranks, struct ncclUniqueId id, int rank,
     void *config)
{
	ncclResult_t result = make(comm, nranks, rank);

	(void)id;
	return result == ncclSuccess && config ? ncclInProgress : result;
}

NCCL(ncclCommInitRankScalable, struct ncclComm **comm, int nranks, int rank, int n, struct ncclUniqueId *ids,
     void *config)
{
	(void)config;
	return n > 0 && ids ? make(comm, nranks, rank) : ncclInvalidArgument;
}

NCCL(ncclCommInitAll, struct ncclComm **comms, int n, const int *devices)
{
	ncclResult_t result = ncclSuccess;

	(void)devices;
	for (int i = 0; i < n && result == ncclSuccess; i++)
		result = make(&comms[i], n, i);
	return result;
}

NCCL(ncclCommSplit, struct ncclComm *comm, int color, int key, struct ncclComm **new, void *config)
{
	ncclResult_t result = check(comm);

	(void)key;
	(void)config;
	*new = NULL;
	return result == ncclSuccess && color >= 0 ? make(new, (comm->ranks + 1) / 2, 0) : result;
}

NCCL(ncclCommShrink, struct ncclComm *comm, int *excluded, int n, struct ncclComm **new, void *config,
     int flags)
{
	(void)excluded;
	(void)config;
	(void)flags;
	return check(comm) == ncclSuccess ? make(new, comm->ranks - n, 0) : ncclInvalidArgument;
}

NCCL(ncclCommFinalize, struct ncclComm *comm)
{
	return check(comm);
}

NCCL(ncclCommDestroy, struct ncclComm *comm)
{
	return destroy(comm);
}

NCCL(ncclCommAbort, struct ncclComm *comm)
{
	return destroy(comm);
}

NCCL(ncclCommCount, struct ncclComm *comm, int *count)
{
	ncclResult_t result = check(comm);

	if (result == ncclSuccess)
		*count = comm->ranks;
	return result;
}

NCCL(ncclCommUserRank, struct ncclComm *comm, int *rank)
{
	ncclResult_t result = check(comm);

	if (result == ncclSuccess)
		*rank = comm->rank;
	return result;
}

NCCL(ncclCommGetAsyncError, struct ncclComm *comm, ncclResult_t *error)
{
	*error = ncclSuccess;
	return check(comm);
}

NCCL(ncclCommRegister, struct ncclComm *comm, void *buffer, size_t size, void **handle)
{
	(void)size;
	*handle = buffer;
	return check(comm);
}

NCCL(ncclCommDeregister, struct ncclComm *comm, void *handle)
{
	(void)handle;
	return check(comm);
}

NCCL(ncclMemAlloc, void **memory, size_t size)
{
	*memory = malloc(size);
	return *memory ? ncclSuccess : 2;
}

NCCL(ncclMemFree, void *memory)
{
	free(memory);
	return ncclSuccess;
}

NCCL(ncclGroupStart, void)
{
	depth++;
	return ncclSuccess;
}

NCCL(ncclGroupEnd, void)
{
	if (depth == 0)
		return ncclInvalidUsage;
	depth--;
	return ncclSuccess;
}

#define UNUSED (void)send, (void)recv, (void)n, (void)stream

NCCL(ncclAllReduce, const void *send, void *recv, size_t n, int type, int op, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)op;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclReduceScatter, const void *send, void *recv, size_t n, int type, int op, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)op;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclReduce, const void *send, void *recv, size_t n, int type, int op, int root, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)op;
	(void)root;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclBroadcast, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)root;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclBcast, void *buffer, size_t n, int type, int root, struct ncclComm *comm, ncclStream_t stream)
{
	return ncclBroadcast(buffer, buffer, n, type, root, comm, stream);
}

NCCL(ncclAllGather, const void *send, void *recv, size_t n, int type, struct ncclComm *comm,
     ncclStream_t stream)
{
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclAlltoAll, const void *send, void *recv, size_t n, int type, struct ncclComm *comm,
     ncclStream_t stream)
{
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclGather, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)root;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclScatter, const void *send, void *recv, size_t n, int type, int root, struct ncclComm *comm,
     ncclStream_t stream)
{
	(void)root;
	UNUSED;
	return check_type(comm, type);
}

NCCL(ncclSend, const void *send, size_t n, int type, int peer, struct ncclComm *comm, ncclStream_t stream)
{
	(void)send;
	(void)n;
	(void)peer;
	(void)stream;
	return check_type(comm, type);
}

NCCL(ncclRecv, void *recv, size_t n, int type, int peer, struct ncclComm *comm, ncclStream_t stream)
{
	(void)recv;
	(void)n;
	(void)peer;
	(void)stream;
	return check_type(comm, type);
}
