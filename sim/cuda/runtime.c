// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/runtime.h"

#include <dlfcn.h>
#include <pthread.h>

enum { DEVICES_MAX = 64 };

static struct driver_calls usual, per_thread;
static pthread_once_t load_once = PTHREAD_ONCE_INIT, init_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int load_result, init_result;
static int (*get_entry)(const char *, void **, int, uint64_t, uint32_t *);

/* The primary contexts that this process has retained, and how often each was reset. */
static struct {
	struct cu_context *context;
	unsigned resets;
} primaries[DEVICES_MAX];

static _Thread_local int thread_device, thread_error;
static _Thread_local int bound_device = -1; /* whose context this thread has current */
static _Thread_local unsigned bound_resets;

static const struct {
	const char *name;
	int version;
	size_t offset;
} uses[] = {
#define USE(field, name, version, parameters) { name, version, offsetof(struct driver_calls, field) },
#include "sim/cuda/calls.def"
#undef USE
};

static void put_entry(struct driver_calls *calls, size_t use, uint64_t flags)
{
	void **place = (void **)(void *)((char *)calls + uses[use].offset);
	uint32_t status;

	if (get_entry(uses[use].name, place, uses[use].version, flags, &status) != CU_SUCCESS)
		load_result = CU_INSUFFICIENT_DRIVER;
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned *(*depth)(void) = NULL, *mine;

	if (library) {
		*(void **)&get_entry = dlsym(library, "cuGetProcAddress_v2");
		*(void **)&depth = dlsym(library, "gpusonde_sim_cuda_depth");
	}
	if (!get_entry) {
		load_result = CU_INSUFFICIENT_DRIVER;
		return;
	}
	if (depth)
		truth_share_depth(depth);
	/* These lookups belong to the call that loads the library. */
	mine = truth_depth();
	(*mine)++;
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		put_entry(&usual, i, 0);
		put_entry(&per_thread, i, CU_ENTRY_PER_THREAD);
	}
	(*mine)--;
}

void runtime_load(void)
{
	pthread_once(&load_once, load);
}

static void init(void)
{
	init_result = usual.init(0);
}

const struct driver_calls *runtime_driver(const struct call *call)
{
	return call->per_thread ? &per_thread : &usual;
}

/* The thread's device becomes current with its primary context, which is retained once in a process. */
static int bind(void)
{
	int device = thread_device, result = CU_SUCCESS;

	if (device < 0 || device >= DEVICES_MAX)
		return CU_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device].context)
		result = usual.primary_retain(&primaries[device].context, device);
	if (result == CU_SUCCESS)
		result = usual.context_set(primaries[device].context);
	if (result == CU_SUCCESS) {
		bound_device = device;
		bound_resets = primaries[device].resets;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int runtime_admit(bool needs_context)
{
	if (load_result != CU_SUCCESS)
		return load_result;
	pthread_once(&init_once, init);
	if (init_result != CU_SUCCESS)
		return init_result;
	if (needs_context &&
	    (bound_device != thread_device ||
	     __atomic_load_n(&primaries[bound_device].resets, __ATOMIC_RELAXED) != bound_resets))
		return bind();
	return CU_SUCCESS;
}

int runtime_last_error(bool reset)
{
	int error = thread_error;

	if (reset)
		thread_error = CU_SUCCESS;
	return error;
}

void runtime_note(int result)
{
	if (result != CU_SUCCESS && result != CU_NOT_READY)
		thread_error = result;
}

/* Since CUDA 12 this makes the device's context, too. */
int runtime_set_device(struct call *call, int device)
{
	int count = 0, result = usual.device_count(&count);

	call->has_device = true;
	call->device = device;
	if (result != CU_SUCCESS)
		return result;
	if (device < 0 || device >= count)
		return CU_INVALID_DEVICE;
	thread_device = device;
	return runtime_admit(true);
}

int runtime_get_device(_unused_ struct call *call, int *ret_device)
{
	if (!ret_device)
		return CU_INVALID_VALUE;
	*ret_device = thread_device;
	return CU_SUCCESS;
}

int runtime_device_count(_unused_ struct call *call, int *ret_count)
{
	return ret_count ? usual.device_count(ret_count) : CU_INVALID_VALUE;
}

int runtime_device_attribute(_unused_ struct call *call, int *ret_value, int attribute, int device)
{
	return usual.device_attribute(ret_value, attribute, device);
}

int runtime_reset(_unused_ struct call *call)
{
	int device = thread_device, result;

	pthread_mutex_lock(&lock);
	result = usual.primary_reset(device);
	primaries[device].context = NULL;
	__atomic_fetch_add(&primaries[device].resets, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	bound_device = -1;
	return result;
}

int runtime_version(_unused_ struct call *call, int *ret_version)
{
	if (!ret_version)
		return CU_INVALID_VALUE;
	*ret_version = 13000;
	return CU_SUCCESS;
}

/* 0 and success if there is no driver. */
int runtime_driver_version(_unused_ struct call *call, int *ret_version)
{
	if (!ret_version)
		return CU_INVALID_VALUE;
	*ret_version = 0;
	return load_result == CU_SUCCESS ? usual.version(ret_version) : CU_SUCCESS;
}

int runtime_entry_point(struct call *call, const char *symbol, void **ret_function, int version,
			uint64_t flags, uint32_t *ret_status)
{
	if (call->per_thread)
		flags |= CU_ENTRY_PER_THREAD;
	return get_entry(symbol, ret_function, version, flags, ret_status);
}
