// SPDX-License-Identifier: Apache-2.0
/*
 * As many calls as fast as possible, of one kind, and exactly how many it were:
 *
 *	spin CALL [--threads N] [--calls N | --seconds N]
 *
 * --calls is for each thread. Prints what tally.h says, and to standard error how fast it was.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "sim/cuda/abi.h"
#include "sim/workload/tally.h"

enum { THREADS_MAX = 1024, BATCH = 256, BYTES = 4096 };

static struct cu_context *context;
static struct cu_function *function;
static atomic_bool stop;
static uint64_t calls_wanted;

/* The functions, looked up before the clock runs. */
static int (*launch)(struct cu_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		     unsigned, struct cu_stream *, void **, void **);
static int (*context_synchronize)(void);
static int (*context_get)(struct cu_context **);
static int (*context_set)(struct cu_context *);
static int (*stream_synchronize)(struct cu_stream *);
static int (*driver_alloc)(uint64_t *, size_t);
static int (*driver_free)(uint64_t);
static int (*runtime_alloc)(uint64_t *, size_t);
static int (*runtime_free)(uint64_t);
static int (*runtime_synchronize)(void);
static int (*runtime_launch)(struct cu_function *, struct cuda_dim3, struct cuda_dim3, void **, size_t,
			     struct cu_stream *);

static int once_launch(void)
{
	return launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static int once_context_synchronize(void)
{
	return context_synchronize();
}

static int once_context_get(void)
{
	struct cu_context *now;

	return context_get(&now);
}

static int once_stream_synchronize(void)
{
	return stream_synchronize(NULL);
}

static int once_alloc(void)
{
	uint64_t address;
	int result = driver_alloc(&address, BYTES);

	return result == 0 ? driver_free(address) : result;
}

static int once_runtime_alloc(void)
{
	uint64_t address;
	int result = runtime_alloc(&address, BYTES);

	return result == 0 ? runtime_free(address) : result;
}

static int once_runtime_synchronize(void)
{
	return runtime_synchronize();
}

static int once_runtime_launch(void)
{
	const struct cuda_dim3 grid = { 1, 1, 1 }, block = { 32, 1, 1 };

	return runtime_launch(function, grid, block, NULL, 0, NULL);
}

static const struct spin {
	const char *name, *also; /* the second call of a pair */
	bool runtime;
	void **functions[2];
	int (*once)(void);
} spins[] = {
	{ "cuLaunchKernel", NULL, false, { (void **)&launch }, once_launch },
	{ "cuCtxSynchronize", NULL, false, { (void **)&context_synchronize }, once_context_synchronize },
	{ "cuCtxGetCurrent", NULL, false, { (void **)&context_get }, once_context_get },
	{ "cuStreamSynchronize", NULL, false, { (void **)&stream_synchronize }, once_stream_synchronize },
	{ "cuMemAlloc_v2",
	  "cuMemFree_v2",
	  false,
	  { (void **)&driver_alloc, (void **)&driver_free },
	  once_alloc },
	{ "cudaMalloc",
	  "cudaFree",
	  true,
	  { (void **)&runtime_alloc, (void **)&runtime_free },
	  once_runtime_alloc },
	{ "cudaDeviceSynchronize", NULL, true, { (void **)&runtime_synchronize }, once_runtime_synchronize },
	{ "__cudaLaunchKernel", NULL, true, { (void **)&runtime_launch }, once_runtime_launch },
};

static void set_up(bool runtime)
{
	static const char image[] = "//ptx";
	struct cu_module *module = NULL;
	int device = 0;

	/* The runtime uses the same context, the device's primary one. */
	if (runtime)
		TALLY(cudaFree, (uint64_t), (0));
	TALLY(cuInit, (unsigned), (0));
	TALLY(cuDeviceGet, (int *, int), (&device, 0));
	TALLY(cuDevicePrimaryCtxRetain, (struct cu_context **, int), (&context, device));
	TALLY(cuCtxSetCurrent, (struct cu_context *), (context));
	TALLY(cuModuleLoadData, (struct cu_module **, const void *), (&module, image));
	TALLY(cuModuleGetFunction, (struct cu_function **, struct cu_module *, const char *),
	      (&function, module, "spin"));
}

struct spinner {
	pthread_t id;
	const struct spin *spin;
	uint64_t done, failed;
	int code; /* of the last that failed */
};

/*
 * One result more or less is not worth a branch in the loop: all calls of a batch count, failures one by one.
 */
static void *run(void *argument)
{
	struct spinner *thread = argument;
	int (*once)(void) = thread->spin->once;

	context_set(context);
	tally_add("cuCtxSetCurrent", 0, 1);
	while (!stop && (calls_wanted == 0 || thread->done < calls_wanted)) {
		uint64_t batch =
			calls_wanted == 0 ? BATCH : MIN(calls_wanted - thread->done, (uint64_t)BATCH);

		for (uint64_t i = 0; i < batch; i++) {
			int result = once();

			if (result != 0) {
				thread->failed++;
				thread->code = result;
			}
		}
		thread->done += batch;
	}
	return NULL;
}

/* What failed in a pair never got to the second call. */
static void count(const struct spinner *thread)
{
	tally_add(thread->spin->name, 0, thread->done - thread->failed);
	if (thread->failed > 0)
		tally_add(thread->spin->name, thread->code, thread->failed);
	if (thread->spin->also)
		tally_add(thread->spin->also, 0, thread->done - thread->failed);
}

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s CALL [--threads N] [--calls N | --seconds N]\nCALL is one of", program);
	for (size_t i = 0; i < ARRAY_SIZE(spins); i++)
		fprintf(stderr, " %s", spins[i].name);
	fprintf(stderr, "\n");
	return 2;
}

static int spin(const struct spin *what, uint64_t count_threads, uint64_t seconds)
{
	static struct spinner threads[THREADS_MAX];
	const struct timespec wait = { .tv_sec = (time_t)seconds };
	int64_t begin_ns, ns;
	uint64_t done = 0;

	set_up(what->runtime);
	*(void **)&context_set = tally_symbol("cuCtxSetCurrent");
	*what->functions[0] = tally_symbol(what->name);
	if (what->also)
		*what->functions[1] = tally_symbol(what->also);
	if (!*what->functions[0] || !context_set)
		return 1;
	begin_ns = clock_mono_ns();
	for (uint64_t i = 0; i < count_threads; i++) {
		threads[i].spin = what;
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0)
			return 1;
	}
	if (calls_wanted == 0) {
		nanosleep(&wait, NULL);
		stop = true;
	}
	for (uint64_t i = 0; i < count_threads; i++) {
		pthread_join(threads[i].id, NULL);
		done += threads[i].done;
		count(&threads[i]);
	}
	ns = clock_mono_ns() - begin_ns;
	fprintf(stderr, "%.3f s, %.1f ns per turn of a thread\n", (double)ns / 1e9,
		(double)ns * (double)count_threads / (double)MAX(done, (uint64_t)1));
	tally_print(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ 0 },
	};
	uint64_t count_threads = 1, seconds = 1;
	int option, r = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0 && r == 0)
		r = option == 't' ? parse_u64(optarg, &count_threads) :
		    option == 'c' ? parse_u64(optarg, &calls_wanted) :
		    option == 's' ? parse_u64(optarg, &seconds) :
				    -1;
	if (r < 0 || optind != argc - 1 || count_threads == 0 || count_threads > THREADS_MAX)
		return usage(argv[0]);
	for (size_t i = 0; i < ARRAY_SIZE(spins); i++) {
		if (STRV_EQ(spins[i].name, argv[optind]))
			return spin(&spins[i], count_threads, seconds);
	}
	return usage(argv[0]);
}
