// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "sim/cuda/settings.h"

enum { THREAD_CONTEXTS = 4 };

/* This thread's per-thread default streams, by context. */
static _Thread_local struct {
	struct cu_context *context;
	uint32_t generation;
	struct cu_stream *stream;
} per_thread[THREAD_CONTEXTS];

static struct cu_stream *make(struct cu_context *context, bool blocking)
{
	struct cu_stream *stream = pool_new(&streams);

	if (stream) {
		stream->context = context;
		stream->blocking = blocking;
	}
	return stream;
}

/* A free slot, or else the first one, whose stream then stays until its context is destroyed. */
static int per_thread_stream(struct cu_context *context, struct cu_stream **ret_stream)
{
	int place = 0;

	for (int i = 0; i < THREAD_CONTEXTS; i++) {
		if (per_thread[i].context == context && per_thread[i].generation == context->generation) {
			*ret_stream = per_thread[i].stream;
			return CU_SUCCESS;
		}
		if (!per_thread[i].context)
			place = i;
	}
	driver_lock();
	per_thread[place].stream = make(context, true);
	driver_unlock();
	if (!per_thread[place].stream)
		return CU_OUT_OF_MEMORY;
	per_thread[place].context = context;
	per_thread[place].generation = context->generation;
	*ret_stream = per_thread[place].stream;
	return CU_SUCCESS;
}

int stream_resolve(struct call *call, struct cu_stream *handle, struct cu_stream **ret_stream)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	call->stream = (uintptr_t)handle;
	if (result != CU_SUCCESS)
		return result;
	if (handle == CU_PER_THREAD_STREAM || (!handle && call->per_thread))
		return per_thread_stream(context, ret_stream);
	if (handle == CU_LEGACY_STREAM || !handle) {
		*ret_stream = &context->legacy;
		return CU_SUCCESS;
	}
	if (!pool_has(&streams, handle))
		return CU_INVALID_HANDLE;
	*ret_stream = handle;
	return CU_SUCCESS;
}

int64_t stream_done(const struct cu_stream *stream)
{
	const struct cu_context *context = stream->context;

	if (stream->legacy)
		return MAX(stream->done_ns, context->blocking_done_ns);
	if (stream->blocking)
		return MAX(stream->done_ns, context->legacy.done_ns);
	return stream->done_ns;
}

static void extend(int64_t *time_ns, int64_t to_ns)
{
	*time_ns = MAX(*time_ns, to_ns);
}

int stream_work(struct cu_stream *stream, int64_t ns, const struct cu_graph *what, struct sim_work *ret_work)
{
	struct cu_context *context = stream->context;
	int64_t start_ns;

	if (settings.instant && context->captures == 0)
		return CU_SUCCESS;
	driver_lock();
	if (stream->capture) {
		graph_add(stream->capture, ns, what);
		driver_unlock();
		return CU_SUCCESS;
	}
	if (stream->legacy && context->captures > 0) {
		driver_unlock();
		return CU_CAPTURE_IMPLICIT;
	}
	start_ns = MAX(clock_boot_ns(), stream_done(stream));
	stream->done_ns = start_ns + ns;
	extend(&context->all_done_ns, stream->done_ns);
	if (stream->blocking)
		extend(&context->blocking_done_ns, stream->done_ns);
	device_work(&driver.devices[context->device], start_ns, stream->done_ns);
	ret_work->start_ns = start_ns;
	ret_work->end_ns = stream->done_ns;
	driver_unlock();
	return CU_SUCCESS;
}

void stream_wait_until(int64_t time_ns)
{
	const struct timespec time = { .tv_sec = time_ns / NSEC_PER_SEC, .tv_nsec = time_ns % NSEC_PER_SEC };

	if (settings.instant || time_ns == 0)
		return;
	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

int stream_create(struct call *call, struct cu_stream **ret_stream, uint32_t flags, _unused_ int priority)
{
	struct cu_context *context;
	int result = context_current(call, &context);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_stream || flags > CU_NON_BLOCKING_STREAM)
		return CU_INVALID_VALUE;
	driver_lock();
	*ret_stream = make(context, !(flags & CU_NON_BLOCKING_STREAM));
	driver_unlock();
	call->stream = (uintptr_t)*ret_stream;
	return *ret_stream ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

/* Its work still runs to its end; only the handle is invalid. */
int stream_destroy(struct call *call, struct cu_stream *stream)
{
	int result = CU_SUCCESS;

	call->stream = (uintptr_t)stream;
	driver_lock();
	if (!pool_has(&streams, stream)) {
		result = CU_INVALID_HANDLE;
	} else {
		if (stream->capture)
			stream->context->captures--;
		pool_free(&streams, stream);
	}
	driver_unlock();
	return result;
}

void streams_of_context_gone(struct cu_context *context)
{
	for (struct cu_stream *stream = NULL; (stream = pool_next(&streams, stream));) {
		if (stream->context == context)
			pool_free(&streams, stream);
	}
}

/* When its work ends; negative while it is captured, since nothing may wait for it then. */
static int done_time(struct call *call, struct cu_stream *handle, int64_t *ret_done_ns)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	if (stream->capture)
		result = CU_CAPTURE_UNSUPPORTED;
	else if (stream->legacy && stream->context->captures > 0)
		result = CU_CAPTURE_IMPLICIT;
	*ret_done_ns = stream_done(stream);
	driver_unlock();
	return result;
}

int stream_synchronize(struct call *call, struct cu_stream *stream)
{
	int64_t done_ns;
	int result = done_time(call, stream, &done_ns);

	if (result == CU_SUCCESS)
		stream_wait_until(done_ns);
	return result;
}

int stream_query(struct call *call, struct cu_stream *stream)
{
	int64_t done_ns;
	int result = done_time(call, stream, &done_ns);

	if (result != CU_SUCCESS || settings.instant)
		return result;
	return done_ns > clock_boot_ns() ? CU_NOT_READY : CU_SUCCESS;
}

/* A stream that waits for an event of a captured one is captured with it. */
int stream_wait_event(struct call *call, struct cu_stream *handle, struct cu_event *event)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	call->handle = (uintptr_t)event;
	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	if (!pool_has(&events, event)) {
		result = CU_INVALID_HANDLE;
	} else if (event->capture) {
		if (!stream->capture)
			stream->context->captures++;
		stream->capture = event->capture;
	} else if (event->recorded) {
		extend(&stream->done_ns, event->time_ns);
		extend(&stream->context->all_done_ns, event->time_ns);
		if (stream->blocking)
			extend(&stream->context->blocking_done_ns, event->time_ns);
	}
	driver_unlock();
	return result;
}
