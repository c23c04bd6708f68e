// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/runtime.h"

#include <pthread.h>

#include "sim/cuda/settings.h"

enum runtime_api {
#define API_ONE(name) API_##name,
#define API_PTSZ(name) API_##name, API_##name##_ptsz,
#define API_PTDS(name) API_##name, API_##name##_ptds,
#define RUNTIME(name, twin, ...) API_##twin(name)
#include "sim/cuda/runtime.def"
#undef RUNTIME
	API_cudaGetLastError,
	API_cudaPeekAtLastError,
	API_cudaGetErrorName,
	API_cudaGetErrorString,
	API___cudaRegisterFunction,
	RUNTIME_API_COUNT,
};

static const char *const names[RUNTIME_API_COUNT] = {
#define NAME_ONE(name) [API_##name] = #name,
#define NAME_PTSZ(name) [API_##name] = #name, [API_##name##_ptsz] = #name "_ptsz",
#define NAME_PTDS(name) [API_##name] = #name, [API_##name##_ptds] = #name "_ptds",
#define RUNTIME(name, twin, ...) NAME_##twin(name)
#include "sim/cuda/runtime.def"
#undef RUNTIME
	[API_cudaGetLastError] = "cudaGetLastError",
	[API_cudaPeekAtLastError] = "cudaPeekAtLastError",
	[API_cudaGetErrorName] = "cudaGetErrorName",
	[API_cudaGetErrorString] = "cudaGetErrorString",
	[API___cudaRegisterFunction] = "__cudaRegisterFunction",
};

enum need { NEED_ANY, NEED_INIT, NEED_CONTEXT };

static int admit(uint16_t api, enum need need)
{
	int failure = settings.failures ? settings_failure(api) : 0;

	if (failure != 0 || need == NEED_ANY)
		return failure;
	return runtime_admit(need == NEED_CONTEXT);
}

#define EXPORTED __attribute__((visibility("default")))
#define EXPORT(symbol, twin, need, implementation, parameters, arguments)               \
	EXPORTED int symbol parameters;                                                 \
	int symbol parameters                                                           \
	{                                                                               \
		struct call call_storage = { .api = API_##symbol, .per_thread = twin }; \
		struct call *call = &call_storage;                                      \
		int result;                                                             \
                                                                                        \
		runtime_load();                                                         \
		truth_begin(call);                                                      \
		result = admit(API_##symbol, NEED_##need);                              \
		if (result == CU_SUCCESS)                                               \
			result = implementation arguments;                              \
		truth_end(call, result);                                                \
		runtime_note(result);                                                   \
		return result;                                                          \
	}
#define EXPORT_ONE(name, ...) EXPORT(name, false, __VA_ARGS__)
#define EXPORT_PTSZ(name, ...) EXPORT(name, false, __VA_ARGS__) EXPORT(name##_ptsz, true, __VA_ARGS__)
#define EXPORT_PTDS(name, ...) EXPORT(name, false, __VA_ARGS__) EXPORT(name##_ptds, true, __VA_ARGS__)
#define RUNTIME(name, twin, ...) EXPORT_##twin(name, __VA_ARGS__)
#include "sim/cuda/runtime.def"

/* These return the code of an earlier call, which is not their own failure. */
static int last_error(uint16_t api, bool reset)
{
	struct call call = { .api = api };
	int error;

	runtime_load();
	truth_begin(&call);
	error = runtime_last_error(reset);
	truth_end(&call, CU_SUCCESS);
	return error;
}

EXPORTED int cudaGetLastError(void);
EXPORTED int cudaPeekAtLastError(void);
EXPORTED const char *cudaGetErrorString(int error);
EXPORTED const char *cudaGetErrorName(int error);

int cudaGetLastError(void)
{
	return last_error(API_cudaGetLastError, true);
}

int cudaPeekAtLastError(void)
{
	return last_error(API_cudaPeekAtLastError, false);
}

/* The driver's name for it; there is none without a driver, and none for errors of the runtime alone. */
static const char *error_text(uint16_t api, int error)
{
	struct call call = { .api = api };
	const char *text = NULL;

	runtime_load();
	truth_begin(&call);
	if (!runtime_driver(&call)->error_name ||
	    runtime_driver(&call)->error_name(error, &text) != CU_SUCCESS)
		text = NULL;
	truth_end(&call, CU_SUCCESS);
	return text ? text : "error of the simulated runtime";
}

const char *cudaGetErrorString(int error)
{
	return error_text(API_cudaGetErrorString, error);
}

const char *cudaGetErrorName(int error)
{
	return error_text(API_cudaGetErrorName, error);
}

EXPORTED void __cudaRegisterFunction(void **fatbin, const char *function, char *device_function,
				     const char *name, int threads, void *thread, void *block,
				     void *block_size, void *grid_size, int *warp);

/* Called before main(), when there is neither a driver nor a call depth. */
void __cudaRegisterFunction(void **fatbin, const char *function, _unused_ char *device_function,
			    const char *name, _unused_ int threads, _unused_ void *thread,
			    _unused_ void *block, _unused_ void *block_size, _unused_ void *grid_size,
			    _unused_ int *warp)
{
	struct call call = { .api = API___cudaRegisterFunction, .handle = (uintptr_t)function, .name = name };

	truth_note(&call);
	runtime_register_function(fatbin, function, name);
}

__attribute__((constructor)) static void load(void)
{
	truth_init("libcudart", names, RUNTIME_API_COUNT);
	settings_init(names, RUNTIME_API_COUNT);
	pthread_atfork(NULL, NULL, truth_forked);
}
