// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/runtime.h"

#include <pthread.h>

#include "base/hashmap.h"

enum { FATBINS_MAX = 4096, KERNELS_MAX = 1 << 16, CALLS_DEPTH = 16 };

/* What start-up code of nvcc's registers; loaded into the driver when it is first used. */
struct fatbin {
	const struct cuda_fatbin_wrapper *wrapper;
	struct cu_module *library;
};

struct kernel {
	struct fatbin *fatbin;
	const char *name;
	struct cu_function *handle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fatbin fatbins[FATBINS_MAX];
static uint32_t fatbin_count;
static struct kernel kernels[KERNELS_MAX];
static uint32_t kernel_count;
static struct hashmap by_function;
static unsigned generation = 1; /* changes when handles may have */

/* The kernel this thread launched last. */
static _Thread_local struct {
	const void *function;
	struct cu_function *handle;
	unsigned generation;
} last;

/* Configurations that <<<>>> has pushed and the kernel's stub pops. */
static _Thread_local struct {
	struct cuda_dim3 grid, block;
	size_t shared_bytes;
	void *stream;
} configurations[CALLS_DEPTH];
static _Thread_local unsigned configuration_count;

static struct cu_function *resolve(const struct driver_calls *driver, const void *function)
{
	struct kernel *kernel;
	uint32_t index;

	if (!hashmap_get(&by_function, (uintptr_t)function, &index))
		return NULL;
	kernel = &kernels[index];
	if (!kernel->fatbin)
		return NULL;
	if (!kernel->fatbin->library &&
	    driver->library_load(&kernel->fatbin->library, kernel->fatbin->wrapper, NULL, NULL, 0, NULL, NULL,
				 0) != CU_SUCCESS)
		return NULL;
	if (!kernel->handle &&
	    driver->library_kernel(&kernel->handle, kernel->fatbin->library, kernel->name) != CU_SUCCESS)
		kernel->handle = NULL;
	return kernel->handle;
}

struct cu_function *runtime_kernel(struct call *call, const void *function)
{
	unsigned now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);

	if (last.function == function && last.generation == now)
		return last.handle;
	pthread_mutex_lock(&lock);
	last.handle = resolve(runtime_driver(call), function);
	pthread_mutex_unlock(&lock);
	last.function = function;
	last.generation = last.handle ? now : 0;
	return last.handle;
}

int runtime_get_kernel(struct call *call, struct cu_function **ret_kernel, const void *function)
{
	struct cu_function *kernel = runtime_kernel(call, function);

	if (!ret_kernel)
		return CU_INVALID_VALUE;
	if (!kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	*ret_kernel = kernel;
	return CU_SUCCESS;
}

int runtime_get_function(struct call *call, struct cu_function **ret_function, const void *function)
{
	struct cu_function *kernel = runtime_kernel(call, function);

	if (!ret_function)
		return CU_INVALID_VALUE;
	if (!kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	return runtime_driver(call)->kernel_function(ret_function, kernel);
}

/* Of a host function, or of a kernel's handle. */
int runtime_function_name(struct call *call, const char **ret_name, const void *function)
{
	struct cu_function *kernel = runtime_kernel(call, function);

	if (!ret_name)
		return CU_INVALID_VALUE;
	if (!kernel)
		kernel = (struct cu_function *)(uintptr_t)function;
	return runtime_driver(call)->kernel_name(ret_name, kernel) == CU_SUCCESS ? CU_SUCCESS :
										   CU_INVALID_DEVICE_FUNCTION;
}

/* The driver's invalid value is an invalid configuration in the runtime. */
static int launched(struct call *call, const void *function, struct cuda_dim3 grid, struct cuda_dim3 block,
		    int result)
{
	call->handle = (uintptr_t)function;
	call->threads = (uint64_t)grid.x * grid.y * grid.z * block.x * block.y * block.z;
	return result == CU_INVALID_VALUE ? CU_INVALID_CONFIGURATION : result;
}

int runtime_launch_kernel(struct call *call, struct cu_function *kernel, struct cuda_dim3 grid,
			  struct cuda_dim3 block, void **arguments, size_t shared_bytes,
			  struct cu_stream *stream)
{
	int result = runtime_driver(call)->launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
						  (unsigned)shared_bytes, stream, arguments, NULL);

	call->stream = (uintptr_t)stream;
	return launched(call, kernel, grid, block, result);
}

int runtime_launch(struct call *call, const void *function, struct cuda_dim3 grid, struct cuda_dim3 block,
		   void **arguments, size_t shared_bytes, struct cu_stream *stream)
{
	struct cu_function *kernel = runtime_kernel(call, function);

	if (!kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	return runtime_launch_kernel(call, kernel, grid, block, arguments, shared_bytes, stream);
}

int runtime_launch_cooperative(struct call *call, const void *function, struct cuda_dim3 grid,
			       struct cuda_dim3 block, void **arguments, size_t shared_bytes,
			       struct cu_stream *stream)
{
	struct cu_function *kernel = runtime_kernel(call, function);
	int result;

	call->stream = (uintptr_t)stream;
	if (!kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	result = runtime_driver(call)->launch_cooperative(kernel, grid.x, grid.y, grid.z, block.x, block.y,
							  block.z, (unsigned)shared_bytes, stream, arguments);
	return launched(call, function, grid, block, result);
}

int runtime_launch_config(struct call *call, const struct cuda_launch_config *config, const void *function,
			  void **arguments)
{
	struct cu_launch_config driver_config;
	struct cu_function *kernel;
	int result;

	if (!config)
		return CU_INVALID_VALUE;
	kernel = runtime_kernel(call, function);
	if (!kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	driver_config = (struct cu_launch_config){
		.grid = { config->grid.x, config->grid.y, config->grid.z },
		.block = { config->block.x, config->block.y, config->block.z },
		.shared_bytes = (uint32_t)config->shared_bytes,
		.stream = config->stream,
		.attributes = config->attributes,
		.attribute_count = config->attribute_count,
	};
	call->stream = (uintptr_t)config->stream;
	result = runtime_driver(call)->launch_ex(&driver_config, kernel, arguments, NULL);
	return launched(call, function, config->grid, config->block, result);
}

int runtime_graph_add_kernel(struct call *call, struct cu_node **ret_node, struct cu_graph *graph,
			     const void *dependencies, size_t count, const struct cuda_kernel_node *node)
{
	struct cu_kernel_node driver_node;

	if (!node)
		return CU_INVALID_VALUE;
	driver_node = (struct cu_kernel_node){
		.kernel = runtime_kernel(call, node->function),
		.grid = { node->grid.x, node->grid.y, node->grid.z },
		.block = { node->block.x, node->block.y, node->block.z },
		.shared_bytes = node->shared_bytes,
	};
	if (!driver_node.kernel)
		return CU_INVALID_DEVICE_FUNCTION;
	return runtime_driver(call)->graph_add_kernel(ret_node, graph, dependencies, count, &driver_node);
}

/*
 * Other functions that nvcc's start-up code and stubs call. They are not part of CUDA's API and are not
 * counted.
 */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED void **__cudaRegisterFatBinary(void *wrapper);
EXPORTED void __cudaRegisterFatBinaryEnd(void **handle);
EXPORTED void __cudaUnregisterFatBinary(void **handle);
EXPORTED unsigned __cudaPushCallConfiguration(struct cuda_dim3 grid, struct cuda_dim3 block,
					      size_t shared_bytes, void *stream);
EXPORTED int __cudaPopCallConfiguration(struct cuda_dim3 *grid, struct cuda_dim3 *block, size_t *shared_bytes,
					void *stream);
EXPORTED char __cudaInitModule(void **handle);

void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fatbin *fatbin;

	pthread_mutex_lock(&lock);
	fatbin = &fatbins[MIN(fatbin_count, (uint32_t)FATBINS_MAX - 1)];
	fatbin_count = MIN(fatbin_count + 1, (uint32_t)FATBINS_MAX);
	*fatbin = (struct fatbin){ .wrapper = wrapper };
	pthread_mutex_unlock(&lock);
	return (void **)fatbin;
}

void __cudaRegisterFatBinaryEnd(_unused_ void **handle)
{
}

/* A library that is closed, or the program's end: as NVIDIA's, it unloads what was loaded of it. */
void __cudaUnregisterFatBinary(void **handle)
{
	const struct call call = { 0 };
	struct fatbin *fatbin = (struct fatbin *)handle;
	struct cu_module *library;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < kernel_count; i++)
		if (kernels[i].fatbin == fatbin)
			kernels[i].fatbin = NULL;
	library = TAKE_PTR(fatbin->library);
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	if (library)
		runtime_driver(&call)->library_unload(library);
}

char __cudaInitModule(_unused_ void **handle)
{
	return 1;
}

void runtime_register_function(void **fatbin, const void *function, const char *name)
{
	pthread_mutex_lock(&lock);
	if (kernel_count < KERNELS_MAX && hashmap_put(&by_function, (uintptr_t)function, kernel_count) == 0)
		kernels[kernel_count++] = (struct kernel){ .fatbin = (struct fatbin *)fatbin, .name = name };
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

unsigned __cudaPushCallConfiguration(struct cuda_dim3 grid, struct cuda_dim3 block, size_t shared_bytes,
				     void *stream)
{
	if (configuration_count == CALLS_DEPTH)
		return CU_INVALID_CONFIGURATION;
	configurations[configuration_count].grid = grid;
	configurations[configuration_count].block = block;
	configurations[configuration_count].shared_bytes = shared_bytes;
	configurations[configuration_count++].stream = stream;
	return 0;
}

int __cudaPopCallConfiguration(struct cuda_dim3 *grid, struct cuda_dim3 *block, size_t *shared_bytes,
			       void *stream)
{
	if (configuration_count == 0)
		return CU_INVALID_CONFIGURATION;
	configuration_count--;
	*grid = configurations[configuration_count].grid;
	*block = configurations[configuration_count].block;
	*shared_bytes = configurations[configuration_count].shared_bytes;
	*(void **)stream = configurations[configuration_count].stream;
	return 0;
}
