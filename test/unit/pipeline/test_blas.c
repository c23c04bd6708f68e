// SPDX-License-Identifier: Apache-2.0
/* What a process asked cuBLAS for, as a share of what its board can do. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "pipeline/private.h"

enum { PID = 100 };
#define BOARD "NVIDIA H100 80GB HBM3"
#define BF16_PEAK 989.5e12
#define BUSY_S 2.0

struct bench {
	struct pipeline *pipeline;
	struct trace_view *view;
};

static int setup(void **state)
{
	static struct bench bench;
	struct trace_view *view;

	bench.pipeline = calloc(1, sizeof(*bench.pipeline));
	assert_non_null(bench.pipeline);
	bench.pipeline->blas = blas_new(4, 4, false);
	assert_non_null(bench.pipeline->blas);
	strcpy(bench.pipeline->devices[0].uuid, "GPU-1");
	bench.pipeline->peaks[0] = blas_peak_find(BOARD);
	assert_non_null(bench.pipeline->peaks[0]);
	bench.pipeline->devices_n = 1;
	assert_int_equal(trace_view_new(2, 2, 0, 0, 0, 0, 0, &view), 0);
	view->processes[view->processes_n++] =
		(struct traced_process){ .id.pid = PID, .comm = "train", .devices_n = 1 };
	strcpy(view->devices[view->devices_n].uuid, "GPU-1");
	view->devices[view->devices_n].v[TRACED_BUSY_ESTIMATED] = BUSY_S;
	view->devices[view->devices_n++].p[TRACED_BUSY_ESTIMATED] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	bench.view = view;
	*state = &bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	blas_free(bench->pipeline->blas);
	free(bench->pipeline);
	trace_view_unref(bench->view);
	return 0;
}

static void call(struct bench *bench, uint8_t op, uint32_t types)
{
	const struct trace_call event = {
		.header = { .tgid = PID, .type = TRACE_EVENT_CALL, .op = op },
		.addr = 1000,
		.other = 2000,
		.stream = 3000,
		.size = 4,
		.kind = types,
	};

	blas_event(bench->pipeline->blas, &event.header, sizeof(event));
}

static void multiply(struct bench *bench)
{
	call(bench, TRACE_OP_BLAS_GEMM, TRACE_GEMM_TYPES(14, 14, 14, 68));
}

static double share(struct bench *bench)
{
	free(bench->view->blas);
	pipeline_fill_blas(bench->pipeline, bench->view);
	assert_non_null(bench->view->blas);
	assert_int_equal(bench->view->blas->processes_n, 1);
	return bench->view->blas->processes[0].peak_share;
}

static void it_is_of_the_time_that_the_device_worked(void **state)
{
	struct bench *bench = *state;

	multiply(bench);
	assert_float_equal(share(bench), 2.0 * 1000 * 2000 * 3000 * 4 / BF16_PEAK / BUSY_S, 1e-12);
	assert_string_equal(bench->view->blas->processes[0].comm, "train");
}

static void it_is_absent_where_something_is_not_known(void **state)
{
	struct bench *bench = *state;
	struct pipeline *pipeline = bench->pipeline;
	struct traced_device *device = &bench->view->devices[0];

	multiply(bench);
	pipeline->peaks[0] = NULL; /* a board that is not known */
	assert_true(share(bench) < 0);
	pipeline->peaks[0] = blas_peak_find(BOARD);
	device->v[TRACED_BUSY_ESTIMATED] = 0;
	assert_true(share(bench) < 0);
	device->v[TRACED_BUSY_ESTIMATED] = BUSY_S;
	device->p[TRACED_BUSY_ESTIMATED] = 0;
	assert_true(share(bench) < 0);
	device->p[TRACED_BUSY_ESTIMATED] = PRESENCE_PRESENT;
	assert_true(share(bench) > 0);
	/* Which of two did what. */
	bench->view->devices_n = 2;
	assert_true(share(bench) < 0);
	bench->view->devices_n = 1;
	/* There was more, whose size is not known. */
	call(bench, TRACE_OP_BLAS_UNKNOWN, 0);
	assert_true(share(bench) < 0);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_of_the_time_that_the_device_worked),
		CASE(it_is_absent_where_something_is_not_known),
	};

	return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
