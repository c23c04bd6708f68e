// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/node/node.h"

#pragma GCC visibility push(default)
#include "nvml/abi.h"
#pragma GCC visibility pop

/*
 * What every exported function has in common: it takes the library's lock, finds out whether the library is
 * initialised, which device the handle is, which faults of the scenario apply, and advances the GPU to
 * the current time. A function looks like this:
 *
 *	enum nvml_return nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *milliwatt)
 *	{
 *		CALL(nvmlDeviceGetPowerUsage, device);
 *
 *		NEED(milliwatt);
 *		put_u32(call, milliwatt, gpu_now(call->gpu)->power_mw);
 *		return NVML_SUCCESS;
 *	}
 *
 * where CALL() declares `call` and returns on any error, and the lock is released on every return. Every
 * number that a function returns goes through put_...(), where faults may change it; counts of lists do not,
 * since a caller's buffer sizes depend on them.
 */
enum function {
#define FUNCTION(name, scope, since) FN_##name,
#define UNSUPPORTED(name, since) FN_##name,
#include "sim/nvml/functions.def"
#include "sim/nvml/nvml_unsupported.def"
#undef FUNCTION
#undef UNSUPPORTED
	FUNCTION_COUNT,
};

/* The opaque types of the interface: where in the node a handle points. */
struct nvml_device {
	uint8_t gpu;
	int8_t instance; /* negative: the whole GPU */
};

struct nvml_gpu_instance {
	uint8_t gpu, instance;
};

struct nvml_compute_instance {
	uint8_t gpu, instance;
};

struct call {
	enum function function;
	bool locked;
	struct gpu *gpu; /* NULL for calls that concern none */
	int instance; /* negative: the whole GPU */
	const struct scenario_instance *mig; /* NULL: the whole GPU */
	int64_t now_ns, now_ms; /* since boot */
	uint32_t falsified[2]; /* faults of the scenario and of the control file, by bit */
};

/* NVML_SUCCESS, or what the function is to return; then the call ends, too. */
enum nvml_return call_begin(struct call *call, enum function function, const struct nvml_device *device);
enum nvml_return call_begin_node(struct call *call, enum function function);
/* For nvmlInit and nvmlShutdown: whether the library is initialised does not matter. */
enum nvml_return call_begin_bare(struct call *call, enum function function);
/* For a call that concerns a GPU by something else than its handle. */
enum nvml_return call_begin_gpu(struct call *call, enum function function, uint32_t gpu);
void call_end(struct call *call);

#define CALL_WITH(begin)                                                    \
	_cleanup_(call_end) struct call call_storage = { .locked = false }; \
	struct call *call = &call_storage;                                  \
	enum nvml_return call_result = begin;                               \
	if (call_result != NVML_SUCCESS)                                    \
	return call_result

/* The name of the function is that of its entry in the tables. */
#define CALL(function_name, device) CALL_WITH(call_begin(call, FN_##function_name, device))
#define CALL_NODE(function_name) CALL_WITH(call_begin_node(call, FN_##function_name))

#define NEED(condition)                                     \
	do {                                                \
		if (!(condition))                           \
			return NVML_ERROR_INVALID_ARGUMENT; \
	} while (0)
#define NEED_SUPPORT(condition)                          \
	do {                                             \
		if (!(condition))                        \
			return NVML_ERROR_NOT_SUPPORTED; \
	} while (0)
#define NEED_VERSION(pointer, number)                                              \
	do {                                                                       \
		if ((pointer)->version != NVML_VERSION_WORD(*(pointer), number) || \
		    !call_knows(call, number))                                     \
			return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;               \
	} while (0)

void put_u32(const struct call *call, uint32_t *dst, uint32_t value);
void put_u64(const struct call *call, uint64_t *dst, uint64_t value);
/* Copies text and its NUL, or nothing and NVML_ERROR_INSUFFICIENT_SIZE. */
enum nvml_return put_text(char *dst, uint32_t size, const char *text);
/* A field's value, which faults may falsify, too. */
uint64_t falsify_field(const struct call *call, uint32_t field, uint64_t value, unsigned width);

/* Whether the driver of this generation supports this version of the call's struct. */
bool call_knows(const struct call *call, unsigned version);
const struct generation *call_generation(void);

/* The stride of process lists that the faults of this call ask for; 0: none does. */
uint32_t call_stride(const struct call *call);
/* Whether process lists have the PIDs of the processes' own namespaces. */
bool call_namespaced(const struct call *call);

/* The whole node, while the lock is held and the library initialised. */
struct node *call_node(void);

/* GPUs that are there, in the order of their indices; at most SCENARIO_MAX_GPUS. */
uint32_t present_gpus(const struct call *call, uint8_t *ret_gpus);

/* Handles are the same as long as the library is loaded. */
struct nvml_device *device_handle(uint32_t gpu, int instance);
struct nvml_gpu_instance *gpu_instance_handle(uint32_t gpu, uint32_t instance);
struct nvml_compute_instance *compute_instance_handle(uint32_t gpu, uint32_t instance);

/* Whether a pointer from a caller is such a handle. */
bool is_gpu_instance(const struct nvml_gpu_instance *instance);
bool is_compute_instance(const struct nvml_compute_instance *instance);

/*
 * Microseconds since 1970 of a time since boot: what NVML calls the CPU's time stamp. The same for the same
 * moment.
 */
uint64_t stamp_us(int64_t boot_ms);
/* The reverse, to the millisecond, rounded down; 0 for times before boot. */
int64_t unstamp_ms(uint64_t stamp);

/*
 * Offset of a GPU's time stamps from the end of its samples, negative: each GPU has its own clock, so that
 * time stamps of different GPUs differ, as programs expect. In the order of the GPUs, because they are read
 * in that order.
 */
static inline int64_t sample_skew_ms(const struct gpu *gpu)
{
	return ((int64_t)gpu->index - SCENARIO_MAX_GPUS) * 6;
}

/* Totals since the driver was loaded. */
void call_totals(const struct call *call, struct totals *ret_totals);

/* nvmlInit and nvmlShutdown. */
enum nvml_return library_init(enum function function);
enum nvml_return library_shutdown(void);

/* Releases the lock and takes it again, for calls that wait; false: the library is no longer initialised. */
bool call_sleep(struct call *call, int64_t ms);
