// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/cuda/settings.h"
#include "sim/scenario/locate.h"

struct driver driver;
struct pool contexts = { .size = sizeof(struct cu_context), .capacity = 4096 };
struct pool streams = { .size = sizeof(struct cu_stream), .capacity = 1 << 18 };
struct pool events = { .size = sizeof(struct cu_event), .capacity = 1 << 20 };
struct pool functions = { .size = sizeof(struct cu_function), .capacity = 1 << 18 };
struct pool modules = { .size = sizeof(struct cu_module), .capacity = 1 << 16 };
struct pool graphs = { .size = sizeof(struct cu_graph), .capacity = 1 << 16 };
struct pool execs = { .size = sizeof(struct cu_graph), .capacity = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void driver_lock(void)
{
	pthread_mutex_lock(&lock);
}

void driver_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Most memory that the scenario's own processes may use of a device or, in MIG mode, of that instance. */
static uint64_t scenario_bytes(const struct scenario *scenario, const struct visible *where)
{
	double mib = 0;

	for (uint32_t i = 0; i < scenario->process_count; i++) {
		const struct scenario_process *process = &scenario->processes[i];

		if (process->gpus >> where->gpu & 1 && process->instance == where->instance)
			mib += process->count * MAX(process->memory.high, process->memory.low);
	}
	return (uint64_t)mib << 20;
}

static void add_device(const struct scenario *scenario, const struct visible *where,
		       struct cuda_device *device)
{
	const struct scenario_gpu *gpu = &scenario->gpus[where->gpu];
	uint64_t taken = scenario_bytes(scenario, where);

	device->where = *where;
	device->model = &gpu->model;
	device->uuid = gpu->uuid;
	device->total_bytes = (uint64_t)gpu->model.memory_mib << 20;
	taken += (uint64_t)gpu->model.reserved_mib << 20;
	if (where->instance >= 0) {
		device->uuid = gpu->instances[where->instance].uuid;
		device->total_bytes = (uint64_t)gpu->instances[where->instance].memory_mib << 20;
		taken = scenario_bytes(scenario, where);
	}
	device->capacity_bytes = device->total_bytes - MIN(taken, device->total_bytes);
}

static int load_devices(void)
{
	struct visible found[SCENARIO_MAX_GPUS];
	struct scenario_error err = { "" };
	char path[4096];

	locate_scenario(locate_scenario_name(SCENARIO_DEFAULT), path, sizeof(path));
	if (scenario_load_file(path, &driver.scenario, &err) < 0) {
		fprintf(stderr, "gpusonde-sim: %s\n", err.message);
		return CU_UNKNOWN;
	}
	driver.device_count = visible_devices(driver.scenario, getenv("CUDA_VISIBLE_DEVICES"),
					      getenv("CUDA_DEVICE_ORDER"), found);
	for (uint32_t i = 0; i < driver.device_count; i++)
		add_device(driver.scenario, &found[i], &driver.devices[i]);
	return CU_SUCCESS;
}

static void open_live(void)
{
	driver.live = live_open();
	if (!driver.live)
		return;
	for (uint32_t i = 0; i < driver.device_count; i++) {
		driver.live->devices[i].gpu = driver.devices[i].where.gpu;
		driver.live->devices[i].instance = driver.devices[i].where.instance;
	}
	__atomic_store_n(&driver.live->device_count, driver.device_count, __ATOMIC_RELEASE);
}

int device_init(_unused_ struct call *call, uint32_t flags)
{
	int result = CU_SUCCESS;
	bool first = false;

	if (flags != 0)
		return CU_INVALID_VALUE;
	driver_lock();
	if (!driver.initialised) {
		result = driver.scenario ? CU_SUCCESS : load_devices();
		if (result == CU_SUCCESS && driver.device_count == 0)
			result = CU_NO_DEVICE;
		if (result == CU_SUCCESS) {
			open_live();
			__atomic_store_n(&driver.initialised, true, __ATOMIC_RELEASE);
			first = true;
		}
	}
	driver_unlock();
	if (first)
		observe_inject();
	return result;
}

static bool is_device(int device)
{
	return device >= 0 && (uint32_t)device < driver.device_count;
}

int device_get(struct call *call, int *ret_device, int ordinal)
{
	call->has_device = true;
	call->device = ordinal;
	if (!ret_device)
		return CU_INVALID_VALUE;
	if (!is_device(ordinal))
		return CU_INVALID_DEVICE;
	*ret_device = ordinal;
	return CU_SUCCESS;
}

int device_count(_unused_ struct call *call, int *ret_count)
{
	if (!ret_count)
		return CU_INVALID_VALUE;
	*ret_count = (int)driver.device_count;
	return CU_SUCCESS;
}

/* "GPU-5f1c2e90-…" or "MIG-…": the 32 digits */
int device_uuid(struct call *call, struct cu_uuid *ret_uuid, int device)
{
	unsigned byte;
	int at = 0;

	call->has_device = true;
	call->device = device;
	if (!ret_uuid)
		return CU_INVALID_VALUE;
	if (!is_device(device))
		return CU_INVALID_DEVICE;
	for (const char *digits = driver.devices[device].uuid + 4; *digits && at < 16; digits += 2) {
		digits += *digits == '-';
		if (sscanf(digits, "%2x", &byte) != 1)
			break;
		ret_uuid->bytes[at++] = (unsigned char)byte;
	}
	return CU_SUCCESS;
}

int device_name(_unused_ struct call *call, char *ret_name, int size, int device)
{
	if (!ret_name || size <= 0)
		return CU_INVALID_VALUE;
	if (!is_device(device))
		return CU_INVALID_DEVICE;
	snprintf(ret_name, (size_t)size, "%s", driver.devices[device].model->name);
	return CU_SUCCESS;
}

int device_total(_unused_ struct call *call, size_t *ret_bytes, int device)
{
	if (!ret_bytes)
		return CU_INVALID_VALUE;
	if (!is_device(device))
		return CU_INVALID_DEVICE;
	*ret_bytes = driver.devices[device].total_bytes;
	return CU_SUCCESS;
}

/* Numbers of CUdevice_attribute. */
int device_attribute(_unused_ struct call *call, int *ret_value, int attribute, int device)
{
	const struct model *model;

	if (!ret_value)
		return CU_INVALID_VALUE;
	if (!is_device(device))
		return CU_INVALID_DEVICE;
	model = driver.devices[device].model;
	switch (attribute) {
	case 1: /* threads of a block */
		*ret_value = 1024;
		break;
	case 10: /* of a warp */
		*ret_value = 32;
		break;
	case 16:
		*ret_value = (int)model->multiprocessors;
		break;
	case 39: /* threads of a multiprocessor */
		*ret_value = 2048;
		break;
	case 75:
		*ret_value = (int)model->compute_major;
		break;
	case 76:
		*ret_value = (int)model->compute_minor;
		break;
	default:
		*ret_value = 1; /* mostly "is it supported?" */
		break;
	}
	return CU_SUCCESS;
}

/* Memory of other processes with a context on the same device. */
static uint64_t bytes_of_others(const struct cuda_device *device)
{
	struct live_file *files;
	uint64_t bytes = 0;
	uint32_t count;

	if (!driver.live)
		return 0;
	files = malloc(LIVE_MAX * sizeof(*files));
	count = files ? live_read(files, LIVE_MAX) : 0;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < files[i].device_count && files[i].pid != driver.live->pid; j++) {
			const struct live_device *live = &files[i].devices[j];

			if (live->contexts > 0 && live->gpu == device->where.gpu &&
			    live->instance == device->where.instance)
				bytes += live->live_bytes + live->contexts * LIVE_CONTEXT_BYTES;
		}
	}
	free(files);
	return bytes;
}

static uint64_t free_bytes(const struct cuda_device *device)
{
	uint64_t taken = device->used_bytes + bytes_of_others(device);

	return device->capacity_bytes - MIN(taken, device->capacity_bytes);
}

int device_memory_info(struct call *call, size_t *ret_free, size_t *ret_total)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_free || !ret_total)
		return CU_INVALID_VALUE;
	driver_lock();
	*ret_free = free_bytes(&driver.devices[context->device]);
	*ret_total = driver.devices[context->device].total_bytes;
	driver_unlock();
	return CU_SUCCESS;
}

int driver_version(_unused_ struct call *call, int *ret_version)
{
	if (!ret_version)
		return CU_INVALID_VALUE;
	*ret_version = 13000;
	return CU_SUCCESS;
}

static struct live_device *live_of(const struct cuda_device *device)
{
	return driver.live ? &driver.live->devices[device - driver.devices] : NULL;
}

/*
 * Other processes are asked only where memory becomes scarce, because that reads files: below half of the
 * device a process is let alone.
 */
bool device_charge(struct cuda_device *device, int64_t bytes, bool allocation)
{
	struct live_device *live = live_of(device);

	if (bytes > 0) {
		uint64_t wanted = device->used_bytes + (uint64_t)bytes;

		if (wanted > device->capacity_bytes)
			return false;
		if (wanted > device->capacity_bytes / 2 && (uint64_t)bytes > free_bytes(device))
			return false;
	}
	device->used_bytes += (uint64_t)bytes;
	if (allocation)
		device->live_bytes += (uint64_t)bytes;
	if (live)
		__atomic_store_n(&live->live_bytes, device->live_bytes, __ATOMIC_RELAXED);
	return true;
}

static void add_period(struct live_device *live, int64_t start_ns, int64_t end_ns)
{
	int64_t last = start_ns / NSEC_PER_SEC + LIVE_PERIODS / 2;

	while (start_ns < end_ns && start_ns / NSEC_PER_SEC < last) {
		uint64_t second = (uint64_t)(start_ns / NSEC_PER_SEC);
		struct live_period *period = &live->periods[second % LIVE_PERIODS];
		int64_t until = MIN(end_ns, (int64_t)(second + 1) * NSEC_PER_SEC);

		if (period->second != second) {
			__atomic_store_n(&period->busy_ns, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&period->second, second, __ATOMIC_RELEASE);
		}
		__atomic_store_n(&period->busy_ns, period->busy_ns + (uint64_t)(until - start_ns),
				 __ATOMIC_RELAXED);
		start_ns = until;
	}
}

/*
 * The union of all streams' work. What begins before the latest end adds only what goes beyond it; a gap
 * that it might fill is not remembered, because streams mostly begin at once.
 */
void device_work(struct cuda_device *device, int64_t start_ns, int64_t end_ns)
{
	struct live_device *live = live_of(device);

	start_ns = MAX(start_ns, device->busy_until_ns);
	if (end_ns <= start_ns)
		return;
	device->busy_until_ns = end_ns;
	if (!live)
		return;
	__atomic_store_n(&live->busy_ns, live->busy_ns + (uint64_t)(end_ns - start_ns), __ATOMIC_RELAXED);
	add_period(live, start_ns, end_ns);
}

void device_contexts(struct cuda_device *device, int change)
{
	struct live_device *live = live_of(device);

	if (!live)
		return;
	if (live->contexts == 0)
		live->began_ms = (uint64_t)(clock_boot_ns() / NSEC_PER_MSEC);
	__atomic_store_n(&live->contexts, live->contexts + (uint32_t)change, __ATOMIC_RELEASE);
}
