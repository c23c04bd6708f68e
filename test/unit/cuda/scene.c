// SPDX-License-Identifier: Apache-2.0
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"

static int environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata)
{
	const struct scene *s = userdata;
	size_t n;

	(void)tgid;
	if (s->environment_error)
		return s->environment_error;
	n = s->environment ? strlen(s->environment) : 0;
	assert_true(n <= size);
	for (size_t i = 0; i < n; i++)
		buf[i] = s->environment[i] == '\n' ? 0 : s->environment[i];
	if (s->environment_cut) {
		memset(buf + n, 0, size - n);
		n = size;
	}
	*ret_n = n;
	return (int)s->environment_state;
}

static int allowed(uint32_t tgid, char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n, void *userdata)
{
	const struct scene *s = userdata;

	(void)tgid;
	if (!s->is_limited)
		return s->limit_error ? s->limit_error : -ENOENT;
	assert_true(s->allowed_n <= max);
	for (size_t i = 0; i < s->allowed_n; i++)
		snprintf(uuids[i], TRACED_UUID, "%s", s->allowed[i]);
	*ret_n = s->allowed_n;
	return s->limit_error;
}

static int function(const struct cuda_function *function, void *userdata)
{
	struct scene *s = userdata;
	struct asked *asked = &s->asked[s->asked_n++ % ARRAY_SIZE(s->asked)];

	asked->function = *function;
	snprintf(asked->symbol, sizeof(asked->symbol), "%s", function->symbol ? function->symbol : "");
	snprintf(asked->path, sizeof(asked->path), "%s", function->path ? function->path : "");
	if (s->at_once)
		cuda_kernel(s->cuda, function->id, s->at_once);
	return s->answer;
}

static void image(uint32_t tgid, uint64_t incarnation, uint64_t address, void *userdata)
{
	struct scene *s = userdata;

	assert_int_equal(tgid, s->tgid);
	assert_int_equal(incarnation, 1);
	s->images[s->images_n++ % ARRAY_SIZE(s->images)] = address;
}

static struct scene *make(const struct cuda_limits *limits, const struct cuda_ops *ops)
{
	static const struct cuda_device devices[] = {
		{ .uuid = UUID0, .cores = CORES, .memory = 1 << 30, .speed = 1, .sm = 90 },
		{ .uuid = UUID1, .cores = CORES, .memory = 1 << 30, .speed = 1, .sm = 80 },
	};
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	clock_freeze(true);
	s->begin_ns = clock_mono_ns();
	assert_int_equal(cuda_new(limits, ops, s, &s->cuda), 0);
	assert_int_equal(cuda_set_devices(s->cuda, devices, 2), 0);
	s->tgid = PID;
	s->tid = TID;
	s->duration_us = DURATION_US;
	s->flags = TRACE_FLAG_RUNTIME;
	scene_process(s, PID, 1);
	return s;
}

struct scene *scene_new(const struct cuda_limits *limits)
{
	static const struct cuda_ops ops = { .environment = environment, .allowed = allowed };

	return make(limits, &ops);
}

struct scene *scene_new_naming(const struct cuda_limits *limits)
{
	static const struct cuda_ops ops = {
		.environment = environment, .allowed = allowed, .function = function, .image = image
	};

	return make(limits, &ops);
}

void scene_free(struct scene *s)
{
	if (s->view)
		trace_view_unref(s->view);
	cuda_free(s->cuda);
	free(s);
	clock_freeze(false);
}

/* ---- for cmocka ---- */

int scene_setup(void **state)
{
	*state = scene_new(NULL);
	return 0;
}

int scene_setup_naming(void **state)
{
	*state = scene_new_naming(NULL);
	return 0;
}

int scene_setup_kernels(void **state)
{
	*state = scene_new(&(struct cuda_limits){ .series = 128, .kernel_series = 64 });
	return 0;
}

int scene_setup_kernels_naming(void **state)
{
	*state = scene_new_naming(&(struct cuda_limits){ .series = 128, .kernel_series = 64 });
	return 0;
}

int scene_setup_few(void **state)
{
	*state = scene_new(&(struct cuda_limits){ .series = 2, .kernels = 3, .kernel_series = 2 });
	return 0;
}

int scene_teardown(void **state)
{
	scene_free(*state);
	return 0;
}

const struct kernel scene_kernel = {
	.symbol = "k",
	.name = "k",
	.brief = "k",
	.file = "f",
	.figures = { [KERNEL_REGISTERS] = 64,
		     [KERNEL_STATIC_SHARED] = 100,
		     [KERNEL_RESERVED_SHARED] = 1024,
		     [KERNEL_CONSTANT] = 500,
		     [KERNEL_CODE] = 4000,
		     [KERNEL_BARRIERS] = 1,
		     [KERNEL_MAX_THREADS] = -1 },
};

uint64_t scene_ns(const struct scene *s, uint64_t us)
{
	return (uint64_t)s->begin_ns + us * 1000;
}

void scene_process(struct scene *s, uint32_t tgid, uint64_t incarnation)
{
	struct trace_process event = {
		.header = { .time_ns = scene_ns(s, s->now_us),
			    .tgid = tgid,
			    .tid = tgid,
			    .type = TRACE_EVENT_PROCESS },
		.incarnation = incarnation,
		.start_boot_ns = 5000000000,
		.comm = "train",
	};

	cuda_event(s->cuda, &event.header, sizeof(event));
}

void scene_end(struct scene *s, enum trace_event_type type)
{
	struct trace_process event = {
		.header = { .time_ns = scene_ns(s, s->now_us),
			    .tgid = s->tgid,
			    .tid = s->tgid,
			    .type = (uint8_t)type },
	};

	cuda_event(s->cuda, &event.header, sizeof(event));
}

static struct trace_header header(const struct scene *s, enum trace_event_type type, enum trace_op op)
{
	return (struct trace_header){
		.time_ns = scene_ns(s, s->now_us),
		.tgid = s->tgid,
		.tid = s->tid,
		.type = (uint8_t)type,
		.op = (uint8_t)op,
		.flags = s->flags,
		.operator = s->operator,
	};
}

static void passed(struct scene *s)
{
	s->now_us += s->duration_us;
	s->duration_us = DURATION_US;
	s->result = 0;
}

void launch_threads(struct scene *s, uint64_t stream, uint32_t grid, uint32_t block)
{
	struct trace_launch event = {
		.header = header(s, TRACE_EVENT_LAUNCH, TRACE_OP_LAUNCH),
		.duration_ns = s->duration_us * 1000,
		.function = s->function,
		.stream = stream,
		.grid = { grid, 1, 1 },
		.block = { block, 1, 1 },
		.shared_bytes = s->shared,
		.result = s->result,
	};

	cuda_event(s->cuda, &event.header, sizeof(event));
	passed(s);
}

void launch(struct scene *s, uint64_t stream)
{
	launch_threads(s, stream, 10, 10);
}

void launch_function(struct scene *s, uint64_t stream, uint64_t function)
{
	s->function = function;
	launch(s, stream);
}

void name(struct scene *s, enum trace_op op, uint64_t handle, uint64_t of, const char *text)
{
	size_t n = strlen(text);
	struct trace_name *event = calloc(1, sizeof(*event) + n + 1);

	assert_non_null(event);
	event->header = header(s, TRACE_EVENT_NAME, op);
	event->handle = handle;
	event->of = of;
	event->name_n = (uint32_t)n;
	event->cut = s->cut;
	memcpy(event->name, text, n + 1);
	cuda_event(s->cuda, &event->header, (uint32_t)(sizeof(*event) + n + 1));
	free(event);
	passed(s);
}

struct kernel *kernel_of(const char *symbol, const char *file, int64_t shared)
{
	struct kernel *kernel, from = {
		.source = symbol[0] == '?' ? KERNEL_SOURCE_UNRESOLVED : KERNEL_SOURCE_REGISTERED,
		.symbol = symbol,
		.name = symbol,
		.brief = symbol,
		.file = file,
		.arch.sm = 90,
	};

	from.figures[KERNEL_STATIC_SHARED] = shared;
	assert_int_equal(kernel_new(&from, &kernel), 0);
	return kernel;
}

const struct traced_kernel *shown_kernel(const struct scene *s, uint32_t tgid, const char *uuid,
					 const char *symbol)
{
	for (uint32_t i = 0; i < s->view->kernels_n; i++) {
		const struct traced_kernel *k = &s->view->kernels[i];

		if (s->view->processes[k->process].id.pid == tgid && STRV_EQ(k->uuid, uuid) &&
		    STRV_EQ(k->kernel ? k->kernel->symbol : "", symbol))
			return k;
	}
	return NULL;
}

uint32_t shown_kernels(const struct scene *s, uint32_t tgid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->view->kernels_n; i++)
		n += s->view->processes[s->view->kernels[i].process].id.pid == tgid;
	return n;
}

void call(struct scene *s, enum trace_op op, struct trace_call fields)
{
	uint16_t flags = fields.header.flags;

	fields.header = header(s, TRACE_EVENT_CALL, op);
	fields.header.flags |= flags;
	fields.duration_ns = s->duration_us * 1000;
	fields.result = s->result;
	cuda_event(s->cuda, &fields.header, sizeof(fields));
	passed(s);
}

void sync_stream(struct scene *s, uint64_t stream, uint64_t wait_us)
{
	s->duration_us = wait_us;
	CALL(s, SYNC_STREAM, .stream = stream);
}

void sync_context(struct scene *s, uint64_t wait_us)
{
	s->duration_us = wait_us;
	CALL(s, SYNC_CONTEXT, .stream = 0);
}

void sync_mark(struct scene *s, uint64_t handle, uint64_t wait_us)
{
	s->duration_us = wait_us;
	CALL(s, SYNC_EVENT, .handle = handle);
}

void allocate(struct scene *s, enum trace_memory kind, uint64_t addr, uint64_t size)
{
	CALL(s, ALLOC, .addr = addr, .size = size, .kind = kind);
}

void release(struct scene *s, enum trace_memory kind, uint64_t addr)
{
	CALL(s, FREE, .addr = addr, .kind = kind);
}

void window(struct scene *s)
{
	struct cuda_figures figures;

	s->now_us += s->now_us == s->closed_us;
	s->closed_us = s->now_us;
	assert_int_equal(cuda_window(s->cuda, (int64_t)scene_ns(s, s->now_us), &figures), 0);
	if (s->view)
		trace_view_unref(s->view);
	s->view = NULL;
	assert_int_equal(trace_view_new(figures.processes_n, figures.devices_n, 0, 0, 0, figures.totals_n,
					figures.kernels_n, &s->view),
			 0);
	s->view->processes_n = figures.processes_n;
	s->view->devices_n = figures.devices_n;
	s->view->totals_n = figures.totals_n;
	cuda_fill(s->cuda, s->view);
}

const struct traced_device *shown(const struct scene *s, uint32_t tgid, const char *uuid)
{
	for (uint32_t i = 0; i < s->view->devices_n; i++) {
		const struct traced_device *d = &s->view->devices[i];

		if (s->view->processes[d->process].id.pid == tgid && STRV_EQ(d->uuid, uuid))
			return d;
	}
	return NULL;
}

double value(const struct scene *s, const char *uuid, enum traced_metric row)
{
	const struct traced_device *d = shown(s, s->tgid, uuid);

	return d && presence_is(d->p[row]) ? d->v[row] : NAN;
}

void scene_value(const struct scene *s, const char *uuid, enum traced_metric row, double wanted,
		 const char *file, int line)
{
	double got = value(s, uuid, row);

	if (fabs(got - wanted) <= fabs(wanted) * 1e-9)
		return;
	print_error("%s of %s is %.12g, not %.12g\n", traced_metrics[row].id, uuid, got, wanted);
	_fail(file, line);
}

bool pending(struct scene *s, const char *uuid)
{
	const struct traced_device *d;

	s->now_us += 10;
	window(s);
	s->now_us += 1000;
	window(s);
	d = shown(s, s->tgid, uuid);
	return d && d->v[TRACED_ACTIVE_RATIO] > 0;
}

void scene_near(double value, double wanted, double within, const char *file, int line)
{
	if (fabs(value - wanted) <= within)
		return;
	print_error("%.12g is not within %g of %.12g\n", value, within, wanted);
	_fail(file, line);
}
const struct traced_total *device_total(const struct scene *s, const char *uuid)
{
	for (uint32_t i = 0; i < s->view->totals_n; i++)
		if (STRV_EQ(s->view->totals[i].uuid, uuid))
			return &s->view->totals[i];
	return NULL;
}

const struct traced_kernel *kernel_at(const struct scene *s, uint64_t function)
{
	char symbol[32] = "";
	const struct traced_kernel *k;

	if (function)
		snprintf(symbol, sizeof(symbol), "0x%lx", (unsigned long)function);
	k = shown_kernel(s, s->tgid, UUID0, symbol);
	if (!k)
		fail_msg("no kernel %s", symbol);
	return k;
}

void launch_many(struct scene *s, uint64_t stream, uint64_t function, uint32_t grid, uint32_t block)
{
	s->function = function;
	launch_threads(s, stream, grid, block);
}

void window_at(struct scene *s, uint64_t us)
{
	s->now_us = us;
	window(s);
}

void assert_sums(const struct scene *s)
{
	for (uint32_t i = 0; i < s->view->devices_n; i++) {
		const struct traced_device *d = &s->view->devices[i];
		double launches = 0, seconds = 0;

		for (uint32_t k = 0; k < s->view->kernels_n; k++) {
			if (s->view->kernels[k].process != d->process ||
			    !STRV_EQ(s->view->kernels[k].uuid, d->uuid))
				continue;
			launches += (double)s->view->kernels[k].all.launches;
			seconds += s->view->kernels[k].all.seconds;
		}
		assert_near(launches, d->v[TRACED_LAUNCHES], 0);
		assert_near(seconds, d->v[TRACED_BUSY_ESTIMATED], 1e-12 + seconds * 1e-12);
	}
}

void answer_with(struct scene *s, uint32_t question, const struct kernel *from)
{
	struct kernel *copy;

	assert_int_equal(kernel_new(from, &copy), 0);
	cuda_kernel(s->cuda, s->asked[question].function.id, copy);
	kernel_unref(copy);
}

void made_for(struct scene *s, uint64_t handle, uint64_t module, const char *symbol)
{
	name(s, TRACE_OP_FUNCTION_NAME, handle, module, symbol);
}

void assert_kernel(const struct scene *s, const char *symbol, uint64_t launches)
{
	const struct traced_kernel *k = shown_kernel(s, s->tgid, UUID0, symbol);

	if (!k)
		fail_msg("no kernel %s", symbol);
	if (k->all.launches != launches)
		fail_msg("%s has %lu launches, not %lu", symbol, (unsigned long)k->all.launches,
			 (unsigned long)launches);
}

/* Answers the question of that number, counted from 0. */
void answer(struct scene *s, uint32_t question, const char *symbol, const char *file, int64_t shared)
{
	struct kernel *kernel = kernel_of(symbol, file, shared);

	assert_true(question < s->asked_n);
	cuda_kernel(s->cuda, s->asked[question].function.id, kernel);
	kernel_unref(kernel);
}
