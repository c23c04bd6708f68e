// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"
#include "sim/cuda/memory.h"

enum { STACK_DEPTH = 32 };

/* Contexts current on this thread, the newest last. */
static _Thread_local struct {
	struct cu_context *stack[STACK_DEPTH];
	uint32_t generations[STACK_DEPTH];
	unsigned depth;
} current;

static uint32_t generation;

int context_current(_unused_ struct call *call, struct cu_context **ret_context)
{
	struct cu_context *context;

	if (current.depth == 0 || !current.stack[current.depth - 1])
		return CU_INVALID_CONTEXT;
	context = current.stack[current.depth - 1];
	if (!pool_has(&contexts, context) || context->generation != current.generations[current.depth - 1])
		return CU_CONTEXT_IS_DESTROYED;
	*ret_context = context;
	return CU_SUCCESS;
}

static void set_top(struct cu_context *context)
{
	current.stack[current.depth - 1] = context;
	current.generations[current.depth - 1] = context ? context->generation : 0;
}

/* The caller holds the lock. */
static int make(struct cu_context **ret_context, int device)
{
	struct cu_context *context;

	if (!device_charge(&driver.devices[device], LIVE_CONTEXT_BYTES, false))
		return CU_OUT_OF_MEMORY;
	context = pool_new(&contexts);
	if (!context) {
		device_charge(&driver.devices[device], -(int64_t)LIVE_CONTEXT_BYTES, false);
		return CU_OUT_OF_MEMORY;
	}
	context->device = device;
	context->generation = ++generation;
	context->legacy.context = context;
	context->legacy.legacy = true;
	context->legacy.slot.live = 1;
	device_contexts(&driver.devices[device], 1);
	*ret_context = context;
	return CU_SUCCESS;
}

static void destroy(struct cu_context *context)
{
	struct cuda_device *device = &driver.devices[context->device];

	memory_of_context_gone(context);
	streams_of_context_gone(context);
	device_charge(device, -(int64_t)LIVE_CONTEXT_BYTES, false);
	device_contexts(device, -1);
	pool_free(&contexts, context);
}

int context_create(struct call *call, struct cu_context **ret_context, _unused_ uint32_t flags, int device)
{
	int result;

	call->has_device = true;
	call->device = device;
	if (!ret_context)
		return CU_INVALID_VALUE;
	if (device < 0 || (uint32_t)device >= driver.device_count)
		return CU_INVALID_DEVICE;
	if (current.depth == STACK_DEPTH)
		return CU_OUT_OF_MEMORY;
	driver_lock();
	result = make(ret_context, device);
	driver_unlock();
	if (result != CU_SUCCESS)
		return result;
	call->handle = (uintptr_t)*ret_context;
	current.depth++;
	set_top(*ret_context);
	return CU_SUCCESS;
}

int context_destroy(struct call *call, struct cu_context *context)
{
	int result = CU_SUCCESS;

	call->handle = (uintptr_t)context;
	driver_lock();
	if (!pool_has(&contexts, context) || context->primary)
		result = CU_INVALID_CONTEXT;
	else
		destroy(context);
	driver_unlock();
	if (result == CU_SUCCESS && current.depth > 0 && current.stack[current.depth - 1] == context)
		current.depth--;
	return result;
}

int context_set(struct call *call, struct cu_context *context)
{
	call->handle = (uintptr_t)context;
	if (context && !pool_has(&contexts, context))
		return CU_INVALID_CONTEXT;
	if (current.depth == 0)
		current.depth = 1;
	set_top(context);
	if (!context)
		current.depth--;
	return CU_SUCCESS;
}

int context_get(_unused_ struct call *call, struct cu_context **ret_context)
{
	if (!ret_context)
		return CU_INVALID_VALUE;
	*ret_context = current.depth > 0 ? current.stack[current.depth - 1] : NULL;
	return CU_SUCCESS;
}

int context_push(struct call *call, struct cu_context *context)
{
	call->handle = (uintptr_t)context;
	if (!pool_has(&contexts, context))
		return CU_INVALID_CONTEXT;
	if (current.depth == STACK_DEPTH)
		return CU_OUT_OF_MEMORY;
	current.depth++;
	set_top(context);
	return CU_SUCCESS;
}

int context_pop(struct call *call, struct cu_context **ret_context)
{
	if (current.depth == 0)
		return CU_INVALID_CONTEXT;
	current.depth--;
	call->handle = (uintptr_t)current.stack[current.depth];
	if (ret_context)
		*ret_context = current.stack[current.depth];
	return CU_SUCCESS;
}

int context_device(struct call *call, int *ret_device)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_device)
		return CU_INVALID_VALUE;
	*ret_device = context->device;
	return CU_SUCCESS;
}

int context_synchronize_given(struct call *call, struct cu_context *context)
{
	int64_t until_ns;

	call->handle = (uintptr_t)context;
	if (!pool_has(&contexts, context))
		return CU_INVALID_CONTEXT;
	driver_lock();
	until_ns = context->all_done_ns;
	if (context->captures > 0)
		until_ns = -1;
	driver_unlock();
	if (until_ns < 0)
		return CU_CAPTURE_UNSUPPORTED;
	stream_wait_until(until_ns);
	return CU_SUCCESS;
}

int context_synchronize(struct call *call)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	return result == CU_SUCCESS ? context_synchronize_given(call, context) : result;
}

/* Primary contexts: one for each device, shared by all callers that retain it. */
static int primary_begin(struct call *call, int device, struct cuda_device **ret_device)
{
	call->has_device = true;
	call->device = device;
	if (device < 0 || (uint32_t)device >= driver.device_count)
		return CU_INVALID_DEVICE;
	*ret_device = &driver.devices[device];
	return CU_SUCCESS;
}

int primary_retain(struct call *call, struct cu_context **ret_context, int device)
{
	struct cuda_device *what;
	int result = primary_begin(call, device, &what);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_context)
		return CU_INVALID_VALUE;
	driver_lock();
	if (!what->primary)
		result = make(&what->primary, device);
	if (result == CU_SUCCESS) {
		what->primary->primary = true;
		what->primary->references++;
		*ret_context = what->primary;
		call->handle = (uintptr_t)what->primary;
	}
	driver_unlock();
	return result;
}

int primary_release(struct call *call, int device)
{
	struct cuda_device *what;
	int result = primary_begin(call, device, &what);

	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	if (!what->primary) {
		result = CU_INVALID_CONTEXT;
	} else if (--what->primary->references == 0) {
		destroy(what->primary);
		what->primary = NULL;
	}
	driver_unlock();
	return result;
}

/* Its resources are freed, even if callers still retain it; the next retain creates a new one. */
int primary_reset(struct call *call, int device)
{
	struct cuda_device *what;
	int result = primary_begin(call, device, &what);

	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	if (what->primary) {
		destroy(what->primary);
		what->primary = NULL;
	}
	driver_unlock();
	return CU_SUCCESS;
}

int primary_state(struct call *call, int device, uint32_t *ret_flags, int *ret_active)
{
	struct cuda_device *what;
	int result = primary_begin(call, device, &what);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_flags || !ret_active)
		return CU_INVALID_VALUE;
	*ret_flags = 0;
	*ret_active = what->primary != NULL;
	return CU_SUCCESS;
}
