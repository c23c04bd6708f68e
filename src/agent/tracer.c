// SPDX-License-Identifier: Apache-2.0
#include "agent/tracer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "agent/record/record.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/raised.h"
#include "base/thread.h"
#include "pipeline/analysis.h"
#include "pipeline/analysis_late.h"
#include "pipeline/measured.h"
#include "pipeline/pipeline.h"
#include "pipeline/stacks.h"

#define STACKS_MAX 0.02 /* where trace.max_overhead sets no limit */
#define STACKS_TURN_NS (20 * NSEC_PER_MSEC) /* of each drain of the ring */
#define DEVICES_NS (10 * NSEC_PER_SEC) /* a healthy driver lists its devices in well under 1 s */

enum { WORKS_WAIT = 3 }; /* batches, each of GPU_WORKS_MAX at most */
enum { TICK_MS = 1000, LEAD_MS = 300, LATENCY_MS = 100, STACK_BYTES = 1 << 20 };

/*
 * Where distributions, WSL, NixOS, the GPU operator and GKE install the driver's library; containers map the
 * same file. Probing these before a program maps them leaves no gap. Others are found when they are mapped.
 */
const char *const tracer_drivers[] = {
	"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
	"/usr/lib/aarch64-linux-gnu/libcuda.so.1",
	"/usr/lib64/libcuda.so.1",
	"/usr/lib/libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1",
	"/run/opengl-driver/lib/libcuda.so.1",
	"/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1",
	"/run/nvidia/driver/usr/lib64/libcuda.so.1",
	"/home/kubernetes/bin/nvidia/lib64/libcuda.so.1",
	NULL,
};

struct tracer {
	/* constant once the thread has started */
	struct trace_engine_config config;
	struct pipeline_config figures;
	enum tristate enabled;
	int stop_fd; /* eventfd */
	struct record *record;
	pthread_t thread;
	bool running; /* the thread exists and must be joined */

	/* shared with the main thread; the lock is held only to exchange a pointer */
	pthread_mutex_t lock;
	struct snapshot *fed; /* newest snapshot, not yet processed */
	int64_t fed_ns; /* boot clock */
	struct trace_view *next_view; /* newest view, not yet fetched */
	struct gpu_works *works; /* the oldest first, not yet processed */
	uint64_t works_dropped; /* records */

	/* of the tracing thread */
	sd_event *event;
	struct trace_engine *engine;
	struct pipeline *pipeline;
	bool analyse;
	struct live_analysis *analysis; /* NULL: off */
	struct findings *findings; /* newest, not yet in a view */
	struct event_sink journal; /* logs lost events */
	uint64_t not_carried; /* processes whose final figures were dropped for lack of space */
};

/* ---- exchange with the main thread ---- */

struct trace_view *tracer_take(struct tracer *tracer)
{
	pthread_mutex_lock(&tracer->lock);
	struct trace_view *view = TAKE_PTR(tracer->next_view);

	pthread_mutex_unlock(&tracer->lock);
	return view;
}

/* Makes @view the next one to be fetched, with what a previous unfetched view contained. */
static void put_view(struct tracer *tracer, struct trace_view *view)
{
	struct trace_view *missed = tracer_take(tracer);

	view = pipeline_carry(missed, view, &tracer->not_carried);
	trace_view_unref(missed);
	pthread_mutex_lock(&tracer->lock);
	tracer->next_view = view;
	pthread_mutex_unlock(&tracer->lock);
}

void tracer_feed(struct tracer *tracer, struct snapshot *snapshot)
{
	snapshot_ref(snapshot);
	pthread_mutex_lock(&tracer->lock);
	struct snapshot *old = tracer->fed;

	tracer->fed = snapshot;
	tracer->fed_ns = clock_boot_ns();
	pthread_mutex_unlock(&tracer->lock);
	if (old)
		snapshot_unref(old);
}

static void works_free(struct gpu_works *works)
{
	while (works) {
		struct gpu_works *next = works->next;

		gpu_works_free(works);
		works = next;
	}
}

void tracer_feed_works(struct tracer *tracer, struct gpu_works *works)
{
	struct gpu_works **end, *old = NULL;
	unsigned waiting = 0;

	pthread_mutex_lock(&tracer->lock);
	for (end = &tracer->works; *end; end = &(*end)->next)
		waiting++;
	*end = works;
	if (waiting == WORKS_WAIT) {
		old = tracer->works;
		tracer->works = old->next;
		tracer->works_dropped += old->n;
	}
	pthread_mutex_unlock(&tracer->lock);
	gpu_works_free(old);
}

struct record *tracer_record(struct tracer *tracer)
{
	return tracer->record;
}

void tracer_write_last(struct tracer *tracer, const char *reason)
{
	record_write_last(tracer->record, reason);
}

/* For the next view. A finding that is new writes what is kept of the timeline. */
static void analyse(struct tracer *tracer, const struct snapshot *node)
{
	static struct log_limit limit = { .burst = 5, .interval_ns = 60 * NSEC_PER_SEC, .what = "findings" };
	const char *new;

	free(tracer->findings);
	tracer->findings = live_analysis_tick(tracer->analysis, node, (uint64_t)clock_mono_ns(), &new);
	if (!new)
		return;
	if (log_limit_allow(&limit))
		log_notice("the analysis has found %s: /api/v1/findings has the evidence", new);
	record_write_last(tracer->record, new);
}

/* Recordings begin and end when all that was called has come, or is known to be lost. */
static void take_second(struct tracer *tracer)
{
	pthread_mutex_lock(&tracer->lock);
	struct snapshot *snapshot = TAKE_PTR(tracer->fed);
	struct gpu_works *works = TAKE_PTR(tracer->works);
	uint64_t dropped = tracer->works_dropped;

	pthread_mutex_unlock(&tracer->lock);
	if (snapshot)
		pipeline_set_node(tracer->pipeline, snapshot);
	trace_engine_collect(tracer->engine);
	/* After the calls that launched it. */
	for (const struct gpu_works *w = works; w; w = w->next)
		pipeline_take_works(tracer->pipeline, w);
	pipeline_works_dropped(tracer->pipeline, dropped);
	works_free(works);
	if (tracer->analysis)
		analyse(tracer, snapshot);
	record_tick(tracer->record, snapshot);
	if (snapshot)
		snapshot_unref(snapshot);
}

/* ---- notices of the engine ---- */

static void on_lost(uint64_t events, _unused_ void *userdata)
{
	static struct log_limit limit = { .burst = 1,
					  .interval_ns = 60 * NSEC_PER_SEC,
					  .what = "losses of events" };

	if (log_limit_allow(&limit))
		log_warning(
			"%llu events of traced calls were lost: counts and latencies remain exact, memory "
			"and busy time are "
			"incomplete from here; a larger trace.buffer holds more",
			(unsigned long long)events);
}

static void on_notice(int level, const char *text, _unused_ void *userdata)
{
	static struct log_limit limit = { .burst = 10,
					  .interval_ns = 60 * NSEC_PER_SEC,
					  .what = "notices of tracing" };

	if (log_limit_allow(&limit))
		log_at(level, "tracing: %s", text);
}

static void on_mapped(struct trace_engine *engine, pid_t pid, void *userdata)
{
	pipeline_mapped(((struct tracer *)userdata)->pipeline, engine, pid);
}

static void on_remapped(pid_t pid, void *userdata)
{
	pipeline_remapped(((struct tracer *)userdata)->pipeline, pid);
}

/* ---- the thread ---- */

/*
 * Until the next view: a second, and so that it is ready shortly before the main thread, whose ticks are
 * seconds, too, fetches it.
 */
static uint64_t wait_us(struct tracer *tracer)
{
	const int64_t tick_ns = TICK_MS * NSEC_PER_MSEC;
	int64_t wait_ns;

	pthread_mutex_lock(&tracer->lock);
	wait_ns = tick_ns - LEAD_MS * NSEC_PER_MSEC - (clock_boot_ns() - tracer->fed_ns) % tick_ns;
	pthread_mutex_unlock(&tracer->lock);
	return (uint64_t)((wait_ns < tick_ns / 2 ? wait_ns + tick_ns : wait_ns) / NSEC_PER_USEC);
}

static int on_tick(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	static struct log_limit limit = { .burst = 1,
					  .interval_ns = 60 * NSEC_PER_SEC,
					  .what = "failures to make a view" };
	struct tracer *tracer = userdata;
	struct trace_view *view;
	int r;

	take_second(tracer);
	r = pipeline_view(tracer->pipeline, tracer->engine, tracer->not_carried, &view);
	if (r == 0) {
		view->findings = TAKE_PTR(tracer->findings);
		put_view(tracer, view);
	} else if (log_limit_allow(&limit))
		log_error("what was traced cannot be shown: %s", strerror(-r));
	r = sd_event_source_set_time_relative(source, wait_us(tracer));
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_stop(sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		   _unused_ void *userdata)
{
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

/*
 * "auto" traces only where it costs little: if branches (arm64: adrp) are emulated, all entry points of
 * libcuda can be probed without single-stepping.
 */
static bool needs_single_steps(const struct site_rules *rules)
{
#if defined(__aarch64__)
	enum site_class class = rules->by_kind[SITE_KIND_ADDRESS];
#else
	enum site_class class = rules->by_kind[SITE_KIND_BRANCH];
#endif

	return class != SITE_EMULATED && class != SITE_OPTIMISED;
}

static int start_pipeline(struct tracer *tracer)
{
	int unnamed, r = pipeline_new(tracer->event, &tracer->figures, &tracer->pipeline, &unnamed);

	if (r == 0 && unnamed < 0)
		log_warning("kernels are named by their handles alone: %s", strerror(-unnamed));
	return r;
}

static int add_analysis(struct tracer *tracer, struct event_sinks *sinks)
{
	struct measured *measured = pipeline_measured(tracer->pipeline);
	int r = live_analysis_new(tracer->pipeline, ANALYSIS_LATE_AGENT, &tracer->analysis);

	if (r < 0)
		return r;
	live_analysis_set_stacks(tracer->analysis, pipeline_stacks(tracer->pipeline));
	live_analysis_limit(tracer->analysis);
	r = span_sinks_add(pipeline_span_sinks(tracer->pipeline), live_analysis_spans(tracer->analysis));
	if (r >= 0 && measured)
		r = work_sinks_add(measured_sinks(measured), live_analysis_works(tracer->analysis));
	return r < 0 ? r : event_sinks_add(sinks, live_analysis_sink(tracer->analysis));
}

/* The order matters: figures first, then the journal. */
static int add_sinks(struct tracer *tracer)
{
	struct event_sinks *sinks = trace_engine_sinks(tracer->engine);
	struct stack_sums *stacks = pipeline_stacks(tracer->pipeline);
	int r = event_sinks_add(sinks, pipeline_event_sink(tracer->pipeline));

	pipeline_set_engine(tracer->pipeline, tracer->engine);
	if (r >= 0 && stacks) {
		stack_sums_sink(stacks)->sink.turn_ns = STACKS_TURN_NS;
		stack_sums_sink(stacks)->sink.computes = true;
		r = event_sinks_add(sinks, stack_sums_sink(stacks));
	}

	if (r >= 0 && tracer->analyse)
		r = add_analysis(tracer, sinks);
	tracer->journal = (struct event_sink){ .sink.name = "journal", .lost = on_lost };
	return r < 0 ? r : event_sinks_add(sinks, &tracer->journal);
}

static int start_engine(struct tracer *tracer, struct attach_error *error)
{
	static const struct trace_engine_ops ops = { .notice = on_notice,
						     .mapped = on_mapped,
						     .remapped = on_remapped };
	struct trace_engine_status status;
	int r = sd_event_new(&tracer->event);

	if (r >= 0)
		r = sd_event_add_io(tracer->event, NULL, tracer->stop_fd, EPOLLIN, on_stop, tracer);
	if (r >= 0)
		r = start_pipeline(tracer);
	if (r >= 0)
		r = trace_engine_new(tracer->event, &tracer->config, &ops, tracer, &tracer->engine, error);
	if (r >= 0)
		r = add_sinks(tracer);
	if (r < 0)
		return r;
	trace_engine_status(tracer->engine, &status);
	if (tracer->enabled == TRISTATE_AUTO && !tracer->config.allow_single_step &&
	    needs_single_steps(&status.rules)) {
		snprintf(error->text, sizeof(error->text),
			 "this kernel single-steps every possible probe of libcuda; "
			 "trace.enabled=yes with "
			 "trace.allow_single_step=yes traces anyway");
		return -EOPNOTSUPP;
	}
	r = sd_event_add_time_relative(tracer->event, NULL, CLOCK_MONOTONIC, 0, USEC_PER_SEC / 100, on_tick,
				       tracer);
	if (r < 0)
		return r;
	r = record_attach(tracer->record, tracer->engine, tracer->pipeline);
	if (r < 0)
		log_warning("nothing is kept of the timeline: %s", strerror(-r));
	log_info("tracing CUDA calls by %s", status.backend);
	return 0;
}

static void tracer_finish(struct tracer *tracer)
{
	record_detach(tracer->record);
	trace_engine_free(TAKE_PTR(tracer->engine));
	pipeline_free(TAKE_PTR(tracer->pipeline));
	live_analysis_free(TAKE_PTR(tracer->analysis));
	free(TAKE_PTR(tracer->findings));
	tracer->event = sd_event_unref(tracer->event);
}

static void publish_off(struct tracer *tracer, const char *why)
{
	struct trace_view *view;

	if (pipeline_view_off(why, tracer->enabled != TRISTATE_NO, &view) == 0)
		put_view(tracer, view);
}

static void *tracer_thread(void *userdata)
{
	struct tracer *tracer = userdata;
	struct attach_error error = { 0 };
	WITH_CAPABILITIES;
	int r = start_engine(tracer, &error);

	if (r < 0) {
		if (!error.text[0])
			snprintf(error.text, sizeof(error.text), "tracing cannot start: %s", strerror(-r));
		log_at(tracer->enabled == TRISTATE_YES ? LOG_ERR : LOG_NOTICE,
		       "CUDA calls are not traced: %s", error.text);
		publish_off(tracer, error.text);
	} else {
		r = sd_event_loop(tracer->event);
		if (r < 0) {
			log_error("the tracing loop failed: %s; this is a defect, please report it",
				  strerror(-r));
			publish_off(tracer, "the tracing loop failed");
		}
	}
	tracer_finish(tracer);
	return NULL;
}

static uint32_t power_of_two(int64_t bytes)
{
	uint32_t size = 1 << 12;

	while (size < bytes)
		size <<= 1;
	return size;
}

int tracer_new(const struct options *options, struct tracer **ret_tracer)
{
	_cleanup_(tracer_freep) struct tracer *tracer = calloc(1, sizeof(*tracer));
	const char *cupti_socket = options_text(options, OPT_cupti_socket);
	int r;

	if (!tracer)
		return -ENOMEM;
	pthread_mutex_init(&tracer->lock, NULL);
	tracer->enabled = (enum tristate)options_number(options, OPT_trace_enabled);
	tracer->figures = (struct pipeline_config){
		.series = (uint32_t)options_number(options, OPT_process_series),
		.operators = options_bool(options, OPT_trace_operators),
		.kernel_series = (uint32_t)options_number(options, OPT_trace_kernel_series),
		.name_kernels = options_bool(options, OPT_trace_kernels),
		.blas = options_bool(options, OPT_trace_blas),
		.python = options_bool(options, OPT_trace_python),
		.stacks = options_bool(options, OPT_trace_stacks),
		.native_stacks = options_bool(options, OPT_trace_native_stacks),
		.nccl = options_bool(options, OPT_trace_nccl),
		.read_memory = options_bool(options, OPT_trace_read_memory),
		.devices_wait_ns = DEVICES_NS,
		.measured = cupti_socket && *cupti_socket,
		.notice = on_notice,
	};
	tracer->analyse = options_bool(options, OPT_trace_analysis);
	library_set_user_text(options_text(options, OPT_trace_probes));
	tracer->config = (struct trace_engine_config){
		.attach.ring_bytes = power_of_two(options_number(options, OPT_trace_buffer)),
		.libraries = { [PROBE_CUDA] = true,
			       [PROBE_NCCL] = options_bool(options, OPT_trace_nccl),
			       [PROBE_TORCH] = options_bool(options, OPT_trace_operators),
			       [PROBE_CUBLAS] = options_bool(options, OPT_trace_blas),
			       [PROBE_CUBLASLT] = options_bool(options, OPT_trace_blas),
			       [PROBE_CUDNN] = options_bool(options, OPT_trace_blas),
			       [PROBE_PYTHON] = options_bool(options, OPT_trace_python) },
		.return_probes = options_bool(options, OPT_trace_return_probes),
		.no_launch_returns = !options_bool(options, OPT_trace_launch_returns),
		.allow_single_step = options_bool(options, OPT_trace_allow_single_step),
		.events = true,
		.stacks = options_bool(options, OPT_trace_stacks),
		.stack_kinds = TRACE_STACK_PYTHON |
			       (options_bool(options, OPT_trace_native_stacks) ? TRACE_STACK_NATIVE : 0),
		.stacks_max = STACKS_MAX,
		.max_overhead = (double)options_number(options, OPT_trace_max_overhead) / 1e6,
		.latency_ns = LATENCY_MS * NSEC_PER_MSEC,
		.expected = tracer_drivers,
		.trust = options_text(options, OPT_trace_trust),
	};
	r = record_new(options, &tracer->record);
	if (r < 0)
		return r;
	tracer->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (tracer->stop_fd < 0)
		return -errno;
	if (tracer->enabled == TRISTATE_NO) {
		publish_off(tracer, "trace.enabled is no");
	} else {
		r = thread_start(STACK_BYTES, tracer_thread, tracer, &tracer->thread);
		if (r < 0)
			return r;
		tracer->running = true;
	}
	*ret_tracer = TAKE_PTR(tracer);
	return 0;
}

/* False: the thread did not end in time. */
static bool end_thread(struct tracer *tracer)
{
	if (!tracer->running)
		return true;
	return eventfd_write(tracer->stop_fd, 1) == 0 && thread_join(tracer->thread, TRACER_PATIENCE_NS);
}

void tracer_free(struct tracer *tracer)
{
	if (!tracer)
		return;
	if (!end_thread(tracer)) {
		log_warning("the tracing thread does not end; it and its probes end with the process");
		return;
	}
	if (tracer->fed)
		snapshot_unref(tracer->fed);
	trace_view_unref(tracer->next_view);
	works_free(tracer->works);
	record_free(tracer->record);
	closep(&tracer->stop_fd);
	pthread_mutex_destroy(&tracer->lock);
	free(tracer);
}
