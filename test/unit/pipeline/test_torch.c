// SPDX-License-Identifier: Apache-2.0
/* What NVML says that a process holds, beside what PyTorch's allocators have reserved. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "pipeline/private.h"

enum { PID = 100, MIB = 1 << 20 };

struct bench {
	struct pipeline *pipeline;
	struct snapshot *snapshot;
	struct process processes[8];
	struct trace_view *view;
};

static int setup(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->pipeline = calloc(1, sizeof(*bench->pipeline));
	bench->snapshot = calloc(1, sizeof(*bench->snapshot));
	assert_non_null(bench->pipeline);
	assert_non_null(bench->snapshot);
	bench->pipeline->torch = torch_new(4, false);
	assert_non_null(bench->pipeline->torch);
	bench->snapshot->fresh = true;
	bench->snapshot->processes = bench->processes;
	assert_int_equal(trace_view_new(2, 2, 0, 0, 0, 0, 0, &bench->view), 0);
	bench->view->processes[bench->view->processes_n++] =
		(struct traced_process){ .id = { .pid = PID, .start_ticks = 7 }, .comm = "train" };
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	torch_free(bench->pipeline->torch);
	free(bench->pipeline->nvml_memory);
	free(bench->pipeline);
	free(bench->snapshot);
	trace_view_unref(bench->view);
	free(bench);
	return 0;
}

static void holds(struct bench *bench, struct process_id id, uint8_t presence, double bytes)
{
	struct process *p = &bench->processes[bench->snapshot->processes_n++];

	assert_true(bench->snapshot->processes_n <= ARRAY_SIZE(bench->processes));
	*p = (struct process){ .id = id };
	p->p[PROCESS_MEMORY] = presence;
	p->v[PROCESS_MEMORY] = bytes;
}

static void reserves(struct bench *bench, uint32_t gpu, uint64_t bytes)
{
	const struct trace_call event = {
		.header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = TRACE_OP_TORCH_MEMORY },
		.addr = 0x1000 * (gpu + 1),
		.size = 512,
		.stream = 512,
		.handle = bytes,
		.kind = TRACE_TORCH_DEVICE(1, gpu),
	};

	torch_event(bench->pipeline->torch, &event.header, sizeof(event));
}

/* False: what is held beside PyTorch's allocators is not known. */
static bool beside(struct bench *bench, uint64_t *ret_bytes)
{
	uint64_t reserved;

	pipeline_torch_node(bench->pipeline, bench->snapshot);
	free(bench->view->torch);
	pipeline_fill_torch(bench->pipeline, bench->view);
	assert_non_null(bench->view->torch);
	assert_int_equal(bench->view->torch->processes_n, 1);
	return torch_beside(bench->view->torch, &bench->view->torch->processes[0], &reserved, ret_bytes);
}

/* A process on two GPUs: all of them count, and what is said of others does not. */
static void nvml_and_the_allocators_agree(void **state)
{
	const struct process_id id = { .pid = PID, .start_ticks = 7 };
	struct bench *bench = *state;
	uint64_t bytes = 0;

	holds(bench, (struct process_id){ .pid = PID + 1, .start_ticks = 7 }, PRESENCE_PRESENT, 1000.0 * MIB);
	holds(bench, id, PRESENCE_PRESENT, 300.0 * MIB);
	holds(bench, (struct process_id){ .pid = PID - 1, .start_ticks = 7 }, PRESENCE_PRESENT, 1000.0 * MIB);
	holds(bench, id, PRESENCE_PRESENT, 400.0 * MIB);
	reserves(bench, 0, 200 * MIB);
	assert_false(beside(bench, &bytes)); /* one of its GPUs has no allocator that has said anything */
	reserves(bench, 1, 250 * MIB);
	assert_true(beside(bench, &bytes));
	assert_int_equal(bytes, (700 - 450) * MIB);
	/* It has reserved more since NVML was read. */
	reserves(bench, 1, 900 * MIB);
	assert_false(beside(bench, &bytes));
}

/* What NVML does not say of one GPU is not nothing; nor is that of a predecessor with its PID. */
static void what_is_not_known_is_not_told(void **state)
{
	const struct process_id id = { .pid = PID, .start_ticks = 7 };
	struct bench *bench = *state;
	uint64_t bytes = 0;

	holds(bench, id, PRESENCE_PRESENT, 300.0 * MIB);
	reserves(bench, 0, 200 * MIB);
	assert_true(beside(bench, &bytes));
	assert_int_equal(bytes, 100 * MIB);
	bench->processes[0].p[PROCESS_MEMORY] = PRESENCE_UNSUPPORTED;
	assert_false(beside(bench, &bytes));
	bench->processes[0].p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	bench->processes[0].id.start_ticks = 6;
	assert_false(beside(bench, &bytes));
	bench->processes[0].id.start_ticks = 7;
	bench->snapshot->fresh = false;
	assert_false(beside(bench, &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nvml_and_the_allocators_agree, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_not_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
