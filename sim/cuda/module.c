// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda/settings.h"

enum { THREADS_OF_BLOCK = 1024, SHARED_MAX = 227 * 1024, GRID_MAX = 65535 };

/* A cubin, a fat binary in its wrapper or without, or PTX, which is text. */
static bool is_image(const void *image)
{
	const unsigned char *bytes = image;
	uint32_t magic;

	if (isprint(bytes[0]) || isspace(bytes[0]))
		return true;
	memcpy(&magic, image, sizeof(magic));
	return memcmp(image, "\177ELF", 4) == 0 || magic == CUDA_FATBIN_MAGIC ||
	       magic == CUDA_FATBIN_WRAPPER_MAGIC;
}

static int make(struct call *call, struct cu_module **ret_module, struct cu_context *context)
{
	struct cu_module *module;

	driver_lock();
	module = pool_new(&modules);
	if (module)
		module->context = context;
	driver_unlock();
	*ret_module = module;
	call->handle = (uintptr_t)module;
	return module ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int module_load(struct call *call, struct cu_module **ret_module, const void *image, bool library)
{
	struct cu_context *context = NULL;
	int result = library ? CU_SUCCESS : context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_module || !image)
		return CU_INVALID_VALUE;
	return is_image(image) ? make(call, ret_module, context) : CU_INVALID_IMAGE;
}

int module_load_file(struct call *call, struct cu_module **ret_module, const char *path, bool library)
{
	struct cu_context *context = NULL;
	int result = library ? CU_SUCCESS : context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_module || !path)
		return CU_INVALID_VALUE;
	return access(path, R_OK) == 0 ? make(call, ret_module, context) : CU_NOT_FOUND;
}

int module_unload(struct call *call, struct cu_module *module)
{
	call->handle = (uintptr_t)module;
	driver_lock();
	if (!pool_has(&modules, module)) {
		driver_unlock();
		return CU_INVALID_HANDLE;
	}
	for (struct cu_function *function = NULL; (function = pool_next(&functions, function));) {
		if (function->owner == module)
			pool_free(&functions, function);
	}
	pool_free(&modules, module);
	driver_unlock();
	return CU_SUCCESS;
}

static struct cu_function *find_function(const struct cu_module *module, const char *name, size_t name_n)
{
	struct cu_function *function = NULL;

	while ((function = pool_next(&functions, function)))
		if (function->owner == module && function->name_n == name_n &&
		    memcmp(function->name, name, name_n) == 0)
			break;
	return function;
}

/* Of a leak checker, if there is one: names are never freed, on purpose. */
void __lsan_ignore_object(const void *) __attribute__((weak));

static struct cu_function *make_function(struct cu_module *module, const char *name, size_t name_n)
{
	char *copy = strdup(name);
	struct cu_function *function = copy ? pool_new(&functions) : NULL;

	if (!function) {
		free(copy);
		return NULL;
	}
	if (__lsan_ignore_object)
		__lsan_ignore_object(copy);
	function->owner = module;
	function->duration_ns = settings_kernel_ns(name);
	function->name = copy;
	function->name_n = (uint32_t)name_n;
	return function;
}

/* A module has every function that is looked up, except names that begin with "missing". */
int module_function(struct call *call, struct cu_function **ret_function, struct cu_module *module,
		    const char *name)
{
	struct cu_function *function;
	size_t name_n;

	if (!ret_function || !name || !*name)
		return CU_INVALID_VALUE;
	name_n = strlen(name);
	call->name = name;
	driver_lock();
	if (!pool_has(&modules, module)) {
		driver_unlock();
		return CU_INVALID_HANDLE;
	}
	if (strncmp(name, "missing", 7) == 0) {
		driver_unlock();
		return CU_NOT_FOUND;
	}
	function = find_function(module, name, name_n);
	if (!function)
		function = make_function(module, name, name_n);
	driver_unlock();
	*ret_function = function;
	call->handle = (uintptr_t)function;
	return function ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int function_name(struct call *call, const char **ret_name, struct cu_function *function)
{
	call->handle = (uintptr_t)function;
	if (!ret_name)
		return CU_INVALID_VALUE;
	if (!pool_has(&functions, function))
		return CU_INVALID_HANDLE;
	*ret_name = function->name;
	call->name = function->name;
	return CU_SUCCESS;
}

int kernel_function(struct call *call, struct cu_function **ret_function, struct cu_function *kernel)
{
	call->handle = (uintptr_t)kernel;
	if (!ret_function)
		return CU_INVALID_VALUE;
	if (!pool_has(&functions, kernel))
		return CU_INVALID_HANDLE;
	*ret_function = kernel;
	call->name = kernel->name;
	return CU_SUCCESS;
}

/* The total number of threads; 0: more than the device supports. No product of these limits overflows. */
static uint64_t launch_threads(const uint32_t grid[3], const uint32_t block[3])
{
	uint64_t threads;

	if (block[0] > THREADS_OF_BLOCK || block[1] > THREADS_OF_BLOCK || block[2] > THREADS_OF_BLOCK ||
	    grid[0] > INT32_MAX || grid[1] > GRID_MAX || grid[2] > GRID_MAX)
		return 0;
	threads = (uint64_t)block[0] * block[1] * block[2];
	if (threads > THREADS_OF_BLOCK)
		return 0;
	return (uint64_t)grid[0] * grid[1] * grid[2] * threads;
}

int launch(struct call *call, struct cu_function *function, const uint32_t grid[3], const uint32_t block[3],
	   uint32_t shared_bytes, struct cu_stream *handle)
{
	static const struct cu_graph one = { .launches = 1 };
	struct sim_work work = { .kind = SIM_KERNEL, .correlation = observe_call(SIM_CALL_LAUNCH) };
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	call->handle = (uintptr_t)function;
	if (result != CU_SUCCESS)
		return result;
	if (!pool_has(&functions, function))
		return CU_INVALID_HANDLE;
	call->name = function->name;
	call->threads = launch_threads(grid, block);
	if (call->threads == 0 || shared_bytes > SHARED_MAX)
		return CU_INVALID_VALUE;
	work.name = function->name;
	result = stream_work(stream, function->duration_ns, &one, &work);
	observe_work(stream, &work);
	return result;
}

int launch_config(struct call *call, const struct cu_launch_config *config, struct cu_function *function)
{
	if (!config)
		return CU_INVALID_VALUE;
	return launch(call, function, config->grid, config->block, config->shared_bytes, config->stream);
}
