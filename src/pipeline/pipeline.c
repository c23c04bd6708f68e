// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipeline/private.h"
#include "proc/user.h"
#include "python/stacks.h"

static int figures_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct pipeline *pipeline = userdata;

	if (!nccl_is_event(event) && !blas_is_event(event) && !torch_is_event(event) &&
	    !python_is_event(event))
		cuda_event(pipeline->cuda, event, size);
	if (pipeline->nccl)
		nccl_event(pipeline->nccl, event, size);
	if (pipeline->blas)
		blas_event(pipeline->blas, event, size);
	if (pipeline->python)
		pipeline_python_event(pipeline, event, size);
	if (pipeline->torch)
		torch_event(pipeline->torch, event, size);
	return 0;
}

static void figures_lost(uint64_t events, void *userdata)
{
	struct pipeline *pipeline = userdata;

	cuda_lost(pipeline->cuda, events);
	if (pipeline->nccl)
		nccl_lost(pipeline->nccl, 0);
	if (pipeline->blas)
		blas_lost(pipeline->blas);
	if (pipeline->python)
		python_figures_lost(pipeline->python, 0);
	if (pipeline->torch)
		torch_lost(pipeline->torch, 0);
}

static void figures_incomplete(uint32_t tgid, uint64_t incarnation, unsigned bits, void *userdata)
{
	struct pipeline *pipeline = userdata;
	bool missed = bits & (TRACE_INCOMPLETE_LOST | TRACE_INCOMPLETE_QUIET | TRACE_INCOMPLETE_GIVEN_UP);

	cuda_mark(pipeline->cuda, tgid, incarnation, bits);
	if (pipeline->nccl && missed)
		nccl_lost(pipeline->nccl, tgid);
	if (pipeline->python && (missed || bits & TRACE_INCOMPLETE_PYTHON))
		python_figures_lost(pipeline->python, tgid);
	if (pipeline->torch && (missed || bits & TRACE_INCOMPLETE_OPERATORS))
		torch_lost(pipeline->torch, tgid);
}

static void figures_process_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct pipeline *pipeline = userdata;

	cuda_process_over(pipeline->cuda, tgid, incarnation);
	if (pipeline->nccl)
		nccl_process_over(pipeline->nccl, tgid, incarnation);
	if (pipeline->blas)
		blas_process_over(pipeline->blas, tgid, incarnation);
	if (pipeline->python) {
		python_figures_process_over(pipeline->python, tgid, incarnation);
		interpreters_over(&pipeline->interpreters, (pid_t)tgid);
	}
	if (pipeline->torch)
		torch_process_over(pipeline->torch, tgid, incarnation);
	pipeline_forget_environment(pipeline, tgid);
	if (pipeline->symbols)
		symbols_forget(pipeline->symbols, (pid_t)tgid, incarnation);
}

static void figures_turn(void *userdata)
{
	struct pipeline *pipeline = userdata;

	span_sinks_turn(cuda_span_sinks(pipeline->cuda));
}

/* The figures need every event, so this sink has no time limit; it takes about 40 ns for each. */
static const struct event_sink figures = {
	.sink.name = "figures",
	.event = figures_event,
	.lost = figures_lost,
	.incomplete = figures_incomplete,
	.process_over = figures_process_over,
	.turn = figures_turn,
};

struct event_sink *pipeline_event_sink(struct pipeline *pipeline)
{
	return &pipeline->sink;
}

struct stack_sums *pipeline_stacks(struct pipeline *pipeline)
{
	return pipeline->stacks;
}

struct span_sinks *pipeline_span_sinks(struct pipeline *pipeline)
{
	return cuda_span_sinks(pipeline->cuda);
}

struct measured *pipeline_measured(const struct pipeline *pipeline)
{
	return pipeline->measured;
}

void pipeline_take_works(struct pipeline *pipeline, const struct gpu_works *works)
{
	if (pipeline->measured)
		measured_take(pipeline->measured, works, (uint64_t)clock_mono_ns());
}

void pipeline_works_dropped(struct pipeline *pipeline, uint64_t dropped)
{
	pipeline->works_dropped = dropped;
}

const struct blas *pipeline_blas(const struct pipeline *pipeline)
{
	return pipeline->blas;
}

const struct nccl_communicator *pipeline_communicator(const struct pipeline *pipeline, uint32_t tgid,
						      uint64_t handle)
{
	return pipeline->nccl ? nccl_communicator(pipeline->nccl, tgid, handle) : NULL;
}

bool pipeline_launch_stream(struct pipeline *pipeline, const struct trace_launch *launch,
			    uint32_t *ret_stream_id)
{
	return cuda_launch_stream(pipeline->cuda, launch, ret_stream_id);
}

const struct kernel *pipeline_kernel(struct pipeline *pipeline, uint32_t tgid, uint64_t function)
{
	return cuda_function_kernel(pipeline->cuda, tgid, function);
}

/*
 * Some 45 MB in all where each is used, 13 MB more with native frames, and PYTHON_LINES_BYTES, which tables
 * of lines of running processes may have. A view has PIPELINE_STACK_BYTES more.
 */
static const struct stack_limits stack_limits = {
	.rows = 1 << 15,
	.paths = 1 << 15,
	.held = 1 << 17,
	.processes = 1 << 14,
	.places = 1 << 16,
	.frames = 1 << 20,
	.text_bytes = 8 << 20,
	.lines_bytes = PYTHON_LINES_BYTES,
	.names = 1 << 16,
	.names_bytes = 8 << 20,
	.renew_ns = 600 * NSEC_PER_SEC,
};

/* UINT64_MAX: of those of whom it cannot be told. */
static uint64_t pipeline_user(uint32_t tgid, _unused_ void *userdata)
{
	uint64_t user;
	uint32_t uid;

	return proc_answers_for("/proc", tgid, &user, &uid) == 0 ? user : UINT64_MAX;
}

/* A command that keeps processes that have ended shows all that it can, of every user. */
static void share_tables(struct pipeline *pipeline)
{
	if (pipeline->config.keep_ended)
		return;
	pipeline->users.user_of = pipeline_user;
	if (pipeline->nccl)
		nccl_share(pipeline->nccl, &pipeline->users);
	if (pipeline->blas)
		blas_share(pipeline->blas, &pipeline->users);
	if (pipeline->python)
		python_figures_share(pipeline->python, &pipeline->users);
	if (pipeline->torch)
		torch_share(pipeline->torch, &pipeline->users);
}

static void pipeline_busy(uint32_t pid, uint64_t since_boot_ns, const char *uuid, struct time_part part,
			  uint64_t busy_ns, void *userdata)
{
	struct pipeline *pipeline = userdata;

	cuda_measured(pipeline->cuda, pid, since_boot_ns, uuid, part.begin_ns, part.end_ns, busy_ns);
}

int pipeline_new(sd_event *event, const struct pipeline_config *config, struct pipeline **ret_pipeline,
		 int *ret_unnamed)
{
	_cleanup_(pipeline_freep) struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	const struct cuda_limits limits = { .series = config->series,
					    .kernel_series = config->kernel_series,
					    .operators = config->operators };
	struct cuda_ops ops = { .environment = pipeline_environment, .allowed = pipeline_allowed };
	int unnamed, r;

	if (!pipeline)
		return -ENOMEM;
	pipeline->config = *config;
	pipeline->sink = figures;
	pipeline->sink.sink.userdata = pipeline;
	pipeline->devices_by_ns = clock_mono_ns() + config->devices_wait_ns;
	if (config->nccl) {
		pipeline->nccl = nccl_new(config->series, false);
		if (!pipeline->nccl)
			return -ENOMEM;
	}
	if (config->blas) {
		pipeline->blas = blas_new(config->series, PIPELINE_BLAS_SHAPES, false);
		if (!pipeline->blas)
			return -ENOMEM;
	}
	if (config->python || config->stacks) {
		r = pipeline_finder(pipeline, event);
		if (r < 0)
			return r;
	}
	if (config->python) {
		pipeline->python = python_figures_new(config->series, false);
		if (!pipeline->python)
			return -ENOMEM;
		pipeline->interpreters.figures = pipeline->python;
		pipeline->interpreters.finder = pipeline->finder;
	}
	if (config->operators) {
		pipeline->torch = torch_new(config->series, config->keep_ended);
		if (!pipeline->torch)
			return -ENOMEM;
	}
	if (config->measured) {
		const bool always = config->measured_always;
		const struct measured_config measured = { .has_device = always ? NULL : pipeline_has_device,
							  .busy = always ? NULL : pipeline_busy,
							  .expects = always,
							  .userdata = pipeline };

		r = measured_new(&measured, &pipeline->measured);
		if (r < 0)
			return r;
	}
	share_tables(pipeline);
	if (config->stacks) {
		r = stack_sums_new(&stack_limits, &pipeline->stacks);
		if (r == 0)
			stack_sums_use_finder(pipeline->stacks, pipeline->finder);
		if (r == 0 && config->native_stacks)
			r = stack_sums_add_native(pipeline->stacks, event, true);
		if (r < 0)
			return r;
	}
	unnamed = pipeline_symbols(pipeline, event, &ops);
	r = cuda_new(&limits, &ops, pipeline, &pipeline->cuda);
	if (r < 0)
		return r;
	*ret_unnamed = unnamed < 0 && config->name_kernels ? unnamed : 0;
	*ret_pipeline = TAKE_PTR(pipeline);
	return 0;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	symbols_free(pipeline->symbols);
	cuda_free(pipeline->cuda);
	measured_free(pipeline->measured);
	nccl_free(pipeline->nccl);
	blas_free(pipeline->blas);
	python_figures_free(pipeline->python);
	torch_free(pipeline->torch);
	stack_sums_free(pipeline->stacks);
	python_finder_free(pipeline->finder);
	pipeline_environments_done(pipeline);
	pipeline_limits_done(pipeline);
	pipeline_operators_done(pipeline);
	free(pipeline->nvml_memory);
	free(pipeline);
}
