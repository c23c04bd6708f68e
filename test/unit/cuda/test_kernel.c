// SPDX-License-Identifier: Apache-2.0
/* Kernels: launches, shapes, occupancy, memory. */
#include "cuda/private.h"

#include <stdio.h>

#include "scene.h"

enum { A = 0x1000, B = 0x2000, C = 0x3000 };

/* ---- launches ---- */

static void counted(void **state)
{
	struct scene *s = *state;

	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, A, 20, 10);
	launch_many(s, 0, B, 1, 1);
	s->result = 1;
	launch_many(s, 0, A, 10, 10);
	s->result = 1;
	launch_many(s, 0, C, 10, 10);
	launch_many(s, 0, 0, 7, 1); /* which kernel could not be read */
	CALL(s, CAPTURE_BEGIN, .stream = 5);
	launch_many(s, 5, A, 10, 10);
	launch_many(s, 5, C, 10, 10);
	CALL(s, CAPTURE_END, .stream = 5, .handle = 0x77);
	CALL(s, GRAPH_INSTANTIATE, .handle = 0x78, .addr = 0x77);
	CALL(s, GRAPH_LAUNCH, .stream = 0, .handle = 0x78);
	sync_context(s, 100);
	window(s);
	assert_int_equal(kernel_at(s, A)->all.launches, 2);
	assert_int_equal(kernel_at(s, A)->all.threads, 300);
	assert_int_equal(kernel_at(s, B)->all.launches, 1);
	assert_int_equal(kernel_at(s, 0)->all.launches, 1);
	assert_int_equal(kernel_at(s, 0)->all.threads, 7);
	assert_null(kernel_at(s, 0)->kernel);
	assert_int_equal(shown_kernels(s, PID), 3);
	assert_value(s, UUID0, TRACED_LAUNCHES, 4);
	assert_value(s, UUID0, TRACED_THREADS, 308 + 200);
	assert_sums(s);
	assert_int_equal(device_total(s, UUID0)->kernels.launches, 4);
	assert_int_equal(device_total(s, UUID0)->kernels.threads, 308);
}

static void without_results(void **state)
{
	struct scene *s = *state;

	launch_many(s, 0, A, 10, 10);
	window(s);
	assert_int_equal(kernel_at(s, A)->p, PRESENCE_PRESENT);
	s->flags |= TRACE_FLAG_NO_RESULT;
	s->result = 1; /* nobody read it */
	launch_many(s, 0, A, 10, 10);
	window(s);
	assert_int_equal(kernel_at(s, A)->all.launches, 2);
	assert_int_equal(kernel_at(s, A)->p, PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

static void without_room(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	for (uint64_t i = 0; i < 5; i++)
		for (uint64_t k = 0; k <= i; k++)
			launch_many(s, 0, A + i, 10, 10);
	sync_context(s, 1000);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 4);
	assert_int_equal(kernel_at(s, 0)->all.launches, 4 + 5);
	assert_int_equal(kernel_at(s, 0)->all.threads, 900);
	assert_false(kernel_at(s, 0)->has_series);
	assert_near(kernel_at(s, 0)->all.seconds / value(s, UUID0, TRACED_BUSY_ESTIMATED), 9.0 / 15, 1e-6);
	assert_sums(s);
	assert_int_equal(s->view->processes[0].incomplete, 0);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.overflow[CUDA_LIMIT_KERNELS], 9);
}

/* A program's own names, of any length, and its modules come and go: what is kept of them has a bound. */
static void without_room_for_names(void **state)
{
	static char text[16000];
	const uint32_t kernels = 2 * TEXTS_BYTES_OF_ONE / sizeof(text);
	struct scene *s = scene_new(NULL);
	struct cuda_stats stats;

	(void)state;
	memset(text, 'k', sizeof(text) - 1);
	for (uint32_t i = 0; i < kernels; i++) {
		snprintf(text + sizeof(text) - 9, 9, "%08u", i);
		name(s, TRACE_OP_FUNCTION_NAME, A + i, 1, text);
		launch_function(s, 0, A + i);
		CALL(s, MODULE_UNLOAD, .handle = 1);
	}
	window(s);
	cuda_stats(s->cuda, &stats);
	assert_true(stats.overflow[CUDA_LIMIT_KERNELS] > 0 && stats.overflow[CUDA_LIMIT_KERNELS] < kernels);
	assert_true(shown_kernels(s, PID) * sizeof(text) < TEXTS_BYTES_OF_ONE);
	assert_int_equal(kernel_at(s, 0)->all.launches, stats.overflow[CUDA_LIMIT_KERNELS]);
	assert_sums(s);
	scene_free(s);
}

/* More values for one kernel than there is room for; and all processes together. */
static void without_room_for_handles(void **state)
{
	struct scene *s = *state;

	name(s, TRACE_OP_FUNCTION_NAME, A, 1, "add");
	for (uint64_t i = 1; i < 20; i++)
		CALL(s, FUNCTION_ALIAS, .handle = A + i, .addr = A);
	for (uint64_t i = 0; i < 20; i++)
		launch_function(s, 0, A + i);
	window(s);
	assert_int_equal(shown_kernel(s, PID, UUID0, "add")->all.launches, 3 * FUNCTIONS_PER_ROW);
	assert_int_equal(kernel_at(s, 0)->all.launches, 20 - 3 * FUNCTIONS_PER_ROW);
	for (uint32_t i = 1; i < 30; i++) {
		s->tgid = PID + i;
		scene_process(s, s->tgid, i + 1);
		for (uint64_t k = 0; k < 3; k++)
			launch_function(s, 0, A + k);
	}
	window(s);
	assert_int_equal(s->cuda->rows_n, 3 * ROWS_OF_ALL);
	assert_sums(s);
	for (uint32_t i = 0; i < 30; i++) {
		s->tgid = PID + i;
		scene_end(s, TRACE_EVENT_EXIT);
	}
	window(s);
	window(s);
	assert_int_equal(s->cuda->rows_n, 0);
}

/* ---- shapes ---- */

static void shapes(void **state)
{
	struct scene *s = *state;
	const struct traced_kernel *k;
	uint64_t sum = 0;

	launch_many(s, 0, A, 1, 32);
	for (unsigned i = 0; i < 3; i++)
		launch_many(s, 0, A, 2, 32);
	s->shared = 48;
	for (unsigned i = 0; i < 2; i++)
		launch_many(s, 0, A, 2, 32);
	window(s);
	k = kernel_at(s, A);
	assert_int_equal(k->shapes_n, 3);
	assert_int_equal(k->shapes[0].launches, 3);
	assert_int_equal(k->shapes[0].grid[0], 2);
	assert_int_equal(k->shapes[0].grid[2], 1);
	assert_int_equal(k->shapes[0].block[0], 32);
	assert_int_equal(k->shapes[0].shared_bytes, 0);
	assert_int_equal(k->shapes[1].shared_bytes, 48);
	assert_int_equal(k->shapes[2].launches, 1);
	/* Five more have room; the others are counted. */
	for (uint32_t i = 3; i < 13; i++)
		launch_many(s, 0, A, i, 32);
	window(s);
	k = kernel_at(s, A);
	assert_int_equal(k->shapes_n, TRACED_SHAPES_MAX);
	for (uint32_t i = 0; i < k->shapes_n; i++)
		sum += k->shapes[i].launches;
	assert_int_equal(sum + k->other_shapes, 16);
	assert_int_equal(k->other_shapes, 5);
	for (uint32_t i = 1; i < k->shapes_n; i++)
		assert_true(k->shapes[i].launches <= k->shapes[i - 1].launches);
}

/* All places were taken by shapes of the beginning. */
static void shapes_of_today(void **state)
{
	struct scene *s = *state;
	const struct traced_kernel *k;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 100; i++)
		launch_many(s, 0, A, 1 + i % 8, 32);
	for (uint32_t i = 0; i < 1000; i++)
		launch_many(s, 0, A, i % 3 ? 100 : 1000 + i, 64);
	window(s);
	k = kernel_at(s, A);
	assert_int_equal(k->shapes[0].grid[0], 100);
	assert_true(k->shapes[0].launches > 500);
	for (uint32_t i = 0; i < k->shapes_n; i++)
		sum += k->shapes[i].launches;
	assert_int_equal(sum + k->other_shapes, 1100);
}

static void shapes_of_two_rows(void **state)
{
	struct scene *s = *state;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 40; i++) {
		launch_many(s, 0, A, 1 + i % 20, 32);
		launch_many(s, 0, B, 11 + i % 20, 32);
	}
	answer_with(s, 0, &scene_kernel);
	answer_with(s, 1, &scene_kernel);
	window(s);
	assert_int_equal(s->view->kernels_n, 1);
	for (uint32_t i = 0; i < s->view->kernels[0].shapes_n; i++)
		sum += s->view->kernels[0].shapes[i].launches;
	assert_int_equal(sum + s->view->kernels[0].other_shapes, 80);
}

static void each_part_tells_shapes_apart(void **state)
{
	struct scene *s = *state;

	for (unsigned i = 0; i < 7; i++) {
		struct trace_launch event = {
			.header = { .time_ns = scene_ns(s, s->now_us++),
				    .tgid = PID,
				    .tid = TID,
				    .type = TRACE_EVENT_LAUNCH,
				    .flags = TRACE_FLAG_RUNTIME },
			.function = A,
			.grid = { 1, 1, 1 },
			.block = { 1, 1, 1 },
		};

		if (i < 3)
			event.grid[i]++;
		else if (i < 6)
			event.block[i - 3]++;
		else
			event.shared_bytes++;
		cuda_event(s->cuda, &event.header, sizeof(event));
		cuda_event(s->cuda, &event.header, sizeof(event));
	}
	window(s);
	assert_int_equal(kernel_at(s, A)->shapes_n, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(kernel_at(s, A)->shapes[i].launches, 2);
}

static void occupancy_of_its_most_used_shape(void **state)
{
	struct scene *s = *state;
	struct occupancy wanted;

	launch_many(s, 0, A, 10, 1024);
	s->shared = 100000;
	launch_many(s, 0, A, 10, 128);
	launch_many(s, 0, A, 10, 128);
	window(s);
	assert_false(s->view->kernels[0].occupancy_known);
	answer_with(s, 0, &scene_kernel);
	window(s);
	assert_true(s->view->kernels[0].occupancy_known);
	assert_int_equal(occupancy_of(90, scene_kernel.figures, 128, 100000, &wanted), 0);
	assert_near(s->view->kernels[0].occupancy.ratio, wanted.ratio, 0);
	assert_int_equal(s->view->kernels[0].occupancy.limiter, OCCUPANCY_SHARED);
	/* No device has such blocks, and 2^32 + 128 threads are not 128. */
	s->shared = 0;
	for (unsigned i = 0; i < 3; i++)
		launch_many(s, 0, A, 10, 4096);
	window(s);
	assert_false(s->view->kernels[0].occupancy_known);
}

static void block_of_too_many_threads(void **state)
{
	struct scene *s = *state;
	struct trace_launch event = {
		.header = { .time_ns = scene_ns(s, 0),
			    .tgid = PID,
			    .tid = TID,
			    .type = TRACE_EVENT_LAUNCH,
			    .flags = TRACE_FLAG_RUNTIME },
		.function = A,
		.grid = { 1, 1, 1 },
		.block = { 128, (1 << 25) + 1, 1 },
	};

	cuda_event(s->cuda, &event.header, sizeof(event));
	answer_with(s, 0, &scene_kernel);
	window(s);
	assert_false(s->view->kernels[0].occupancy_known);
}

/* ---- memory ---- */

static void memory_of_launches(void **state)
{
	struct scene *s = *state;
	struct kernel other = scene_kernel;

	launch_many(s, 0, A, 10, 10);
	window(s);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LAUNCH_SHARED], PRESENCE_ABSENT);
	answer_with(s, 0, &scene_kernel);
	window(s);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LAUNCH_SHARED], PRESENCE_ABSENT); /* no launch */
	s->shared = 200;
	launch_many(s, 0, A, 10, 10);
	s->shared = 0;
	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, B, 10, 10);
	launch_many(s, 0, B, 10, 10);
	window(s);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LAUNCH_SHARED],
			 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_value(s, UUID0, TRACED_LAUNCH_SHARED, 100 + 1024 + 100);
	assert_value(s, UUID0, TRACED_LAUNCH_CONSTANT, 500);
	assert_value(s, UUID0, TRACED_LAUNCH_CODE, 4000);
	other.symbol = "other";
	other.figures[KERNEL_RESERVED_SHARED] = other.figures[KERNEL_CODE] = -1;
	other.figures[KERNEL_CONSTANT] = 600;
	answer_with(s, 1, &other);
	launch_many(s, 0, A, 10, 10);
	launch_many(s, 0, B, 10, 10);
	launch_many(s, 0, B, 10, 10);
	launch_many(s, 0, B, 10, 10);
	window(s);
	assert_value(s, UUID0, TRACED_LAUNCH_SHARED, (1124 + 3 * 100) / 4.0);
	assert_value(s, UUID0, TRACED_LAUNCH_CONSTANT, 575);
	assert_value(s, UUID0, TRACED_LAUNCH_CODE, 4000);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup_kernels, scene_teardown)
#define FEW(test) cmocka_unit_test_setup_teardown(test, scene_setup_few, scene_teardown)
#define NAMING(test) cmocka_unit_test_setup_teardown(test, scene_setup_kernels_naming, scene_teardown)
	const struct CMUnitTest tests[] = {
		TEST(counted),
		TEST(without_results),
		FEW(without_room),
		cmocka_unit_test(without_room_for_names),
		FEW(without_room_for_handles),
		TEST(shapes),
		TEST(shapes_of_today),
		NAMING(shapes_of_two_rows),
		TEST(each_part_tells_shapes_apart),
		NAMING(occupancy_of_its_most_used_shape),
		NAMING(block_of_too_many_threads),
		NAMING(memory_of_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
