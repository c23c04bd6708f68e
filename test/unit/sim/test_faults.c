// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/library.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"

#define GPUS                                    \
	"cycle: 60s\n"                          \
	"gpus: [{model: h100-sxm, count: 3}]\n" \
	"processes: [{name: a, gpus: all, count: 3, memory: 2GiB, load: {gpu: 20}}]\n"

static enum nvml_return power(struct library *library, uint32_t index, uint32_t *milliwatt)
{
	return library->DeviceGetPowerUsage(library_device(library, index), milliwatt);
}

static void test_errors_concern_who_they_name(_unused_ void **state)
{
	struct library library;
	uint32_t value;

	library_open(&library,
		     GPUS "faults: [{error: NO_PERMISSION, gpus: 1, functions: [nvmlDeviceGetPower*]}]\n");
	assert_int_equal(power(&library, 0, &value), NVML_SUCCESS);
	assert_int_equal(power(&library, 1, &value), NVML_ERROR_NO_PERMISSION);
	assert_int_equal(library.DeviceGetTemperature(library_device(&library, 1), 0, &value), NVML_SUCCESS);
	assert_string_equal(library.ErrorString(NVML_ERROR_NO_PERMISSION), "Insufficient Permissions");
	library_close(&library);
}

static void test_control_file_comes_and_goes(_unused_ void **state)
{
	struct library library;
	uint32_t value;

	library_open(&library, GPUS);
	assert_int_equal(power(&library, 0, &value), NVML_SUCCESS);
	library_control(&library, "faults: [{error: UNKNOWN}]\n");
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNKNOWN);
	/* One that is wrong changes nothing. */
	library_control(&library, "faults: [{wrong: true}]\n");
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNKNOWN);
	library_control(&library, NULL);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);

	/* Windows count from when it was read. */
	library_control(&library, "faults: [{error: UNKNOWN, at: 10s, for: 5s}]\n");
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);
	library.advance(12 * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNKNOWN);
	library.advance(5 * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);
	library_close(&library);
}

static void test_falsified_numbers(_unused_ void **state)
{
	struct nvml_memory_v2 memory = { .version = NVML_VERSION_WORD(memory, 2) };
	struct nvml_field_value fields[] = { { .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
					       .scope = UINT32_MAX },
					     { .field = NVML_FI_DEV_PCIE_COUNT_TX_BYTES },
					     { .field = NVML_FI_DEV_MEMORY_TEMP } };
	struct library library;
	uint32_t value;

	library_open(
		&library, GPUS
		"faults:\n"
		"  - {sentinel: default, functions: [nvmlDeviceGetPowerUsage, nvmlDeviceGetMemoryInfo_v2]}\n"
		"  - {sentinel: 1234, functions: nvmlDeviceGetFieldValues, fields: [82]}\n"
		"  - {wrap: 32, functions: nvmlDeviceGetFieldValues, fields: [197]}\n");
	assert_int_equal(power(&library, 0, &value), NVML_SUCCESS);
	assert_int_equal(value, UINT32_MAX);
	assert_int_equal(library.DeviceGetMemoryInfo_v2(library_device(&library, 0), &memory), NVML_SUCCESS);
	assert_int_equal(memory.used, UINT64_C(9223372036854775794));
	library.advance(INT64_C(86400) * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetFieldValues(library_device(&library, 0), 3, fields), NVML_SUCCESS);
	assert_true(fields[0].value.as_u64 > UINT32_MAX);
	assert_true(fields[1].value.as_u64 <= UINT32_MAX);
	assert_int_equal(fields[2].value.as_uint, 1234);
	library_close(&library);
}

static void test_stride(_unused_ void **state)
{
	struct nvml_process_detail infos[4];
	struct library library;
	uint32_t count = ARRAY_SIZE(infos);

	library_open(&library, GPUS "faults: [{stride: 32}]\n");
	memset(infos, 0xab, sizeof(infos));
	assert_int_equal(library.DeviceGetComputeRunningProcesses_v3(library_device(&library, 0), &count,
								     (void *)infos),
			 NVML_SUCCESS);
	assert_int_equal(count, 3);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(infos[i].pid > 1 << 20);
		assert_int_equal(infos[i].used_memory, UINT64_C(2) << 30);
		assert_int_equal(infos[i].used_protected_memory, 0);
	}
	/* Records of the first version stay what they are. */
	count = ARRAY_SIZE(infos);
	assert_int_equal(library.DeviceGetComputeRunningProcesses(library_device(&library, 0), &count,
								  (void *)infos),
			 NVML_SUCCESS);
	assert_int_equal(((struct nvml_process_info_v1 *)(void *)infos)[1].used_memory, UINT64_C(2) << 30);
	library_close(&library);
}

static void test_lost_and_removed(_unused_ void **state)
{
	struct nvml_device *devices[3];
	struct library library;
	uint32_t value;

	library_open(&library, GPUS);
	for (uint32_t i = 0; i < 3; i++)
		devices[i] = library_device(&library, i);
	library_control(&library, "faults: [{lost: true, gpus: 0}, {removed: true, gpus: 1}]\n");
	assert_int_equal(library.DeviceGetPowerUsage(devices[0], &value), NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(library.DeviceGetPowerUsage(devices[1], &value), NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(library.DeviceGetPowerUsage(devices[2], &value), NVML_SUCCESS);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);
	assert_int_equal(value, 2);
	assert_ptr_equal(library_device(&library, 1), devices[2]);
	library_control(&library, "faults: []\n");
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);
	assert_int_equal(value, 3);
	assert_int_equal(library.DeviceGetPowerUsage(devices[1], &value), NVML_SUCCESS);
	library_close(&library);
}

static uint64_t energy(struct library *library)
{
	uint64_t millijoule = 0;

	assert_int_equal(library->DeviceGetTotalEnergyConsumption(library_device(library, 0), &millijoule),
			 NVML_SUCCESS);
	return millijoule;
}

/* A program that was initialised must do so again, and counters begin at 0. */
static void test_driver_reload(_unused_ void **state)
{
	struct nvml_device *device;
	struct library library;
	uint32_t value;

	library_open(&library, GPUS);
	device = library_device(&library, 0);
	library.advance(1000 * NSEC_PER_SEC);
	assert_true(energy(&library) > 1000);
	library_control(&library, "faults: [{unloaded: true, at: 0s, for: 10s}]\n");
	assert_int_equal(library.DeviceGetPowerUsage(device, &value), NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(library.Shutdown(), NVML_SUCCESS);
	assert_int_equal(library.Init_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	library.advance(11 * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNINITIALIZED);
	/* An hour at 100 W would be 360 MJ; here it is a second or two at less than 700 W. */
	assert_true(energy(&library) < 700 * 1000 * 20);
	library_control(&library, NULL);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_SUCCESS);
	library_close(&library);
}

/* Without a time in which it is away, the driver is back at once, and yet it is another. */
static void test_driver_reload_takes_no_time(_unused_ void **state)
{
	struct library library;
	uint32_t value;

	library_open(&library,
		     GPUS "faults: [{unloaded: true, since: load, at: 10s, for: 0s, every: 100s}]\n");
	library_device(&library, 0);
	library.advance(109 * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNINITIALIZED);
	/* What it counts began 99 seconds ago. */
	assert_in_range(energy(&library), 72 * 1000 * 99, 700 * 1000 * 120);
	library.advance(2 * NSEC_PER_SEC);
	assert_int_equal(library.DeviceGetCount_v2(&value), NVML_ERROR_UNINITIALIZED);
	assert_true(energy(&library) < 700 * 1000 * 60);
	library_close(&library);
}

static void test_late_driver(_unused_ void **state)
{
	struct library library;

	library_open(&library, GPUS "faults: [{unloaded: true, since: load, at: 0s, for: 30s}]\n");
	assert_int_equal(library.Init_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	library.advance(31 * NSEC_PER_SEC);
	assert_int_equal(library.Init_v2(), NVML_SUCCESS);
	library_close(&library);
}

static void test_hang_takes_its_time(_unused_ void **state)
{
	struct library library;
	uint32_t value;
	int64_t start;

	library_open(&library, GPUS "faults: [{hang: 300ms, functions: nvmlDeviceGetPowerUsage}]\n");
	library_device(&library, 0);
	start = clock_mono_ns();
	assert_int_equal(power(&library, 0, &value), NVML_SUCCESS);
	assert_true(clock_mono_ns() - start >= 300 * NSEC_PER_MSEC);
	assert_int_equal(library.DeviceGetTemperature(library_device(&library, 0), 0, &value), NVML_SUCCESS);
	library_close(&library);
}

static void *call_power(void *userdata)
{
	uint32_t value;

	return (void *)(intptr_t)power(userdata, 0, &value);
}

/* While one call hangs, others go on; and when the fault is taken back, it ends. */
static void test_hang_is_taken_back(_unused_ void **state)
{
	const struct timespec moment = { .tv_nsec = 50 * NSEC_PER_MSEC };
	struct library library;
	pthread_t thread;
	uint32_t value;
	void *result;

	library_open(&library, GPUS);
	library_device(&library, 0);
	library_control(&library, "faults: [{hang: while, functions: nvmlDeviceGetPowerUsage}]\n");
	assert_int_equal(pthread_create(&thread, NULL, call_power, &library), 0);
	nanosleep(&moment, NULL);
	assert_int_equal(library.DeviceGetTemperature(library_device(&library, 0), 0, &value), NVML_SUCCESS);
	assert_int_not_equal(pthread_tryjoin_np(thread, NULL), 0);
	library_control(&library, NULL);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, NVML_SUCCESS);
	library_close(&library);
}

/* What a child does that calls the library, until it is killed or ends by itself. */
static pid_t child_calling_power(struct library *library)
{
	pid_t child = fork();
	uint32_t value;

	if (child == 0) {
		/* Sanitizers handle it otherwise, and would report. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		power(library, 0, &value);
		_exit(0);
	}
	return child;
}

static void test_hang_forever_ends_by_kill_only(_unused_ void **state)
{
	const struct timespec moment = { .tv_nsec = 200 * NSEC_PER_MSEC };
	struct library library;
	pid_t child;
	int status;

	library_open(&library, GPUS "faults: [{hang: forever, functions: nvmlDeviceGetPowerUsage}]\n");
	library_device(&library, 0);
	child = child_calling_power(&library);
	nanosleep(&moment, NULL);
	kill(child, SIGTERM);
	nanosleep(&moment, NULL);
	assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	library_close(&library);
}

static void test_crash(_unused_ void **state)
{
	struct library library;
	int status;

	library_open(&library, GPUS "faults: [{crash: true, functions: nvmlDeviceGetPowerUsage}]\n");
	library_device(&library, 0);
	assert_true(waitpid(child_calling_power(&library), &status, 0) > 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	library_close(&library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_concern_who_they_name),
		cmocka_unit_test(test_control_file_comes_and_goes),
		cmocka_unit_test(test_falsified_numbers),
		cmocka_unit_test(test_stride),
		cmocka_unit_test(test_lost_and_removed),
		cmocka_unit_test(test_driver_reload),
		cmocka_unit_test(test_driver_reload_takes_no_time),
		cmocka_unit_test(test_late_driver),
		cmocka_unit_test(test_hang_takes_its_time),
		cmocka_unit_test(test_hang_is_taken_back),
		cmocka_unit_test(test_hang_forever_ends_by_kill_only),
		cmocka_unit_test(test_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
