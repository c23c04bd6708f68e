// SPDX-License-Identifier: Apache-2.0
/*
 * A host of NCCL's profiler interface: calls the plugin as NCCL does, of the version that is asked for.
 *
 *   profiler_host PLUGIN VERSION COUNT [flood|wait|fork|bad|disorder|close|exit|ranks]
 *
 * COUNT all-gathers of 1,000 floats on 4 ranks over 2 channels, each 1,000 ns by the GPU's clock, and as many
 * sends of 10 bytes, which takes no longer. Then it says "done", and does the same for each line on standard
 * input, until that ends ("wait"). "flood": in 8 threads, COUNT in each, then as "wait". "fork": a child does
 * the same, and ends its communicator, then as "wait". "bad": with handles that are none. "disorder": events
 * that end before they begin, twice, or never. "close": the library is closed before all. "exit": no
 * communicator ends. "ranks": each of 4 processes is one rank, then as "wait".
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl_plugin/interface.h"

enum { RANKS = 4, CHANNELS = 2 };

static int version;
static const struct profiler_v1 *v1;
static const struct profiler_v4 *v4;
static const struct profiler_v5 *v5;
static unsigned count;
static int mask, rank = 1;

static int (*start)(void *context, void **handle, const void *descr);
static int (*stop)(void *handle);
static int (*state)(void *handle, int state, const union profiler_state_args *args);
static int (*finalize)(void *context);

static void check(int result)
{
	if (result != PROFILER_SUCCESS)
		abort();
}

static void *begin(void)
{
	void *context = NULL;

	if (version < 4)
		check(v1->init(&context, &mask));
	else if (version == 4)
		check(v4->init(&context, &mask, "name", 0xabc, 1, RANKS, rank, NULL));
	else
		check(v5->init(&context, 0xabc, &mask, "name", 1, RANKS, rank, NULL));
	return context;
}

/* The descriptor of this version, for which what differs is given. */
static void *event(void *context, unsigned type, void *parent, uint64_t number)
{
	struct profiler_descr_v1 d1 = { .type = (uint8_t)type, .parent = parent, .rank = rank };
	struct profiler_descr_v2 d2 = { .type = (uint8_t)type, .parent = parent, .rank = rank };
	struct profiler_descr_v3 d3 = { .type = (uint8_t)type, .parent = parent, .rank = rank };
	struct profiler_descr_v4 d4 = { .type = (uint8_t)type, .parent = parent, .rank = rank };
	struct profiler_descr_v5 d5 = { .type = type, .parent = parent, .rank = rank };
	const void *descr[] = { NULL, &d1, &d2, &d3, &d4, &d5, &d5 };
	void *handle = NULL;

#define COLL(d_) (d_).coll.sequence = number, (d_).coll.count = 1000, (d_).coll.channels = CHANNELS
#define NAMES(d_)                                                                                           \
	(d_).coll.function = "AllGather", (d_).coll.datatype = "ncclFloat32", (d_).coll.algorithm = "RING", \
	(d_).coll.protocol = "LL128"
#define P2P(d_) (d_).p2p.count = 10, (d_).p2p.peer = 3
	if (type == PROFILER_COLL) {
		COLL(d1), COLL(d2), COLL(d3), COLL(d4), COLL(d5);
		NAMES(d2), NAMES(d3), NAMES(d4), NAMES(d5);
		d1.coll.function = 2, d1.coll.datatype = 7, d1.coll.algorithm = 1, d1.coll.protocol = 1;
		d1.coll.comm = d2.coll.comm = d3.coll.comm = 0xabc;
	} else if (type == PROFILER_P2P) {
		P2P(d1), P2P(d2), P2P(d3), P2P(d4), P2P(d5);
		d2.p2p.function = d3.p2p.function = d4.p2p.function = d5.p2p.function = "Send";
		d2.p2p.datatype = d3.p2p.datatype = d4.p2p.datatype = d5.p2p.datatype = "ncclInt8";
		d4.p2p.channels = d5.p2p.channels = 1;
		d1.p2p.function = 6;
	} else if (type == PROFILER_PROXY_OP) {
		const struct profiler_proxy_op op = { .pid = getpid() };

		d1.proxy_op = d2.proxy_op = d3.proxy_op = d4.proxy_op = d5.proxy_op = op;
	} else if (type == PROFILER_KERNEL_CH) {
		d4.kernel_ch.gpu_ns = d5.kernel_ch.gpu_ns = number;
	}
	check(start(context, &handle, descr[version]));
	return handle;
}

static void channels(void *context, void *parent, unsigned n, uint64_t from_ns)
{
	void *handles[CHANNELS];

	if (!(mask & PROFILER_KERNEL_CH))
		return;
	for (unsigned i = 0; i < n; i++)
		handles[i] = event(context, PROFILER_KERNEL_CH, parent, from_ns + i * 100);
	for (unsigned i = 0; i < n; i++) {
		const union profiler_state_args args = { .kernel_ch = { from_ns + 900 + i * 100 } };

		check(state(handles[i], PROFILER_KERNEL_CH_STOP, &args));
		check(stop(handles[i]));
	}
}

static void *operations(void *context)
{
	for (unsigned i = 0; i < count; i++) {
		void *coll = event(context, PROFILER_COLL, NULL, i), *p2p;

		check(stop(coll));
		check(stop(event(context, PROFILER_PROXY_OP, coll, 0)));
		channels(context, coll, CHANNELS, 1000000 + i * UINT64_C(10000));
		p2p = event(context, PROFILER_P2P, NULL, 0);
		check(stop(p2p));
		channels(context, p2p, 1, 1000000 + i * UINT64_C(10000));
	}
	return NULL;
}

static void flood(void *context)
{
	pthread_t threads[8];

	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, operations, context);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void bad(void *context)
{
	for (uintptr_t i = 0; i < 100000; i++) {
		void *wrong = (void *)(i * UINT64_C(0x9e3779b97f4a7c15));

		check(stop(wrong));
		check(state(wrong, PROFILER_KERNEL_CH_STOP, NULL));
		check(stop(event(context, PROFILER_KERNEL_CH, wrong, i)));
		check(stop(event(context, PROFILER_PROXY_OP, wrong, i)));
	}
}

/* A third of the operations has all its events, in another order; of the others some never come. */
static void disorder(void *context)
{
	for (unsigned i = 0; i < count; i++) {
		void *coll = event(context, PROFILER_COLL, NULL, i), *channel;

		if (i % 3 != 0) {
			check(stop(coll));
			check(stop(coll));
		}
		if (i % 3 != 1) {
			channels(context, coll, CHANNELS, 1000000 + i * UINT64_C(10000));
		} else {
			channel = event(context, PROFILER_KERNEL_CH, coll, 1000000);
			check(stop(channel)); /* when it ended nobody said */
		}
		if (i % 3 == 0)
			check(stop(coll));
		check(stop(event(context, PROFILER_PROXY_OP, coll, 0)));
		channels(context, coll, 1, 1); /* after its end */
	}
	/* It never ends. */
	event(context, PROFILER_P2P, NULL, 0);
}

static void again(void *context)
{
	char line[8];

	do {
		puts("done");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return;
		operations(context);
	} while (true);
}

/* Of each but the first, which it returns as, a process of its own that ends by itself. */
static void become_ranks(void)
{
	for (rank = 1; rank < RANKS; rank++)
		if (fork() == 0)
			return;
	rank = 0;
}

static void load(const char *path, bool closes)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found;
	char name[32];

	snprintf(name, sizeof(name), "ncclProfiler_v%d", version);
	found = library ? dlsym(library, name) : NULL;
	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	v1 = found;
	v4 = found;
	v5 = found;
	/* All versions have the same members after init. */
	start = v1->start;
	stop = v1->stop;
	state = v1->state;
	finalize = v1->finalize;
	if (closes)
		dlclose(library);
}

int main(int argc, char **argv)
{
	const char *what = argc > 4 ? argv[4] : "";
	void *context;

	if (argc < 4)
		return 2;
	version = atoi(argv[2]);
	count = (unsigned)atoi(argv[3]);
	if (strcmp(what, "ranks") == 0)
		become_ranks();
	load(argv[1], strcmp(what, "close") == 0);
	context = begin();
	if (strcmp(what, "flood") == 0)
		flood(context);
	else if (strcmp(what, "disorder") == 0)
		disorder(context);
	else
		operations(context);
	if (strcmp(what, "bad") == 0)
		bad(context);
	if (strcmp(what, "exit") == 0)
		return 0;
	if (strcmp(what, "fork") == 0) {
		if (fork() == 0) {
			operations(context);
			operations(begin());
			check(finalize(context));
			_exit(0);
		}
		wait(NULL);
	}
	if (strcmp(what, "wait") == 0 || strcmp(what, "flood") == 0 || strcmp(what, "fork") == 0 ||
	    (strcmp(what, "ranks") == 0 && rank == 0))
		again(context);
	check(finalize(context));
	while (wait(NULL) > 0)
		;
	return 0;
}
