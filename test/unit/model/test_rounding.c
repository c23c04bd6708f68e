// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/clock.h"
#include "lab.h"
#include "model/rounding.h"

static double gpu(enum gpu_slot slot, double v)
{
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (gpu_metrics[row].slot == slot)
			return metric_rounded(&gpu_metrics[row], v);
	fail();
	return 0;
}

static void test_digits(_unused_ void **state)
{
	assert_near(gpu(SLOT_UTILIZATION_GPU, 0.84126931), 0.8413, 0);
	assert_near(gpu(SLOT_UTILIZATION_GPU, 0.00084126931), 0.0008413, 0);
	assert_near(gpu(SLOT_UTILIZATION_GPU, 1), 1, 0);
	assert_near(gpu(SLOT_NVLINK_TX_RATE, 123456789012.3), 123457e6, 0);
	assert_near(gpu(SLOT_NVLINK_TX_RATE, 12.3456789), 12.3457, 0);
	assert_near(gpu(SLOT_BUSY_GPU, 1.0028489999), 1.002849, 0);
	assert_near(gpu(SLOT_ATTRIBUTION_ENERGY_PROCESSES, 36106.00149), 36106.001, 0);
	assert_near(metric_rounded(&process_metrics[PROCESS_MEMORY_BYTE_SECONDS], 31457280.7), 31e6, 0);
	assert_near(metric_rounded(&process_metrics[PROCESS_MEMORY_BYTE_SECONDS], 123456789123456789.0),
		    123456789123e6, 0);
	/* What is measured exactly stays as it is. */
	assert_near(gpu(SLOT_MEMORY_USED, 70759030784.0), 70759030784.0, 0);
	assert_near(gpu(SLOT_POWER, 682.123), 682.123, 0);
	assert_near(gpu(SLOT_UTILIZATION_GPU, 0), 0, 0);
	assert_near(gpu(SLOT_BUSY_GPU, -1.0000004), -1, 0);
	assert_true(isinf(gpu(SLOT_UTILIZATION_GPU, INFINITY)));
}

/* A rounded number is rounded, so that it does not matter how often. */
static void test_once(_unused_ void **state)
{
	for (double v = 1e-9; v < 1e18; v *= 1.37)
		for (unsigned row = 0; row < GPU_METRICS; row++) {
			double once = metric_rounded(&gpu_metrics[row], v);

			assert_near(metric_rounded(&gpu_metrics[row], once), once, 0);
		}
}

/* A thousand parts that are too small to be seen are a sum that is seen. */
static void test_sums_are_exact(_unused_ void **state)
{
	struct lab *lab = lab_new(NULL);

	for (unsigned i = 0; i <= 1000; i++) {
		lab_set(lab_gpu(lab, 0), SLOT_BUSY_GPU, 0.4e-6);
		lab_step(lab, NSEC_PER_SEC);
	}
	assert_near(lab->s->entities[0].id.v[SLOT_BUSY_GPU], 0.0004, 1.001e-6);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_sums_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
