// SPDX-License-Identifier: Apache-2.0
/* What operators make CUDA do, and how the estimated time is split among them. */
#include "cuda/private.h"
#include "scene.h"

enum { ADD = 700, LINEAR = 701 };
#define WAVE (16 * CORES) /* threads */

static int setup(void **state)
{
	*state = scene_new(&(struct cuda_limits){ .operators = true });
	return *state ? 0 : -1;
}

static const struct cuda_operator *of(const struct scene *s, uint16_t operator)
{
	bool doubtful;
	const struct cuda_operator *all = cuda_operators(s->cuda, &doubtful);

	assert_non_null(all);
	assert_false(doubtful);
	return &all[operator];
}

/* Launches by an operator; 0: outside of any. */
static void launch_by(struct scene *s, uint16_t operator, uint32_t grid)
{
	s->operator = operator;
	launch_threads(s, 0, grid, 100);
	s->operator = 0;
}

static void each_call_is_its_operators(void **state)
{
	struct scene *s = *state;

	launch_by(s, ADD, 1);
	launch_by(s, ADD, 1);
	launch_by(s, LINEAR, 1);
	launch_by(s, 0, 1);
	s->operator = ADD;
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 4096);
	allocate(s, TRACE_MEMORY_HOST, 0x9000, 1 << 20); /* not on a device */
	CALL(s, COPY, .size = 100, .kind = TRACE_COPY_HOST_TO_DEVICE);
	CALL(s, SET, .addr = 0x1000, .size = 23);
	s->operator = LINEAR;
	sync_context(s, 500);
	s->operator = 0;
	s->operator = LINEAR;
	s->result = 2;
	CALL(s, COPY, .size = 1000, .kind = TRACE_COPY_HOST_TO_DEVICE); /* fails */
	s->operator = 0;
	window(s);
	assert_int_equal(of(s, ADD)->launches, 2);
	assert_int_equal(of(s, LINEAR)->launches, 1);
	assert_int_equal(of(s, 0)->launches, 1);
	assert_int_equal(of(s, ADD)->allocated_bytes, 4096);
	assert_int_equal(of(s, ADD)->copied_bytes, 123);
	assert_int_equal(of(s, LINEAR)->copied_bytes, 0);
	assert_int_equal(of(s, LINEAR)->wait_ns, 500000);
}

/* ---- of one process ---- */

struct own {
	struct cuda_operator add, linear;
	uint32_t n;
};

static void take_own(uint16_t call, const struct cuda_operator *done, void *userdata)
{
	struct own *own = userdata;

	own->n++;
	if (call == ADD)
		own->add = *done;
	else if (call == LINEAR)
		own->linear = *done;
}

static bool own_of(const struct scene *s, uint32_t tgid, uint64_t incarnation, struct own *own)
{
	bool doubtful = true, known;

	*own = (struct own){ .n = 0 };
	known = cuda_process_operators(s->cuda, tgid, incarnation, take_own, own, &doubtful);
	assert_true(!known || !doubtful);
	return known;
}

static void each_process_has_its_own(void **state)
{
	struct scene *s = *state;
	struct own one, other;

	launch_by(s, ADD, 1);
	launch_by(s, ADD, 1);
	scene_process(s, PID + 1, 2);
	s->tgid = PID + 1;
	launch_by(s, ADD, 1);
	s->operator = LINEAR;
	CALL(s, COPY, .size = 100, .kind = TRACE_COPY_HOST_TO_DEVICE);
	s->operator = 0;
	window(s);
	assert_true(own_of(s, PID, 1, &one));
	assert_true(own_of(s, PID + 1, 2, &other));
	assert_false(own_of(s, PID + 1, 1, &(struct own){ .n = 0 }));
	assert_int_equal(one.n, 1);
	assert_int_equal(one.add.launches, 2);
	assert_int_equal(other.n, 2);
	assert_int_equal(other.add.launches, 1);
	assert_int_equal(other.linear.copied_bytes, 100);
	assert_near(one.add.ns + other.add.ns, of(s, ADD)->ns, 1);
	assert_true(one.add.ns > 0 && other.add.ns > 0);
}

/* Operators beyond the limit are in the sums of all, and the process's are marked. */
static void a_process_has_so_many(void **state)
{
	struct scene *s = *state;
	struct own own = { .n = 0 };
	bool doubtful = false;

	for (uint16_t i = 1; i <= OPERATOR_SUMS_MAX + 1; i++)
		launch_by(s, i, 1);
	window(s);
	assert_true(cuda_process_operators(s->cuda, PID, 1, take_own, &own, &doubtful));
	assert_int_equal(own.n, OPERATOR_SUMS_MAX);
	assert_true(doubtful);
	assert_int_equal(of(s, OPERATOR_SUMS_MAX + 1)->launches, 1);
}

static void time_is_split_by_waves(void **state)
{
	struct scene *s = *state;
	double busy;

	s->now_us = 100;
	launch_by(s, ADD, 1);
	launch_by(s, LINEAR, WAVE / 100 * 2);
	launch_by(s, 0, 1);
	sync_stream(s, 0, 900);
	window_at(s, 2000);
	busy = of(s, ADD)->ns + of(s, LINEAR)->ns + of(s, 0)->ns;
	assert_near(busy, value(s, UUID0, TRACED_BUSY_ESTIMATED) * 1e9, 1);
	assert_near(of(s, ADD)->ns, busy / 4, 1);
	assert_near(of(s, LINEAR)->ns, busy / 2, 1);
}

/* What still runs in a window without launches is of those that launched last. */
static void a_window_without_launches(void **state)
{
	struct scene *s = *state;
	double before;

	s->now_us = 100;
	launch_by(s, ADD, 1);
	window_at(s, 1000);
	before = of(s, ADD)->ns;
	window_at(s, 2000);
	sync_stream(s, 0, 500);
	window_at(s, 3000);
	assert_true(of(s, ADD)->ns > before);
	assert_near(of(s, ADD)->ns, value(s, UUID0, TRACED_BUSY_ESTIMATED) * 1e9, 1);
	assert_true(of(s, 0)->ns == 0);
}

static void nothing_unless_wanted(void **state)
{
	struct scene *s = *state;
	bool doubtful;

	launch_by(s, ADD, 1);
	window(s);
	assert_null(cuda_operators(s->cuda, &doubtful));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_call_is_its_operators, setup, scene_teardown),
		cmocka_unit_test_setup_teardown(each_process_has_its_own, setup, scene_teardown),
		cmocka_unit_test_setup_teardown(a_process_has_so_many, setup, scene_teardown),
		cmocka_unit_test_setup_teardown(time_is_split_by_waves, setup, scene_teardown),
		cmocka_unit_test_setup_teardown(a_window_without_launches, setup, scene_teardown),
		cmocka_unit_test_setup_teardown(nothing_unless_wanted, scene_setup, scene_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
