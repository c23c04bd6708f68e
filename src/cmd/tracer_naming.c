// SPDX-License-Identifier: Apache-2.0
/*
 * Which kernel a launch is of: src/cuda asks, src/naming finds out in its own thread, and its answers come back through the tracing
 * thread's loop.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "cmd/tracer_private.h"

enum { ANSWERS_AT_ONCE = 256 }; /* the rest in the next turn of the loop: events go on */

static int on_answers(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		      void *userdata)
{
	struct tracer *tracer = userdata;
	struct naming_answer answer;

	for (unsigned i = 0; i < ANSWERS_AT_ONCE && naming_take(tracer->naming, &answer); i++) {
		cuda_kernel(tracer->cuda, answer.id, answer.kernel);
		kernel_unref(answer.kernel);
	}
	return 0;
}

static int ask(const struct cuda_function *function, void *userdata)
{
	struct tracer *tracer = userdata;
	bool soon = function->sm == 0 && tracer->devices_n == 0 && clock_mono_ns() < tracer->devices_by_ns;
	const struct naming_question question = {
		.id = function->id,
		.pid = (pid_t)function->tgid,
		.incarnation = function->incarnation,
		.start_boot_ns = function->start_boot_ns,
		.function = function->function,
		.sm = function->sm,
		.symbol = function->symbol,
		.image = function->image,
		.path = function->path,
	};

	return soon ? -EAGAIN : naming_ask(tracer->naming, &question);
}

static void load_image(uint32_t tgid, uint64_t incarnation, uint64_t address, void *userdata)
{
	struct tracer *tracer = userdata;

	/* Without room its kernels have no figures; the queue counts it. */
	(void)naming_image(tracer->naming, (pid_t)tgid, incarnation, address);
}

int tracer_naming(struct tracer *tracer, struct cuda_ops *ops)
{
	const struct naming_config config = { .read_memory = tracer->read_memory, .proc_root = "/proc" };
	int r;

	if (!tracer->name_kernels)
		return 0;
	r = naming_new(&config, &tracer->naming);
	if (r >= 0)
		r = sd_event_add_io(tracer->event, NULL, naming_fd(tracer->naming), EPOLLIN, on_answers,
				    tracer);
	if (r < 0) {
		naming_free(TAKE_PTR(tracer->naming));
		return r;
	}
	ops->function = ask;
	ops->image = load_image;
	return 0;
}

void tracer_naming_over(struct tracer *tracer, uint32_t tgid, uint64_t incarnation)
{
	if (tracer->naming)
		naming_forget(tracer->naming, (pid_t)tgid, incarnation);
}

static void set(struct trace_view *view, enum agent_metric metric, double value)
{
	view->agent[metric] = value;
	view->agent_p[metric] = PRESENCE_PRESENT;
}

void tracer_naming_view(const struct tracer *tracer, struct trace_view *view)
{
	static const enum agent_metric named[KERNEL_SOURCES] = {
		[KERNEL_SOURCE_HANDLE] = AGENT_TRACE_KERNELS_HANDLE,
		[KERNEL_SOURCE_REGISTERED] = AGENT_TRACE_KERNELS_REGISTERED,
		[KERNEL_SOURCE_SYMBOL] = AGENT_TRACE_KERNELS_SYMBOL,
		[KERNEL_SOURCE_MEMORY] = AGENT_TRACE_KERNELS_MEMORY,
		[KERNEL_SOURCE_UNRESOLVED] = AGENT_TRACE_KERNELS_UNRESOLVED,
	};
	struct naming_stats stats;

	if (!tracer->naming)
		return;
	naming_stats(tracer->naming, &stats);
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
