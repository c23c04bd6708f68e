// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/macro.h"
#include "sim/cuda/abi.h"
#include "sim/cuda/observe.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/truth.h"
#include "sim/cuda/visible.h"
#include "sim/node/live.h"
#include "sim/scenario/scenario.h"

/*
 * The simulated libcuda: one process's driver.
 *
 * Work is not executed; only its times are computed. Work in a stream begins when all work before it has
 * ended, and ends after its duration; a caller that waits sleeps until then. So no thread is needed. Times
 * are nanoseconds since boot, as in the simulated NVML.
 *
 * One lock guards everything but what a launch needs when work takes no time (settings.instant): handles are
 * looked up without it.
 */
struct cu_stream {
	struct slot slot;
	struct cu_context *context;
	bool blocking; /* waits for the legacy stream, and the legacy stream for it */
	bool legacy;
	int64_t done_ns;
	uint32_t number; /* for CUPTI; 0: none yet */
	struct cu_graph *capture; /* its work is recorded there; NULL: no capture */
	bool capture_origin;
};

struct cu_context {
	struct slot slot;
	int device; /* CUDA's index */
	bool primary;
	uint32_t references; /* of the primary one */
	struct cu_stream legacy;
	int64_t blocking_done_ns, all_done_ns; /* the latest of its blocking streams, of all its streams */
	uint32_t captures; /* streams with a capture under way */
	uint32_t generation, number; /* number: for CUPTI; 0: none yet */
};

struct cu_event {
	struct slot slot;
	struct cu_context *context;
	bool timing, recorded;
	int64_t time_ns;
	struct cu_graph *capture;
};

/*
 * A function of a module; a kernel of a library is the same thing here. A program that looks into another
 * process's memory for a function's name finds a pointer to it in the object, as cuFuncGetName gives one, and
 * no other function's within the first KiB.
 */
struct cu_function {
	struct slot slot;
	void *owner; /* module or library */
	int64_t duration_ns;
	size_t name_n;
	const char *name; /* of any length; never freed, since a caller may use it at any time */
	char rest[984];
};
_Static_assert(sizeof(struct cu_function) == 1024, "as far as readers look");

struct cu_module {
	struct slot slot;
	struct cu_context *context; /* NULL: a library, which belongs to none */
};

/* A graph, and an executable one: the work in it, and how long it takes one after the other. */
struct cu_graph {
	struct slot slot;
	struct cu_context *context;
	uint64_t launches, copies, bytes;
	int64_t duration_ns;
};

struct cuda_device {
	struct visible where;
	const char *uuid;
	const struct model *model;
	uint64_t total_bytes,
		capacity_bytes; /* the latter: without the driver's reserve and the scenario's processes */
	uint64_t used_bytes; /* by this process, contexts included */
	uint64_t live_bytes; /* allocated */
	struct cu_context *primary;
	int64_t busy_until_ns;
};

struct driver {
	bool initialised;
	int broken; /* a sticky error, which every call returns */
	bool forked; /* a child of a process that used CUDA */
	struct scenario *scenario;
	struct cuda_device devices[SCENARIO_MAX_GPUS];
	uint32_t device_count;
	struct live_file *live;
};

extern struct driver driver;
extern struct pool contexts, streams, events, functions, modules, graphs, execs;

void driver_lock(void);
void driver_unlock(void);

/* Devices; device.c */
int device_init(struct call *call, uint32_t flags);
int device_get(struct call *call, int *ret_device, int ordinal);
int device_count(struct call *call, int *ret_count);
int device_uuid(struct call *call, struct cu_uuid *ret_uuid, int device);
int device_name(struct call *call, char *ret_name, int size, int device);
int device_total(struct call *call, size_t *ret_bytes, int device);
int device_attribute(struct call *call, int *ret_value, int attribute, int device);
int device_memory_info(struct call *call, size_t *ret_free, size_t *ret_total);
int driver_version(struct call *call, int *ret_version);
/* Allocates memory of the device, or frees it (negative); false: not enough is free. */
bool device_charge(struct cuda_device *device, int64_t bytes, bool allocation);
void device_work(struct cuda_device *device, int64_t start_ns, int64_t end_ns);
void device_contexts(struct cuda_device *device, int change);

/* Contexts; context.c */
int context_current(struct call *call, struct cu_context **ret_context);
int context_create(struct call *call, struct cu_context **ret_context, uint32_t flags, int device);
int context_destroy(struct call *call, struct cu_context *context);
int context_set(struct call *call, struct cu_context *context);
int context_get(struct call *call, struct cu_context **ret_context);
int context_push(struct call *call, struct cu_context *context);
int context_pop(struct call *call, struct cu_context **ret_context);
int context_device(struct call *call, int *ret_device);
int context_synchronize(struct call *call);
int context_synchronize_given(struct call *call, struct cu_context *context);
int primary_retain(struct call *call, struct cu_context **ret_context, int device);
int primary_release(struct call *call, int device);
int primary_reset(struct call *call, int device);
int primary_state(struct call *call, int device, uint32_t *ret_flags, int *ret_active);

/* Streams, events and time; stream.c, event.c */
int stream_resolve(struct call *call, struct cu_stream *handle, struct cu_stream **ret_stream);
/* Gives @ns of work to a stream; a capture records @what instead. Times in *ret_work; 0: it takes none. */
int stream_work(struct cu_stream *stream, int64_t ns, const struct cu_graph *what, struct sim_work *ret_work);
/* When all work in a stream so far ends; the caller holds the lock. */
int64_t stream_done(const struct cu_stream *stream);
void stream_wait_until(int64_t time_ns);
int stream_create(struct call *call, struct cu_stream **ret_stream, uint32_t flags, int priority);
int stream_destroy(struct call *call, struct cu_stream *stream);
int stream_synchronize(struct call *call, struct cu_stream *stream);
int stream_query(struct call *call, struct cu_stream *stream);
int stream_wait_event(struct call *call, struct cu_stream *stream, struct cu_event *event);
void streams_of_context_gone(struct cu_context *context);
int event_create(struct call *call, struct cu_event **ret_event, uint32_t flags);
int event_destroy(struct call *call, struct cu_event *event);
int event_record(struct call *call, struct cu_event *event, struct cu_stream *stream);
int event_query(struct call *call, struct cu_event *event);
int event_synchronize(struct call *call, struct cu_event *event);
int event_elapsed(struct call *call, float *ret_ms, struct cu_event *from, struct cu_event *to);

/* Graphs and captures; graph.c */
int capture_begin(struct call *call, struct cu_stream *stream, uint32_t mode);
int capture_end(struct call *call, struct cu_stream *stream, struct cu_graph **ret_graph);
int capture_status(struct call *call, struct cu_stream *stream, uint32_t *ret_status);
void graph_add(struct cu_graph *graph, int64_t ns, const struct cu_graph *what);
int graph_create(struct call *call, struct cu_graph **ret_graph);
int graph_destroy(struct call *call, struct cu_graph *graph);
int graph_add_kernel(struct call *call, struct cu_node **ret_node, struct cu_graph *graph,
		     const struct cu_kernel_node *node);
int graph_instantiate(struct call *call, struct cu_graph **ret_exec, struct cu_graph *graph);
int graph_instantiate_params(struct call *call, struct cu_graph **ret_exec, struct cu_graph *graph,
			     struct cu_instantiate_params *params);
int graph_launch(struct call *call, struct cu_graph *exec, struct cu_stream *stream);
int graph_upload(struct call *call, struct cu_graph *exec, struct cu_stream *stream);
int graph_exec_destroy(struct call *call, struct cu_graph *exec);

/* Modules, libraries, functions and their launches; module.c */
int module_load(struct call *call, struct cu_module **ret_module, const void *image, bool library);
int module_load_file(struct call *call, struct cu_module **ret_module, const char *path, bool library);
int module_unload(struct call *call, struct cu_module *module);
int module_function(struct call *call, struct cu_function **ret_function, struct cu_module *module,
		    const char *name);
int function_name(struct call *call, const char **ret_name, struct cu_function *function);
int kernel_function(struct call *call, struct cu_function **ret_function, struct cu_function *kernel);
int launch(struct call *call, struct cu_function *function, const uint32_t grid[3], const uint32_t block[3],
	   uint32_t shared_bytes, struct cu_stream *stream);
int launch_config(struct call *call, const struct cu_launch_config *config, struct cu_function *function);

/* Memory; memory.c, vmm.c, copy.c */
enum memory_kind {
	MEMORY_DEVICE, /* one of the device's pools included */
	MEMORY_MANAGED,
	MEMORY_HOST,
	MEMORY_REGISTERED,
	MEMORY_ARRAY,
	MEMORY_RESERVED, /* addresses only */
	MEMORY_PHYSICAL, /* memory only */
	MEMORY_MAPPED, /* physical memory at reserved addresses */
};

int memory_alloc(struct call *call, uint64_t *ret_address, size_t bytes, enum memory_kind kind);
int memory_alloc_stream(struct call *call, uint64_t *ret_address, size_t bytes, struct cu_stream *stream);
int memory_alloc_pool(struct call *call, uint64_t *ret_address, size_t bytes, struct cu_pool *pool,
		      struct cu_stream *stream);
int memory_alloc_pitch(struct call *call, uint64_t *ret_address, size_t *ret_pitch, size_t width,
		       size_t height, uint32_t element);
int memory_alloc_host(struct call *call, void **ret_address, size_t bytes);
int memory_free(struct call *call, uint64_t address);
int memory_free_stream(struct call *call, uint64_t address, struct cu_stream *stream);
int memory_free_host(struct call *call, void *address);
int memory_register(struct call *call, void *address, size_t bytes);
int memory_unregister(struct call *call, void *address);
int memory_range(struct call *call, uint64_t *ret_base, size_t *ret_bytes, uint64_t address);
int memory_host_pointer(struct call *call, uint64_t *ret_address, void *host);
int array_create(struct call *call, struct cu_array **ret_array, const struct cu_array_descriptor *what);
int array_create_3d(struct call *call, struct cu_array **ret_array, const struct cu_array_descriptor_3d *what,
		    uint32_t levels);
int array_destroy(struct call *call, struct cu_array *array);
int pool_default(struct call *call, struct cu_pool **ret_pool, int device);
int pool_create(struct call *call, struct cu_pool **ret_pool, const struct cu_pool_props *props);
int pool_destroy(struct call *call, struct cu_pool *pool);
int pool_trim(struct call *call, struct cu_pool *pool);
int vmm_reserve(struct call *call, uint64_t *ret_address, size_t bytes, uint64_t wanted);
int vmm_release_range(struct call *call, uint64_t address, size_t bytes);
int vmm_create(struct call *call, uint64_t *ret_handle, size_t bytes, const struct cu_allocation_prop *prop);
int vmm_release(struct call *call, uint64_t handle);
int vmm_map(struct call *call, uint64_t address, size_t bytes, size_t offset, uint64_t handle);
int vmm_unmap(struct call *call, uint64_t address, size_t bytes);
int vmm_access(struct call *call, uint64_t address, size_t bytes, const void *access, size_t count);
int vmm_granularity(struct call *call, size_t *ret_bytes, const struct cu_allocation_prop *prop);

/* Copies and memsets. Memsets never wait, since device memory is set asynchronously. */
enum copy_wait { COPY_SYNC, COPY_ASYNC };
int copy(struct call *call, uint64_t dst, uint64_t src, size_t bytes, struct cu_stream *stream,
	 enum copy_wait wait);
int copy_2d(struct call *call, const struct cu_memcpy_2d *what, struct cu_stream *stream,
	    enum copy_wait wait);
int copy_3d(struct call *call, const struct cu_memcpy_3d *what, struct cu_stream *stream,
	    enum copy_wait wait);
int copy_batch(struct call *call, const uint64_t *dsts, const uint64_t *srcs, const size_t *sizes,
	       size_t count, struct cu_stream *stream);
int copy_batch_3d(struct call *call, const struct cu_batch_3d *operations, size_t count,
		  struct cu_stream *stream);
int fill(struct call *call, uint64_t dst, size_t pitch, size_t width, size_t height, uint32_t element,
	 struct cu_stream *stream);

/* Entry points by name; entry.c */
int export_table(struct call *call, const void **ret_table, const void *id);
int entry_get(struct call *call, const char *symbol, void **ret_function, int version, uint64_t flags,
	      uint32_t *ret_status);
int error_name(struct call *call, int error, const char **ret_text);
