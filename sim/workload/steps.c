// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "sim/workload/tally.h"
#include "sim/workload/workload.h"

enum { PAGE = 2 << 20, COPY_MAX = 64 << 20 };

/* Memory that a thread has given away, for another to take. */
static struct held given[1024];
static unsigned given_count;

/* A kernel as nvcc's start-up code registers it: its image is never looked into. */
static const struct {
	uint32_t magic, rest[15];
} image = { .magic = CUDA_FATBIN_MAGIC };
static struct cuda_fatbin_wrapper wrapper = { CUDA_FATBIN_WRAPPER_MAGIC, 1, &image, NULL };

static void stub(void)
{
}

static pthread_once_t registered = PTHREAD_ONCE_INIT;

static void register_kernel(void)
{
	void **(*fatbin)(void *);
	void (*kernel)(void **, const void *, char *, const char *, int, void *, void *, void *, void *,
		       int *);

	*(void **)&fatbin = tally_symbol("__cudaRegisterFatBinary");
	*(void **)&kernel = tally_symbol("__cudaRegisterFunction");
	if (!fatbin || !kernel)
		return;
	kernel(fatbin(&wrapper), (const void *)(uintptr_t)stub, NULL, "work", -1, NULL, NULL, NULL, NULL,
	       NULL);
	tally_count("__cudaRegisterFunction", 0);
}

/* The driver's interface needs a context and a function before anything else. */
static void ready(struct worker *worker)
{
	struct cu_module *module = NULL;
	int device = 0;

	if (worker->ready)
		return;
	worker->ready = true;
	if (!worker->driver) {
		pthread_once(&registered, register_kernel);
		return;
	}
	if (worker->context) {
		TALLY(cuCtxSetCurrent, (struct cu_context *), (worker->context));
		return;
	}
	TALLY(cuInit, (unsigned), (0));
	TALLY(cuDeviceGet, (int *, int), (&device, worker->device));
	TALLY(cuDevicePrimaryCtxRetain, (struct cu_context **, int), (&worker->context, device));
	TALLY(cuCtxSetCurrent, (struct cu_context *), (worker->context));
	TALLY(cuModuleLoadData, (struct cu_module **, const void *), (&module, &image));
	TALLY(cuModuleGetFunction, (struct cu_function **, struct cu_module *, const char *),
	      (&worker->function, module, "work"));
}

static bool parse_way(const char *word, enum memory_way *ret_way)
{
	static const char *const ways[] = { "device", "managed", "host", "async", "pitch", "array", "vmm" };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (STRV_EQ(ways[i], word)) {
			*ret_way = (enum memory_way)i;
			return true;
		}
	}
	return false;
}

static int alloc_vmm(struct held *held, int device)
{
	const struct cu_allocation_prop prop = { .type = 1, .location = { 1, device } };
	const struct {
		struct cu_location location;
		uint32_t flags;
	} access = { { 1, device }, 3 };
	int result;

	held->bytes = (held->bytes + PAGE - 1) / PAGE * PAGE;
	result = TALLY(cuMemCreate, (uint64_t *, size_t, const void *, uint64_t),
		       (&held->handle, held->bytes, &prop, 0));
	if (result != 0)
		return result;
	TALLY(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, uint64_t),
	      (&held->address, held->bytes, 0, 0, 0));
	TALLY(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t),
	      (held->address, held->bytes, 0, held->handle, 0));
	return TALLY(cuMemSetAccess, (uint64_t, size_t, const void *, size_t),
		     (held->address, held->bytes, &access, 1));
}

static int alloc_driver(struct worker *worker, struct held *held)
{
	const struct cu_array_descriptor array = { held->bytes, 0, 1, 1 };
	size_t pitch;

	switch (held->way) {
	case WAY_MANAGED:
		return TALLY(cuMemAllocManaged, (uint64_t *, size_t, unsigned),
			     (&held->address, held->bytes, 1));
	case WAY_HOST:
		return TALLY(cuMemHostAlloc, (uint64_t *, size_t, unsigned),
			     (&held->address, held->bytes, 0));
	case WAY_ASYNC:
		return TALLY(cuMemAllocAsync, (uint64_t *, size_t, struct cu_stream *),
			     (&held->address, held->bytes, worker->stream));
	case WAY_PITCH:
		return TALLY(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned),
			     (&held->address, &pitch, 512, (held->bytes + 511) / 512, 4));
	case WAY_ARRAY:
		return TALLY(cuArrayCreate_v2, (uint64_t *, const void *), (&held->address, &array));
	case WAY_VMM:
		return alloc_vmm(held, worker->device);
	default:
		return TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&held->address, held->bytes));
	}
}

static int alloc_runtime(struct worker *worker, struct held *held)
{
	const struct cuda_channels channels = { { 8, 0, 0, 0 }, 1 };
	size_t pitch;

	switch (held->way) {
	case WAY_MANAGED:
		return TALLY(cudaMallocManaged, (uint64_t *, size_t, unsigned),
			     (&held->address, held->bytes, 1));
	case WAY_HOST:
		return TALLY(cudaMallocHost, (uint64_t *, size_t), (&held->address, held->bytes));
	case WAY_ASYNC:
		return TALLY(cudaMallocAsync, (uint64_t *, size_t, struct cu_stream *),
			     (&held->address, held->bytes, worker->stream));
	case WAY_PITCH:
		return TALLY(cudaMallocPitch, (uint64_t *, size_t *, size_t, size_t),
			     (&held->address, &pitch, 512, (held->bytes + 511) / 512));
	case WAY_ARRAY:
		return TALLY(cudaMallocArray, (uint64_t *, const void *, size_t, size_t, unsigned),
			     (&held->address, &channels, held->bytes, 0, 0));
	case WAY_VMM:
		return alloc_vmm(held, worker->device);
	default:
		return TALLY(cudaMalloc, (uint64_t *, size_t), (&held->address, held->bytes));
	}
}

/* alloc BYTES [WAY] */
static bool step_alloc(struct worker *worker, const struct step *step)
{
	struct held held = { .way = WAY_DEVICE, .driver = worker->driver };
	int result;

	if (step->word_count < 2 || parse_u64(step->words[1], &held.bytes) < 0 ||
	    (step->word_count > 2 && !parse_way(step->words[2], &held.way)))
		return false;
	result = worker->driver ? alloc_driver(worker, &held) : alloc_runtime(worker, &held);
	if (result == 0 && worker->memory_count < WORKER_MEMORY)
		worker->memory[worker->memory_count++] = held;
	return true;
}

static void release_vmm(const struct held *held)
{
	TALLY(cuMemUnmap, (uint64_t, size_t), (held->address, held->bytes));
	TALLY(cuMemAddressFree, (uint64_t, size_t), (held->address, held->bytes));
	TALLY(cuMemRelease, (uint64_t), (held->handle));
}

static void release(struct worker *worker, const struct held *held)
{
	switch (held->way) {
	case WAY_HOST:
		if (held->driver)
			TALLY(cuMemFreeHost, (uint64_t), (held->address));
		else
			TALLY(cudaFreeHost, (uint64_t), (held->address));
		break;
	case WAY_ASYNC:
		if (held->driver)
			TALLY(cuMemFreeAsync, (uint64_t, struct cu_stream *),
			      (held->address, worker->stream));
		else
			TALLY(cudaFreeAsync, (uint64_t, struct cu_stream *), (held->address, worker->stream));
		break;
	case WAY_ARRAY:
		if (held->driver)
			TALLY(cuArrayDestroy, (uint64_t), (held->address));
		else
			TALLY(cudaFreeArray, (uint64_t), (held->address));
		break;
	case WAY_VMM:
		release_vmm(held);
		break;
	default:
		if (held->driver)
			TALLY(cuMemFree_v2, (uint64_t), (held->address));
		else
			TALLY(cudaFree, (uint64_t), (held->address));
		break;
	}
}

/* free [COUNT | all], the newest first */
static bool step_free(struct worker *worker, const struct step *step)
{
	uint64_t count = 1;

	if (step->word_count > 1 && STRV_EQ(step->words[1], "all"))
		count = worker->memory_count;
	else if (step->word_count > 1 && parse_u64(step->words[1], &count) < 0)
		return false;
	for (; count > 0 && worker->memory_count > 0; count--)
		release(worker, &worker->memory[--worker->memory_count]);
	return true;
}

/* give, take: the newest allocation changes its thread */
static bool step_give(struct worker *worker, _unused_ const struct step *step)
{
	unsigned place = __atomic_fetch_add(&given_count, 1, __ATOMIC_RELAXED);

	if (worker->memory_count == 0 || place >= ARRAY_SIZE(given))
		return false;
	given[place] = worker->memory[--worker->memory_count];
	return true;
}

static bool step_take(struct worker *worker, _unused_ const struct step *step)
{
	unsigned count = __atomic_fetch_sub(&given_count, 1, __ATOMIC_RELAXED);

	if (count == 0 || count > ARRAY_SIZE(given))
		return false;
	worker->memory[worker->memory_count++] = given[count - 1];
	return true;
}

static void launch_driver(struct worker *worker, unsigned grid, unsigned block)
{
	if (worker->per_thread)
		TALLY(cuLaunchKernel_ptsz,
		      (struct cu_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		       unsigned, struct cu_stream *, void **, void **),
		      (worker->function, grid, 1, 1, block, 1, 1, 0, worker->stream, NULL, NULL));
	else
		TALLY(cuLaunchKernel,
		      (struct cu_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		       unsigned, struct cu_stream *, void **, void **),
		      (worker->function, grid, 1, 1, block, 1, 1, 0, worker->stream, NULL, NULL));
}

static void launch_runtime(struct worker *worker, unsigned grid, unsigned block)
{
	const struct cuda_dim3 grids = { grid, 1, 1 }, blocks = { block, 1, 1 };

	if (worker->per_thread)
		TALLY(cudaLaunchKernel_ptsz,
		      (const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t, struct cu_stream *),
		      ((const void *)(uintptr_t)stub, grids, blocks, NULL, 0, worker->stream));
	else
		TALLY(cudaLaunchKernel,
		      (const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t, struct cu_stream *),
		      ((const void *)(uintptr_t)stub, grids, blocks, NULL, 0, worker->stream));
}

/* launch [GRID [BLOCK]] */
static bool step_launch(struct worker *worker, const struct step *step)
{
	uint64_t grid = 1, block = 256;

	if ((step->word_count > 1 && parse_u64(step->words[1], &grid) < 0) ||
	    (step->word_count > 2 && parse_u64(step->words[2], &block) < 0))
		return false;
	(worker->driver ? launch_driver : launch_runtime)(worker, (unsigned)grid, (unsigned)block);
	return true;
}

static bool host_buffer(struct worker *worker, uint64_t bytes)
{
	if (bytes > COPY_MAX)
		return false;
	if (bytes > worker->host_bytes) {
		free(worker->host);
		worker->host = calloc(1, bytes);
		worker->host_bytes = bytes;
	}
	return worker->host != NULL;
}

static void copy_driver(struct worker *worker, uint64_t device, uint64_t bytes, int kind, bool async)
{
	struct cu_stream *stream = worker->stream;

	if (kind == 1 && async)
		TALLY(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, struct cu_stream *),
		      (device, worker->host, bytes, stream));
	else if (kind == 1)
		TALLY(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (device, worker->host, bytes));
	else if (kind == 2 && async)
		TALLY(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, struct cu_stream *),
		      (worker->host, device, bytes, stream));
	else if (kind == 2)
		TALLY(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), (worker->host, device, bytes));
	else if (async)
		TALLY(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, struct cu_stream *),
		      (device, device, bytes, stream));
	else
		TALLY(cuMemcpyDtoD_v2, (uint64_t, uint64_t, size_t), (device, device, bytes));
}

/* copy h2d|d2h|d2d BYTES [async], to or from the newest allocation */
static bool step_copy(struct worker *worker, const struct step *step)
{
	static const char *const kinds[] = { "h2h", "h2d", "d2h", "d2d" };
	bool async = step->word_count > 3;
	uint64_t bytes, device;
	int kind = 0;

	while (step->word_count > 2 && kind < 4 && !STRV_EQ(kinds[kind], step->words[1]))
		kind++;
	if (step->word_count < 3 || kind == 0 || kind == 4 || parse_u64(step->words[2], &bytes) < 0 ||
	    !host_buffer(worker, bytes))
		return false;
	device = worker->memory_count > 0 ? worker->memory[worker->memory_count - 1].address : 0;
	if (worker->driver)
		copy_driver(worker, device, bytes, kind, async);
	else if (async)
		TALLY(cudaMemcpyAsync, (uint64_t, uint64_t, size_t, int, struct cu_stream *),
		      (kind == 2 ? (uintptr_t)worker->host : device,
		       kind == 1 ? (uintptr_t)worker->host : device, bytes, kind, worker->stream));
	else
		TALLY(cudaMemcpy, (uint64_t, uint64_t, size_t, int),
		      (kind == 2 ? (uintptr_t)worker->host : device,
		       kind == 1 ? (uintptr_t)worker->host : device, bytes, kind));
	return true;
}

/* memset BYTES */
static bool step_memset(struct worker *worker, const struct step *step)
{
	uint64_t bytes,
		device = worker->memory_count > 0 ? worker->memory[worker->memory_count - 1].address : 0;

	if (step->word_count < 2 || parse_u64(step->words[1], &bytes) < 0)
		return false;
	if (worker->driver)
		TALLY(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), (device, 0, bytes));
	else
		TALLY(cudaMemset, (uint64_t, int, size_t), (device, 0, bytes));
	return true;
}

static bool destroy_stream(struct worker *worker)
{
	struct cu_stream *stream;

	if (worker->stream_count == 0)
		return false;
	stream = worker->streams[--worker->stream_count];
	if (worker->driver)
		TALLY(cuStreamDestroy_v2, (struct cu_stream *), (stream));
	else
		TALLY(cudaStreamDestroy, (struct cu_stream *), (stream));
	if (worker->stream == stream)
		worker->stream = NULL;
	return true;
}

/* stream create|nonblocking|destroy|use N; a new one is used at once, N 0 is the default one */
static bool step_stream(struct worker *worker, const struct step *step)
{
	struct cu_stream *stream = NULL;
	uint64_t index;
	unsigned flags;

	if (step->word_count < 2)
		return false;
	if (STRV_EQ(step->words[1], "destroy"))
		return destroy_stream(worker);
	if (STRV_EQ(step->words[1], "use")) {
		if (step->word_count < 3 || parse_u64(step->words[2], &index) < 0 ||
		    index > worker->stream_count)
			return false;
		worker->stream = index == 0 ? NULL : worker->streams[index - 1];
		return true;
	}
	if (worker->stream_count == WORKER_STREAMS)
		return false;
	flags = STRV_EQ(step->words[1], "nonblocking") ? CU_NON_BLOCKING_STREAM : 0;
	if (worker->driver)
		TALLY(cuStreamCreate, (struct cu_stream **, unsigned), (&stream, flags));
	else
		TALLY(cudaStreamCreateWithFlags, (struct cu_stream **, unsigned), (&stream, flags));
	if (stream)
		worker->streams[worker->stream_count++] = stream;
	worker->stream = stream;
	return true;
}

static void create_event(struct worker *worker)
{
	if (worker->event)
		return;
	if (worker->driver)
		TALLY(cuEventCreate, (struct cu_event **, unsigned), (&worker->event, 0));
	else
		TALLY(cudaEventCreate, (struct cu_event **), (&worker->event));
}

/* event record|sync|query|wait|destroy: one for each thread, made when it is first recorded */
static bool step_event(struct worker *worker, const struct step *step)
{
	const char *what = step->word_count > 1 ? step->words[1] : "";
	bool driver = worker->driver;

	if (STRV_EQ(what, "record")) {
		create_event(worker);
		if (driver)
			TALLY(cuEventRecord, (struct cu_event *, struct cu_stream *),
			      (worker->event, worker->stream));
		else
			TALLY(cudaEventRecord, (struct cu_event *, struct cu_stream *),
			      (worker->event, worker->stream));
	} else if (STRV_EQ(what, "sync")) {
		if (driver)
			TALLY(cuEventSynchronize, (struct cu_event *), (worker->event));
		else
			TALLY(cudaEventSynchronize, (struct cu_event *), (worker->event));
	} else if (STRV_EQ(what, "query")) {
		if (driver)
			TALLY(cuEventQuery, (struct cu_event *), (worker->event));
		else
			TALLY(cudaEventQuery, (struct cu_event *), (worker->event));
	} else if (STRV_EQ(what, "wait")) {
		if (driver)
			TALLY(cuStreamWaitEvent, (struct cu_stream *, struct cu_event *, unsigned),
			      (worker->stream, worker->event, 0));
		else
			TALLY(cudaStreamWaitEvent, (struct cu_stream *, struct cu_event *, unsigned),
			      (worker->stream, worker->event, 0));
	} else if (STRV_EQ(what, "destroy")) {
		if (driver)
			TALLY(cuEventDestroy_v2, (struct cu_event *), (worker->event));
		else
			TALLY(cudaEventDestroy, (struct cu_event *), (worker->event));
		worker->event = NULL;
	} else {
		return false;
	}
	return true;
}

/* sync [stream]: the device, or the stream in use */
static bool step_sync(struct worker *worker, const struct step *step)
{
	bool stream = step->word_count > 1;

	if (stream && !STRV_EQ(step->words[1], "stream"))
		return false;
	if (worker->driver && stream)
		TALLY(cuStreamSynchronize, (struct cu_stream *), (worker->stream));
	else if (worker->driver)
		TALLY(cuCtxSynchronize, (void), ());
	else if (stream)
		TALLY(cudaStreamSynchronize, (struct cu_stream *), (worker->stream));
	else
		TALLY(cudaDeviceSynchronize, (void), ());
	return true;
}

static void graph_driver(struct worker *worker, uint64_t launches, uint64_t runs)
{
	struct cu_graph *graph = NULL, *exec = NULL;

	TALLY(cuStreamBeginCapture_v2, (struct cu_stream *, unsigned), (worker->stream, 0));
	for (; launches > 0; launches--)
		launch_driver(worker, 1, 256);
	TALLY(cuStreamEndCapture, (struct cu_stream *, struct cu_graph **), (worker->stream, &graph));
	TALLY(cuGraphInstantiateWithFlags, (struct cu_graph **, struct cu_graph *, uint64_t),
	      (&exec, graph, 0));
	for (; runs > 0; runs--)
		TALLY(cuGraphLaunch, (struct cu_graph *, struct cu_stream *), (exec, worker->stream));
	TALLY(cuGraphExecDestroy, (struct cu_graph *), (exec));
	TALLY(cuGraphDestroy, (struct cu_graph *), (graph));
}

static void graph_runtime(struct worker *worker, uint64_t launches, uint64_t runs)
{
	struct cu_graph *graph = NULL, *exec = NULL;

	TALLY(cudaStreamBeginCapture, (struct cu_stream *, unsigned), (worker->stream, 0));
	for (; launches > 0; launches--)
		launch_runtime(worker, 1, 256);
	TALLY(cudaStreamEndCapture, (struct cu_stream *, struct cu_graph **), (worker->stream, &graph));
	TALLY(cudaGraphInstantiate, (struct cu_graph **, struct cu_graph *, uint64_t), (&exec, graph, 0));
	for (; runs > 0; runs--)
		TALLY(cudaGraphLaunch, (struct cu_graph *, struct cu_stream *), (exec, worker->stream));
	TALLY(cudaGraphExecDestroy, (struct cu_graph *), (exec));
	TALLY(cudaGraphDestroy, (struct cu_graph *), (graph));
}

/* graph [LAUNCHES [RUNS]]: captured on the stream in use, which must not be the default one */
static bool step_graph(struct worker *worker, const struct step *step)
{
	uint64_t launches = 4, runs = 1;

	if ((step->word_count > 1 && parse_u64(step->words[1], &launches) < 0) ||
	    (step->word_count > 2 && parse_u64(step->words[2], &runs) < 0))
		return false;
	(worker->driver ? graph_driver : graph_runtime)(worker, launches, runs);
	return true;
}

/* bad alloc|free|stream|launch: a call that fails */
static bool step_bad(struct worker *worker, const struct step *step)
{
	const char *what = step->word_count > 1 ? step->words[1] : "";
	struct cu_stream *no_stream = (struct cu_stream *)(uintptr_t)0x123450;
	uint64_t address;

	if (STRV_EQ(what, "alloc")) {
		if (worker->driver)
			TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&address, (size_t)1 << 50));
		else
			TALLY(cudaMalloc, (uint64_t *, size_t), (&address, (size_t)1 << 50));
	} else if (STRV_EQ(what, "free")) {
		if (worker->driver)
			TALLY(cuMemFree_v2, (uint64_t), (0x123450));
		else
			TALLY(cudaFree, (uint64_t), (0x123450));
	} else if (STRV_EQ(what, "stream")) {
		if (worker->driver)
			TALLY(cuStreamSynchronize, (struct cu_stream *), (no_stream));
		else
			TALLY(cudaStreamSynchronize, (struct cu_stream *), (no_stream));
	} else if (STRV_EQ(what, "launch")) {
		(worker->driver ? launch_driver : launch_runtime)(worker, 1, 4096);
	} else {
		return false;
	}
	return true;
}

/* device N, for the runtime; before the first call, for the driver */
static bool step_device(struct worker *worker, const struct step *step)
{
	uint64_t device;

	if (step->word_count < 2 || parse_u64(step->words[1], &device) < 0 || device > INT32_MAX)
		return false;
	worker->device = (int)device;
	if (!worker->driver)
		TALLY(cudaSetDevice, (int), ((int)device));
	return true;
}

static bool step_reset(struct worker *worker, _unused_ const struct step *step)
{
	if (worker->driver)
		TALLY(cuDevicePrimaryCtxReset_v2, (int), (worker->device));
	else
		TALLY(cudaDeviceReset, (void), ());
	worker->memory_count = worker->stream_count = 0;
	return true;
}

static bool step_init(_unused_ struct worker *worker, _unused_ const struct step *step)
{
	if (!worker->driver)
		TALLY(cudaFree, (uint64_t), (0));
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct worker *worker, const struct step *step);
} steps[] = {
	{ "alloc", step_alloc },   { "bad", step_bad },     { "copy", step_copy },
	{ "event", step_event },   { "free", step_free },   { "give", step_give },
	{ "graph", step_graph },   { "init", step_init },   { "launch", step_launch },
	{ "memset", step_memset }, { "reset", step_reset }, { "stream", step_stream },
	{ "sync", step_sync },     { "take", step_take },
};

/* api runtime|driver, streams legacy|perthread, load LIBRARY: what later steps do */
static bool setting(struct worker *worker, const struct step *step)
{
	const char *name = step->words[0], *value = step->word_count > 1 ? step->words[1] : "";

	if (STRV_EQ(name, "api")) {
		worker->driver = STRV_EQ(value, "driver");
		worker->ready = false;
	} else if (STRV_EQ(name, "streams")) {
		worker->per_thread = STRV_EQ(value, "perthread");
	} else if (STRV_EQ(name, "load")) {
		return tally_load(value) == 0;
	} else if (STRV_EQ(name, "device")) {
		return step_device(worker, step);
	} else {
		return false;
	}
	return true;
}

bool step_run(struct worker *worker, const struct step *step)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (STRV_EQ(steps[i].name, step->words[0])) {
			ready(worker);
			return steps[i].run(worker, step);
		}
	}
	return setting(worker, step);
}
