// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define GIB (1024.0 * 1024 * 1024)

enum { ROOM = 16 };

static struct trace_view *trace_new(const struct snapshot *s)
{
	struct trace_view *view;

	if (trace_view_new(ROOM, ROOM, ROOM, ROOM, ROOM, ROOM, ROOM, &view) < 0)
		abort();
	view->boot_ns = s->boot_ns - SECOND / 8;
	return view;
}

static struct traced_process *add_process(struct trace_view *view, uint32_t pid, const char *comm)
{
	struct traced_process *process = &view->processes[view->processes_n++];

	*process = (struct traced_process){
		.pid = pid,
		.start_ticks = 100 + view->processes_n,
		.first_real_ns = INT64_C(1790000000) * SECOND - 60 * SECOND,
		.has_series = true,
		.overhead = 0.0015,
		.calls_first = view->calls_n,
		.devices_first = view->devices_n,
	};
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	return process;
}

static void set(struct traced_device *device, enum traced_metric row, double v)
{
	device->v[row] = v;
	device->p[row] = PRESENCE_PRESENT;
}

static void estimate(struct traced_device *device, enum traced_metric row, double v)
{
	device->v[row] = v;
	device->p[row] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
}

static struct traced_device *add_device(struct trace_view *view, const char *uuid, double launches)
{
	struct traced_device *device = &view->devices[view->devices_n++];

	device->process = view->processes_n - 1;
	view->processes[device->process].devices_n++;
	snprintf(device->uuid, sizeof(device->uuid), "%s", uuid);
	set(device, TRACED_LAUNCHES, launches);
	set(device, TRACED_GRAPH_LAUNCHES, 0);
	set(device, TRACED_THREADS, launches * 1048576);
	set(device, TRACED_ERRORS, 4);
	set(device, TRACED_COPY_HOST_TO_DEVICE, 5e9);
	set(device, TRACED_SYNC_WAIT, 12.25);
	estimate(device, TRACED_BUSY_ESTIMATED, 33.5);
	device->p[TRACED_BUSY_ERROR] = PRESENCE_UNSUPPORTED;
	estimate(device, TRACED_ACTIVE_RATIO, 0.5);
	for (unsigned row = TRACED_LIVE_DEVICE; row <= TRACED_LIVE_ARRAY; row++)
		set(device, row, 0);
	set(device, TRACED_LIVE_DEVICE, 1.5 * GIB);
	set(device, TRACED_LIVE_HOST, 0.25 * GIB);
	set(device, TRACED_PEAK, 2 * GIB);
	return device;
}

static void add_error(struct trace_view *view, struct traced_call *call, int32_t code, uint64_t count)
{
	struct traced_error *error = &view->errors[view->errors_n];

	if (call->errors_n == 0)
		call->errors_first = view->errors_n;
	*error = (struct traced_error){ code, count };
	view->errors_n++;
	call->errors_n++;
	call->errors += count;
}

static struct traced_call make_call(const char *api, uint64_t count)
{
	return (struct traced_call){
		.api = api,
		.runtime = strncmp(api, "cuda", 4) == 0,
		.count = count,
		.timed = count,
		.seconds = (double)count * 2.5e-6,
		.p50_ns = 2304,
		.p95_ns = 4608,
		.p99_ns = 147456,
	};
}

static struct traced_call *add_call(struct trace_view *view, const char *api, uint64_t count)
{
	struct traced_call *call = &view->calls[view->calls_n++];

	*call = make_call(api, count);
	call->process = view->processes_n - 1;
	view->processes[call->process].calls_n++;
	return call;
}

static struct traced_call *add_sum(struct trace_view *view, const char *api, uint64_t count)
{
	struct traced_call *call = &view->all_calls[view->all_calls_n++];

	*call = make_call(api, count);
	call->process = UINT32_MAX;
	for (unsigned i = 0; i < TRACED_LE; i++)
		call->le[i] = i == 0 ? 0 : i < 4 ? count / 2 : count;
	return call;
}

static void add_total(struct trace_view *view, const char *uuid, double other)
{
	struct traced_total *total = &view->totals[view->totals_n++];

	snprintf(total->uuid, sizeof(total->uuid), "%s", uuid);
	total->v[TRACED_LAUNCHES] = 1e6;
	total->p[TRACED_LAUNCHES] = PRESENCE_PRESENT;
	total->other[TRACED_LAUNCHES] = other;
	total->v[TRACED_BUSY_ESTIMATED] = 4000.5;
	total->p[TRACED_BUSY_ESTIMATED] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	total->v[TRACED_ACTIVE_RATIO] = 0.75;
	total->p[TRACED_ACTIVE_RATIO] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
}

static void set_agent(struct snapshot *s, enum agent_metric row, double v)
{
	s->agent[row] = s->trace->agent[row] = v;
	s->agent_p[row] = s->trace->agent_p[row] = PRESENCE_PRESENT;
}

static void add_processes(struct trace_view *view, const struct snapshot *s)
{
	const char *gpu = s->entities[0].id.uuid, *mig = s->entities[3].id.mig_uuid;
	struct traced_process *process;
	struct traced_call *call;

	process = add_process(view, 1001, "train \"a\\b\"\n");
	process->threads_p = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	process->threads_n = 2;
	process->threads[0] = (struct traced_thread){ 1007, UINT64_C(1073741824) };
	process->threads[1] = (struct traced_thread){ 1001, UINT64_C(268435456) };
	process->other_threads_bytes = UINT64_C(268435456);
	add_device(view, "", 5);
	add_device(view, gpu, 123456789);
	add_device(view, s->entities[1].id.uuid, 7);
	call = add_call(view, "cuLaunchKernel", 123456801);
	call->nested = 3;
	call = add_call(view, "cuMemAlloc_v2", 104);
	call->bytes = 3 * UINT64_C(1073741824);
	add_error(view, call, 2, 3);
	add_error(view, call, INT32_MIN, 1);
	add_call(view, "cuMemFree_v2", 0)->nested = 4;

	process = add_process(view, 1002, "bad\xff\xc3(\x1b[31mred\xe2\x80\xae");
	process->incomplete = TRACED_INCOMPLETE_LOST | TRACED_INCOMPLETE_LATE;
	add_device(view, gpu, 1000);
	process = add_process(view, 1003, "small");
	process->has_series = false;
	add_device(view, gpu, 30);
	add_process(view, 2001, "in-mig");
	add_device(view, mig, 64)->p[TRACED_LIVE_DEVICE] = PRESENCE_ABSENT;
	process = add_process(view, 3000, "again");
	process->exited = true;
	process->start_ticks = 1;
	add_device(view, "", 11);
	add_process(view, 3000, "again");
	process = add_process(view, 4000, "elsewhere");
	process->incomplete =
		TRACED_INCOMPLETE_GIVEN_UP | TRACED_INCOMPLETE_NO_RETURNS | TRACED_INCOMPLETE_SITES;
	add_device(view, "GPU-ffffffff-0000-4000-8000-00000000ffff", 1);
	*add_call(view, "cudaLaunchKernel", 1) = (struct traced_call){
		.process = view->processes_n - 1, .api = "cudaLaunchKernel", .runtime = true, .count = 1
	};
}

struct snapshot *fixture_traced(void)
{
	struct snapshot *s = fixture_small();
	struct trace_view *view = s->trace = trace_new(s);
	struct traced_call *call;

	view->enabled = true;
	strcpy(view->backend, "uprobe_multi");
	strcpy(view->why, "2 entry points of \"libcuda.so.1\" are not seen: no harmless site");
	add_processes(view, s);
	add_total(view, "", 0);
	add_total(view, s->entities[0].id.uuid, 31);
	add_total(view, s->entities[3].id.mig_uuid, 0);
	add_sum(view, "cuLaunchKernel", 123457901);
	call = add_sum(view, "cuMemAlloc_v2", 104);
	call->bytes = 3 * UINT64_C(1073741824);
	add_error(view, call, 2, 3);
	add_error(view, call, INT32_MIN, 1);
	add_sum(view, "cudaLaunchKernel", 1)->le[TRACED_LE - 1] = 7; /* read while it was counted */
	set_agent(s, AGENT_SOURCE_UP_TRACE, 1);
	set_agent(s, AGENT_TRACE_PROCESSES, 6);
	set_agent(s, AGENT_TRACE_SITES_ATTACHED, 178);
	set_agent(s, AGENT_TRACE_SITES_REFUSED, 2);
	set_agent(s, AGENT_TRACE_EVENTS_PRODUCED, 5000);
	set_agent(s, AGENT_TRACE_EVENTS_RECEIVED, 4990);
	set_agent(s, AGENT_TRACE_EVENTS_DROPPED, 10);
	return s;
}

struct snapshot *fixture_untraced(void)
{
	struct snapshot *s = fixture_empty();

	s->trace = trace_new(s);
	strcpy(s->trace->why,
	       "the kernel has no BTF (/sys/kernel/btf/vmlinux); use a kernel built with CONFIG_DEBUG_INFO_BTF");
	return s;
}
