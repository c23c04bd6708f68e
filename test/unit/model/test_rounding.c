// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/clock.h"
#include "base/macro.h"
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

static double told(enum source_id source, enum gpu_slot slot, double v)
{
	struct lab *lab = lab_new(NULL);
	double shown;

	lab_set(lab_gpu(lab, 0), slot, v);
	assert_int_equal(lab_step_of(lab, source, NSEC_PER_SEC), 0);
	shown = lab->s->entities[0].id.v[slot];
	lab_free(lab);
	return shown;
}

/* A share that the driver says is rounded, one of an exporter's page is not. */
static void test_what_an_exporter_says(_unused_ void **state)
{
	assert_near(told(SOURCE_NVML, SLOT_SM_ACTIVE, 0.123456), 0.1235, 0);
	assert_near(told(SOURCE_DCGM, SLOT_SM_ACTIVE, 0.123456), 0.123456, 0);
	assert_near(told(SOURCE_NVML, SLOT_NVLINK_TX_RATE, 719654321), 719654000, 0);
	assert_near(told(SOURCE_DCGM, SLOT_NVLINK_TX_RATE, 719654321), 719654321, 0);
}

enum { WORKERS = 5 };

static double worker_sum(const struct snapshot *s, unsigned row)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->processes_n; i++)
		sum += s->processes[i].v[row];
	for (uint32_t i = 0; i < s->exited_n; i++)
		sum += s->exited[i].v[row];
	return sum;
}

static double workload_sum(const struct snapshot *s, unsigned row)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->workloads_n; i++)
		sum += s->workloads[i].v[row];
	return sum;
}

static void check_sums(const struct snapshot *s, double energy_first)
{
	const struct entity *e = &s->entities[0];
	const double *v = e->id.v;

	for (unsigned row = 0; row < PROCESS_METRICS; row++) {
		if (process_metrics[row].kind != METRIC_INCREMENT)
			continue;
		assert_near(worker_sum(s, row), e->process_total[row], 1e-9);
		assert_near(workload_sum(s, row), e->process_total[row], 1e-9);
	}
	assert_near(v[SLOT_ATTRIBUTION_BUSY_PROCESSES] + v[SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED] -
			    v[SLOT_ATTRIBUTION_BUSY_OVERATTRIBUTED] + v[SLOT_ATTRIBUTION_BUSY_RESIDUAL],
		    v[SLOT_BUSY_GPU], 1e-9);
	assert_near(v[SLOT_ATTRIBUTION_ENERGY_PROCESSES] + v[SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED],
		    v[SLOT_ENERGY] - energy_first, 1e-9);
	assert_near(v[SLOT_ATTRIBUTION_ENERGY_PROCESSES], e->process_total[PROCESS_ENERGY], 0);
	assert_near(v[SLOT_ATTRIBUTION_BUSY_PROCESSES], e->process_total[PROCESS_BUSY], 0);
}

static void put_counters(const struct snapshot *s, double *at)
{
	static const enum gpu_slot slots[] = {
		SLOT_BUSY_GPU,
		SLOT_ENERGY,
		SLOT_ATTRIBUTION_BUSY_PROCESSES,
		SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED,
		SLOT_ATTRIBUTION_BUSY_OVERATTRIBUTED,
		SLOT_ATTRIBUTION_ENERGY_PROCESSES,
		SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(slots); i++) {
		assert_true(s->entities[0].id.v[slots[i]] >= at[i]);
		at[i] = s->entities[0].id.v[slots[i]];
	}
	for (uint32_t i = 0; i < s->processes_n; i++)
		for (unsigned row = 0; row < PROCESS_METRICS; row++) {
			double *sum = &at[ARRAY_SIZE(slots) + s->processes[i].id.pid * PROCESS_METRICS + row];

			if (process_metrics[row].kind != METRIC_INCREMENT)
				continue;
			assert_true(s->processes[i].v[row] >= *sum);
			*sum = s->processes[i].v[row];
		}
}

/* Parts of a microsecond and of a millijoule: published parts are the published whole, and no sum falls. */
static void test_parts_are_the_whole(_unused_ void **state)
{
	double at[7 + (WORKERS + 1) * PROCESS_METRICS] = { 0 };
	struct lab *lab = lab_new(NULL);

	for (unsigned pid = 1; pid <= WORKERS; pid++)
		lab_exists(lab, pid, pid, WORKLOAD_CONTAINER, pid % 2 ? "odd" : "even");
	for (unsigned i = 0; i < 1000; i++) {
		struct reading_entity *e = lab_gpu(lab, 0);

		lab_set(e, SLOT_BUSY_GPU, (i / 50) % 4 == 1 ? 0 : 1 / 3.0);
		lab_set(e, SLOT_ENERGY, 100 + i * 0.0037);
		for (unsigned pid = 1; pid <= WORKERS; pid++) {
			struct reading_process *p;

			/* The first ends, so that some are exit records. */
			if (pid == 1 && i > 900)
				continue;
			p = lab_process(lab, e, pid);
			lab_set_process(p, PROCESS_BUSY, (i / 50) % 4 == 3 ? 0 : pid / 47.0);
			lab_set_process(p, PROCESS_MEMORY, 1e6 / 3 * pid);
		}
		if (i == 901)
			lab->proc[1].exists = false;
		lab_step(lab, NSEC_PER_SEC);
		check_sums(lab->s, 100);
		put_counters(lab->s, at);
	}
	assert_int_equal(lab->s->exited_n, 1);
	assert_true(at[3] > 0 && at[4] > 0 && at[5] > 0 && at[6] > 0);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_sums_are_exact),
		cmocka_unit_test(test_what_an_exporter_says),
		cmocka_unit_test(test_parts_are_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
