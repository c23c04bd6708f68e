// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <string.h>

static struct fake_gpu *const gpu = &fake.gpus[0];

static void list_process(uint32_t pid, uint64_t memory, enum process_type types)
{
	gpu->processes[gpu->processes_n++] =
		(struct fake_process){ .pid = pid, .memory = memory, .types = types };
}

static void sample(uint32_t pid, uint64_t timestamp, uint32_t sm)
{
	gpu->utils[gpu->utils_n++] =
		(struct nvml_process_utilization_v1){ .timestamp = timestamp, .pid = pid, .sm = sm };
}

/* A second passes in which each of the processes in the driver's samples worked so much. */
static void second_with(uint32_t pid, uint32_t sm)
{
	clock_advance(NSEC_PER_SEC);
	gpu->utils_n = 0;
	if (pid)
		sample(pid, fake_now_us(), sm);
	pass_after(0);
}

static double busy(uint32_t pid)
{
	const struct reading_process *process = find_process(pid);

	assert_non_null(process);
	assert_true(presence_is(process->p[PROCESS_BUSY]));
	return process->v[PROCESS_BUSY];
}

static void lists_are_joined(void **state)
{
	const struct reading_process *process;

	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	list_process(200, 2 << 20, PROCESS_TYPE_COMPUTE | PROCESS_TYPE_GRAPHICS);
	list_process(300, 3 << 20, PROCESS_TYPE_GRAPHICS);
	pass_after(0);
	assert_int_equal(reader->reading->processes_n, 3);
	process = find_process(200);
	assert_int_equal(process->types, PROCESS_TYPE_COMPUTE | PROCESS_TYPE_GRAPHICS);
	assert_near(process->v[PROCESS_MEMORY], 2 << 20, 0);
	assert_near(VALUE(0, PROCESSES_COMPUTE), 2, 0);
	assert_near(VALUE(0, PROCESSES_GRAPHICS), 2, 0);
	assert_int_equal(PRESENCE(0, PROCESSES_MPS), PRESENCE_UNSUPPORTED);
	assert_int_equal(reader->reading->entities[0].process_list, PRESENCE_PRESENT);
}

/* Else the model would take the processes of the list that failed for ended. */
static void one_list_that_fails_makes_them_incomplete(void **state)
{
	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_GRAPHICS);
	gpu->compute_list_result = NVML_ERROR_UNKNOWN;
	pass_after(0);
	assert_non_null(find_process(100));
	assert_int_equal(reader->reading->entities[0].process_list, PRESENCE_FAILED);
}

static void memory_that_is_not_told_is_not_zero(void **state)
{
	(void)state;
	list_process(100, UINT64_MAX, PROCESS_TYPE_COMPUTE);
	list_process(200, UINT64_C(9223372036854775794), PROCESS_TYPE_COMPUTE);
	pass_after(0);
	assert_int_equal(find_process(100)->p[PROCESS_MEMORY], PRESENCE_ABSENT);
	assert_int_equal(find_process(200)->p[PROCESS_MEMORY], PRESENCE_REJECTED);
	assert_int_equal(reader->reading->rejected_process[PROCESS_MEMORY], 1);
}

static void buffers_grow(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 390; i++) {
		list_process(1000 + i, 1 << 20, PROCESS_TYPE_COMPUTE);
		sample(1000 + i, fake_now_us(), 1);
	}
	pass_after(0);
	assert_int_equal(reader->reading->processes_n, 390);
	assert_int_equal(reader->reading->processes_dropped, 0);
	assert_non_null(find_process(1389));
	assert_near(find_process(1389)->v[PROCESS_UTILIZATION], 0.01, 1e-9);
	/* Now the driver is given room at once. */
	fake.list_calls = 0;
	pass_after(1000);
	assert_int_equal(fake.list_calls, 2);
}

static void all_get_names_after_some_passes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3 * PROCESS_NAME_CALLS; i++)
		list_process(1000 + i, 1 << 20, PROCESS_TYPE_COMPUTE);
	pass_after(0);
	assert_string_equal(find_process(1000)->name, "name-1000");
	assert_string_equal(find_process(1000 + PROCESS_NAME_CALLS)->name, "");
	pass_after(1000);
	pass_after(1000);
	assert_string_equal(find_process(1000)->name, "name-1000");
	assert_string_equal(find_process(1000 + 3 * PROCESS_NAME_CALLS - 1)->name, "name-1047");
}

static void work_is_credited_for_the_time_it_took(void **state)
{
	double sum = 0;

	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 50);
	assert_near(busy(100), 0, 0); /* how long that sample was, nobody knows */
	assert_near(find_process(100)->v[PROCESS_UTILIZATION], 0.5, 1e-9);
	for (unsigned i = 0; i < 10; i++) {
		second_with(100, 50);
		sum += busy(100);
		assert_near(find_process(100)->v[PROCESS_OBSERVED], 1, 1e-9);
	}
	assert_near(sum, 5, 1e-9);
}

/* Costly or not: whose work it was is told each second, also of a process that comes to an idle GPU. */
static void a_used_device_is_read_each_second(void **state)
{
	double sum = 0, observed = 0;

	(void)state;
	gpu->samples_cost_ns = 2 * NSEC_PER_MSEC;
	second_with(0, 0);
	second_with(0, 0);
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	for (unsigned i = 0; i < 10; i++) {
		unsigned calls = gpu->samples_calls;

		second_with(100, 40);
		if (i > 0)
			assert_int_equal(gpu->samples_calls, calls + 1);
		sum += busy(100);
		observed += find_process(100)->v[PROCESS_OBSERVED];
		assert_near(find_process(100)->v[PROCESS_UTILIZATION], 0.4, 1e-9);
	}
	assert_near(observed, 10, 1e-6);
	assert_near(sum, 4, 1e-6);
}

/* The driver's lock is held meanwhile, and programs' launches wait for it. */
static void costly_readings_do_not_follow_a_short_period(void **state)
{
	unsigned calls;

	(void)state;
	gpu->samples_cost_ns = 2 * NSEC_PER_MSEC;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 40);
	second_with(100, 40);
	calls = gpu->samples_calls;
	for (unsigned i = 0; i < 50; i++)
		pass_after(100);
	assert_in_range(gpu->samples_calls - calls, 5, 6);
}

static void samples_out_of_step_with_readings_lose_nothing(void **state)
{
	uint64_t at;
	double sum = 0;

	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 100);
	at = fake_now_us();
	/* The driver samples every 0.9 s, then 1.1 s, on average a second. */
	for (unsigned i = 0; i < 20; i++) {
		clock_advance(NSEC_PER_SEC);
		at += i % 2 ? 1100000 : 900000;
		gpu->utils_n = 0;
		sample(100, at, 100);
		pass_after(0);
		sum += busy(100);
	}
	assert_near(sum, 20, 1e-6);
}

/* Four readings to a sample: what three of them could not know, the fourth has. */
static void readings_more_often_than_samples(void **state)
{
	double sum = 0, observed = 0;

	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 40);
	for (unsigned i = 1; i <= 40; i++) {
		clock_advance(250 * NSEC_PER_MSEC);
		gpu->utils_n = 0;
		if (i % 4 == 0)
			sample(100, fake_now_us(), 40);
		pass_after(0);
		sum += busy(100);
		observed += find_process(100)->v[PROCESS_OBSERVED];
		assert_true(sum <= observed + 1e-9);
		assert_near(find_process(100)->v[PROCESS_UTILIZATION], 0.4, 1e-9);
	}
	assert_near(observed, 10, 1e-6);
	assert_near(sum, 4, 1e-6);
}

static void idle_time_is_not_made_work(void **state)
{
	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 100);
	second_with(100, 100);
	for (unsigned i = 0; i < 60; i++) {
		second_with(0, 0);
		assert_near(busy(100), 0, 0);
		/* The first second without a sample may be one whose sample is late. */
		assert_near(find_process(100)->v[PROCESS_UTILIZATION], i == 0 ? 1 : 0, 0);
	}
	/* After a minute of nothing one sample: it cannot be worth more than the last second. */
	second_with(100, 100);
	assert_true(busy(100) <= 1 + 1e-9);
	assert_true(busy(100) > 0);
}

static void stale_and_impossible_samples(void **state)
{
	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	/* the older call here gives everything, however old */
	gpu->util_newer_result = NVML_ERROR_NOT_SUPPORTED;
	second_with(100, 60);
	clock_advance(NSEC_PER_SEC);
	pass_after(0); /* the same sample once more */
	assert_near(busy(100), 0, 0);
	second_with(100, 101);
	assert_int_equal(find_process(100)->p[PROCESS_UTILIZATION], PRESENCE_REJECTED);
	assert_int_equal(reader->reading->rejected_process[PROCESS_UTILIZATION], 1);
	gpu->utils_n = 0;
	sample(100, fake_now_us() + UINT64_C(3600000000), 60);
	pass_after(1000);
	assert_near(busy(100), 0, 0);
	/* It knows nothing of JPEG. */
	assert_int_equal(find_process(100)->p[PROCESS_BUSY_JPEG], PRESENCE_ABSENT);
}

static void a_process_that_has_ended_is_credited_all_the_same(void **state)
{
	(void)state;
	second_with(500, 80);
	second_with(500, 80);
	assert_near(busy(500), 0.8, 1e-9);
	assert_int_equal(find_process(500)->types, 0);
	/* One that did nothing, and is in no list, is no process of ours. */
	second_with(501, 0);
	assert_null(find_process(501));
	assert_null(find_process(500));
}

/* Its idle sample is in no reading, but ends the time that its busy one can stand for. */
static void an_unlisted_process_that_began_to_work(void **state)
{
	(void)state;
	second_with(400, 10);
	clock_advance(NSEC_PER_SEC);
	gpu->utils_n = 0;
	sample(500, fake_now_us() - 500000, 0);
	sample(500, fake_now_us(), 100);
	pass_after(0);
	assert_near(busy(500), 0.5, 1e-9);
}

/* More records than the driver was offered room for: what they are, nobody knows. */
static void claims_beyond_the_buffer_are_refused(void **state)
{
	static const uint32_t claims[] = { 1000, READING_PROCESSES_MAX + 1, UINT32_MAX - 8 };

	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		gpu->list_claim = claims[i];
		pass_after(1000);
		assert_int_equal(reader->reading->processes_n, 0);
		assert_int_equal(PRESENCE(0, PROCESSES_COMPUTE), PRESENCE_REJECTED);
		assert_int_equal(reader->reading->rejected[GPU_PROCESSES_COMPUTE], 1);
		assert_int_equal(reader->reading->entities[0].process_list, PRESENCE_REJECTED);
	}
	gpu->list_claim = 0;
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		clock_advance(NSEC_PER_SEC);
		gpu->utils_n = 0;
		sample(100, fake_now_us(), 50);
		gpu->util_claim = claims[i];
		pass_after(0);
		assert_int_equal(reader->reading->processes_n, 1);
		assert_int_equal(reader->reading->entities[0].process_util, PRESENCE_REJECTED);
		assert_int_equal(find_process(100)->p[PROCESS_UTILIZATION], PRESENCE_REJECTED);
		assert_int_equal(reader->reading->rejected_process[PROCESS_UTILIZATION], 1);
	}
	gpu->util_claim = 0;
	second_with(100, 50);
	assert_int_equal(find_process(100)->p[PROCESS_UTILIZATION], PRESENCE_PRESENT);
}

static void several_samples_of_one_process_add_up(void **state)
{
	(void)state;
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	second_with(100, 50);
	clock_advance(NSEC_PER_SEC);
	gpu->utils_n = 0;
	sample(100, fake_now_us(), 20); /* out of order */
	sample(100, fake_now_us() - 500000, 80);
	pass_after(0);
	assert_near(busy(100), 0.5 * 0.8 + 0.5 * 0.2, 1e-9);
}

static void processes_under_mig_belong_to_their_instance(void **state)
{
	(void)state;
	gpu->mig = true;
	gpu->instances_n = 1;
	gpu->instances[0] = (struct fake_instance){ .gi = 2, .ci = 0, .uuid = "MIG-0" };
	list_process(100, 1 << 20, PROCESS_TYPE_COMPUTE);
	sample(100, fake_now_us(), 10);
	pass_after(0);
	assert_int_equal(reader->reading->entities_n, 2);
	/* The GPU's own list has them too; it is not asked. */
	assert_null(find_process(100));
	assert_int_equal(reader->reading->entities[0].process_list, PRESENCE_ABSENT);
	assert_int_equal(reader->reading->entities[1].process_util, PRESENCE_UNSUPPORTED);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		TEST(lists_are_joined),
		TEST(one_list_that_fails_makes_them_incomplete),
		TEST(memory_that_is_not_told_is_not_zero),
		TEST(buffers_grow),
		TEST(all_get_names_after_some_passes),
		TEST(work_is_credited_for_the_time_it_took),
		TEST(a_used_device_is_read_each_second),
		TEST(costly_readings_do_not_follow_a_short_period),
		TEST(samples_out_of_step_with_readings_lose_nothing),
		TEST(readings_more_often_than_samples),
		TEST(idle_time_is_not_made_work),
		TEST(stale_and_impossible_samples),
		TEST(a_process_that_has_ended_is_credited_all_the_same),
		TEST(an_unlisted_process_that_began_to_work),
		TEST(claims_beyond_the_buffer_are_refused),
		TEST(several_samples_of_one_process_add_up),
		TEST(processes_under_mig_belong_to_their_instance),
	};

	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
