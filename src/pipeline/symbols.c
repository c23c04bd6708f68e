// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel names: src/cuda requests them, src/symbolize finds them in its own thread, and the answers arrive
 * through the tracing thread's loop.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "pipeline/private.h"

enum {
	/* the rest in the next iteration of the loop, so that events are not delayed */
	ANSWERS_AT_ONCE = 256,
	SETTLE_STEP_MS = 20,
};

/* Processes at most @n of the available answers. */
static void take_answers(struct pipeline *pipeline, unsigned n)
{
	struct symbolizer_answer answer;

	while (n-- > 0 && symbolizer_take(pipeline->symbolizer, &answer)) {
		cuda_kernel(pipeline->cuda, answer.id, answer.kernel);
		kernel_unref(answer.kernel);
	}
}

static int on_answers(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		      void *userdata)
{
	take_answers(userdata, ANSWERS_AT_ONCE);
	return 0;
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
		.image = function->image,
		.path = function->path,
	};

	return soon ? -EAGAIN : symbolizer_ask(pipeline->symbolizer, &question);
}

static void load_image(uint32_t tgid, uint64_t incarnation, uint64_t address, void *userdata)
{
	struct pipeline *pipeline = userdata;

	/* If the queue is full, the image's kernels have no figures; the queue counts this. */
	(void)symbolizer_image(pipeline->symbolizer, (pid_t)tgid, incarnation, address);
}

int pipeline_symbols(struct pipeline *pipeline, sd_event *event, struct cuda_ops *ops)
{
	const struct symbolizer_config config = { .read_memory = pipeline->config.read_memory,
						  .proc_root = "/proc" };
	int r;

	r = symbolizer_new(&config, &pipeline->symbolizer);
	if (r >= 0)
		r = sd_event_add_io(event, NULL, symbolizer_fd(pipeline->symbolizer), EPOLLIN, on_answers,
				    pipeline);
	if (r < 0) {
		symbolizer_free(TAKE_PTR(pipeline->symbolizer));
		return r;
	}
	ops->function = ask;
	ops->image = load_image;
	return 0;
}

static void set(struct trace_view *view, enum agent_metric metric, double value)
{
	view->agent[metric] = value;
	view->agent_p[metric] = PRESENCE_PRESENT;
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
	struct symbolizer_stats stats;

	if (!pipeline->symbolizer)
		return;
	symbolizer_stats(pipeline->symbolizer, &stats);
	for (unsigned i = 0; i < KERNEL_SOURCES; i++)
		set(view, named[i], (double)stats.named[i]);
	set(view, AGENT_TRACE_KERNEL_QUESTIONS_REFUSED, (double)stats.refused);
	set(view, AGENT_TRACE_KERNEL_FILES_READ, (double)stats.files_read);
	set(view, AGENT_TRACE_KERNEL_FILES_FAILED, (double)stats.files_failed);
	set(view, AGENT_TRACE_KERNEL_FILES_EVICTED, (double)stats.evicted);
	set(view, AGENT_TRACE_KERNELS_LEFT_OUT, (double)stats.left_out);
	set(view, AGENT_TRACE_KERNEL_BYTES, (double)stats.bytes);
	set(view, AGENT_TRACE_KERNEL_SECONDS, stats.seconds);
}

void pipeline_look(struct pipeline *pipeline, const struct symbolizer_mapping *mapping)
{
	/* If the queue is full, the file is read with the first request for it, if it still exists then. */
	if (pipeline->symbolizer)
		(void)symbolizer_look(pipeline->symbolizer, mapping);
}

static uint64_t waiting(const struct pipeline *pipeline)
{
	struct symbolizer_stats stats;

	symbolizer_stats(pipeline->symbolizer, &stats);
	return stats.asked - stats.answered;
}

void pipeline_settle(struct pipeline *pipeline, struct trace_engine *engine, int64_t timeout_ns)
{
	int64_t end = clock_mono_ns() + timeout_ns;

	/* Events of other processes are processed meanwhile; answers may cause further requests. */
	while (pipeline->symbolizer) {
		struct pollfd answers = { .fd = symbolizer_fd(pipeline->symbolizer), .events = POLLIN };
		bool answered;

		trace_engine_drain(engine);
		answered = waiting(pipeline) == 0; /* take the answers that arrived before this check, too */
		take_answers(pipeline, UINT_MAX);
		if ((answered && waiting(pipeline) == 0) || clock_mono_ns() >= end)
			break;
		poll(&answers, 1, SETTLE_STEP_MS);
	}
}
