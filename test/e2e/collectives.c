// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the simulated NCCL, as its argument says, with numbers that test/e2e/nccl.py knows. With "wait" it
 * waits for a line on standard input before the last of them.
 */
#include "sim/nccl/nccl.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *stream(uintptr_t value)
{
	return (void *)value;
}

/* Each operation once or a few times, some in groups. */
static void operations(void)
{
	struct ncclComm *comm, *whole, *half, *fewer, *all[3];
	struct ncclUniqueId id;
	void *handle, *memory;
	int n;

	ncclGetUniqueId(&id);
	ncclCommInitRank(&comm, 8, id, 5);
	ncclCommInitRankConfig(&whole, 4, id, 3, &n);
	ncclCommInitAll(all, 3, NULL);
	for (int i = 0; i < 10; i++)
		ncclAllReduce(NULL, NULL, 1000, ncclFloat32, ncclSum, comm, stream(0x70));
	ncclReduceScatter(NULL, NULL, 100, ncclBfloat16, ncclAvg, comm, stream(0x70));
	ncclReduce(NULL, NULL, 100, ncclFloat64, ncclMax, 3, comm, stream(0x71));
	ncclBroadcast(NULL, NULL, 50, ncclInt8, 2, comm, stream(0x71));
	ncclBcast(NULL, 50, ncclInt8, 2, comm, stream(0x71));
	pncclAllGather(NULL, NULL, 100, ncclFloat8e4m3, comm, stream(0x72));
	ncclAlltoAll(NULL, NULL, 100, ncclInt64, comm, stream(0x72));
	ncclGather(NULL, NULL, 100, ncclFloat16, 1, whole, stream(0x72));
	ncclScatter(NULL, NULL, 100, ncclInt32, 1, whole, stream(0x72));
	ncclGroupStart();
	ncclGroupStart();
	ncclSend(NULL, 7, ncclFloat32, 6, comm, stream(0x73));
	ncclGroupEnd();
	ncclRecv(NULL, 9, ncclFloat32, 4, comm, stream(0x73));
	ncclGroupEnd();
	for (int i = 0; i < 3; i++)
		ncclAllReduce(NULL, NULL, 10, ncclFloat32, ncclSum, all[i], stream(0x74));
	/* Failures. */
	ncclAllReduce(NULL, NULL, 10, ncclFloat32, ncclSum, NULL, stream(0));
	ncclGroupEnd();
	ncclCommSplit(comm, 1, 0, &half, NULL);
	ncclAllGather(NULL, NULL, 100, ncclInt8, half, stream(0x75));
	ncclCommCount(half, &n);
	ncclAllGather(NULL, NULL, 100, ncclInt8, half, stream(0x75));
	ncclCommShrink(comm, &n, 2, &fewer, NULL, 0);
	ncclAllReduce(NULL, NULL, 1, ncclInt8, ncclSum, fewer, stream(0x76));
	ncclCommRegister(comm, &n, 4096, &handle);
	ncclCommDeregister(comm, handle);
	ncclMemAlloc(&memory, 65536);
	ncclMemFree(memory);
	ncclCommDestroy(half);
	ncclCommAbort(whole);
}

/* A thread that ends within a group, and one that then begins: no place of the first's is left. */
static void *unfinished(void *arg)
{
	ncclGroupStart();
	ncclSend(NULL, 1, ncclInt8, 0, arg, NULL);
	return NULL;
}

static void *finished(void *arg)
{
	ncclSend(NULL, 1, ncclInt8, 0, arg, NULL);
	return NULL;
}

static void threads(void)
{
	struct ncclUniqueId id;
	struct ncclComm *comm;
	pthread_t thread;

	ncclGetUniqueId(&id);
	ncclCommInitRank(&comm, 2, id, 0);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, i % 2 ? finished : unfinished, comm);
		pthread_join(thread, NULL);
	}
}

/* The child knows nothing of its parent's communicator but its handle. */
static void forked(void)
{
	struct ncclUniqueId id;
	struct ncclComm *comm;

	ncclGetUniqueId(&id);
	ncclCommInitRank(&comm, 6, id, 0);
	ncclGroupStart();
	if (fork() == 0) {
		ncclAllGather(NULL, NULL, 10, ncclInt8, comm, NULL);
		_exit(0);
	}
	wait(NULL);
	ncclAllGather(NULL, NULL, 10, ncclInt8, comm, NULL);
	ncclGroupEnd();
}

/* More sizes of communicators than are told apart, and more communicators than are kept. */
static void many(void)
{
	struct ncclUniqueId id;
	struct ncclComm *comm;

	ncclGetUniqueId(&id);
	for (int i = 0; i < 400; i++) {
		ncclCommInitRank(&comm, i + 1, id, 0);
		ncclAllReduce(NULL, NULL, 1, ncclInt8, ncclSum, comm, NULL);
	}
}

static void slowly(void)
{
	struct ncclUniqueId id;
	struct ncclComm *comm;

	ncclGetUniqueId(&id);
	ncclCommInitRank(&comm, 8, id, 5);
	for (int i = 0; i < 100; i++)
		ncclReduceScatter(NULL, NULL, 100, ncclBfloat16, ncclAvg, comm, NULL);
	puts("called");
	fflush(stdout);
	getchar();
	ncclCommDestroy(comm);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "operations", operations },
		    { "threads", threads },
		    { "fork", forked },
		    { "many", many },
		    { "wait", slowly } };

	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(argv[1], all[i].name) == 0) {
			all[i].run();
			return 0;
		}
	return 2;
}
