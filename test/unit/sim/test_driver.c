// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/library.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/node/node.h"

static const char two_gpus[] =
	"cycle: 60s\n"
	"gpus: [{model: h100-sxm, count: 2}]\n"
	"processes:\n"
	"  - {name: /usr/bin/train, gpus: all, memory: 20GiB, load: {gpu: {sine: [20, 70], period: 20s, "
	"jitter: 8}}}\n"
	"  - {name: /usr/bin/serve, gpus: all, memory: 4GiB, load: {gpu: {noise: [0, 25], period: 300ms}}, "
	"every: 5s, for: 4s}\n"
	"  - {name: me, pid: self, gpus: 1, memory: 1GiB}\n"
	"counters: [{kind: ecc_uncorrected, gpus: 0, count: 1, at: 100ms, every: 45s}]\n"
	"xids:\n"
	"  - {xid: 79, gpu: 1, every: 30s}\n"
	"  - {xid: 31, gpu: 0, every: 30s}\n";

static void test_loads(_unused_ void **state)
{
	struct nvml_device *device;
	struct library library;
	char text[96];

	library_open(&library, two_gpus);
	assert_memory_equal(library.identity, "gpusonde-sim ", 13);
	assert_int_equal(library.SystemGetDriverVersion(text, sizeof(text)), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(library.Shutdown(), NVML_ERROR_UNINITIALIZED);
	device = library_device(&library, 1);
	assert_int_equal(library.DeviceGetName(device, text, sizeof(text)), NVML_SUCCESS);
	assert_string_equal(text, "NVIDIA H100 80GB HBM3");
	assert_int_equal(library.DeviceGetName(device, text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(library.DeviceGetName(NULL, text, sizeof(text)), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(library.DeviceGetName((struct nvml_device *)text, text, sizeof(text)),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(library.DeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);

	/* Initialised twice, it takes two ends. */
	assert_int_equal(library.Init_v2(), NVML_SUCCESS);
	assert_int_equal(library.Shutdown(), NVML_SUCCESS);
	assert_int_equal(library.SystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
	assert_int_equal(library.Shutdown(), NVML_SUCCESS);
	assert_int_equal(library.SystemGetDriverVersion(text, sizeof(text)), NVML_ERROR_UNINITIALIZED);
	library_close(&library);
}

static void test_bad_scenario_is_no_node(_unused_ void **state)
{
	struct library library;

	library_open(&library, "gpus: [{model: unheard-of}]\n");
	assert_int_equal(library.Init_v2(), NVML_ERROR_UNKNOWN);
	library_close(&library);
}

/*
 * A program that polls at times of its own sees each sample once, and what they sum up to is what the node
 * did: compared with a node of the same scenario that the test itself runs.
 */
static void test_samples_are_exact(_unused_ void **state)
{
	struct scenario *scenario = NULL;
	struct scenario_error err;
	struct node *node = NULL;
	struct nvml_device *device;
	struct library library;
	uint64_t last = 0, sum = 0, expected = 0, first = 0;
	int64_t first_tick;

	library_open(&library, two_gpus);
	device = library_device(&library, 1);
	assert_int_equal(scenario_load_buffer("t", two_gpus, strlen(two_gpus), &scenario, &err), 0);
	assert_int_equal(node_new(scenario, &node), 0);

	for (int poll = 0; poll < 300; poll++) {
		struct nvml_sample samples[128];
		uint32_t count = 128, type;
		enum nvml_return r = library.DeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, last,
							      &type, &count, samples);

		if (r == NVML_ERROR_NOT_FOUND)
			count = 0;
		else
			assert_int_equal(r, NVML_SUCCESS);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(type, NVML_VALUE_TYPE_UNSIGNED_INT);
			if (last > 0)
				assert_int_equal(samples[i].timestamp - last, SCENARIO_TICK_MS * 1000);
			else
				first = samples[i].timestamp;
			last = samples[i].timestamp;
			sum += samples[i].value.as_uint;
		}
		library.advance((int64_t)(mix32((uint64_t)poll) % 11000) * 1000000);
	}

	/* The stamp of the first sample in terms of boot: GPU 1 stamps 90 ms before the end of a tick. */
	first_tick = (int64_t)(first / 1000) + 90 - (clock_real_ns() - clock_boot_ns()) / 1000000;
	first_tick = (first_tick + SCENARIO_TICK_MS / 2) / SCENARIO_TICK_MS - 1;
	for (int64_t tick = first_tick;
	     tick <= first_tick + (int64_t)(last - first) / (SCENARIO_TICK_MS * 1000); tick++) {
		gpu_seek(&node->gpus[1], tick * SCENARIO_TICK_MS);
		expected += gpu_now(&node->gpus[1])->load[ENGINE_GPU];
	}
	assert_int_equal(sum, expected);
	node_free(node);
	library_close(&library);
}

/* Energy, GPM and the newest sample all tell of the same curve. */
static void test_sums_agree(_unused_ void **state)
{
	_cleanup_free_ struct nvml_gpm_metrics_get *gpm = calloc(1, sizeof(*gpm) + sizeof(gpm->metrics[0]));
	uint64_t before, after;
	struct nvml_device *device;
	struct library library;
	uint32_t milliwatt;

	library_open(&library, "cycle: 60s\n"
			       "gpus: [{model: h100-sxm}]\n"
			       "processes: [{name: a, memory: 1GiB, load: {gpu: 40, memory: 20}}]\n");
	device = library_device(&library, 0);
	gpm->version = NVML_GPM_METRICS_GET_VERSION;
	gpm->count = 1;
	gpm->metrics[0].id = NVML_GPM_METRIC_GRAPHICS_UTIL;
	assert_int_equal(library.GpmSampleAlloc(&gpm->sample1), NVML_SUCCESS);
	assert_int_equal(library.GpmSampleAlloc(&gpm->sample2), NVML_SUCCESS);
	assert_int_equal(library.DeviceGetPowerUsage(device, &milliwatt), NVML_SUCCESS);
	assert_int_equal(library.GpmSampleGet(device, gpm->sample1), NVML_SUCCESS);
	assert_int_equal(library.DeviceGetTotalEnergyConsumption(device, &before), NVML_SUCCESS);
	library.advance(INT64_C(1000) * 1000000000);
	assert_int_equal(library.DeviceGetTotalEnergyConsumption(device, &after), NVML_SUCCESS);
	assert_int_equal(library.GpmSampleGet(device, gpm->sample2), NVML_SUCCESS);
	assert_int_equal(library.GpmMetricsGet(gpm), NVML_SUCCESS);

	assert_int_equal(gpm->metrics[0].result, NVML_SUCCESS);
	assert_int_equal((int)(gpm->metrics[0].value * 1000 + 0.5), 40000);
	/* Watts times seconds, and what real time passed between the calls. */
	assert_in_range(after - before, milliwatt * UINT64_C(1000) - 1, milliwatt * UINT64_C(1060));
	library.GpmSampleFree(gpm->sample1);
	library.GpmSampleFree(gpm->sample2);
	library_close(&library);
}

static void test_process_lists(_unused_ void **state)
{
	struct nvml_process_info_v2 infos[8];
	struct nvml_process_info_v1 old[8];
	struct nvml_device *device;
	struct library library;
	uint32_t count = 0, full;
	bool self = false;
	char name[64];

	library_open(&library, two_gpus);
	device = library_device(&library, 1);
	assert_int_equal(library.DeviceGetComputeRunningProcesses_v3(device, &count, NULL),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_in_range(count, 2, 3);
	count = 1;
	assert_int_equal(library.DeviceGetComputeRunningProcesses_v3(device, &count, infos),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_in_range(count, 2, 3);
	full = ARRAY_SIZE(infos);
	assert_int_equal(library.DeviceGetComputeRunningProcesses_v3(device, &full, infos), NVML_SUCCESS);
	for (uint32_t i = 0; i < full; i++) {
		assert_int_equal(infos[i].gpu_instance, NVML_NONE_U32);
		self |= infos[i].pid == (uint32_t)getpid() && infos[i].used_memory == UINT64_C(1) << 30;
	}
	assert_true(self);
	full = ARRAY_SIZE(old);
	assert_int_equal(library.DeviceGetComputeRunningProcesses(device, &full, old), NVML_SUCCESS);
	assert_int_equal(old[0].pid, infos[0].pid);
	assert_int_equal(old[0].used_memory, UINT64_C(20) << 30);
	assert_int_equal(library.SystemGetProcessName(old[0].pid, name, sizeof(name)), NVML_SUCCESS);
	assert_string_equal(name, "/usr/bin/train");
	assert_int_equal(library.SystemGetProcessName(1 << 23, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
	library_close(&library);
}

/* One sample for each process and second; none is given twice. */
static void test_process_utilization(_unused_ void **state)
{
	struct nvml_process_utilization samples[64];
	struct nvml_device *device;
	struct library library;
	uint64_t last = 0, seen[32], begin = 0;
	uint32_t pids[32], known = 0, count = 0;

	library_open(&library, two_gpus);
	device = library_device(&library, 0);
	assert_int_equal(library.DeviceGetProcessUtilization(device, NULL, &count, 0),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_in_range(count, 10, 64);
	count = 1;
	assert_int_equal(library.DeviceGetProcessUtilization(device, samples, &count, 0),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	for (int poll = 0; poll < 10; poll++) {
		enum nvml_return r;

		count = ARRAY_SIZE(samples);
		r = library.DeviceGetProcessUtilization(device, samples, &count, last);
		assert_int_equal(r, NVML_SUCCESS);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t at = 0;

			while (at < known && pids[at] != samples[i].pid)
				at++;
			assert_in_range(at, 0, 31);
			if (at == known) {
				pids[known] = samples[i].pid;
				seen[known++] = 0;
			}
			assert_true(samples[i].timestamp > seen[at]);
			seen[at] = samples[i].timestamp;
			assert_in_range(samples[i].sm, 1, 100);
			begin = begin > 0 ? begin : samples[i].timestamp;
			assert_int_equal((samples[i].timestamp - begin) % 1000000, 0);
			last = MAX(last, samples[i].timestamp);
		}
		library.advance(INT64_C(3500) * 1000000);
	}
	/* The one that stays, and those that came and went within 35 seconds and 10 before. */
	assert_in_range(known, 8, 12);
	library_close(&library);
}

static void test_mig(_unused_ void **state)
{
	struct nvml_utilization utilization;
	struct nvml_process_info_v2 info;
	struct nvml_memory_v2 memory = { .version = NVML_VERSION_WORD(memory, 2) };
	struct nvml_device *device, *mig, *same;
	struct library library;
	char uuid[96], name[96];
	uint32_t id, count = 1;

	library_open(&library, "gpus: [{model: h100-sxm, mig: [3g.40gb, 1g.10gb]}]\n"
			       "processes: [{name: a, instance: 1, memory: 2GiB, load: {gpu: 30}}]\n");
	device = library_device(&library, 0);
	assert_int_equal(library.DeviceGetUtilizationRates(device, &utilization), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(library.DeviceGetMigDeviceHandleByIndex(device, 2, &mig), NVML_ERROR_NOT_FOUND);
	assert_int_equal(library.DeviceGetMigDeviceHandleByIndex(device, 1, &mig), NVML_SUCCESS);
	assert_int_equal(library.DeviceGetName(mig, name, sizeof(name)), NVML_SUCCESS);
	assert_string_equal(name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	assert_int_equal(library.DeviceGetUUID(mig, uuid, sizeof(uuid)), NVML_SUCCESS);
	assert_int_equal(library.DeviceGetHandleByUUID(uuid, &same), NVML_SUCCESS);
	assert_ptr_equal(same, mig);
	assert_int_equal(library.DeviceGetGpuInstanceId(mig, &id), NVML_SUCCESS);
	assert_int_equal(id, 7);
	assert_int_equal(library.DeviceGetMemoryInfo_v2(mig, &memory), NVML_SUCCESS);
	assert_int_equal(memory.used, UINT64_C(2) << 30);
	assert_int_equal(library.DeviceGetTemperature(mig, 0, &id), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(library.DeviceGetComputeRunningProcesses_v3(device, &count, &info), NVML_SUCCESS);
	assert_int_equal(info.gpu_instance, 7);
	assert_int_equal(info.compute_instance, 0);
	library_close(&library);
}

/* What a link carried: in one kind of field on older boards, in another on newer ones. */
static void test_link_counters(_unused_ void **state)
{
	struct library library;

	library_open(&library, "gpus: [{model: h100-sxm}, {model: b200}, {model: l4}]\n"
			       "processes: [{name: a, gpus: 0-1, memory: 1GiB, load: {gpu: 40}}]\n");
	for (uint32_t i = 0; i < 3; i++) {
		struct nvml_field_value fields[] = {
			{ .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scope = UINT32_MAX },
			{ .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scope = 17 },
			{ .field = NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, .scope = UINT32_MAX },
			{ .field = NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, .scope = 17 },
		};
		unsigned first = i == 0 ? 0 : 2;

		assert_int_equal(library.DeviceGetFieldValues(library_device(&library, i), 4, fields),
				 NVML_SUCCESS);
		for (unsigned f = 0; f < 4; f++)
			assert_int_equal(fields[f].result, i < 2 && f / 2 == first / 2 ?
								   NVML_SUCCESS :
								   NVML_ERROR_NOT_SUPPORTED);
		if (i == 2)
			continue;
		assert_true(fields[first + 1].value.as_u64 > 0);
		assert_in_range(fields[first].value.as_u64 - 18 * fields[first + 1].value.as_u64, 0, 18);
	}
	library_close(&library);
}

/* How many links of one lead to the other; both of a kind whose links lead straight to others. */
static uint32_t links_between(struct library *library, uint32_t a, uint32_t b)
{
	struct nvml_pci_info pci, end;
	uint32_t n = 0;

	assert_int_equal(library->DeviceGetPciInfo_v3(library_device(library, b), &pci), NVML_SUCCESS);
	for (uint32_t link = 0; link < 6; link++) {
		assert_int_equal(library->DeviceGetNvLinkRemotePciInfo_v2(library_device(library, a), link,
									  &end),
				 NVML_SUCCESS);
		n += strcmp(end.bus_id, pci.bus_id) == 0;
	}
	return n;
}

/* What one GPU says of its links to another, that one says, too; between kinds there are none. */
static void test_links_are_mutual(_unused_ void **state)
{
	struct library library;

	for (uint32_t count = 2; count <= 8; count++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "gpus: [{model: v100-sxm, count: %u}, {model: h100-sxm}, {model: a100-sxm}]\n",
			 count);
		library_open(&library, text);
		for (uint32_t a = 0; a < count; a++) {
			uint32_t links = 0;

			for (uint32_t b = 0; b < count; b++) {
				assert_int_equal(links_between(&library, a, b),
						 links_between(&library, b, a));
				links += links_between(&library, a, b);
			}
			assert_int_equal(links, 6);
		}
		for (uint32_t a = 0; a < count + 2; a++) {
			for (uint32_t b = 0; b < count + 2; b++) {
				uint32_t status = UINT32_MAX;

				assert_int_equal(library.DeviceGetP2PStatus(library_device(&library, a),
									    library_device(&library, b),
									    NVML_P2P_CAPS_INDEX_NVLINK,
									    &status),
						 NVML_SUCCESS);
				assert_int_equal(status, a == b || (a < count && b < count) ?
								 NVML_P2P_STATUS_OK :
								 NVML_P2P_STATUS_NOT_SUPPORTED);
			}
		}
		library_close(&library);
	}
}

/* Each set is given every event of its GPUs, in order of time, and no other. */
static void test_events(_unused_ void **state)
{
	struct nvml_event_set *both, *one;
	struct nvml_event_data data;
	struct library library;
	unsigned xids = 0, ecc = 0;

	library_open(&library, two_gpus);
	library_device(&library, 0);
	assert_int_equal(library.EventSetCreate(&both), NVML_SUCCESS);
	assert_int_equal(library.EventSetCreate(&one), NVML_SUCCESS);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(library.DeviceRegisterEvents(library_device(&library, i),
							      NVML_EVENT_XID_CRITICAL_ERROR |
								      NVML_EVENT_DOUBLE_BIT_ECC_ERROR,
							      both),
				 NVML_SUCCESS);
	assert_int_equal(library.DeviceRegisterEvents(library_device(&library, 1),
						      NVML_EVENT_XID_CRITICAL_ERROR, one),
			 NVML_SUCCESS);
	assert_int_equal(library.DeviceRegisterEvents(library_device(&library, 1), UINT64_C(1) << 40, one),
			 NVML_ERROR_NOT_SUPPORTED);
	library.advance(INT64_C(900) * 1000000000);
	while (library.EventSetWait_v2(both, &data, 0) == NVML_SUCCESS) {
		xids += data.type == NVML_EVENT_XID_CRITICAL_ERROR;
		ecc += data.type == NVML_EVENT_DOUBLE_BIT_ECC_ERROR;
		assert_int_equal(data.gpu_instance, NVML_NONE_U32);
		if (data.type == NVML_EVENT_XID_CRITICAL_ERROR)
			assert_int_equal(data.data, data.device == library_device(&library, 1) ? 79 : 31);
	}
	assert_in_range(xids, 60, 62);
	assert_in_range(ecc, 20, 21);
	xids = 0;
	while (library.EventSetWait_v2(one, &data, 0) == NVML_SUCCESS)
		xids += data.data == 79;
	assert_in_range(xids, 30, 31);
	assert_int_equal(library.EventSetWait_v2(one, &data, 0), NVML_ERROR_TIMEOUT);
	assert_int_equal(library.EventSetFree(one), NVML_SUCCESS);
	assert_int_equal(library.EventSetFree(one), NVML_ERROR_INVALID_ARGUMENT);
	library_close(&library);
}

static void read_all(struct library *library)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct nvml_device *device = library_device(library, i);
		struct nvml_process_info_v2 infos[8];
		struct nvml_sample samples[128];
		struct nvml_field_value fields[] = { { .field = NVML_FI_DEV_MEMORY_TEMP },
						     { .field = NVML_FI_DEV_ENERGY } };
		uint32_t count = ARRAY_SIZE(infos), type, milliwatt;

		assert_int_equal(library->DeviceGetComputeRunningProcesses_v3(device, &count, infos),
				 NVML_SUCCESS);
		count = ARRAY_SIZE(samples);
		assert_int_equal(library->DeviceGetSamples(device, NVML_TOTAL_POWER_SAMPLES, 0, &type, &count,
							   samples),
				 NVML_SUCCESS);
		assert_int_equal(library->DeviceGetFieldValues(device, 2, fields), NVML_SUCCESS);
		assert_int_equal(library->DeviceGetPowerUsage(device, &milliwatt), NVML_SUCCESS);
		assert_in_range(milliwatt, 72000, 700000);
	}
}

static void test_calls_do_not_allocate(_unused_ void **state)
{
	struct library library;
	struct mallinfo2 before, after;

	library_open(&library, two_gpus);
	read_all(&library);
	before = mallinfo2();
	for (int i = 0; i < 50; i++) {
		read_all(&library);
		library.advance(INT64_C(1300) * 1000000);
	}
	after = mallinfo2();
	assert_int_equal(after.uordblks, before.uordblks);
	library_close(&library);
}

static void *hammer(void *userdata)
{
	struct library *library = userdata;

	for (int i = 0; i < 300; i++)
		read_all(library);
	return NULL;
}

static void test_threads(_unused_ void **state)
{
	struct library library;
	pthread_t threads[4];

	library_open(&library, two_gpus);
	library_device(&library, 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &library), 0);
	for (int i = 0; i < 100; i++)
		library.advance(10000000);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	library_close(&library);
}

/* The same samples in another program that loads the library by itself. */
static void test_two_programs_see_one_node(_unused_ void **state)
{
	static struct nvml_sample ours[128], theirs[128];
	uint32_t counts[2] = { 128, 128 }, type, common = 0;
	char uuids[2][96];
	struct library library;
	int pipe_fds[2], status;
	pid_t child;

	assert_int_equal(pipe(pipe_fds), 0);
	child = fork();
	library_open(&library, two_gpus);
	library.DeviceGetUUID(library_device(&library, 1), uuids[0], sizeof(uuids[0]));
	library.DeviceGetSamples(library_device(&library, 1), NVML_TOTAL_POWER_SAMPLES, 0, &type, &counts[0],
				 ours);
	library_close(&library);
	if (child == 0) {
		bool sent = write(pipe_fds[1], ours, sizeof(ours)) == sizeof(ours) &&
			    write(pipe_fds[1], uuids[0], sizeof(uuids[0])) == sizeof(uuids[0]);

		_exit(sent ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(pipe_fds[0], theirs, sizeof(theirs)), sizeof(theirs));
	assert_int_equal(read(pipe_fds[0], uuids[1], sizeof(uuids[1])), sizeof(uuids[1]));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_string_equal(uuids[0], uuids[1]);
	for (uint32_t i = 0; i < counts[0]; i++) {
		for (uint32_t k = 0; k < counts[0]; k++) {
			/* Clocks of two loads may differ by one millisecond of rounding. */
			if (ours[i].timestamp + 2000 - theirs[k].timestamp > 4000)
				continue;
			assert_int_equal(ours[i].value.as_uint, theirs[k].value.as_uint);
			common++;
		}
	}
	assert_in_range(common, 60, 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_bad_scenario_is_no_node),
		cmocka_unit_test(test_samples_are_exact),
		cmocka_unit_test(test_sums_agree),
		cmocka_unit_test(test_process_lists),
		cmocka_unit_test(test_process_utilization),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_link_counters),
		cmocka_unit_test(test_links_are_mutual),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_calls_do_not_allocate),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_two_programs_see_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
