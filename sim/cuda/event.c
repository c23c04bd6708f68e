// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

#include "base/clock.h"
#include "sim/cuda/settings.h"

int event_create(struct call *call, struct cu_event **ret_event, uint32_t flags)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_event || flags > 7)
		return CU_INVALID_VALUE;
	driver_lock();
	*ret_event = pool_new(&events);
	if (*ret_event) {
		(*ret_event)->context = context;
		(*ret_event)->timing = !(flags & CU_EVENT_WITHOUT_TIMING);
	}
	driver_unlock();
	call->handle = (uintptr_t)*ret_event;
	return *ret_event ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int event_destroy(struct call *call, struct cu_event *event)
{
	int result = CU_SUCCESS;

	call->handle = (uintptr_t)event;
	driver_lock();
	if (pool_has(&events, event))
		pool_free(&events, event);
	else
		result = CU_INVALID_HANDLE;
	driver_unlock();
	return result;
}

int event_record(struct call *call, struct cu_event *event, struct cu_stream *handle)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	call->handle = (uintptr_t)event;
	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	if (!pool_has(&events, event)) {
		result = CU_INVALID_HANDLE;
	} else if (event->context != stream->context) {
		result = CU_INVALID_HANDLE;
	} else {
		event->capture = stream->capture;
		if (!stream->capture) {
			event->recorded = true;
			event->time_ns = MAX(clock_boot_ns(), stream_done(stream));
		}
	}
	driver_unlock();
	return result;
}

/* An event that was never recorded counts as completed. */
static int time_of(struct cu_event *event, int64_t *ret_time_ns)
{
	int result = CU_SUCCESS;

	driver_lock();
	if (!pool_has(&events, event))
		result = CU_INVALID_HANDLE;
	else if (event->capture)
		result = CU_CAPTURE_UNSUPPORTED;
	else
		*ret_time_ns = event->recorded ? event->time_ns : 0;
	driver_unlock();
	return result;
}

int event_query(struct call *call, struct cu_event *event)
{
	int64_t time_ns;
	int result = time_of(event, &time_ns);

	call->handle = (uintptr_t)event;
	if (result != CU_SUCCESS)
		return result;
	return time_ns > clock_boot_ns() ? CU_NOT_READY : CU_SUCCESS;
}

int event_synchronize(struct call *call, struct cu_event *event)
{
	int64_t time_ns;
	int result = time_of(event, &time_ns);

	call->handle = (uintptr_t)event;
	if (result == CU_SUCCESS)
		stream_wait_until(time_ns);
	return result;
}

int event_elapsed(_unused_ struct call *call, float *ret_ms, struct cu_event *from, struct cu_event *to)
{
	int64_t from_ns, to_ns, now_ns;
	int result = time_of(from, &from_ns);

	if (result == CU_SUCCESS)
		result = time_of(to, &to_ns);
	if (result != CU_SUCCESS)
		return result;
	if (!ret_ms)
		return CU_INVALID_VALUE;
	if (!from->timing || !to->timing || !from->recorded || !to->recorded)
		return CU_INVALID_HANDLE;
	now_ns = clock_boot_ns();
	if (from_ns > now_ns || to_ns > now_ns)
		return CU_NOT_READY;
	*ret_ms = (float)(to_ns - from_ns) / (float)NSEC_PER_MSEC;
	return CU_SUCCESS;
}
