// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel names: src/cuda requests them, a helper finds them (src/symbolize/client.h), and the answers arrive
 * through the tracing thread's loop.
 */
#include <errno.h>

#include "base/clock.h"
#include "pipeline/private.h"

enum { SETTLE_STEP_MS = 20 };

static void on_kernel(uint64_t id, struct kernel *kernel, void *userdata)
{
	struct pipeline *pipeline = userdata;

	cuda_kernel(pipeline->cuda, id, kernel);
}

static void on_notice(int level, const char *text, void *userdata)
{
	struct pipeline *pipeline = userdata;

	if (pipeline->config.notice)
		pipeline->config.notice(level, text, pipeline->config.userdata);
}

static int ask(const struct cuda_function *function, void *userdata)
{
	struct pipeline *pipeline = userdata;
	bool soon =
		function->sm == 0 && pipeline->devices_n == 0 && clock_mono_ns() < pipeline->devices_by_ns;
	const struct symbolizer_question question = {
		.id = function->id,
		.process = { .pid = function->tgid, .start_ticks = process_ticks(function->start_boot_ns) },
		.incarnation = function->incarnation,
		.function = function->function,
		.sm = function->sm,
		.symbol = function->symbol,
		.symbol_last = function->symbol_last,
		.image = function->image,
		.path = function->path,
	};

	return soon ? -EAGAIN : symbols_ask(pipeline->symbols, &question);
}

static void load_image(uint32_t tgid, uint64_t incarnation, uint64_t address, void *userdata)
{
	struct pipeline *pipeline = userdata;

	/* If the queue is full, the image's kernels have no figures; the queue counts this. */
	(void)symbols_image(pipeline->symbols, (pid_t)tgid, incarnation, address);
}

int pipeline_symbols(struct pipeline *pipeline, sd_event *event, struct cuda_ops *ops)
{
	const struct symbols_config config = { .symbolizer.read_memory = pipeline->config.read_memory };
	static const struct symbols_ops callbacks = {
		.kernel = on_kernel,
		.environment = pipeline_on_environment,
		.notice = on_notice,
	};
	int r = symbols_new(event, &config, &callbacks, pipeline, &pipeline->symbols);

	if (r < 0 || !pipeline->config.name_kernels)
		return r;
	ops->function = ask;
	ops->image = load_image;
	return 0;
}

static void set_helpers(struct trace_view *view, const struct symbols_stats *stats)
{
	view_set(view, AGENT_TRACE_KERNEL_QUESTIONS_WITHHELD, (double)stats->withheld);
	view_set(view, AGENT_TRACE_KERNEL_USERS_WITHHELD, (double)stats->users);
	view_set(view, AGENT_TRACE_KERNEL_HELPERS_HUNG, (double)stats->hung);
	view_set(view, AGENT_TRACE_KERNEL_HELPERS_CRASHED, (double)stats->crashes);
	view_set(view, AGENT_TRACE_KERNEL_HELPERS_STUCK, (double)stats->stuck);
}

void pipeline_symbols_view(const struct pipeline *pipeline, struct trace_view *view)
{
	static const enum agent_metric named[KERNEL_SOURCES] = {
		[KERNEL_SOURCE_HANDLE] = AGENT_TRACE_KERNELS_HANDLE,
		[KERNEL_SOURCE_REGISTERED] = AGENT_TRACE_KERNELS_REGISTERED,
		[KERNEL_SOURCE_SYMBOL] = AGENT_TRACE_KERNELS_SYMBOL,
		[KERNEL_SOURCE_MEMORY] = AGENT_TRACE_KERNELS_MEMORY,
		[KERNEL_SOURCE_UNRESOLVED] = AGENT_TRACE_KERNELS_UNRESOLVED,
	};
	static const enum agent_metric images[CUBIN_COMPRESSIONS] = {
		[CUBIN_PLAIN] = AGENT_TRACE_IMAGES_PLAIN,
		[CUBIN_LZ4] = AGENT_TRACE_IMAGES_LZ4,
		[CUBIN_ZSTD] = AGENT_TRACE_IMAGES_ZSTD,
		[CUBIN_LZ_OLD] = AGENT_TRACE_IMAGES_LZ_OLD,
	};
	struct symbols_stats all;
	const struct symbolizer_stats *stats = &all.symbolizer;

	if (!pipeline->symbols)
		return;
	symbols_stats(pipeline->symbols, &all);
	set_helpers(view, &all);
	if (!pipeline->config.name_kernels)
		return;
	view_set_each(view, named, KERNEL_SOURCES, stats->named);
	view_set(view, AGENT_TRACE_KERNEL_QUESTIONS_REFUSED, (double)stats->refused);
	view_set_each(view, images, CUBIN_COMPRESSIONS, stats->images);
	view_set(view, AGENT_TRACE_KERNEL_FILES_READ, (double)stats->files_read);
	view_set(view, AGENT_TRACE_KERNEL_FILES_FAILED, (double)stats->files_failed);
	view_set(view, AGENT_TRACE_KERNEL_FILES_EVICTED, (double)stats->evicted);
	view_set(view, AGENT_TRACE_KERNELS_LEFT_OUT, (double)stats->left_out);
	view_set(view, AGENT_TRACE_KERNEL_BYTES, (double)stats->bytes);
	view_set(view, AGENT_TRACE_KERNEL_SECONDS, stats->seconds);
}

void pipeline_look(struct pipeline *pipeline, const struct symbolizer_mapping *mapping)
{
	/* Otherwise the file is read with the first request for it, if it still exists then. */
	if (pipeline->symbols)
		(void)symbols_look(pipeline->symbols, mapping);
}

static uint32_t count_waiting(const struct pipeline *pipeline)
{
	struct symbols_stats stats;

	symbols_stats(pipeline->symbols, &stats);
	return stats.waiting;
}

void pipeline_settle(struct pipeline *pipeline, struct trace_engine *engine, int64_t timeout_ns)
{
	int64_t end = clock_mono_ns() + timeout_ns;

	/* Events of other processes are processed meanwhile; answers may cause further requests. */
	while (pipeline->symbols) {
		bool answered;

		trace_engine_drain(engine);
		answered = count_waiting(pipeline) == 0; /* take what arrived before this check, too */
		symbols_wait(pipeline->symbols, answered ? 0 : SETTLE_STEP_MS);
		if ((answered && count_waiting(pipeline) == 0) || clock_mono_ns() >= end)
			break;
	}
}
