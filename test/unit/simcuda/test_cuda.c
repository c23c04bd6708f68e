// SPDX-License-Identifier: Apache-2.0
/*
 * The simulated libcuda, as a program sees it. Kernels named "long" run for hours, so that nothing here waits
 * for them and no verdict depends on how fast the machine is.
 */
#include "needs.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "sim/cuda/abi.h"
#include "sim/workload/tally.h"

#define MIB ((size_t)1 << 20)

/* With a context of its own, which is destroyed with all that happens in it. */
struct fixture {
	struct cu_context *context;
	struct cu_module *module;
	struct cu_function *slow, *quick;
};

static struct cu_function *function(struct cu_module *module, const char *name)
{
	struct cu_function *found = NULL;

	assert_int_equal(TALLY(cuModuleGetFunction, (struct cu_function **, struct cu_module *, const char *),
			       (&found, module, name)),
			 0);
	return found;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_int_equal(TALLY(cuInit, (unsigned), (0)), 0);
	assert_int_equal(
		TALLY(cuCtxCreate_v2, (struct cu_context **, unsigned, int), (&fixture->context, 0, 0)), 0);
	assert_int_equal(
		TALLY(cuModuleLoadData, (struct cu_module **, const void *), (&fixture->module, "//ptx")), 0);
	fixture->slow = function(fixture->module, "long");
	fixture->quick = function(fixture->module, "short");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(TALLY(cuCtxDestroy_v2, (struct cu_context *), (fixture->context)), 0);
	free(fixture);
	return 0;
}

static int launch(struct cu_function *what, struct cu_stream *stream)
{
	return TALLY(cuLaunchKernel,
		     (struct cu_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      unsigned, struct cu_stream *, void **, void **),
		     (what, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static int query(struct cu_stream *stream)
{
	return TALLY(cuStreamQuery, (struct cu_stream *), (stream));
}

static struct cu_stream *stream(unsigned flags)
{
	struct cu_stream *made = NULL;

	assert_int_equal(TALLY(cuStreamCreate, (struct cu_stream **, unsigned), (&made, flags)), 0);
	return made;
}

static struct cu_event *recorded(struct cu_stream *on)
{
	struct cu_event *event = NULL;

	assert_int_equal(TALLY(cuEventCreate, (struct cu_event **, unsigned), (&event, 0)), 0);
	assert_int_equal(TALLY(cuEventRecord, (struct cu_event *, struct cu_stream *), (event, on)), 0);
	return event;
}

/* The first to run: nothing is initialised yet. */
static void test_before_init(_unused_ void **state)
{
	uint64_t address;
	int count = 0;

	assert_int_equal(TALLY(cuDeviceGetCount, (int *), (&count)), 3);
	assert_int_equal(TALLY(cuCtxSynchronize, (void), ()), 3);
	assert_int_equal(TALLY(cuInit, (unsigned), (1)), 1);
	assert_int_equal(TALLY(cuInit, (unsigned), (0)), 0);
	assert_int_equal(TALLY(cuDeviceGetCount, (int *), (&count)), 0);
	assert_int_equal(count, 1);
	assert_int_equal(TALLY(cuDeviceGet, (int *, int), (&count, 1)), 101);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&address, 1)), 201);
	assert_int_equal(launch(NULL, NULL), 201);
}

static void test_memory(_unused_ void **state)
{
	size_t free_before = 0, free_now = 0, total = 0;
	uint64_t first, second;

	assert_int_equal(TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_before, &total)), 0);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&first, free_before + 1)), 2);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&first, 0)), 1);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&first, free_before - MIB)), 0);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&second, 2 * MIB)), 2);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&second, MIB)), 0);
	assert_int_equal(TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_now, &total)), 0);
	assert_int_equal(free_now, 0);
	assert_int_equal(TALLY(cuMemFree_v2, (uint64_t), (first)), 0);
	assert_int_equal(TALLY(cuMemFree_v2, (uint64_t), (first)), 1);
	assert_int_equal(TALLY(cuMemFree_v2, (uint64_t), (second + 1)), 1);
	assert_int_equal(TALLY(cuMemFree_v2, (uint64_t), (second)), 0);
	/* The address comes again, as with the real driver. */
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&first, MIB)), 0);
	assert_int_equal(first, second);
	assert_int_equal(TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_now, &total)), 0);
	assert_int_equal(free_now, free_before - MIB);
}

/* What a context holds goes with it. */
static void test_context_takes_its_memory_along(_unused_ void **state)
{
	struct cu_context *context;
	size_t free_before = 0, free_now = 0, total = 0;
	uint64_t address;

	TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_before, &total));
	assert_int_equal(TALLY(cuCtxCreate_v2, (struct cu_context **, unsigned, int), (&context, 0, 0)), 0);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&address, 64 * MIB)), 0);
	assert_int_equal(TALLY(cuCtxDestroy_v2, (struct cu_context *), (context)), 0);
	assert_int_equal(TALLY(cuCtxDestroy_v2, (struct cu_context *), (context)), 201);
	TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_now, &total));
	assert_int_equal(free_now, free_before);
	assert_int_equal(TALLY(cuMemFree_v2, (uint64_t), (address)), 1);
}

static void test_virtual_memory(_unused_ void **state)
{
	const struct cu_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	size_t free_before = 0, free_now = 0, total = 0;
	uint64_t handle, address;

	TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_before, &total));
	assert_int_equal(
		TALLY(cuMemCreate, (uint64_t *, size_t, const void *, uint64_t), (&handle, 3, &prop, 0)), 1);
	assert_int_equal(TALLY(cuMemCreate, (uint64_t *, size_t, const void *, uint64_t),
			       (&handle, 4 * MIB, &prop, 0)),
			 0);
	assert_int_equal(TALLY(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, uint64_t),
			       (&address, 4 * MIB, 0, 0, 0)),
			 0);
	assert_int_equal(TALLY(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t),
			       (address, 4 * MIB, 0, handle, 0)),
			 0);
	assert_int_equal(TALLY(cuMemRelease, (uint64_t), (handle)), 0);
	assert_int_equal(TALLY(cuMemRelease, (uint64_t), (handle)), 1);
	TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_now, &total));
	assert_int_equal(free_now, free_before - 4 * MIB); /* the mapping keeps it */
	assert_int_equal(TALLY(cuMemUnmap, (uint64_t, size_t), (address, 4 * MIB)), 0);
	assert_int_equal(TALLY(cuMemUnmap, (uint64_t, size_t), (address, 4 * MIB)), 1);
	TALLY(cuMemGetInfo_v2, (size_t *, size_t *), (&free_now, &total));
	assert_int_equal(free_now, free_before);
	assert_int_equal(TALLY(cuMemAddressFree, (uint64_t, size_t), (address, 2 * MIB)), 1);
	assert_int_equal(TALLY(cuMemAddressFree, (uint64_t, size_t), (address, 4 * MIB)), 0);
}

static void test_legacy_stream_orders_blocking_ones(void **state)
{
	struct fixture *fixture = *state;
	struct cu_stream *blocking = stream(0), *other = stream(0),
			 *free_one = stream(CU_NON_BLOCKING_STREAM);

	assert_int_equal(launch(fixture->slow, free_one), 0);
	assert_int_equal(query(free_one), 600);
	assert_int_equal(query(NULL), 0);
	assert_int_equal(query(blocking), 0);
	assert_int_equal(launch(fixture->slow, blocking), 0);
	assert_int_equal(query(NULL), 600);
	assert_int_equal(query(other), 0); /* nothing in the legacy stream between them */
	assert_int_equal(launch(fixture->quick, NULL), 0);
	assert_int_equal(query(other), 600);
}

static void test_per_thread_stream(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(launch(fixture->slow, CU_PER_THREAD_STREAM), 0);
	assert_int_equal(query(CU_PER_THREAD_STREAM), 600);
	assert_int_equal(TALLY(cuStreamQuery_ptsz, (struct cu_stream *), (NULL)), 600);
	assert_int_equal(query(CU_LEGACY_STREAM), 600);
	assert_int_equal(query(stream(0)), 0);
}

static void test_events(void **state)
{
	struct fixture *fixture = *state;
	struct cu_stream *first = stream(CU_NON_BLOCKING_STREAM), *second = stream(CU_NON_BLOCKING_STREAM);
	struct cu_event *before, *after, *later;
	float ms = 0;

	before = recorded(first);
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(fixture->quick, first), 0);
	after = recorded(first);
	assert_int_equal(TALLY(cuEventSynchronize, (struct cu_event *), (after)), 0);
	assert_int_equal(TALLY(cuEventElapsedTime, (float *, struct cu_event *, struct cu_event *),
			       (&ms, before, after)),
			 0);
	assert_true(ms > 2.9f); /* three of 1 ms each, one after the other */
	assert_int_equal(launch(fixture->slow, first), 0);
	later = recorded(first);
	assert_int_equal(TALLY(cuEventQuery, (struct cu_event *), (later)), 600);
	assert_int_equal(TALLY(cuEventQuery, (struct cu_event *), (after)), 0);
	assert_int_equal(query(second), 0);
	assert_int_equal(TALLY(cuStreamWaitEvent, (struct cu_stream *, struct cu_event *, unsigned),
			       (second, later, 0)),
			 0);
	assert_int_equal(query(second), 600);
	assert_int_equal(TALLY(cuEventDestroy_v2, (struct cu_event *), (later)), 0);
	assert_int_equal(TALLY(cuEventDestroy_v2, (struct cu_event *), (later)), 400);
}

static int capture(struct cu_stream *on)
{
	return TALLY(cuStreamBeginCapture_v2, (struct cu_stream *, unsigned), (on, 0));
}

static int end(struct cu_stream *on, struct cu_graph **graph)
{
	return TALLY(cuStreamEndCapture, (struct cu_stream *, struct cu_graph **), (on, graph));
}

static void test_graphs(void **state)
{
	struct fixture *fixture = *state;
	struct cu_stream *on = stream(0), *joined = stream(0);
	struct cu_graph *graph = NULL, *exec = NULL;
	struct cu_event *fork;
	uint64_t address;

	assert_int_equal(end(on, &graph), 1);
	assert_int_equal(capture(NULL), 900);
	assert_int_equal(capture(on), 0);
	assert_int_equal(launch(fixture->slow, on), 0);
	assert_int_equal(TALLY(cuStreamSynchronize, (struct cu_stream *), (on)), 900);
	assert_int_equal(TALLY(cuMemAlloc_v2, (uint64_t *, size_t), (&address, MIB)), 900);
	assert_int_equal(launch(fixture->slow, NULL), 906);
	fork = recorded(on);
	assert_int_equal(TALLY(cuStreamWaitEvent, (struct cu_stream *, struct cu_event *, unsigned),
			       (joined, fork, 0)),
			 0);
	assert_int_equal(launch(fixture->slow, joined), 0);
	assert_int_equal(end(joined, &graph), 903);
	assert_int_equal(end(on, &graph), 0);
	assert_int_equal(query(on), 0); /* recorded, not run */
	assert_int_equal(query(joined), 0);
	assert_int_equal(TALLY(cuGraphInstantiateWithFlags, (struct cu_graph **, struct cu_graph *, uint64_t),
			       (&exec, graph, 0)),
			 0);
	assert_int_equal(TALLY(cuGraphDestroy, (struct cu_graph *), (graph)), 0);
	assert_int_equal(TALLY(cuGraphLaunch, (struct cu_graph *, struct cu_stream *), (exec, on)), 0);
	assert_int_equal(query(on), 600);
	assert_int_equal(TALLY(cuGraphExecDestroy, (struct cu_graph *), (exec)), 0);
	assert_int_equal(TALLY(cuGraphLaunch, (struct cu_graph *, struct cu_stream *), (exec, on)), 1);
}

static void test_bad_handles(void **state)
{
	struct fixture *fixture = *state;
	struct cu_stream *gone = stream(0);
	struct cu_function *none = NULL;

	assert_int_equal(TALLY(cuStreamDestroy_v2, (struct cu_stream *), (gone)), 0);
	assert_int_equal(query(gone), 400);
	assert_int_equal(query((struct cu_stream *)(uintptr_t)0xdeadbeef), 400);
	assert_ptr_equal(stream(0), gone); /* the handle comes again */
	assert_int_equal(launch((struct cu_function *)(uintptr_t)8, NULL), 400);
	assert_int_equal(TALLY(cuModuleGetFunction, (struct cu_function **, struct cu_module *, const char *),
			       (&none, fixture->module, "missing_one")),
			 500);
	assert_int_equal(TALLY(cuModuleLoadData, (struct cu_module **, const void *),
			       (&fixture->module, "\1\2\3\4")),
			 200);
}

static void test_launch_limits(void **state)
{
	struct fixture *fixture = *state;
#define LAUNCH(gx, gy, bx, by)                                                                             \
	TALLY(cuLaunchKernel,                                                                              \
	      (struct cu_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	       void *, void **, void **),                                                                  \
	      (fixture->quick, gx, gy, 1, bx, by, 1, 0, NULL, NULL, NULL))

	assert_int_equal(LAUNCH(1, 1, 1024, 1), 0);
	assert_int_equal(LAUNCH(1, 1, 1025, 1), 1);
	assert_int_equal(LAUNCH(1, 1, 64, 32), 1);
	assert_int_equal(LAUNCH(0, 1, 32, 1), 1);
	assert_int_equal(LAUNCH(1, 65536, 32, 1), 1);
	assert_int_equal(LAUNCH(2147483647, 65535, 1024, 1), 0);
	assert_int_equal(LAUNCH(1, 1, 65536, 65536), 1);
}

static void test_entry_points(_unused_ void **state)
{
	void *function_address = NULL;
	uint32_t status = 9;
#define ENTRY(name, version, flags)                                                    \
	TALLY(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, uint32_t *), \
	      (name, &function_address, version, flags, &status))

	assert_int_equal(ENTRY("cuMemAlloc", 12000, 0), 0);
	assert_ptr_equal(function_address, tally_symbol("cuMemAlloc_v2"));
	assert_int_equal(status, 0);
	assert_int_equal(ENTRY("cuMemcpyHtoD", 12000, 2), 0);
	assert_ptr_equal(function_address, tally_symbol("cuMemcpyHtoD_v2_ptds"));
	assert_int_equal(ENTRY("cuLaunchKernel", 7000, 2), 0);
	assert_ptr_equal(function_address, tally_symbol("cuLaunchKernel_ptsz"));
	assert_int_equal(ENTRY("cuCtxSynchronize", 12000, 0), 0);
	assert_ptr_equal(function_address, tally_symbol("cuCtxSynchronize"));
	assert_int_equal(ENTRY("cuNothing", 13000, 0), 500);
	assert_int_equal(status, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_init),
#define WITH_CONTEXT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		WITH_CONTEXT(test_memory),
		WITH_CONTEXT(test_context_takes_its_memory_along),
		WITH_CONTEXT(test_virtual_memory),
		WITH_CONTEXT(test_legacy_stream_orders_blocking_ones),
		WITH_CONTEXT(test_per_thread_stream),
		WITH_CONTEXT(test_events),
		WITH_CONTEXT(test_graphs),
		WITH_CONTEXT(test_bad_handles),
		WITH_CONTEXT(test_launch_limits),
		WITH_CONTEXT(test_entry_points),
	};
	char path[4096];

	if (!need_has_room())
		return 0;
	setenv("GPUSONDE_SIM_SCENARIO", "desktop-1gpu", 1);
	setenv("GPUSONDE_SIM_CUDA_KERNEL_US", "long=36000000000,short=1000", 1);
	snprintf(path, sizeof(path), "%s/sim/cuda/libcuda.so.1", getenv("GPUSONDE_TEST_BUILD"));
	if (tally_load(path) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
