// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/entry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sim/cuda/driver.h"
#include "sim/cuda/settings.h"

const char *const entry_names[DRIVER_API_COUNT] = {
#define NAME_ONE(name) [API_##name] = #name,
#define NAME_PTSZ(name) [API_##name] = #name, [API_##name##_ptsz] = #name "_ptsz",
#define NAME_PTDS(name) [API_##name] = #name, [API_##name##_ptds] = #name "_ptds",
#define DRIVER(name, twin, ...) NAME_##twin(name)
#include "sim/cuda/driver.def"
#undef DRIVER
};

const uint32_t entry_since[DRIVER_API_COUNT] = {
#define SINCE_ONE(name, since) [API_##name] = since,
#define SINCE_PTSZ(name, since) [API_##name] = since, [API_##name##_ptsz] = since,
#define SINCE_PTDS(name, since) [API_##name] = since, [API_##name##_ptds] = since,
#define DRIVER(name, twin, since, ...) SINCE_##twin(name, since)
#include "sim/cuda/driver.def"
#undef DRIVER
};

/* Only addresses are needed here; entry.c has the prototypes. */
#define DECLARE_ONE(name) __attribute__((visibility("default"))) extern const char name[];
#define DECLARE_PTSZ(name) DECLARE_ONE(name) DECLARE_ONE(name##_ptsz)
#define DECLARE_PTDS(name) DECLARE_ONE(name) DECLARE_ONE(name##_ptds)
#define DRIVER(name, twin, ...) DECLARE_##twin(name)
#include "sim/cuda/driver.def"
#undef DRIVER

static const void *const addresses[DRIVER_API_COUNT] = {
#define ADDRESS_ONE(name) [API_##name] = name,
#define ADDRESS_PTSZ(name) [API_##name] = name, [API_##name##_ptsz] = name##_ptsz,
#define ADDRESS_PTDS(name) [API_##name] = name, [API_##name##_ptds] = name##_ptds,
#define DRIVER(name, twin, ...) ADDRESS_##twin(name)
#include "sim/cuda/driver.def"
#undef DRIVER
};

void *entry_address(enum driver_api api)
{
	return (void *)(uintptr_t)addresses[api];
}

/* "cuMemAlloc" is "cuMemAlloc_v2" and "cuMemcpy_ptds" too: what of @name is left after @symbol. */
static bool is_form_of(const char *name, const char *symbol, bool per_thread)
{
	size_t length = strlen(symbol);
	const char *rest = name + length;

	if (strncmp(name, symbol, length) != 0)
		return false;
	if (rest[0] == '_' && rest[1] == 'v')
		rest += 3;
	if (per_thread)
		return STRV_EQ(rest, "_ptsz") || STRV_EQ(rest, "_ptds");
	return *rest == '\0';
}

/* The newest form that is not newer than the version asked for; its own name finds it in any case. */
static int find(const char *symbol, int version, bool per_thread)
{
	int found = -1;

	for (int i = 0; i < DRIVER_API_COUNT; i++) {
		if (is_form_of(entry_names[i], symbol, per_thread) && (int)entry_since[i] <= version &&
		    (found < 0 || entry_since[i] >= entry_since[found]))
			found = i;
	}
	if (found < 0 && per_thread)
		return find(symbol, version, false);
	return found;
}

int entry_get(struct call *call, const char *symbol, void **ret_function, int version, uint64_t flags,
	      uint32_t *ret_status)
{
	int found;

	if (!symbol || !ret_function)
		return CU_INVALID_VALUE;
	call->name = symbol;
	found = find(symbol, version, flags & CU_ENTRY_PER_THREAD);
	if (ret_status)
		*ret_status = found < 0 ? CU_ENTRY_NOT_FOUND : 0;
	if (found < 0)
		return CU_NOT_FOUND;
	*ret_function = entry_address((enum driver_api)found);
	return CU_SUCCESS;
}

int export_table(_unused_ struct call *call, _unused_ const void **ret_table, _unused_ const void *id)
{
	return CU_NOT_FOUND;
}

static const struct {
	int error;
	const char *name;
} errors[] = {
	{ CU_SUCCESS, "CUDA_SUCCESS" },
	{ CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
	{ CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
	{ CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
	{ CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
	{ CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
	{ CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE" },
	{ CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
	{ CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
	{ CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
	{ CU_NOT_READY, "CUDA_ERROR_NOT_READY" },
	{ CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
	{ CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED" },
};

int error_name(_unused_ struct call *call, int error, const char **ret_text)
{
	if (!ret_text)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (errors[i].error == error) {
			*ret_text = errors[i].name;
			return CU_SUCCESS;
		}
	}
	*ret_text = NULL;
	return CU_INVALID_VALUE;
}

/* Used by libcudart, so that both share one call depth. */
__attribute__((visibility("default"))) unsigned *gpusonde_sim_cuda_depth(void);

unsigned *gpusonde_sim_cuda_depth(void)
{
	return truth_depth();
}

/* As with the real driver, a child cannot use CUDA that its parent has initialised. */
static void in_child(void)
{
	driver.forked = driver.initialised;
	driver.live = NULL;
	truth_forked();
}

__attribute__((constructor)) static void load(void)
{
	truth_init("libcuda", entry_names, DRIVER_API_COUNT);
	settings_init(entry_names, DRIVER_API_COUNT);
	pthread_atfork(driver_lock, driver_unlock, driver_unlock);
	pthread_atfork(NULL, NULL, in_child);
}

__attribute__((destructor)) static void unload(void)
{
	live_close(driver.live);
	driver.live = NULL;
}
