// SPDX-License-Identifier: Apache-2.0
#include "trace/engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>

#include "base/clock.h"
#include "helper/helper.h"
#include "proc/proc.h"
#include "trace/engine_private.h"
#include "trace/kernel_sites.h"
#include "trace/pattern.h"

/* A power of two, as ring sizes are. */
#define RING_MAX_BYTES (UINT32_C(1) << 31)

/* Entries of the kernel side's tables. */
enum { LAYERED_THREADS = 16384, NESTED_THREADS = 8192, OPERATORS = 32768 };

void engine_notice(const struct trace_engine *engine, int level, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	if (!engine->ops.notice)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	engine->ops.notice(level, text, engine->userdata);
}

/* ---- creating and freeing ---- */

static void on_process_ended(struct sums_process *process, void *userdata)
{
	struct trace_engine *engine = userdata;

	process->incomplete |= engine_incomplete(engine, process);
	event_sinks_process_over(&engine->sinks, process->tgid, process->incarnation);
}

/* Whether it matters which code makes such a call. */
static bool has_stack(enum trace_op op)
{
	switch (op) {
	case TRACE_OP_LAUNCH:
	case TRACE_OP_GRAPH_LAUNCH:
	case TRACE_OP_ALLOC:
	case TRACE_OP_COPY:
	case TRACE_OP_SET:
	case TRACE_OP_SYNC_STREAM:
	case TRACE_OP_SYNC_EVENT:
	case TRACE_OP_SYNC_CONTEXT:
	case TRACE_OP_SYNC_DEVICE:
		return true;
	default:
		return false;
	}
}

static int set_spec(struct trace_engine *engine, uint16_t call)
{
	const struct probe *probe = probe_at(call);
	struct trace_spec spec = probe_spec(probe);

	if (engine->config.return_probes && probe->may_return)
		spec.flags |= TRACE_SPEC_RETURNS;
	if (engine->config.events && engine->config.every_call)
		spec.flags |= TRACE_SPEC_EVENT;
	if (engine->config.stacks && has_stack((enum trace_op)spec.op))
		spec.flags |= TRACE_SPEC_STACK;
	if (!engine->config.events)
		spec.flags &= (uint8_t)~TRACE_SPEC_EVENT;
	return attach_set_spec(engine->backend, call, &spec);
}

static int set_specs(struct trace_engine *engine)
{
	for (uint16_t call = 0; call < probe_calls(); call++) {
		int r = set_spec(engine, call);

		if (r < 0)
			return r;
	}
	return 0;
}

int trace_engine_every_call(struct trace_engine *engine, bool every)
{
	if (engine->config.every_call == every)
		return 0;
	engine->config.every_call = every;
	return set_specs(engine);
}

static int added_row(unsigned user, uint8_t pattern, const char *symbol, bool of_users, uint16_t *ret_call,
		     void *userdata)
{
	uint16_t before = probe_calls();
	int r = user ? probe_of_user(user - 1, symbol, of_users, ret_call) :
		       probe_of_pattern(pattern, symbol, of_users, ret_call);

	return r == 0 && *ret_call == before ? set_spec(userdata, *ret_call) : r;
}

/* Maximum threads in calls of layers above CUDA; 0: no such library is probed. */
static uint32_t layered_threads(const bool libraries[PROBE_LIBRARIES])
{
	if (library_user()->n > 0)
		return LAYERED_THREADS;
	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		/* Of these the kernel side knows by other means (bpf/operators.h, bpf/garbage.h). */
		if (libraries[i] && probe_libraries[i].layer > TRACE_LAYER_CUDA &&
		    probe_libraries[i].layer < TRACE_LAYERS && i != PROBE_TORCH && i != PROBE_PYTHON)
			return LAYERED_THREADS;
	return 0;
}

static void choose_libraries(struct trace_engine *engine)
{
	bool *libraries = engine->query.libraries;

	memcpy(libraries, engine->config.libraries, sizeof(engine->query.libraries));
	/* Without return probes it is unknown which call is the outer one. */
	for (unsigned i = 0; i < PROBE_LIBRARIES && !engine->config.return_probes; i++)
		if (libraries[i] && probe_libraries[i].has_made_of) {
			libraries[i] = false;
			libraries[probe_libraries[i].made_of] = true;
			engine->driver_only = true;
		}
}

static int find_rules(struct trace_engine *engine)
{
	int r = kernel_sites_probe(engine->backend, &engine->query.rules);

	if (r < 0)
		return r;
	engine->query.rules.allow_single_step = engine->config.allow_single_step;
	if (engine->config.return_probes)
		engine->no_returns = kernel_sites_no_returns(&engine->query.rules);
	if (engine->no_returns) {
		engine->config.return_probes = false;
		engine_notice(engine, LOG_NOTICE, "%s", engine->no_returns);
	}
	return 0;
}

/* Files that other programs map are read by a program of their own. */
static int check_reader(const struct trace_engine *engine, struct attach_error *ret_error)
{
	char path[PATH_MAX];
	int r = engine->config.pid ? 0 : helper_check_program(engine->config.reader, UINT64_MAX, path);

	if (r < 0)
		snprintf(ret_error->text, sizeof(ret_error->text),
			 "the program that reads traced programs' files cannot be run: %.200s: %s; install "
			 "gpusonde whole (make install)",
			 path, strerror(-r));
	return r;
}

static int start_arguments(struct trace_engine *engine)
{
	int r = arguments_init(&engine->arguments);

	return r == 0 ? event_sinks_add(&engine->sinks, &engine->arguments.sink) : r;
}

static int start(struct trace_engine *engine, struct attach_error *ret_error)
{
	static const struct sums_ops ops = { .hits = engine_hits, .ended = on_process_ended };
	int r = check_reader(engine, ret_error);

	if (r == 0)
		r = attach_backend_new(&engine->config.attach, &engine->backend, ret_error);
	if (r < 0)
		return r;
	engine->control = attach_control(engine->backend);
	engine->control->stack_shift = engine->config.stack_shift;
	engine->control->stack_kinds = !engine->config.stacks     ? 0 :
				       engine->config.stack_kinds ? engine->config.stack_kinds :
								    TRACE_STACK_PYTHON;
	if (engine->config.follow) {
		r = attach_follow(engine->backend, engine->config.pid,
				  (uint64_t)engine_started_boot_ns((uint32_t)engine->config.pid));
		if (r == -ENOTSUP)
			snprintf(ret_error->text, sizeof(ret_error->text),
				 "gpusonde runs in a PID namespace of its own, so it cannot select one "
				 "process; run it in the "
				 "machine's (hostPID, --pid=host)");
		if (r < 0)
			return r;
	}
	r = find_rules(engine);
	if (r < 0)
		return r;
	engine->hit_ns = calloc(probe_calls_max(), sizeof(*engine->hit_ns));
	engine->entry_ns = calloc(probe_calls_max(), sizeof(*engine->entry_ns));
	if (!engine->hit_ns || !engine->entry_ns)
		return -ENOMEM;
	engine->probing = (struct files_config){
		.backend = engine->backend,
		.query = &engine->query,
		.returns = engine->config.return_probes,
		.pid = engine->config.follow ? 0 : engine->config.pid,
		.no_launch_returns = engine->config.no_launch_returns,
		.hit_ns = engine->hit_ns,
		.entry_ns = engine->entry_ns,
		.added_row = added_row,
		.userdata = engine,
	};
	choose_libraries(engine);
	r = set_specs(engine);
	if (r == 0 && library_user()->n > 0)
		r = start_arguments(engine);
	if (r == 0)
		r = ring_order_init(&engine->order, (uint32_t)libbpf_num_possible_cpus());
	if (r == 0)
		r = sums_maps_init(&engine->maps, engine->backend);
	if (r == 0)
		r = sums_init(&engine->sums, TRACE_PROCESSES_MAX, &sums_kernel_maps, &engine->maps, &ops,
			      engine);
	if (r == 0)
		r = operators_init(&engine->operators, engine->backend, engine->config.attach.operators);
	if (r == 0)
		r = engine_events_start(engine);
	if (r == 0)
		r = engine_targets_start(engine);
	return r;
}

static uint32_t ring_size(uint32_t wanted)
{
	uint32_t size = (uint32_t)sysconf(_SC_PAGESIZE);

	while (size < wanted && size < RING_MAX_BYTES)
		size <<= 1;
	return size;
}

int trace_engine_new(sd_event *event, const struct trace_engine_config *config,
		     const struct trace_engine_ops *ops, void *userdata, struct trace_engine **ret_engine,
		     struct attach_error *ret_error)
{
	_cleanup_(trace_engine_freep) struct trace_engine *engine = calloc(1, sizeof(*engine));
	int r;

	if (!engine)
		return -ENOMEM;
	engine->config = *config;
	engine->config.attach.ring_bytes = ring_size(config->attach.ring_bytes);
	engine->config.attach.layered_threads = layered_threads(config->libraries);
	if (pattern_is_used(config->libraries))
		library_set_patterns(true);
	if (config->libraries[PROBE_TORCH]) {
		engine->config.attach.nested_threads = NESTED_THREADS;
		engine->config.attach.operators = OPERATORS;
	}
	engine->config.attach.stacks = config->stacks;
	engine->config.attach.python = config->libraries[PROBE_PYTHON];
	engine->config.attach.native = config->stacks && config->stack_kinds & TRACE_STACK_NATIVE;
	engine->ops = *ops;
	engine->userdata = userdata;
	engine->event = sd_event_ref(event);
	ret_error->text[0] = 0;
	r = start(engine, ret_error);
	if (r < 0) {
		if (!ret_error->text[0])
			snprintf(ret_error->text, sizeof(ret_error->text), "tracing cannot be set up: %s",
				 strerror(-r));
		return r;
	}
	*ret_engine = TAKE_PTR(engine);
	return 0;
}

struct event_sinks *trace_engine_sinks(struct trace_engine *engine)
{
	return &engine->sinks;
}

void trace_engine_free(struct trace_engine *engine)
{
	if (!engine)
		return;
	engine->draining = true; /* callbacks about files and processes must not drain the ring */
	sd_event_source_disable_unref(engine->ring_source);
	sd_event_source_disable_unref(engine->timer);
	sd_event_source_disable_unref(engine->more);
	if (engine->backend)
		attach_backend_end(engine->backend);
	for (uint32_t i = 0; i < engine->files_n; i++) {
		files_free(engine->files[i]->data);
		engine->files[i]->data = NULL;
	}
	engine->files_n = 0;
	targets_free(engine->targets);
	free(engine->files);
	hashmap_done(&engine->by_tgid);
	hashmap_done(&engine->reported_files);
	free(engine->mappers);
	sums_done(&engine->sums);
	operators_done(&engine->operators);
	ring_unmap(&engine->ring);
	ring_order_done(&engine->order);
	arguments_done(&engine->arguments);
	free(engine->scratch);
	free(engine->hit_ns);
	free(engine->entry_ns);
	attach_backend_free(engine->backend);
	sd_event_unref(engine->event);
	free(engine);
}

int trace_engine_offer(struct trace_engine *engine, pid_t pid, int fd, const char *path)
{
	int r;

	engine->offering = true;
	r = targets_offer(engine->targets, pid, fd, path);
	engine->offering = false;
	return r;
}

/* ---- collecting ---- */

void trace_engine_end(struct trace_engine *engine)
{
	const struct timespec moment = { 0, 20 * NSEC_PER_MSEC };

	__atomic_store_n(&engine->control->ended, 1, __ATOMIC_SEQ_CST);
	/*
	 * Waits for an RCU grace period, and so for every program that runs; but not on a machine with one
	 * CPU, nor on one with nohz_full (kernel/sched/membarrier.c).
	 */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		nanosleep(&moment, NULL);
	/* There may be events that no collection has seen yet: they are drained before the last one. */
	engine_events_map(engine);
}

/* Reads the name from /proc, since the PROCESS event was lost. */
static void read_name(struct sums_process *process)
{
	struct proc_identity identity;

	process->no_event = false;
	if (proc_identify("/proc", process->tgid, &identity) < 0)
		return;
	process->start_boot_ns = (uint64_t)process_boot_ns(identity.id.start_ticks);
	snprintf(process->comm, sizeof(process->comm), "%.*s", TRACE_COMM - 1, identity.comm);
}

/* Where no interpreter is known nobody waits for its lock. */
static void watch_switches(struct trace_engine *engine)
{
	uint32_t tgid;

	if (engine->config.attach.python &&
	    bpf_map_get_next_key(attach_map_fd(engine->backend, "pythons"), NULL, &tgid) < 0)
		attach_watch_switches(engine->backend, false);
}

int trace_engine_collect(struct trace_engine *engine)
{
	uint8_t active[TRACE_ACTIVE];

	watch_switches(engine);
	engine_expect(engine);
	trace_engine_drain(engine);
	engine_check_lost(engine);
	/* A process without a mapping record, or mapping the ring failed before. */
	if (engine->counters.produced > 0)
		engine_events_map(engine);
	for (unsigned i = 0; i < TRACE_ACTIVE; i++)
		active[i] = engine->control->active[i] &&
			    __atomic_exchange_n(&engine->control->active[i], 0, __ATOMIC_ACQ_REL);
	if (engine->reconcile) {
		engine->reconcile = false;
		sums_reconcile(&engine->sums);
	}
	sums_collect(&engine->sums, active);
	operators_collect(&engine->operators, engine->entry_ns, engine_operator_hits, engine);
	engine_shares(engine);
	for (uint32_t i = 0; i < engine->sums.processes_n; i++) {
		struct sums_process *process = engine->sums.processes[i];

		if (process->ended)
			continue;
		if (process->no_event)
			read_name(process);
		engine_mark(engine, process);
	}
	engine_budget(engine);
	return 0;
}

static int expand(struct trace_engine *engine, const struct sums_process *process)
{
	if (process->calls_n > engine->scratch_n) {
		void *grown = realloc(engine->scratch, process->calls_n * sizeof(*engine->scratch));

		if (!grown)
			return -ENOMEM;
		engine->scratch = grown;
		engine->scratch_n = process->calls_n;
	}
	for (uint16_t i = 0; i < process->calls_n; i++)
		sums_expand(&process->calls[i], &engine->scratch[i]);
	return 0;
}

int trace_engine_each(struct trace_engine *engine,
		      int (*fn)(const struct trace_process_sum *process, void *userdata), void *userdata)
{
	int r = 0;

	for (uint32_t i = 0; i < engine->sums.processes_n && r == 0; i++) {
		const struct sums_process *process = engine->sums.processes[i];
		struct trace_process_sum sum = {
			.tgid = process->tgid,
			.incarnation = process->incarnation,
			.start_boot_ns = process->start_boot_ns,
			.incomplete = process->incomplete,
			.overhead = process->budget.overhead,
			.stack_shift = process->budget.stacks.shift,
			.stackless = process->budget.stacks.none.taken,
			.ended = process->ended,
			.sums_n = process->calls_n,
		};

		memcpy(sum.comm, process->comm, sizeof(sum.comm));
		r = expand(engine, process);
		sum.sums = engine->scratch;
		if (r == 0)
			r = fn(&sum, userdata);
	}
	return r;
}

const struct operators *trace_engine_operators(const struct trace_engine *engine)
{
	return &engine->operators;
}

const struct argument_figures *trace_engine_arguments(const struct trace_engine *engine, uint16_t call)
{
	return arguments_of(&engine->arguments, call);
}

void trace_engine_totals(const struct trace_engine *engine, const struct trace_sum *const **ret_sums,
			 uint32_t *ret_n)
{
	*ret_sums = (const struct trace_sum *const *)engine->sums.totals;
	*ret_n = probe_calls();
}

static void count_files(const struct trace_engine *engine, struct trace_engine_status *status)
{
	for (uint32_t i = 0; i < engine->files_n; i++) {
		const struct file_probes *file = engine->files[i]->data;

		status->sites_attached += files_attached(file);
		status->sites_given_up += files_given_up(file);
		status->sites_refused += file->refused;
	}
	status->files = engine->files_n;
}

void trace_engine_status(struct trace_engine *engine, struct trace_engine_status *ret_status)
{
	const struct trace_counters *c = &engine->counters;

	attach_counters(engine->backend, &engine->counters, NULL, 0);
	*ret_status = (struct trace_engine_status){
		.backend = attach_backend_name(engine->backend),
		.produced = c->produced,
		.received = engine->order.received,
		.dropped = c->dropped,
		.unknown_events = engine->order.unknown,
		.bad_events = engine->order.bad + engine->ring.torn,
		.hits = c->hits,
		.return_hits = c->return_hits,
		.abandoned = c->abandoned,
		.unmatched = c->unmatched,
		.unidentified = c->unidentified,
		.lost_processes = engine->sums.refused,
		.processes = engine->sums.processes_n - engine->sums.ended_n,
		.driver_only = engine->driver_only,
		.event_seconds = engine->event_seconds,
		.probe_seconds = engine->cost_ns / 1e9,
		.groups_given_up = engine->groups_given_up,
		.rules = engine->query.rules,
		.no_returns = engine->no_returns,
		.stacks = c->stacks,
	};
	memcpy(ret_status->stackless, c->stackless, sizeof(ret_status->stackless));
	memcpy(ret_status->received_by_type, engine->order.by_type, sizeof(ret_status->received_by_type));
	memcpy(ret_status->lost, c->lost, sizeof(c->lost));
	memcpy(ret_status->refused, c->refused, sizeof(c->refused));
	for (uint32_t i = 0; i < engine->sums.processes_n; i++)
		ret_status->processes_quiet +=
			!engine->sums.processes[i]->ended && engine->sums.processes[i]->budget.quiet.taken;
	count_files(engine, ret_status);
	targets_stats(engine->targets, &ret_status->targets);
}

int trace_engine_set_python(struct trace_engine *engine, pid_t pid, const struct trace_python *python)
{
	uint32_t tgid = (uint32_t)pid;
	int r = engine->config.attach.python ? attach_watch_switches(engine->backend, true) : 0;

	if (r < 0)
		return r;
	if (bpf_map_update_elem(attach_map_fd(engine->backend, "pythons"), &tgid, python, BPF_ANY) < 0)
		return errno == E2BIG ? -ENOSPC : -errno;
	return 0;
}

void trace_engine_forget_python(struct trace_engine *engine, pid_t pid)
{
	uint32_t tgid = (uint32_t)pid;

	bpf_map_delete_elem(attach_map_fd(engine->backend, "pythons"), &tgid);
}

int trace_engine_map(struct trace_engine *engine, const char *name)
{
	return attach_map_fd(engine->backend, name);
}

/* LRU maps: what another CPU adds meanwhile may stay, and is sent again after TRACE_STACK_KEPT_NS at most. */
static void map_clear(int fd, size_t key_n)
{
	unsigned char key[64];

	while (key_n <= sizeof(key) && bpf_map_get_next_key(fd, NULL, key) == 0 &&
	       bpf_map_delete_elem(fd, key) == 0)
		;
}

void trace_engine_forget_stacks(struct trace_engine *engine)
{
	map_clear(attach_map_fd(engine->backend, "stacks"), TRACE_STACK_KEY);
	map_clear(attach_map_fd(engine->backend, "codes"), TRACE_CODE_KEY);
}
