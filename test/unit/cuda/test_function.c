// SPDX-License-Identifier: Apache-2.0
/* Which kernel a function is of: several of one kernel, one that turns out to be another. */
#include <errno.h>

#include "cuda/private.h"
#include "scene.h"

enum { MODULE = 0x500, OTHER_MODULE = 0x600, F = 0x1000, G = 0x2000, HOST = 0x400000 };

static int setup_one(void **state)
{
	*state = scene_new_naming(&(struct cuda_limits){ .series = 128, .kernels = 1, .kernel_series = 64 });
	return 0;
}

/* ---- one kernel, several functions ---- */

static void two_become_one(void **state)
{
	struct scene *s = *state;
	const struct traced_kernel *k;

	launch_function(s, 0, F);
	s->shared = 5;
	launch_function(s, 0, G);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 2);
	launch_function(s, 0, G);
	launch_function(s, 0, G);
	answer(s, 0, "add", "a.so", 0);
	answer(s, 1, "add", "a.so", 0);
	launch_function(s, 0, F);
	launch_function(s, 0, G);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_kernel(s, "add", 6);
	k = shown_kernel(s, PID, UUID0, "add");
	assert_int_equal(k->all.threads, 600);
	assert_int_equal(k->shapes_n, 2);
	assert_int_equal(k->shapes[0].shared_bytes, 5);
	assert_int_equal(k->shapes[0].launches, 5);
	assert_int_equal(s->view->totals[0].kernels.launches, 6);
	assert_int_equal(k->series.launches + s->view->totals[0].kernels_other.launches, 6);
	assert_int_equal(s->cuda->rows_n, 1);
	/* Of the same name in another file, or the other way round: another one. */
	launch_function(s, 0, F + 1);
	launch_function(s, 0, F + 2);
	answer(s, 2, "add", "b.so", 0);
	answer(s, 3, "sub", "a.so", 0);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 3);
}

static void blended(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	launch_function(s, 0, G);
	answer(s, 0, "add", "", 100);
	answer(s, 1, "add", "", 200); /* two of one name, in two images */
	window(s);
	assert_kernel(s, "add", 2);
	assert_int_equal(s->view->kernels[0].kernel->figures[KERNEL_STATIC_SHARED], -1);
	assert_int_equal(s->view->kernels[0].kernel->figures[KERNEL_REGISTERS], 0);
}

static void host_functions(void **state)
{
	struct scene *s = *state;

	CALL(s, DEVICE_SET, .kind = 0);
	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST);
	s->flags = 0;
	launch_function(s, 0, F);
	launch_function(s, 0, HOST);
	assert_int_equal(s->asked_n, 1);
	assert_int_equal(s->asked[0].function.function, HOST);
	launch_function(s, 0, G);
	answer(s, 0, "add", "", 0);
	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST); /* as it was */
	assert_int_equal(s->cuda->processes[0]->functions.used, 3);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "add", 3);
	/* Another one behind the same value. */
	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST + 16);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "add", 3);
	assert_kernel(s, "0x400010", 1);
}

/* An alias whose name is asked for is one all the same. */
static void alias_with_a_name(void **state)
{
	struct scene *s = *state;

	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST);
	made_for(s, F, 0, "add");
	launch_function(s, 0, F);
	launch_function(s, 0, HOST);
	window(s);
	assert_kernel(s, "add", 2);
}

static void renamed(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	answer(s, 0, "?k+0x10", "k", 0);
	window(s);
	assert_int_equal(shown_kernel(s, PID, UUID0, "?k+0x10")->series.launches, 1);
	made_for(s, F, 0, "add");
	launch_function(s, 0, F);
	answer(s, 1, "add", "k", 0);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "add", 3);
	assert_int_equal(shown_kernel(s, PID, UUID0, "add")->series.launches, 2); /* of that name */
	/* Others of the name that it had are one. */
	launch_function(s, 0, G);
	launch_function(s, 0, G + 1);
	answer(s, 2, "?k+0x10", "k", 0);
	answer(s, 3, "?k+0x10", "k", 0);
	window(s);
	assert_kernel(s, "?k+0x10", 2);
}

/* A plugin is gone, and another one loaded where it was. */
static void registered_again(void **state)
{
	struct scene *s = *state;

	CALL(s, DEVICE_SET, .kind = 0);
	CALL(s, FUNCTION_REGISTER, .handle = HOST, .addr = 0x1);
	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST);
	launch_function(s, 0, F);
	launch_function(s, 0, HOST + 16);
	answer(s, 0, "first", "a.so", 0);
	answer(s, 1, "other", "b.so", 0);
	launch_function(s, 0, F);
	launch_function(s, 0, HOST);
	CALL(s, FUNCTION_REGISTER, .handle = HOST, .addr = 0x2);
	CALL(s, FUNCTION_REGISTER, .handle = HOST + 8, .addr = 0x3); /* not known */
	launch_function(s, 0, HOST + 16);
	assert_int_equal(s->asked_n, 2);
	launch_function(s, 0, HOST);
	assert_int_equal(s->asked_n, 3);
	assert_int_equal(s->asked[2].function.function, HOST);
	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST); /* the same value */
	launch_function(s, 0, F);
	answer(s, 2, "second", "c.so", 0);
	/* What was asked before the end is of what ended. */
	CALL(s, FUNCTION_REGISTER, .handle = HOST, .addr = 0x4);
	launch_function(s, 0, HOST);
	CALL(s, FUNCTION_REGISTER, .handle = HOST, .addr = 0x5);
	launch_function(s, 0, HOST);
	answer(s, 3, "third", "d.so", 0);
	answer(s, 4, "fourth", "e.so", 0);
	launch_function(s, 0, F); /* an alias whose target is gone stands for nothing */
	window(s);
	assert_kernel(s, "first", 3);
	assert_kernel(s, "other", 2);
	assert_kernel(s, "second", 2);
	assert_kernel(s, "third", 1);
	assert_kernel(s, "fourth", 1);
	assert_kernel(s, "0x1000", 1);
	assert_int_equal(shown_kernels(s, PID), 6);
}

/* The value of a handle that nobody has seen an end of. */
static void made_after_launches(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	made_for(s, F, MODULE, "second");
	launch_function(s, 0, F);
	answer(s, 0, "?first", "", 0);
	answer(s, 1, "second", "", 0);
	window(s);
	assert_kernel(s, "?first", 1);
	assert_kernel(s, "second", 1);
}

static void names_that_are_not_known(void **state)
{
	struct scene *s = *state;

	made_for(s, F, MODULE, "first");
	launch_function(s, 0, F);
	made_for(s, F, MODULE, ""); /* got again */
	launch_function(s, 0, F);
	made_for(s, F, 0, "");
	launch_function(s, 0, F);
	s->flags |= TRACE_FLAG_UNREAD;
	made_for(s, F, OTHER_MODULE, "");
	s->flags &= (uint16_t)~TRACE_FLAG_UNREAD;
	launch_function(s, 0, F);
	s->cut = true;
	made_for(s, G, MODULE, "long");
	made_for(s, G + 1, MODULE, "long");
	s->cut = false;
	launch_function(s, 0, G);
	launch_function(s, 0, G + 1);
	name(s, TRACE_OP_MODULE_FILE, MODULE, 0, "");
	made_for(s, G + 2, MODULE, "last");
	launch_function(s, 0, G + 2);
	window(s);
	assert_kernel(s, "first", 3);
	assert_kernel(s, "0x1000", 1);
	assert_kernel(s, "0x2000", 1);
	assert_kernel(s, "0x2001", 1);
	assert_kernel(s, "last", 1);
	assert_int_equal(shown_kernels(s, PID), 5);
}

/* Another kernel than it was, and no room for it. */
static void without_room_for_another(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	answer(s, 0, "add", "", 0);
	made_for(s, F, 0, "add");
	launch_function(s, 0, F);
	answer(s, 1, "sub", "", 0);
	launch_function(s, 0, F);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "add", 2);
	assert_kernel(s, "", 2);
	assert_int_equal(s->cuda->processes[0]->functions.used, 0);
}

/* The answer comes to a question that more has become known of since. */
static void asked_again_when_merged(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, G);
	answer(s, 0, "add", "", 0);
	launch_function(s, 0, F);
	made_for(s, F, 0, "sub");
	answer(s, 1, "add", "", 0);
	window(s);
	launch_function(s, 0, G);
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 3);
	assert_string_equal(s->asked[2].symbol, "sub");
}

static void questions_of_the_dead(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	assert_int_equal(s->cuda->questions.count, 1);
	scene_end(s, TRACE_EVENT_EXIT);
	for (unsigned i = 0; i < LINGER_WINDOWS; i++) {
		window(s);
		assert_int_equal(s->view->processes_n, 1);
		assert_false(s->view->processes[0].exited);
	}
	window(s);
	assert_true(s->view->processes[0].exited);
	window(s);
	assert_int_equal(s->view->processes_n, 0);
	assert_int_equal(s->cuda->questions.count, 0);
}

/* More functions than are remembered, on two devices. */
static void many_functions(void **state)
{
	struct scene *s = *state;

	for (unsigned round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 1900; i++)
			for (uint32_t device = 0; device < 2; device++) {
				CALL(s, DEVICE_SET, .kind = device);
				launch_function(s, 0, F + 16 * i);
			}
	window(s);
	assert_int_equal(shown_kernels(s, PID), 3800);
	for (uint32_t i = 0; i < s->view->kernels_n; i++)
		assert_int_equal(s->view->kernels[i].all.launches, 2);
}

/* What was passed is not what is asked about. */
static void alias_asked_again(void **state)
{
	struct scene *s = *state;

	CALL(s, FUNCTION_ALIAS, .handle = F, .addr = HOST);
	s->answer = -EAGAIN;
	launch_function(s, 0, F);
	window(s);
	assert_int_equal(s->asked[1].function.function, HOST);
	s->answer = 0;
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 3);
	assert_int_equal(s->asked[2].function.function, HOST);
	answer(s, 2, "add", "", 0);
	window(s);
	launch_function(s, 0, F);
	window(s);
	assert_int_equal(s->asked_n, 3);
	assert_kernel(s, "add", 3);
}

static void known_better_later(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	launch_function(s, 0, G);
	answer(s, 0, "?libk.so+0x10", "libk.so", 0);
	answer(s, 1, "add", "libk.so", 0);
	window(s);
	assert_true(shown_kernel(s, PID, UUID0, "?libk.so+0x10")->has_series);
	made_for(s, F, 0, "add");
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 3);
	assert_string_equal(s->asked[2].symbol, "add");
	answer(s, 2, "add", "libk.so", 0);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_kernel(s, "add", 3);
	assert_int_equal(s->view->totals[0].kernels.launches, 3);
	/* A name that it had was another's. */
	made_for(s, G, 0, "mul");
	launch_function(s, 0, G);
	answer(s, 3, "mul", "libk.so", 0);
	launch_function(s, 0, G);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "mul", 1); /* since it is known */
	assert_kernel(s, "add", 5);
}

static void on_two_devices(void **state)
{
	struct scene *s = *state;
	static const struct cuda_device devices[] = {
		{ .uuid = UUID0, .cores = CORES, .speed = 1, .sm = 90 },
		{ .uuid = UUID1, .cores = CORES, .speed = 1, .sm = 90 },
	};

	launch_function(s, 0, F);
	CALL(s, DEVICE_SET, .kind = 1);
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 2); /* of two architectures */
	assert_int_equal(s->asked[0].function.sm, 90);
	assert_int_equal(s->asked[1].function.sm, 80);
	answer(s, 0, "add", "", 1);
	answer(s, 1, "add", "", 2);
	window(s);
	assert_int_equal(shown_kernel(s, PID, UUID0, "add")->kernel->figures[KERNEL_STATIC_SHARED], 1);
	assert_int_equal(shown_kernel(s, PID, UUID1, "add")->kernel->figures[KERNEL_STATIC_SHARED], 2);
	assert_int_equal(shown_kernel(s, PID, UUID1, "add")->all.launches, 1);
	launch_function(s, 0, F + 1);
	answer(s, 2, "sub", "", 0);
	CALL(s, DEVICE_SET, .kind = 0);
	launch_function(s, 0, F + 1);
	assert_int_equal(s->asked_n, 4);
	/* Of one, it is known already. */
	assert_int_equal(cuda_set_devices(s->cuda, devices, 2), 0);
	CALL(s, DEVICE_SET, .kind = 0);
	launch_function(s, 0, G);
	answer(s, 4, "mul", "", 3);
	CALL(s, DEVICE_SET, .kind = 1);
	launch_function(s, 0, G);
	window(s);
	assert_int_equal(s->asked_n, 5);
	assert_int_equal(shown_kernel(s, PID, UUID1, "mul")->kernel->figures[KERNEL_STATIC_SHARED], 3);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup, scene_teardown)
#define NAMING(test) cmocka_unit_test_setup_teardown(test, scene_setup_naming, scene_teardown)
	const struct CMUnitTest tests[] = {
		NAMING(two_become_one),
		NAMING(blended),
		NAMING(host_functions),
		TEST(alias_with_a_name),
		NAMING(renamed),
		NAMING(registered_again),
		NAMING(made_after_launches),
		TEST(names_that_are_not_known),
		cmocka_unit_test_setup_teardown(without_room_for_another, setup_one, scene_teardown),
		NAMING(asked_again_when_merged),
		NAMING(questions_of_the_dead),
		TEST(many_functions),
		NAMING(alias_asked_again),
		NAMING(known_better_later),
		NAMING(on_two_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
