// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/call.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "sim/nvml/library.h"

static const char *const function_names[FUNCTION_COUNT] = {
#define FUNCTION(name, scope, since) [FN_##name] = #name,
#define UNSUPPORTED(name, since) [FN_##name] = #name,
#include "sim/nvml/functions.def"
#include "sim/nvml/nvml_unsupported.def"
#undef FUNCTION
#undef UNSUPPORTED
};

/* What the first argument may be. */
enum scope { SCOPE_NODE, SCOPE_GPU, SCOPE_ANY };

static const uint8_t function_scopes[FUNCTION_COUNT] = {
#define FUNCTION(name, scope, since) [FN_##name] = SCOPE_##scope,
#define UNSUPPORTED(name, since) [FN_##name] = SCOPE_NODE,
#include "sim/nvml/functions.def"
#include "sim/nvml/nvml_unsupported.def"
#undef FUNCTION
#undef UNSUPPORTED
};

/* The generations that added and removed a function (0: not removed). */
static const uint8_t function_since[FUNCTION_COUNT] = {
#define FUNCTION(name, scope, since) [FN_##name] = GENERATION_##since,
#define UNSUPPORTED(name, since) [FN_##name] = GENERATION_##since,
#include "sim/nvml/functions.def"
#include "sim/nvml/nvml_unsupported.def"
#undef FUNCTION
#undef UNSUPPORTED
};

static const uint8_t function_gone[FUNCTION_COUNT] = {
#define GONE(id, function) [FN_##function] = GENERATION_##id,
#include "sim/scenario/generations.def"
};

static const struct {
	uint16_t function;
	uint8_t version, since, before;
} struct_versions[] = {
#define STRUCT_VERSION(function, version, id, before) \
	{ FN_##function, version, GENERATION_##id, GENERATION_##before },
#include "sim/scenario/generations.def"
};

static struct nvml_device devices[SCENARIO_MAX_GPUS][1 + SCENARIO_MAX_INSTANCES];
static struct nvml_gpu_instance gpu_instances[SCENARIO_MAX_GPUS][SCENARIO_MAX_INSTANCES];
static struct nvml_compute_instance compute_instances[SCENARIO_MAX_GPUS][SCENARIO_MAX_INSTANCES];

const char *function_name(enum function function)
{
	return function_names[function];
}

const struct generation *call_generation(void)
{
	return &generations[call_node()->scenario->generation];
}

static bool is_offered(enum function function)
{
	uint8_t id = (uint8_t)call_node()->scenario->generation, gone = function_gone[function];

	return id >= function_since[function] && (gone == 0 || id < gone);
}

bool call_knows(const struct call *call, unsigned version)
{
	uint8_t id = (uint8_t)call_node()->scenario->generation;

	for (size_t i = 0; i < ARRAY_SIZE(struct_versions); i++) {
		if (struct_versions[i].function == call->function && struct_versions[i].version == version)
			return id >= struct_versions[i].since && id < struct_versions[i].before;
	}
	return true;
}

struct nvml_device *device_handle(uint32_t gpu, int instance)
{
	struct nvml_device *device = &devices[gpu][1 + instance];

	device->gpu = (uint8_t)gpu;
	device->instance = (int8_t)instance;
	return device;
}

struct nvml_gpu_instance *gpu_instance_handle(uint32_t gpu, uint32_t instance)
{
	struct nvml_gpu_instance *handle = &gpu_instances[gpu][instance];

	handle->gpu = (uint8_t)gpu;
	handle->instance = (uint8_t)instance;
	return handle;
}

struct nvml_compute_instance *compute_instance_handle(uint32_t gpu, uint32_t instance)
{
	struct nvml_compute_instance *handle = &compute_instances[gpu][instance];

	handle->gpu = (uint8_t)gpu;
	handle->instance = (uint8_t)instance;
	return handle;
}

/* A pointer into the array, to the begin of an element. */
static bool is_element(const void *pointer, const void *array, size_t size, size_t element)
{
	uintptr_t offset = (uintptr_t)pointer - (uintptr_t)array;

	return offset < size && offset % element == 0;
}

bool is_gpu_instance(const struct nvml_gpu_instance *instance)
{
	return is_element(instance, gpu_instances, sizeof(gpu_instances), sizeof(*instance)) &&
	       call_node()->gpus[instance->gpu].what &&
	       instance->instance < call_node()->gpus[instance->gpu].what->instance_count;
}

bool is_compute_instance(const struct nvml_compute_instance *instance)
{
	return is_element(instance, compute_instances, sizeof(compute_instances), sizeof(*instance)) &&
	       call_node()->gpus[instance->gpu].what &&
	       instance->instance < call_node()->gpus[instance->gpu].what->instance_count;
}

static bool is_device(const struct nvml_device *device)
{
	const struct scenario *scenario = call_node()->scenario;

	if (!is_element(device, devices, sizeof(devices), sizeof(*device)))
		return false;
	/* Never returned to a caller, or from before the scenario changed. */
	if (device != &devices[device->gpu][1 + device->instance] || device->gpu >= scenario->gpu_count)
		return false;
	return device->instance < (int)scenario->gpus[device->gpu].instance_count;
}

void call_end(struct call *call)
{
	if (call->locked)
		library_unlock();
	call->locked = false;
}

static void set_time(struct call *call)
{
	call->now_ns = clock_boot_ns();
	call->now_ms = call->now_ns / NSEC_PER_MSEC;
}

/* Which call hangs. */
struct hang {
	enum function function;
	int gpu;
};

/* Asked while no lock is held. */
static bool hang_goes_on(void *userdata)
{
	const struct hang *hang = userdata;
	int64_t now_ms = clock_boot_ns() / NSEC_PER_MSEC;
	uint32_t active[2];
	bool on = false;

	library_lock();
	library_refresh(now_ms);
	library_faults(hang->function, hang->gpu, now_ms, active);
	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = active[set]; bits; bits &= bits - 1)
			on |= library_fault(set, (unsigned)__builtin_ctz(bits))->kind == FAULT_HANG;
	}
	library_unlock();
	return on;
}

/* Releases the lock meanwhile, so that other threads' calls continue. */
static void hang(struct call *call, const struct fault *fault, int gpu)
{
	struct hang how = { .function = call->function, .gpu = gpu };
	int64_t hang_ms = fault->hang_ms;

	call_end(call);
	fault_hang(hang_ms, hang_goes_on, &how);
	library_lock();
	call->locked = true;
	set_time(call);
}

/* Everything that faults do before the function itself; it may not return. */
static enum nvml_return suffer(struct call *call, int gpu)
{
	uint32_t active[2];
	enum nvml_return result = NVML_SUCCESS;

	library_faults(call->function, gpu, call->now_ms, active);
	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = active[set]; bits; bits &= bits - 1) {
			unsigned number = (unsigned)__builtin_ctz(bits);
			const struct fault *fault = library_fault(set, number);

			switch (fault->kind) {
			case FAULT_HANG:
				hang(call, fault, gpu);
				/* What was active may have changed meanwhile. */
				return result;
			case FAULT_CRASH:
				fault_crash();
			case FAULT_ERROR:
				result = fault->error;
				break;
			case FAULT_LOST:
			case FAULT_REMOVED:
				if (gpu >= 0)
					result = NVML_ERROR_GPU_IS_LOST;
				break;
			case FAULT_SENTINEL:
			case FAULT_WRAP:
			case FAULT_STRIDE:
			case FAULT_NAMESPACED:
				call->falsified[set] |= UINT32_C(1) << number;
				break;
			default:
				break;
			}
		}
	}
	return result;
}

static void begin(struct call *call, enum function function)
{
	*call = (struct call){ .function = function, .instance = -1, .locked = true };
	library_lock();
	set_time(call);
	library_refresh(call->now_ms);
}

/* After the driver was unloaded, calls for no GPU return that the caller must initialise again. */
static enum nvml_return node_state(const struct call *call)
{
	return library_state(call->now_ms) == NVML_SUCCESS ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

enum nvml_return call_begin_bare(struct call *call, enum function function)
{
	begin(call, function);
	return suffer(call, -1);
}

enum nvml_return call_begin_node(struct call *call, enum function function)
{
	enum nvml_return result;

	begin(call, function);
	result = node_state(call);
	if (result == NVML_SUCCESS && !is_offered(function))
		result = NVML_ERROR_FUNCTION_NOT_FOUND;
	if (result == NVML_SUCCESS)
		result = suffer(call, -1);
	return result == NVML_SUCCESS ? node_state(call) : result;
}

static enum nvml_return attach(struct call *call, uint32_t gpu, int instance)
{
	enum nvml_return result = suffer(call, (int)gpu);

	if (result == NVML_SUCCESS)
		result = library_state(call->now_ms);
	if (result == NVML_SUCCESS && !is_offered(call->function))
		result = NVML_ERROR_FUNCTION_NOT_FOUND;
	if (result != NVML_SUCCESS)
		return result;
	if (library_unsupported(call->function, gpu))
		return NVML_ERROR_NOT_SUPPORTED;
	if (instance >= 0 && function_scopes[call->function] == SCOPE_GPU)
		return NVML_ERROR_NOT_SUPPORTED;
	call->gpu = &call_node()->gpus[gpu];
	call->instance = instance;
	call->mig = instance >= 0 ? &call->gpu->what->instances[instance] : NULL;
	gpu_seek(call->gpu, call->now_ms);
	return NVML_SUCCESS;
}

enum nvml_return call_begin(struct call *call, enum function function, const struct nvml_device *device)
{
	enum nvml_return result;

	begin(call, function);
	result = library_state(call->now_ms);
	if (result != NVML_SUCCESS)
		return result;
	if (!is_device(device))
		return NVML_ERROR_INVALID_ARGUMENT;
	return attach(call, device->gpu, device->instance);
}

enum nvml_return call_begin_gpu(struct call *call, enum function function, uint32_t gpu)
{
	enum nvml_return result;

	begin(call, function);
	result = library_state(call->now_ms);
	return result == NVML_SUCCESS ? attach(call, gpu, -1) : result;
}

bool call_sleep(struct call *call, int64_t ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NSEC_PER_MSEC };

	call_end(call);
	nanosleep(&time, NULL);
	library_lock();
	call->locked = true;
	set_time(call);
	library_refresh(call->now_ms);
	return library_state(call->now_ms) == NVML_SUCCESS;
}

static uint64_t falsify(const struct call *call, uint64_t value, unsigned width, int field)
{
	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = call->falsified[set]; bits; bits &= bits - 1) {
			const struct fault *fault = library_fault(set, (unsigned)__builtin_ctz(bits));

			if (field >= 0 && !fault_has_field(fault, (uint32_t)field))
				continue;
			if (fault->kind == FAULT_WRAP)
				value &= (UINT64_C(1) << fault->size) - 1;
			else if (fault->kind == FAULT_SENTINEL && fault->value_given)
				value = fault->value;
			else if (fault->kind == FAULT_SENTINEL)
				value = width == 4 ? UINT64_C(4294967295) : UINT64_C(9223372036854775794);
		}
	}
	return value;
}

void put_u32(const struct call *call, uint32_t *dst, uint32_t value)
{
	*dst = (uint32_t)falsify(call, value, 4, -1);
}

void put_u64(const struct call *call, uint64_t *dst, uint64_t value)
{
	*dst = falsify(call, value, 8, -1);
}

uint64_t falsify_field(const struct call *call, uint32_t field, uint64_t value, unsigned width)
{
	return falsify(call, value, width, (int)field);
}

enum nvml_return put_text(char *dst, uint32_t size, const char *text)
{
	size_t length = strlen(text) + 1;

	NEED(dst);
	if (length > size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(dst, text, length);
	return NVML_SUCCESS;
}

uint32_t call_stride(const struct call *call)
{
	for (unsigned set = 0; set < 2; set++) {
		for (uint32_t bits = call->falsified[set]; bits; bits &= bits - 1) {
			const struct fault *fault = library_fault(set, (unsigned)__builtin_ctz(bits));

			if (fault->kind == FAULT_STRIDE)
				return fault->size;
		}
	}
	return 0;
}

bool call_namespaced(const struct call *call)
{
	for (unsigned set = 0; set < 2; set++)
		for (uint32_t bits = call->falsified[set]; bits; bits &= bits - 1)
			if (library_fault(set, (unsigned)__builtin_ctz(bits))->kind == FAULT_NAMESPACED)
				return true;
	return false;
}

void call_totals(const struct call *call, struct totals *ret_totals)
{
	const uint64_t *since = (const uint64_t *)&call->gpu->driver_totals;
	uint64_t *total = (uint64_t *)ret_totals;

	gpu_totals(call->gpu, call->now_ms, ret_totals);
	for (size_t i = 0; i < sizeof(*ret_totals) / sizeof(*total); i++)
		total[i] -= since[i];
}

uint32_t present_gpus(const struct call *call, uint8_t *ret_gpus)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < call_node()->scenario->gpu_count; i++) {
		if (!library_removed(i, call->now_ms))
			ret_gpus[count++] = (uint8_t)i;
	}
	return count;
}
