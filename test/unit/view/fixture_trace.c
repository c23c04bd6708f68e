// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "model/finding.h"
#include "model/python.h"
#define SECOND INT64_C(1000000000)
#define GIB (1024.0 * 1024 * 1024)

enum { ROOM = 24 };

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
		.id = { .pid = pid, .start_ticks = 100 + view->processes_n },
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
	*error = (struct traced_error){ code, count, cuda_error_words(code) };
	view->errors_n++;
	call->errors_n++;
	call->errors += count;
}

static struct traced_call make_call(const char *api, uint64_t count)
{
	return (struct traced_call){
		.api = api,
		.count = count,
		.timed = count,
		.seconds = (double)count * 2.5e-6,
		.p50_ns = 2304,
		.p95_ns = 4608,
		.p99_ns = 147456,
		.layer = "cuda",
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
		call->within[i] = i == 0 ? 0 : i < 4 ? count / 2 : count;
	return call;
}

/* A function that the user named, with a number and a string as arguments. */
static void add_named(struct trace_view *view, const char *library, const char *function, bool has_series)
{
	struct traced_call *call = add_sum(view, function, 12);
	struct traced_argument *arguments =
		reallocarray(view->arguments, view->arguments_n + 2, sizeof(*arguments));

	if (!arguments)
		abort();
	call->library = library;
	call->layer = NULL;
	call->has_series = has_series;
	call->arguments_first = view->arguments_n;
	call->arguments_n = 2;
	arguments[view->arguments_n] = (struct traced_argument){ .position = 1,
								 .type = "s32",
								 .is_signed = true,
								 .count = 12,
								 .min = (uint64_t)-3,
								 .max = 7,
								 .sum = 30 };
	arguments[view->arguments_n + 1] = (struct traced_argument){
		.type = "string",
		.is_text = true,
		.count = 12,
		.values = { { "/dev/null", 4 }, { "a \"quoted\" one", 6 } },
		.values_n = 2,
		.others = 1,
		.unread = 1,
	};
	view->arguments = arguments;
	view->arguments_n += 2;
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
	total->kernels = (struct traced_launches){ 1000000, UINT64_C(8192000000), 3999.25 };
	total->kernels_other = (struct traced_launches){ (uint64_t)other, (uint64_t)other * 8192, other / 8 };
	total->gaps = (struct traced_gaps){ .count = 900000, .seconds = 12.5 };
	for (unsigned i = 0; i < TRACED_LE; i++)
		total->gaps.within[i] = i < 2 ? 100 * i : i < 14 ? 899999 : 900000; /* one of 100 s */
	total->v[TRACED_ACTIVE_RATIO] = 0.75;
	total->p[TRACED_ACTIVE_RATIO] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
}

static void set_agent(struct snapshot *s, enum agent_metric row, double v)
{
	s->agent[row] = s->trace->agent[row] = v;
	s->agent_p[row] = s->trace->agent_p[row] = PRESENCE_PRESENT;
}

/* ---- kernels ---- */

static struct kernel *make_kernel(const char *brief, const char *symbol, const char *name, const char *file)
{
	struct kernel from = {
		.source = KERNEL_SOURCE_HANDLE,
		.symbol = symbol,
		.name = name,
		.brief = brief,
		.file = file,
		.arch = { 90, 'a' },
		.figures = { [KERNEL_REGISTERS] = 168,
			     [KERNEL_STATIC_SHARED] = 1024,
			     [KERNEL_RESERVED_SHARED] = 1024,
			     [KERNEL_CONSTANT] = 960,
			     [KERNEL_LOCAL] = 0,
			     [KERNEL_STACK] = 0,
			     [KERNEL_CODE] = 26240,
			     [KERNEL_BARRIERS] = 2,
			     [KERNEL_MAX_THREADS] = 384 },
	};
	struct kernel *kernel;

	if (kernel_new(&from, &kernel) < 0)
		abort();
	return kernel;
}

/* Of the process and device added last. Takes @kernel. */
static struct traced_kernel *add_kernel(struct trace_view *view, const char *uuid, struct kernel *kernel,
					uint64_t launches, double seconds)
{
	struct traced_kernel *row = &view->kernels[view->kernels_n++];
	struct traced_process *process = &view->processes[view->processes_n - 1];

	if (process->kernels_n++ == 0)
		process->kernels_first = view->kernels_n - 1;
	*row = (struct traced_kernel){
		.process = view->processes_n - 1,
		.kernel = kernel,
		.p = PRESENCE_PRESENT,
		.all = { launches, launches * 8192, seconds },
		.has_series = kernel != NULL,
		.series = { launches / 2, launches / 2 * 8192, seconds / 2 },
		.shapes_n = kernel ? 1 : 0,
		.shapes = { { { 64, 1, 1 }, { 128, 1, 1 }, 0, launches } },
		.occupancy_known = kernel && kernel->figures[KERNEL_REGISTERS] >= 0,
		.occupancy = { .blocks = 3,
			       .warps = 12,
			       .warps_max = 64,
			       .ratio = 0.1875,
			       .limiter = OCCUPANCY_REGISTERS },
	};
	snprintf(row->uuid, sizeof(row->uuid), "%s", uuid);
	return row;
}

static struct kernel *nothing_known(struct kernel *kernel, enum kernel_source source)
{
	kernel->source = source;
	kernel->arch = (struct kernel_arch){ 0 };
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		kernel->figures[i] = -1;
	return kernel;
}

static struct kernel *unnamed(const char *name, const char *file, uint64_t offset)
{
	struct kernel *kernel = nothing_known(make_kernel(name, name, name, file), KERNEL_SOURCE_UNRESOLVED);

	kernel->offset = offset;
	return kernel;
}

#define LIBRARY "/opt/app/lib/libattention.so"

static void add_two_of_one_name(struct trace_view *view, const char *uuid)
{
	static const char *const symbols[] = { "_ZN5flash16flash_fwd_kernelILi64ELb1EEEv6Params",
					       "_ZN5flash16flash_fwd_kernelILi128ELb1EEEv6Params" };
	static const char *const names[] = { "void flash::flash_fwd_kernel<64, true>(Params)",
					     "void flash::flash_fwd_kernel<128, true>(Params)" };
	struct traced_kernel *row;

	for (unsigned i = 0; i < 2; i++) {
		row = add_kernel(view, uuid,
				 make_kernel("flash_fwd_kernel<...>", symbols[i], names[i], LIBRARY),
				 1000 >> i, 8.5 / (1 + i));
		row->shapes[0] = (struct traced_shape){ { 16, 8, 2 }, { 128, 1, 1 }, 49152, 700 >> i };
		row->shapes[1] = (struct traced_shape){ { 1, 1, 1 }, { 32, 4, 1 }, 0, 300 >> i };
		row->shapes_n = 2;
	}
	/* Once more, loaded a second time: the same series. */
	add_kernel(view, uuid, make_kernel("flash_fwd_kernel<...>", symbols[1], names[1], LIBRARY), 20, 0.25);
}

/* Names are whatever a program calls its kernels. */
static void add_hostile(struct trace_view *view, const char *uuid)
{
	static char symbol[4097], name[4097], brief[200];

	memset(symbol, 'k', sizeof(symbol) - 1);
	memset(name, 'n', sizeof(name) - 1);
	add_kernel(view, uuid, make_kernel("k", symbol, name, ""), 2, 0.125)->kernel->jit = true;
	/* The cut is in the middle of a character of three bytes. */
	memset(brief, 'x', 124);
	memcpy(brief + 124, "\xe2\x80\xae\xe2\x82\xac\"\\\n\x1b[31m", 15);
	add_kernel(view, uuid,
		   make_kernel(brief, "hostile\"\\\n", "hostile \"a\\b\"\n\x1b[31mred\xe2\x80\xae",
			       "/tmp/\"x\ny\\"),
		   64, 0.0625);
	add_kernel(view, uuid, make_kernel("\xff\xc3(", "\xff\xc3(", "\xff\xc3(", ""), 0, 0);
}

/* Without a name, without a device, without a place. */
static void add_unknown(struct trace_view *view, const char *uuid)
{
	struct traced_kernel *row;

	add_kernel(view, uuid, unnamed("libattention.so+0x12f0", LIBRARY, 0x12f0), 31, 0.5);
	row = add_kernel(view, uuid, unnamed("0x7f12deadbeef", "", 0), 4, 0);
	row->has_series = false;
	row->series = (struct traced_launches){ 0 };
	row = add_kernel(
		view, "",
		nothing_known(make_kernel("mul", "_Z3mulPfi", "mul(float*, int)", "/opt/app/bin/app"),
			      KERNEL_SOURCE_SYMBOL),
		5, 0.001);
	row->p |= PRESENCE_ESTIMATED;
	row->other_shapes = 3;
	row->shapes[0].launches = 2;
	add_kernel(view, uuid, NULL, 77, 0.75);
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
	add_two_of_one_name(view, gpu);
	add_unknown(view, gpu);
	call = add_call(view, "cuLaunchKernel", 123456801);
	call->nested = 3;
	call = add_call(view, "cuMemAlloc_v2", 104);
	call->bytes = 3 * UINT64_C(1073741824);
	add_error(view, call, 2, 3);
	add_error(view, call, INT32_MIN, 1);
	add_call(view, "cuMemFree_v2", 0)->nested = 4;

	process = add_process(view, 1002, "bad\xff\xc3(\x1b[31mred\xe2\x80\xae");
	process->incomplete = TRACED_INCOMPLETE_LOST | TRACED_INCOMPLETE_LATE;
	process->unplaced = TRACED_UNPLACED_CONTAINER;
	add_device(view, gpu, 1000);
	add_hostile(view, gpu);
	process = add_process(view, 1003, "small");
	process->has_series = false;
	add_device(view, gpu, 30);
	add_kernel(view, gpu, make_kernel("add", "_Z3addPfS_", "add(float*, float*)", ""), 30, 0.01);
	add_process(view, 2001, "in-mig");
	add_device(view, mig, 64)->p[TRACED_LIVE_DEVICE] = PRESENCE_ABSENT;
	add_kernel(view, mig, make_kernel("add", "_Z3addPfS_", "add(float*, float*)", ""), 64, 0.02)
		->series.seconds = 0.0175;
	process = add_process(view, 3000, "again");
	process->exited = true;
	process->id.start_ticks = 1;
	add_device(view, "", 11);
	add_kernel(view, "",
		   nothing_known(make_kernel("old", "_Z3oldv", "old()", ""), KERNEL_SOURCE_REGISTERED), 11,
		   0.5);
	add_process(view, 3000, "again");
	process = add_process(view, 4000, "elsewhere");
	process->incomplete =
		TRACED_INCOMPLETE_GIVEN_UP | TRACED_INCOMPLETE_NO_RETURNS | TRACED_INCOMPLETE_SITES;
	add_device(view, "GPU-ffffffff-0000-4000-8000-00000000ffff", 1);
	*add_call(view, "cudaLaunchKernel", 1) = (struct traced_call){ .process = view->processes_n - 1,
								       .api = "cudaLaunchKernel",
								       .count = 1 };
}

/* The first traced process is in the first workload. */
static void add_workload_name(struct snapshot *s)
{
	const struct workload *w = &s->workloads[0];

	s->workload_names = calloc(1, sizeof(*s->workload_names));
	s->workload_names_n = 1;
	s->workload_names[0] = (struct workload_name){ .kind = w->kind, .owner = w->owner };
	strcpy(s->workload_names[0].id, w->id);
	strcpy(s->workload_names[0].pod_uid, w->pod_uid);
	s->traced_uses = calloc(2, sizeof(*s->traced_uses));
	s->traced_uses_n = 2;
	s->traced_uses[0] = (struct traced_use){ .name = 0, .live = 1 };
	s->traced_uses[1] = (struct traced_use){ .name = READING_NONE };
	strcpy(s->traced_uses[0].uuid, s->entities[0].id.uuid);
	for (unsigned i = 0; i < 2; i++) {
		s->traced_uses[i].v[TRACED_LAUNCHES] = 70 - i;
		s->traced_uses[i].p[TRACED_LAUNCHES] = PRESENCE_PRESENT;
	}
	s->traced_uses[0].v[TRACED_LIVE_DEVICE] = 4096;
	s->traced_uses[0].p[TRACED_LIVE_DEVICE] = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	s->traced_workloads[0] = 0;
}

/* A rule that says something, one that says nothing, and one that could not be judged. */
static void add_findings(struct trace_view *view)
{
	struct findings *findings = findings_new(1, 3, 0, 0, NULL);

	if (!findings)
		abort();
	findings->rules_n = 3;
	findings->rules[0] =
		(struct finding_rule){ "copy_bound", "threads wait for copies", "copy less", .active = 2 };
	findings->rules[1] = (struct finding_rule){ "sync_in_loop", "steps wait", "wait less", .active = 0 };
	findings->rules[2] = (struct finding_rule){ "hang", "no progress", "look", .missing = 1 };
	findings->evidence[0] = "collectives";
	findings->n = 1;
	findings->list[0] = (struct finding){ .rule = 0,
					      .active = true,
					      .pid = 1001,
					      .subject = "step",
					      .begin_ns = SECOND,
					      .end_ns = 2 * SECOND,
					      .confidence = 0.75,
					      .values_n = 1,
					      .values[0] = { "copies", UNIT_RATIO, 0.25 } };
	findings->real_offset_ns = INT64_C(1790000000) * SECOND;
	view->findings = findings;
}

/* The first process: two shapes, the peak is known; one more whose size is not. */
static void add_blas(struct trace_view *view)
{
	static const struct blas_row rows[] = {
		{ .shape = { .m = 4096,
			     .n = 512,
			     .k = 4096,
			     .batch = 1,
			     .types = { 14, 14, 14, 68 },
			     .precision = BLAS_BF16 },
		  .sum = { 100, 100 * 2.0 * 4096 * 512 * 4096 } },
		{ .shape = { .m = 10,
			     .n = 20,
			     .k = 30,
			     .batch = 4,
			     .types = { 0, 0, 0, 0xff },
			     .precision = BLAS_FP32_OR_TF32 },
		  .sum = { 1, 2.0 * 10 * 20 * 30 * 4 } },
	};
	struct blas_view *blas = blas_view_new(1, ARRAY_SIZE(rows));

	if (!blas)
		abort();
	blas->processes_n = 1;
	blas->rows_n = ARRAY_SIZE(rows);
	blas->processes[0] = (struct blas_process){ .pid = view->processes[0].id.pid,
						    .has_series = true,
						    .rows_n = ARRAY_SIZE(rows),
						    .others = { 3, 3000 },
						    .unsized = 2,
						    .failed = 1,
						    .peak_share = 0.375 };
	memcpy(blas->processes[0].comm, view->processes[0].comm, sizeof(blas->processes[0].comm));
	memcpy(blas->rows, rows, sizeof(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		blas->processes[0].by_precision[rows[i].shape.precision] = rows[i].sum;
	memcpy(blas->totals, blas->processes[0].by_precision, sizeof(blas->totals));
	blas->unsized = 2;
	view->blas = blas;
}

/*
 * The first process: two threads that waited, garbage of two generations. The second: garbage, and no known
 * interpreter.
 */
static void add_python(struct trace_view *view)
{
	static const struct python_waiter waiters[] = {
		{ .tid = 4711, .waits = { 900, 4500000000, 25000000 } },
		{ .tid = 4712, .waits = { 1, 5000, 5000 } },
	};
	struct python_view *python = python_view_new(2, ARRAY_SIZE(waiters));

	if (!python)
		abort();
	python->processes_n = 2;
	python->waiters_n = ARRAY_SIZE(waiters);
	python->processes[0] =
		(struct python_process){ .pid = view->processes[0].id.pid,
					 .has_series = true,
					 .known = true,
					 .incomplete = true,
					 .waits = { 904, 4500006000, 25000000 },
					 .collections = { [0] = { 70, 7000000, 300000 },
							  [PYTHON_GENERATIONS] = { 1, 90000000, 90000000 } },
					 .waiters_n = ARRAY_SIZE(waiters),
					 .more_waiters = 1,
					 .more_waits = 3 };
	memcpy(python->processes[0].comm, view->processes[0].comm, sizeof(python->processes[0].comm));
	python->processes[1] = (struct python_process){ .pid = view->processes[1].id.pid,
							.has_series = true,
							.collections[2] = { 5, 500000, 200000 } };
	memcpy(python->processes[1].comm, view->processes[1].comm, sizeof(python->processes[1].comm));
	memcpy(python->waiters, waiters, sizeof(waiters));
	python->unknown = 1;
	python->unknown_version = 0x030f0000;
	python->waits = python->processes[0].waits;
	memcpy(python->collections, python->processes[0].collections, sizeof(python->collections));
	view->python = python;
}

/* The first process: two allocators, one of which had no room; nodes, steps of an optimizer. */
static void add_torch(struct trace_view *view)
{
	static const struct torch_memory memories[] = {
		{ .device = { 0, -1 },
		  .allocated = 4000,
		  .allocated_peak = 24000,
		  .allocations = 19,
		  .frees = 18,
		  .allocated_bytes = 26552 },
		{ .device = { 1, 3 },
		  .allocated = 3ULL << 30,
		  .reserved = 5ULL << 30,
		  .allocated_peak = 4ULL << 30,
		  .reserved_peak = 5ULL << 30,
		  .allocations = 1000,
		  .frees = 900,
		  .allocated_bytes = 7ULL << 30,
		  .ooms = 2,
		  .oom_asked = 1ULL << 40,
		  .oom_allocated = 3ULL << 30,
		  .oom_reserved = 5ULL << 30,
		  .oom_call = 1,
		  .oom_operator = "empty.memory_format" },
	};
	static const struct torch_count counts[] = {
		{ "AddmmBackward0", 40, 4 },
		{ "MulBackward0", 1, 0 },
		{ "Optimizer.step#SGD.step", 11, 5 },
	};
	struct torch_view *torch = torch_view_new(1, ARRAY_SIZE(memories), ARRAY_SIZE(counts), 1);

	if (!torch)
		abort();
	torch->processes_n = 1;
	torch->memories_n = ARRAY_SIZE(memories);
	torch->counts_n = ARRAY_SIZE(counts);
	torch->operators_n = 1;
	snprintf(torch->operators[0].name, sizeof(torch->operators[0].name), "add.Tensor");
	torch->operators[0].v[OPERATOR_METRIC_CALLS] = 70;
	torch->operators[0].p[OPERATOR_METRIC_CALLS] = PRESENCE_PRESENT;
	torch->beyond = 6;
	torch->processes[0] = (struct torch_process){ .pid = view->processes[0].id.pid,
						      .has_series = true,
						      .lost = true,
						      .memories_n = ARRAY_SIZE(memories),
						      .nodes_n = 2,
						      .nvml_bytes = 7ULL << 30,
						      .nvml_gpus = 1,
						      .operators_n = 1,
						      .other_operators = 2,
						      .other_operator_calls = 9,
						      .ranges_first = 2,
						      .ranges_n = 1,
						      .other_nodes = 3,
						      .joined = 41,
						      .steps = 11,
						      .step_seconds = 0.5 };
	memcpy(torch->processes[0].comm, view->processes[0].comm, sizeof(torch->processes[0].comm));
	memcpy(torch->memories, memories, sizeof(memories));
	memcpy(torch->counts, counts, sizeof(counts));
	view->torch = torch;
}

/* The first process: two sizes of communicators, one not known. */
static void add_nccl(struct trace_view *view)
{
	static const struct nccl_row rows[] = {
		{ .ranks = 8,
		  .operation = NCCL_ALL_GATHER,
		  .calls = 100,
		  .failed = 1,
		  .grouped = 20,
		  .bytes = 1 << 20,
		  .traffic = 8 << 20,
		  .seconds = 0.25 },
		{ .ranks = NCCL_RANKS_OTHER, .operation = NCCL_SEND, .calls = 7, .bytes = 70, .traffic = 70 },
		{ .operation = NCCL_ALL_GATHER, .calls = 3, .bytes = 12, .unsized = true },
	};
	struct nccl_view *nccl = nccl_view_new(1, ARRAY_SIZE(rows), 2, ARRAY_SIZE(rows));

	if (!nccl)
		abort();
	nccl->processes_n = 1;
	nccl->processes[0] = (struct nccl_process){ .pid = view->processes[0].id.pid,
						    .has_series = true,
						    .groups = 10,
						    .group_operations = 20,
						    .group_seconds = 0.125,
						    .left_out = 5,
						    .rows_n = ARRAY_SIZE(rows),
						    .communicators_n = 2 };
	memcpy(nccl->processes[0].comm, view->processes[0].comm, sizeof(nccl->processes[0].comm));
	nccl->rows_n = nccl->totals_n = ARRAY_SIZE(rows);
	memcpy(nccl->rows, rows, sizeof(rows));
	memcpy(nccl->totals, rows, sizeof(rows));
	nccl->communicators_n = 2;
	nccl->communicators[0] = (struct nccl_communicator){ .id = UINT64_C(0xf00000000000abcd),
							     .handle = 0x1000,
							     .ranks = 8,
							     .rank = 5,
							     .sequence = 100,
							     .point_to_point = 7,
							     .per_second = 2.5 };
	nccl->communicators[1] = (struct nccl_communicator){ .handle = 0x2000,
							     .rank = NCCL_RANK_UNKNOWN,
							     .sequence = 3,
							     .async_error = 6,
							     .late = true,
							     .ended = true };
	nccl->groups = 10;
	nccl->group_seconds = 0.125;
	view->nccl = nccl;
}

static void add_measured(struct snapshot *s)
{
	static const struct nccl_measured rows[] = {
		{ .pid = 4711,
		  .uid = 1000,
		  .since_boot_ns = 1,
		  .ranks = 8,
		  .operation = NCCL_ALL_REDUCE,
		  .channels = 24,
		  .algorithm = "NVLS",
		  .protocol = "SIMPLE",
		  .calls = 100,
		  .bytes = 1 << 30,
		  .timed = 50,
		  .traffic = 1 << 29,
		  .seconds = 0.25,
		  .bus_traffic = 1.75 * (1 << 29),
		  .lost = 3,
		  .comm = "trainer" },
		{ .pid = 4711, .since_boot_ns = 1, .operation = NCCL_OPERATIONS, .ranks = NCCL_RANKS_OTHER },
	};

	s->measured = nccl_measurements_new(rows, ARRAY_SIZE(rows));
	if (!s->measured)
		abort();
	s->measured->refused = 4;
	nccl_measured_add(nccl_totals_row(&s->measured->totals, NCCL_ALL_REDUCE, 8), &rows[0]);
	nccl_totals_row(&s->measured->totals, NCCL_SEND, NCCL_RANKS_UNKNOWN)->seconds = 0.25;
	s->measured->totals.lost = 5;
}

static void add_gpu_times(struct snapshot *s)
{
	const struct gpu_time rows[] = {
		{ .pid = 4711,
		  .uid = 1000,
		  .since_boot_ns = 1,
		  .api = 130001,
		  .state = CUPTI_OVER,
		  .told = 1,
		  .uuid = "GPU-00000000-0000-0000-0000-000000000000",
		  .kernels = 1000,
		  .graphs = 10,
		  .copies = 20,
		  .sets = 3,
		  .bytes = 1 << 20,
		  .kernel_seconds = 0.75,
		  .copy_seconds = 0.125,
		  .busy_seconds = 0.5,
		  .observed_seconds = 2,
		  .lost = 1,
		  .dropped = 2,
		  .bad = 4,
		  .comm = "trainer" },
		{ .pid = 4712,
		  .device = GPU_TIME_NO_DEVICE,
		  .state = CUPTI_OTHER,
		  .told = 1,
		  .comm = "train" },
	};

	s->gpu_times = gpu_times_new(rows, ARRAY_SIZE(rows));
	if (!s->gpu_times)
		abort();
	s->gpu_times->refused = 6;
	s->gpu_times->lost = 7;
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
	add_sum(view, "cudaLaunchKernel", 1);
	call = add_sum(view, "ncclAllGather", 103);
	call->layer = "nccl";
	call->bytes = (1 << 20) + 12;
	add_error(view, call, 4, 1);
	add_blas(view);
	add_findings(view);
	add_python(view);
	add_nccl(view);
	add_torch(view);
	add_named(view, "libfoo.so", "foo_open", true);
	add_named(view, "libfoo.so", "foo_late", false);
	set_agent(s, AGENT_SOURCE_UP_TRACE, 1);
	set_agent(s, AGENT_TRACE_PROCESSES, 6);
	set_agent(s, AGENT_TRACE_SITES_ATTACHED, 178);
	set_agent(s, AGENT_TRACE_SITES_REFUSED, 2);
	set_agent(s, AGENT_TRACE_EVENTS_PRODUCED, 5000);
	set_agent(s, AGENT_TRACE_EVENTS_RECEIVED, 4990);
	set_agent(s, AGENT_TRACE_EVENTS_DROPPED, 10);
	add_measured(s);
	add_gpu_times(s);
	fixture_join(s);
	add_workload_name(s);
	return s;
}

struct snapshot *fixture_untraced(void)
{
	struct snapshot *s = fixture_empty();

	s->trace = trace_new(s);
	strcpy(s->trace->why, "the kernel has no BTF (/sys/kernel/btf/vmlinux); use a kernel built with "
			      "CONFIG_DEBUG_INFO_BTF");
	fixture_join(s);
	return s;
}
