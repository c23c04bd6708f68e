// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <stdio.h>

/* What the child before left behind for the first GPU, believable but for what the test changes. */
static struct persistent_state *left_behind(void)
{
	struct persistent_state *state = &reader->shared->states[0];

	snprintf(state->uuid, sizeof(state->uuid), "GPU-0");
	state->gi = state->ci = UINT32_MAX;
	state->energy_joules = 500;
	return state;
}

static double joules(void)
{
	fake.gpus[0].energy_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(0);
	return VALUE(0, ENERGY);
}

static void goes_on_where_the_last_child_stopped(void **state)
{
	(void)state;
	left_behind();
	assert_near(joules(), 500, 0);
}

static void unbelievable_carry(void **state)
{
	(void)state;
	left_behind()->window_carry_us = INT64_MAX - 1;
	assert_near(joules(), 0, 0);
}

static void unbelievable_times(void **state)
{
	(void)state;
	left_behind()->window_boot_ns = INT64_MIN;
	assert_near(joules(), 0, 0);
}

static void unbelievable_links(void **state)
{
	(void)state;
	left_behind()->nvlink_raw[DIRECTION_RX][3] = NAN;
	assert_near(joules(), 0, 0);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(goes_on_where_the_last_child_stopped),
		TEST(unbelievable_carry),
		TEST(unbelievable_times),
		TEST(unbelievable_links),
	};

	return cmocka_run_group_tests_name("persistent_state", tests, NULL, NULL);
}
