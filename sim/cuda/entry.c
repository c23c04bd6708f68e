// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/entry.h"

#include "sim/cuda/driver.h"
#include "sim/cuda/settings.h"

#ifdef SIM_CUDA_THUNKS
#define SYMBOL(name) entry_##name
#define EXPORTED
#else
#define SYMBOL(name) name
#define EXPORTED __attribute__((visibility("default")))
#endif

/* Whether the call gets as far as its implementation. */
static int admit(uint16_t api, bool needs_init)
{
	int failure;

	if (settings.failures) {
		failure = settings_failure(api);
		if (failure >= CU_ILLEGAL_ADDRESS && failure <= CU_LAST_STICKY)
			driver.broken = failure;
		if (failure != 0)
			return failure;
	}
	if (!needs_init)
		return CU_SUCCESS;
	if (driver.forked || !__atomic_load_n(&driver.initialised, __ATOMIC_ACQUIRE))
		return CU_NOT_INITIALIZED;
	return driver.broken;
}

enum { NEED_ANY = false, NEED_INIT = true };

#define EXPORT(symbol, twin, need, implementation, parameters, arguments)               \
	EXPORTED int SYMBOL(symbol) parameters;                                         \
	int SYMBOL(symbol) parameters                                                   \
	{                                                                               \
		struct call call_storage = { .api = API_##symbol, .per_thread = twin }; \
		struct call *call = &call_storage;                                      \
		int result;                                                             \
                                                                                        \
		truth_begin(call);                                                      \
		result = admit(API_##symbol, NEED_##need);                              \
		if (result == CU_SUCCESS)                                               \
			result = implementation arguments;                              \
		truth_end(call, result);                                                \
		return result;                                                          \
	}
#define EXPORT_ONE(name, ...) EXPORT(name, false, __VA_ARGS__)
#define EXPORT_PTSZ(name, ...) EXPORT(name, false, __VA_ARGS__) EXPORT(name##_ptsz, true, __VA_ARGS__)
#define EXPORT_PTDS(name, ...) EXPORT(name, false, __VA_ARGS__) EXPORT(name##_ptds, true, __VA_ARGS__)
#define DRIVER(name, twin, since, ...) EXPORT_##twin(name, __VA_ARGS__)
#include "sim/cuda/driver.def"
