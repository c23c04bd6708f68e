// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <string.h>

static struct fake_gpu *const gpu = &fake.gpus[0];

static void add_instance(uint32_t gi, uint32_t ci, const char *uuid)
{
	struct fake_instance *instance = &gpu->instances[gpu->instances_n++];

	*instance = (struct fake_instance){ .gi = gi, .ci = ci };
	strcpy(instance->uuid, uuid);
	gpu->mig = true;
}

static void instances_follow_their_gpus(void **state)
{
	(void)state;
	fake.count = 2;
	add_instance(1, 0, "MIG-a");
	add_instance(5, 0, "MIG-b");
	pass_after(0);
	assert_int_equal(reader->reading->entities_n, 4);
	assert_int_equal(reader->reading->entities[1].parent, READING_NONE);
	assert_int_equal(reader->reading->entities[3].parent, 0);
	assert_int_equal(reader->reading->entities[3].gi, 5);
	assert_string_equal(reader->reading->entities[3].uuid, "GPU-0");
	assert_string_equal(reader->reading->entities[3].mig_uuid, "MIG-b");
	assert_near(VALUE(3, MEMORY_USED), 30, 0);
	/* Power is the whole GPU's. */
	assert_int_equal(PRESENCE(3, POWER), PRESENCE_ABSENT);
	/* And utilisation an instance's. */
	assert_int_equal(PRESENCE(0, UTILIZATION_GPU), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(0, OBSERVED), PRESENCE_UNSUPPORTED);
}

static void gpm_gives_instances_their_utilisation(void **state)
{
	(void)state;
	gpu->gpm = true;
	gpu->gpm_percent = 40;
	gpu->samples_result = NVML_ERROR_NOT_SUPPORTED;
	add_instance(7, 0, "MIG-a");
	pass_after(0);
	pass_after(2000);
	assert_near(VALUE(1, UTILIZATION_GPU), 0.47, 1e-9);
	assert_near(VALUE(1, OBSERVED), 2, 1e-9);
	assert_near(VALUE(1, BUSY_GPU), 0.94, 1e-9);
	assert_near(VALUE(1, SM_ACTIVE), 0.47, 1e-9);
	assert_int_equal(PRESENCE(1, PCIE_TX_RATE), PRESENCE_ABSENT);
	/* Too soon for another pair of samples: nothing happened since. */
	pass_after(50);
	assert_near(VALUE(1, BUSY_GPU), 0, 0);
	assert_near(VALUE(1, UTILIZATION_GPU), 0.47, 1e-9);
}

/* One call that fails says nothing of whether the device can: what was counted so far stays on show. */
static void one_failed_call_of_gpm_is_a_failure(void **state)
{
	(void)state;
	gpu->gpm = true;
	gpu->gpm_percent = 40;
	add_instance(7, 0, "MIG-a");
	pass_after(0);
	/* No answer yet: nothing observed, and nothing that hides what was. */
	assert_int_equal(PRESENCE(1, BUSY_GPU), PRESENCE_PRESENT);
	assert_int_equal(PRESENCE(1, UTILIZATION_GPU), PRESENCE_ABSENT);
	assert_near(VALUE(1, OBSERVED), 0, 0);
	pass_after(1000);
	gpu->gpm_result = NVML_ERROR_UNKNOWN;
	pass_after(1000);
	assert_int_equal(PRESENCE(1, BUSY_GPU), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(1, OBSERVED), PRESENCE_FAILED);
	assert_int_equal(PRESENCE(1, UTILIZATION_GPU), PRESENCE_FAILED);
	gpu->gpm_result = NVML_SUCCESS;
	pass_after(11000);
	assert_int_equal(PRESENCE(1, BUSY_GPU), PRESENCE_FAILED);
	pass_after(1000);
	assert_int_equal(PRESENCE(1, BUSY_GPU), PRESENCE_PRESENT);
	assert_near(VALUE(1, BUSY_GPU), 0.47, 1e-9);
}

static void what_a_gpu_instance_shares_is_nobodys(void **state)
{
	(void)state;
	gpu->gpm = true;
	add_instance(1, 0, "MIG-a");
	add_instance(1, 1, "MIG-b");
	pass_after(0);
	pass_after(1000);
	assert_int_equal(PRESENCE(1, SM_ACTIVE), PRESENCE_UNSUPPORTED);
	assert_int_equal(PRESENCE(2, UTILIZATION_GPU), PRESENCE_UNSUPPORTED);
}

/* The model adds these up: what was found once is told once. */
static void what_did_not_fit_is_told_once(void **state)
{
	(void)state;
	pass_after(0);
	reader->reading->entities_dropped = 7; /* as if that pass had found so many */
	pass_after(1000);
	assert_int_equal(reader->reading->entities_dropped, 0);
}

static void a_new_layout_is_noticed(void **state)
{
	(void)state;
	pass_after(0);
	assert_int_equal(reader->reading->entities_n, 1);
	add_instance(1, 0, "MIG-a");
	pass_after(11000);
	assert_int_equal(reader->reading->entities_n, 2);
	/* The same place, another instance. */
	strcpy(gpu->instances[0].uuid, "MIG-b");
	pass_after(11000);
	assert_string_equal(reader->reading->entities[1].mig_uuid, "MIG-b");
	gpu->instances_n = 0;
	gpu->mig = false;
	pass_after(11000);
	assert_int_equal(reader->reading->entities_n, 1);
	assert_near(VALUE(0, POWER), 100, 0);
}

static void a_handle_that_is_no_more_is_noticed_at_once(void **state)
{
	(void)state;
	add_instance(1, 0, "MIG-a");
	add_instance(2, 0, "MIG-b");
	pass_after(0);
	gpu->instances[1].memory_result = NVML_ERROR_INVALID_ARGUMENT;
	pass_after(1000);
	gpu->instances_n = 1;
	pass_after(1000);
	assert_int_equal(reader->reading->entities_n, 2);
}

static void counted_time_goes_on_over_a_new_layout(void **state)
{
	double joules;

	(void)state;
	gpu->energy_result = NVML_ERROR_NOT_SUPPORTED;
	pass_after(0);
	pass_after(1000);
	joules = VALUE(0, ENERGY);
	add_instance(1, 0, "MIG-a");
	pass_after(11000);
	assert_int_equal(reader->reading->entities_n, 2);
	assert_near(VALUE(0, ENERGY), joules + 1100, 1e-6);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(instances_follow_their_gpus),
		TEST(gpm_gives_instances_their_utilisation),
		TEST(one_failed_call_of_gpm_is_a_failure),
		TEST(what_a_gpu_instance_shares_is_nobodys),
		TEST(what_did_not_fit_is_told_once),
		TEST(a_new_layout_is_noticed),
		TEST(a_handle_that_is_no_more_is_noticed_at_once),
		TEST(counted_time_goes_on_over_a_new_layout),
	};

	return cmocka_run_group_tests_name("mig", tests, NULL, NULL);
}
