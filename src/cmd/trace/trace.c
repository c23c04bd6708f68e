// SPDX-License-Identifier: Apache-2.0
/* gpusonde trace: traces a command that it runs, a process, or all processes. */
#include "cmd/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/raised.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/trace/blas.h"
#include "cmd/trace/cupti.h"
#include "cmd/trace/dropped.h"
#include "cmd/trace/exec_gate.h"
#include "cmd/trace/findings.h"
#include "cmd/trace/kernels.h"
#include "cmd/trace/live.h"
#include "cmd/trace/nccl.h"
#include "cmd/trace/python.h"
#include "cmd/trace/raw_sink.h"
#include "cmd/trace/request.h"
#include "cmd/trace/stacks.h"
#include "cmd/trace/timeline.h"
#include "proc/maps.h"
#include "proc/capabilities.h"
#include "trace/attach.h"
#include "view/table/table.h"

enum { LINES = 40, LINES_LIVE = 10 /* of Python, in the table */ };

struct tracing {
	struct invocation *inv;
	sd_event *event;
	struct trace_engine *engine;
	struct trace_kernels *kernels; /* NULL: calls only */
	struct trace_nccl *nccl; /* NULL: calls only */
	struct trace_cupti *cupti; /* NULL: no times of the GPUs are measured */
	struct stack_sums *stacks; /* NULL: none are recorded */
	struct trace_blas *blas; /* the same */
	struct trace_python_figures *python; /* NULL: calls only */
	struct timeline_file *timeline; /* NULL: none is written */
	struct live_analysis *analysis; /* NULL: nothing is analysed */
	struct exec_gate *gate; /* of the command; NULL: none */
	pid_t pid; /* traced process; 0: all */
	struct window *window; /* of the live table; NULL: none */
	struct trace_report report;
	struct raw_sink raw; /* registered with --raw only */
	struct event_sink ends; /* learns when the traced process has ended */
	int64_t shown_ns;
	struct trace_request request;
	int output; /* standard output, or the file of --output */
	int failed; /* of writing there: 1 the reader has closed the pipe, or -errno */
	int status;
};

/* A closed pipe (| head) ends tracing, and is no failure. */
static int put(struct tracing *t, const struct strbuf *text)
{
	ssize_t n = text->failed ? -ENOMEM : write_all(t->output, text->data, text->len);

	if (n < 0 && n != -EPIPE)
		fprintf(stderr, "gpusonde %s: cannot write the output: %s\n", trace_command_name(),
			strerror((int)-n));
	if (n < 0 && t->failed == 0) {
		t->failed = n == -EPIPE ? 1 : (int)n;
		sd_event_exit(t->event, 0);
	}
	return n < 0 ? (int)n : 0;
}

static int put_raw(const struct strbuf *text, void *userdata)
{
	struct tracing *t = userdata;

	return t->failed ? -EPIPE : put(t, text);
}

static const char *comm_of(uint32_t pid, void *userdata)
{
	struct tracing *t = userdata;

	return trace_engine_comm(t->engine, pid);
}

void trace_message(const char *text)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, text);
	fprintf(stderr, "gpusonde %s: %s\n", trace_command_name(), clean.data);
	strbuf_done(&clean);
}

static void on_notice(int level, const char *text, _unused_ void *userdata)
{
	if (level <= LOG_NOTICE)
		trace_message(text);
}

static void on_mapped(struct trace_engine *engine, pid_t pid, void *userdata)
{
	struct tracing *t = userdata;

	if (t->stacks)
		stack_sums_mapped(t->stacks, engine, pid);
	if (t->python)
		trace_python_mapped(t->python, engine, pid);
}

static void on_remapped(pid_t pid, void *userdata)
{
	struct tracing *t = userdata;

	if (t->stacks)
		stack_sums_remapped(t->stacks, pid);
}

static void on_process_over(uint32_t tgid, _unused_ uint64_t incarnation, void *userdata)
{
	struct tracing *t = userdata;

	/* After exec the process goes on with the same PID. */
	if (t->pid && !t->gate && tgid == (uint32_t)t->pid && kill(t->pid, 0) < 0 && errno == ESRCH)
		sd_event_exit(t->event, 0);
}

/* Full names do not fit a terminal: their lines are not cut, the terminal wraps them. */
static int draw_kernels(struct tracing *t, struct table_options options, double seconds, struct strbuf *out)
{
	bool full = t->inv->flag[FLAG_FULL];
	int r;

	if (full)
		options.width = 0;
	r = trace_kernels_table(t->kernels, &options, full, seconds > 0 ? TRACE_KERNELS_LIVE : 0, out);
	strbuf_addc(out, '\n');
	return r;
}

static int draw_operators(struct tracing *t, const struct table_options *options, double seconds,
			  struct strbuf *out)
{
	int r = trace_kernels_operators(t->kernels, options, seconds > 0 ? TRACE_KERNELS_LIVE : 0, out);

	strbuf_addc(out, '\n');
	return r;
}

/* To standard error, or the output. */
static int put_to(struct tracing *t, int to, const struct strbuf *text)
{
	if (t->window)
		return window_draw(t->window, text);
	if (to == STDERR_FILENO)
		return (int)MIN(write_all(to, text->data, text->len), 0);
	return put(t, text);
}

static int draw(struct tracing *t, int to, double seconds)
{
	struct table_options options = output_options(t->inv, to);
	struct trace_summary summary;
	struct strbuf out;
	int r;

	strbuf_init(&out, 0);
	if (t->window) {
		options.colour = true; /* as the terminal has them */
		options.width = window_width(t->window);
	}
	r = trace_report_summary(&t->report, t->engine, seconds, &summary);
	if (r == 0)
		r = table_trace(&summary, &options, &out);
	if (r == 0 && t->inv->flag[FLAG_TORCH])
		r = draw_operators(t, &options, seconds, &out);
	if (r == 0 && t->inv->flag[FLAG_KERNELS])
		r = draw_kernels(t, options, seconds, &out);
	if (r == 0 && t->nccl)
		r = trace_nccl_table(t->nccl, t->engine, &options, &out);
	if (r == 0 && t->cupti)
		r = trace_cupti_table(t->cupti, t->kernels, &options, &out);
	if (r == 0 && t->blas)
		r = trace_blas_table(t->blas, t->engine, &options, &out);
	if (r == 0 && t->python)
		r = trace_python_table(t->python, t->engine, &options, &out);
	if (r == 0 && t->python)
		r = trace_stacks_table(t->stacks, t->engine, &options, seconds > 0 ? LINES_LIVE : LINES,
				       &out);
	if (r == 0)
		table_trace_status(&summary, &options, &out);
	if (r == 0)
		r = put_to(t, to, &out);
	strbuf_done(&out);
	return r;
}

static int put_findings(struct tracing *t, int to)
{
	const struct table_options options = output_options(t->inv, to);
	struct strbuf out;
	int r;

	strbuf_init(&out, 0);
	r = trace_findings(t->analysis, t->inv->flag[FLAG_JSON] ? NULL : &options, &out);
	if (r == 0)
		r = put_to(t, to, &out);
	strbuf_done(&out);
	return r;
}

static void collect_kernels(struct tracing *t)
{
	int r = trace_kernels_collect(t->kernels, t->engine);

	if (r < 0)
		fprintf(stderr, "gpusonde %s: the launches of the last second are not shown: %s\n",
			trace_command_name(), strerror(-r));
	else if (t->stacks)
		stack_sums_window(t->stacks, trace_kernels_view(t->kernels));
}

static void collect_findings(struct tracing *t)
{
	const char *new = trace_findings_collect(t->analysis, trace_kernels_node(t->kernels));

	if (t->timeline)
		timeline_file_found(t->timeline, new);
}

static void collect(struct tracing *t)
{
	trace_engine_collect(t->engine);
	trace_report_store(&t->report, t->engine);
	if (t->kernels)
		collect_kernels(t);
	trace_cupti_collect(t->cupti);
	if (t->analysis)
		collect_findings(t);
	if (t->nccl)
		trace_nccl_collect(t->nccl);
	if (t->timeline)
		timeline_file_collect(t->timeline);
	if (t->python)
		trace_python_again(t->python, t->engine);
	raw_sink_flush(&t->raw);
}

static int put_json(struct tracing *t)
{
	struct trace_summary summary;
	struct strbuf out;
	int r = trace_report_summary(&t->report, t->engine, 0, &summary);

	strbuf_init(&out, 0);
	strbuf_addc(&out, '{');
	if (r == 0)
		r = json_trace_summary(&summary, &out);
	if (r == 0 && t->kernels && t->inv->flag[FLAG_TORCH]) {
		strbuf_adds(&out, ",\"operators\":");
		r = trace_kernels_operators_json(t->kernels, &out);
		strbuf_adds(&out, ",\"torch\":");
		r = r == 0 ? trace_kernels_torch_json(t->kernels, &out) : r;
	}
	if (r == 0 && t->inv->flag[FLAG_KERNELS]) {
		strbuf_adds(&out, ",\"kernels\":");
		r = trace_kernels_json(t->kernels, &out);
	}
	if (r == 0 && t->nccl) {
		strbuf_adds(&out, ",\"nccl\":");
		r = trace_nccl_json(t->nccl, t->engine, &out);
	}
	if (r == 0 && t->cupti) {
		strbuf_adds(&out, ",\"cupti\":");
		r = trace_cupti_json(t->cupti, t->kernels, &out);
	}
	if (r == 0 && t->blas) {
		strbuf_adds(&out, ",\"blas\":");
		r = trace_blas_json(t->blas, t->engine, &out);
	}
	if (r == 0 && t->python) {
		strbuf_adds(&out, ",\"python\":");
		r = trace_python_json(t->python, t->engine, &out);
		strbuf_adds(&out, ",\"lines\":");
		r = r == 0 ? trace_stacks_json(t->stacks, t->engine, &out) : r;
	}
	strbuf_adds(&out, "}\n");
	if (r == 0)
		r = put(t, &out);
	strbuf_done(&out);
	return r;
}

static int show(struct tracing *t, int64_t now_ns)
{
	if (t->request.series)
		return put_json(t);
	return t->request.live ? draw(t, t->output, (double)(now_ns - t->shown_ns) / NSEC_PER_SEC) : 0;
}

/* Sums are collected each second, whatever the interval. */
static int on_second(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct tracing *t = userdata;
	int64_t now = clock_mono_ns(), every = MIN(t->request.interval_ns, (int64_t)NSEC_PER_SEC);

	/* trace_kernels_prepare() runs this loop before there is an engine. */
	if (t->engine)
		collect(t);
	/* A tick may come a little early. */
	if (now - t->shown_ns > t->request.interval_ns - every / 2) {
		if (t->engine && show(t, now) < 0)
			return sd_event_exit(t->event, 0);
		t->shown_ns = now;
	}
	sd_event_source_set_time_relative(source, (uint64_t)every / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_duration(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct tracing *t = userdata;

	return sd_event_exit(t->event, 0);
}

/* A terminal sends SIGINT and SIGQUIT to the command, too; tracing ends when the command ends. */
static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct tracing *t = userdata;

	if (info->ssi_signo == SIGUSR1) {
		if (t->timeline)
			timeline_file_ask(t->timeline);
		return 0;
	}
	if (!t->gate)
		return sd_event_exit(t->event, 0);
	if (info->ssi_signo != SIGINT && info->ssi_signo != SIGQUIT)
		exec_gate_signal(t->gate, (int)info->ssi_signo);
	return 0;
}

static int on_pid_exit(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		       void *userdata)
{
	struct tracing *t = userdata;

	return sd_event_exit(t->event, 0);
}

static void on_mapping(const struct exec_gate_mapping *mapping, void *userdata)
{
	struct tracing *t = userdata;
	int r = trace_engine_offer(t->engine, mapping->pid, mapping->fd, mapping->path);
	char text[PATH_MAX + 128];

	if (t->kernels)
		trace_kernels_mapping(t->kernels, mapping);
	if (t->python)
		trace_python_again(t->python, t->engine);
	if (r >= 0)
		return;
	snprintf(text, sizeof(text), "%s is not probed, calls into it are not traced: %s", mapping->path,
		 strerror(-r));
	trace_message(text);
}

static void on_ended(int status, void *userdata)
{
	struct tracing *t = userdata;

	t->status = status;
	sd_event_exit(t->event, 0);
}

static int add_sinks(struct tracing *t)
{
	struct event_sinks *sinks = trace_engine_sinks(t->engine);
	int r = t->kernels ? event_sinks_add(sinks, trace_kernels_sink(t->kernels)) : 0;

	if (r >= 0 && t->stacks)
		r = event_sinks_add(sinks, stack_sums_sink(t->stacks));
	if (r >= 0 && t->analysis)
		r = event_sinks_add(sinks, live_analysis_sink(t->analysis));
	if (r >= 0 && t->nccl)
		r = event_sinks_add(sinks, trace_nccl_sink(t->nccl));
	if (t->stacks && !t->pid)
		stack_sums_set_engine(t->stacks, t->engine);
	if (r >= 0 && t->blas)
		r = event_sinks_add(sinks, trace_blas_sink(t->blas));
	if (r >= 0 && t->python)
		r = event_sinks_add(sinks, trace_python_sink(t->python));
	t->raw.blas = trace_blas_of(t->blas);
	if (r >= 0 && t->timeline)
		r = event_sinks_add(sinks, trace_timeline_sink(timeline_file_timeline(t->timeline)));
	if (r >= 0 && t->inv->flag[FLAG_RAW])
		r = event_sinks_add(sinks, &t->raw.sink);
	t->ends = (struct event_sink){
		.sink = { .name = "ends", .userdata = t },
		.process_over = on_process_over,
	};
	return r < 0 ? r : event_sinks_add(sinks, &t->ends);
}

static int start_engine(struct tracing *t)
{
	const struct options *o = &t->inv->options;
	struct trace_engine_config config = {
		.attach = { .ring_bytes = (uint32_t)options_number(o, OPT_trace_buffer) },
		.libraries = { [PROBE_CUDA] = true,
			       [PROBE_CUDART] = true,
			       [PROBE_NCCL] = true,
			       [PROBE_TORCH] = t->inv->flag[FLAG_TORCH] || t->request.analyze,
			       [PROBE_CUBLAS] = t->blas != NULL,
			       [PROBE_CUBLASLT] = t->blas != NULL,
			       [PROBE_CUDNN] = t->blas != NULL,
			       [PROBE_PYTHON] = t->python != NULL },
		.pid = t->pid,
		.follow = t->pid != 0,
		.held = t->gate && !exec_gate_unheld(t->gate),
		.return_probes = options_bool(o, OPT_trace_return_probes),
		.allow_single_step = options_bool(o, OPT_trace_allow_single_step),
		.stacks = t->stacks,
		.stack_kinds = t->request.stack_kinds,
		.stack_shift = t->request.stack_shift,
		.stacks_max =
			t->request.sample_auto ? (double)options_number(o, OPT_trace_max_overhead) / 1e6 : 0,
		.events = t->inv->flag[FLAG_RAW] || t->kernels || t->nccl || t->blas || t->python ||
			  t->stacks || t->timeline || t->analysis || library_user_has_arguments(),
		.every_call = t->inv->flag[FLAG_RAW] || t->timeline || t->analysis,
		/* No limit by default: the user has asked for tracing explicitly. */
		.max_overhead = o->v[OPT_trace_max_overhead].origin == ORIGIN_FLAG ?
					(double)options_number(o, OPT_trace_max_overhead) / 1e6 :
					0,
		.latency_ns = t->inv->flag[FLAG_RAW] || t->kernels || t->stacks ? 10 * NSEC_PER_MSEC :
										  100 * NSEC_PER_MSEC,
	};
	static const struct trace_engine_ops ops = { .notice = on_notice,
						     .mapped = on_mapped,
						     .remapped = on_remapped };
	struct attach_error error = { "" };
	int r = trace_engine_new(t->event, &config, &ops, t, &t->engine, &error);

	if (r >= 0)
		r = add_sinks(t);
	if (r < 0)
		fprintf(stderr, "gpusonde %s: CUDA calls are not traced: %s\n", trace_command_name(),
			error.text[0] ? error.text : strerror(-r));
	return r;
}

/* Tracing needs at least to read the mappings of the process. */
static int check_access(pid_t pid)
{
	struct proc_maps maps = { .fd = -1 };
	int r = proc_maps_open("/proc", pid, &maps);
	char text[1500];

	proc_maps_done(&maps);
	if (r != -EACCES && r != -EPERM)
		return 0;
	capability_text(CAPABILITY_FOR(OTHERS), text, sizeof(text));
	if (!text[0])
		capability_refused_process(text, sizeof(text));
	fprintf(stderr, "gpusonde %s: no permission to inspect process %d (%s): %s\n", trace_command_name(),
		(int)pid, strerror(-r), text);
	return r;
}

static int watch_pid(struct tracing *t)
{
	int fd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	WITH_CAPABILITIES;
	int r;

	if (fd < 0) {
		r = -errno;
		if (r == -ESRCH)
			fprintf(stderr, "gpusonde %s: there is no process %d: check the process ID\n",
				trace_command_name(), (int)t->pid);
		else
			fprintf(stderr, "gpusonde %s: cannot watch process %d: %s\n", trace_command_name(),
				(int)t->pid, strerror(-r));
		return r;
	}
	r = check_access(t->pid);
	if (r == 0)
		r = sd_event_add_io(t->event, NULL, fd, EPOLLIN, on_pid_exit, t);
	return r < 0 ? r : 0;
}

static int start_command(struct tracing *t)
{
	static const struct exec_gate_ops ops = { .mapping = on_mapping, .ended = on_ended };
	int r = exec_gate_new(t->event, t->inv->operands, &ops, t, &t->gate);

	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot run %s: %s\n", trace_command_name(), t->inv->operands[0],
			strerror(-r));
		return r;
	}
	t->pid = exec_gate_pid(t->gate);
	if (exec_gate_unheld(t->gate))
		fprintf(stderr, "gpusonde %s: calls right after a library is loaded may be missed: %s\n",
			trace_command_name(), exec_gate_unheld(t->gate));
	return 0;
}

static int start_loop(struct tracing *t)
{
	/* The last one is for --last alone. */
	static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1 };
	size_t n = ARRAY_SIZE(signals) - (t->request.timeline.last_ns == 0);
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r = sd_event_new(&t->event);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = sd_event_add_signal(t->event, NULL, signals[i], on_signal, t);
	if (r >= 0)
		r = sd_event_add_time_relative(t->event, NULL, CLOCK_MONOTONIC, USEC_PER_SEC, 0, on_second,
					       t);
	return r;
}

static int start_kernels(struct tracing *t)
{
	const struct trace_kernels_config config = {
		.names = t->inv->flag[FLAG_KERNELS] || t->inv->flag[FLAG_TIMELINE],
		.operators = t->inv->flag[FLAG_TORCH] || t->request.analyze,
		.nccl = t->inv->flag[FLAG_TIMELINE] || t->request.analyze,
		.measured = t->cupti,
	};
	int r = trace_kernels_new(t->event, &t->inv->options, &config, &t->kernels);

	if (r == 0)
		r = trace_kernels_prepare(t->kernels, t->cupti);
	if (r < 0)
		fprintf(stderr, "gpusonde %s: kernels and operators cannot be shown: %s\n",
			trace_command_name(), strerror(-r));
	return r;
}

/* The command is forked first, so that it inherits no descriptors of tracing. */
static int start(struct tracing *t)
{
	int r = start_loop(t);

	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot start: %s\n", trace_command_name(), strerror(-r));
		return r;
	}
	if (t->inv->flag[FLAG_NCCL])
		r = trace_nccl_new(t->event, t->inv->operands_n > 0, &t->nccl);
	if (r >= 0 && t->inv->flag[FLAG_CUPTI])
		r = trace_cupti_start(t->event, &t->cupti);
	if (r >= 0 && t->inv->operands_n > 0)
		r = start_command(t);
	else if (r >= 0 && t->pid)
		r = watch_pid(t);
	return r;
}

static int start_timeline(struct tracing *t)
{
	const char *path = t->inv->flag[FLAG_TIMELINE];
	int r = timeline_file_new(path, &t->request.timeline, t->kernels, &t->timeline);

	if (r < 0)
		fprintf(stderr, "gpusonde %s: cannot write %s: %s\n", trace_command_name(), path,
			strerror(-r));
	return r;
}

static int start_tracing(struct tracing *t)
{
	int r = 0;

	if (t->inv->flag[FLAG_KERNELS] || t->inv->flag[FLAG_TIMELINE] || t->request.analyze ||
	    (t->inv->flag[FLAG_TORCH] && !t->inv->flag[FLAG_RAW]))
		r = start_kernels(t);
	if (r >= 0 && t->kernels)
		trace_cupti_to_pipeline(t->cupti, trace_kernels_pipeline(t->kernels));
	if (r >= 0 && t->inv->flag[FLAG_TIMELINE])
		r = start_timeline(t);
	if (r >= 0 && (t->inv->flag[FLAG_STACKS] || t->inv->flag[FLAG_PYTHON] || t->request.analyze))
		r = trace_stacks_new(t->event, t->request.stack_kinds, &t->stacks);
	if (r >= 0 && (t->request.analyze || t->request.timeline.last_ns > 0))
		r = trace_findings_start(trace_kernels_pipeline(t->kernels), t->stacks,
					 t->inv->flag[FLAG_JOB], &t->analysis);
	/* It only says when what is kept is to be written, by what is traced anyway. */
	if (r >= 0 && t->analysis && !t->request.analyze)
		live_analysis_limit(t->analysis);
	if (r >= 0 && t->inv->flag[FLAG_BLAS])
		r = trace_blas_new(&t->blas);
	if (r >= 0 && t->inv->flag[FLAG_PYTHON])
		r = trace_python_new(&t->python);
	if (t->timeline)
		timeline_file_set_stacks(t->timeline, t->stacks);
	if (t->timeline)
		trace_timeline_set_blas(timeline_file_timeline(t->timeline), trace_blas_of(t->blas));
	if (r >= 0)
		r = start_engine(t);
	if (r >= 0 && t->gate)
		r = exec_gate_release(t->gate);
	/* From here on calls are seen. */
	if (r >= 0 && t->request.duration_ns > 0)
		r = sd_event_add_time_relative(t->event, NULL, CLOCK_MONOTONIC,
					       (uint64_t)t->request.duration_ns / NSEC_PER_USEC, 0,
					       on_duration, t);
	return r;
}

static void put_status(struct tracing *t)
{
	static const struct table_options options = { 0 };
	struct trace_summary summary;
	struct strbuf out;

	strbuf_init(&out, 0);
	trace_report_status(&t->report, t->engine, &summary);
	table_trace_status(&summary, &options, &out);
	fputs(out.data, stderr);
	strbuf_done(&out);
}

static int write_stacks(struct tracing *t)
{
	const char *path = t->inv->flag[FLAG_STACKS];
	_cleanup_free_ char *said = NULL;
	int r = trace_stacks_write(t->stacks, t->engine, path, t->request.weight, &said);

	if (r < 0)
		fprintf(stderr, "gpusonde %s: cannot write %s: %s\n", trace_command_name(), path,
			strerror(-r));
	else if (said[0])
		fprintf(stderr, "gpusonde %s: INCOMPLETE: %s: %s\n", trace_command_name(), path, said);
	return r;
}

/* Standard output is the command's, if there is one: the table goes to standard error or to --output. */
static int trace_finish(struct tracing *t)
{
	int wrote, r = 0;

	/* The sums, the timeline and what is said to be lost are of the same calls. */
	trace_engine_end(t->engine);
	if (t->kernels)
		trace_kernels_settle(t->kernels, t->engine);
	collect(t);
	wrote = t->inv->flag[FLAG_STACKS] ? write_stacks(t) : 0;
	trace_cupti_to_pipeline(t->cupti, NULL);
	if (t->timeline)
		wrote = MIN(wrote, timeline_file_finish(t->timeline, t->inv->flag[FLAG_MERGE]));
	trace_report_unmatched();
	if (t->gate && exec_gate_holder_lost(t->gate))
		fprintf(stderr,
			"gpusonde %s: the process trace-holder was killed: the command could not run "
			"programs or load libraries since then; run it again\n",
			trace_command_name());
	if (t->gate && exec_gate_missed(t->gate) > 0)
		fprintf(stderr,
			"gpusonde %s: INCOMPLETE: gpusonde was stopped or busy for seconds, and %u "
			"files were mapped before they were probed\n",
			trace_command_name(), exec_gate_missed(t->gate));
	if (t->failed == 0) {
		int to = t->gate && !t->inv->flag[FLAG_OUTPUT] ? STDERR_FILENO : t->output;

		if (t->request.analyze) {
			r = put_findings(t, t->inv->flag[FLAG_JSON] ? t->output : to);
			put_status(t);
		} else if (t->inv->flag[FLAG_JSON])
			r = put_json(t);
		else if (t->inv->flag[FLAG_RAW])
			put_status(t);
		else
			r = draw(t, to, 0);
	}
	if (t->failed < 0)
		r = t->failed;
	return r < 0 && r != -EPIPE ? r : wrote;
}

static int open_output(struct tracing *t)
{
	const char *path = t->inv->flag[FLAG_OUTPUT];

	t->output = STDOUT_FILENO;
	if (!path || STRV_EQ(path, "-"))
		return 0;
	t->output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (t->output < 0) {
		fprintf(stderr, "gpusonde %s: cannot write %s: %s\n", trace_command_name(), path,
			strerror(errno));
		return -errno;
	}
	return 0;
}

/* Perf events are needed only to find programs that gpusonde does not start itself. */
static unsigned capabilities_needed(const struct invocation *inv)
{
	unsigned needs = attach_needs(false) | CAPABILITY_FOR(OTHERS) | CAPABILITY_FOR(CLOSED);
	int level = capability_perf_level();

	if (inv->operands_n > 0)
		return needs;
	if (level >= 1)
		needs |= CAPABILITY_FOR(RECORDS);
	return level >= CAPABILITY_PERF_STRICT ? needs | CAPABILITY_FOR(RECORDS_STRICT) : needs;
}

static int run_tracing(struct tracing *t)
{
	WITH_CAPABILITIES;
	int r = start_tracing(t);

	if (r >= 0) {
		if (t->request.live && !t->request.series && !t->gate && t->output == STDOUT_FILENO)
			t->window = live_window_open(t->event, t->inv);
		sd_event_loop(t->event);
		window_close(TAKE_PTR(t->window));
		r = trace_finish(t);
	}
	exec_gate_free(TAKE_PTR(t->gate));
	trace_engine_free(TAKE_PTR(t->engine));
	timeline_file_free(TAKE_PTR(t->timeline));
	trace_kernels_free(TAKE_PTR(t->kernels));
	live_analysis_free(TAKE_PTR(t->analysis));
	trace_nccl_free(TAKE_PTR(t->nccl));
	stack_sums_free(TAKE_PTR(t->stacks));
	trace_blas_free(TAKE_PTR(t->blas));
	trace_python_free(TAKE_PTR(t->python));
	return r;
}

int trace_main(struct invocation *inv)
{
	struct tracing t = { .inv = inv };
	int r;

	/* The request is checked before the output file is emptied. */
	if (!trace_request_parse(inv, &t.request))
		return EXIT_USAGE;
	if (open_output(&t) < 0)
		return EXIT_FAILURE;
	t.pid = t.request.pid;
	library_set_user_text(options_text(&inv->options, OPT_trace_probes));
	library_set_patterns(inv->flag[FLAG_TORCH] || inv->flag[FLAG_PYTHON] || t.request.analyze);
	t.request.live |= t.request.table && isatty(t.output) && inv->operands_n == 0;
	if (inv->flag[FLAG_JSON] && inv->operands_n > 0 && !inv->flag[FLAG_OUTPUT])
		trace_message("standard output has what the command writes and the JSON: --output FILE keeps "
			      "them apart, --output - means just that");
	capability_of_command(capabilities_needed(inv));
	trace_report_dropped(inv);
	t.shown_ns = clock_mono_ns();
	raw_sink_init(&t.raw, inv->flag[FLAG_JSON] != NULL,
		      &(struct raw_sink_ops){ .write = put_raw, .comm = comm_of }, &t);
	r = trace_report_init(&t.report);
	if (r == 0)
		r = start(&t);
	if (r >= 0)
		r = run_tracing(&t);
	exec_gate_free(t.gate);
	trace_cupti_free(t.cupti);
	trace_report_done(&t.report);
	raw_sink_done(&t.raw);
	sd_event_unref(t.event);
	return r < 0 ? EXIT_FAILURE : t.status;
}
