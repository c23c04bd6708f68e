// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/text.h"
#include "trace/engine_private.h"

/* Whether the call's return probes are taken away in all files of the process that have it. */
static bool is_reduced(const struct trace_engine *engine, const struct sums_process *process, uint16_t call)
{
	const struct mapper *mapper = call < probe_calls() ? engine_mapper(engine, process->tgid) : NULL;
	bool reduced = false;

	for (uint8_t i = 0; mapper && i < mapper->files_n; i++) {
		const struct file_group *group = &mapper->files[i]->groups[probe_at(call)->group];

		if (group->entries && !group->reduced.taken)
			return false;
		reduced |= group->entries != NULL;
	}
	return reduced;
}

void engine_hits(struct sums_process *process, uint16_t call, uint64_t counted, uint64_t nested,
		 void *userdata)
{
	struct trace_engine *engine = userdata;
	double cost_ns = (double)(counted + nested) *
			 (is_reduced(engine, process, call) ? engine->entry_ns : engine->hit_ns)[call];
	bool event = call < probe_calls() && engine->config.events && !(process->flags & TRACE_PROC_QUIET) &&
		     (engine->config.every_call || probe_at(call)->spec.flags & TRACE_SPEC_EVENT);

	engine->cost_ns += cost_ns;
	if (call < probe_calls())
		budget_add(&process->budget, probe_at(call)->group, cost_ns, event ? (double)counted : 0);
}

void engine_operator_hits(uint32_t tgid, uint64_t incarnation, double cost_ns, void *userdata)
{
	struct trace_engine *engine = userdata;
	struct sums_process *process = sums_find_exact(&engine->sums, tgid, incarnation);

	engine->cost_ns += cost_ns;
	if (process)
		budget_add(&process->budget, PROBE_GROUP_OPERATORS, cost_ns, 0);
}

/* ---- stacks ---- */

#define STACK_NS 4000 /* before the first one was measured */
enum { STACKS_TIMED_MIN = 8 };

static void measure_stacks(struct trace_engine *engine)
{
	uint64_t n = engine->counters.stacks_timed - engine->stacks_timed;

	if (engine->stack_ns <= 0)
		engine->stack_ns = STACK_NS;
	if (n < STACKS_TIMED_MIN)
		return;
	engine->stack_ns = (double)(engine->counters.stacks_ns - engine->stacks_ns) / (double)n;
	engine->stacks_timed = engine->counters.stacks_timed;
	engine->stacks_ns = engine->counters.stacks_ns;
}

static void say_given_up(struct trace_engine *engine, const struct sums_process *process, const char *what,
			 const struct budget_backoff *backoff)
{
	char comm[TRACE_COMM];

	memcpy(comm, process->comm, sizeof(comm));
	utf8_sanitize(comm);
	engine_notice(engine, LOG_NOTICE,
		      "%s[%u]: tracing it takes more than trace.max_overhead: its %s are not taken for %llds",
		      comm, process->tgid, what, (long long)(backoff->length_ns / NSEC_PER_SEC));
}

static void judge_stacks(struct trace_engine *engine, struct sums_process *process, int64_t now)
{
	const struct trace_engine_config *config = &engine->config;
	const struct budget_stacks *stacks = &process->budget.stacks;
	bool all = config->max_overhead > 0, native = config->stack_kinds & TRACE_STACK_NATIVE;
	bool had_native = !stacks->native.taken;
	double cost_ns = process->stacks * engine->stack_ns;
	uint32_t flags = process->flags & ~(uint32_t)(TRACE_PROC_STACKLESS | TRACE_PROC_NATIVELESS |
						      TRACE_FLAG_SAMPLED_BITS << TRACE_PROC_STACK_SHIFT);

	process->stacks = 0;
	engine->cost_ns += cost_ns;
	budget_add_stacks(&process->budget, cost_ns);
	if (!config->stacks ||
	    !budget_judge_stacks(&process->budget, all ? config->max_overhead : config->stacks_max, all,
				 config->stack_shift, native, now))
		return;
	flags |= stacks->shift << TRACE_PROC_STACK_SHIFT;
	if (stacks->native.taken) {
		flags |= TRACE_PROC_NATIVELESS;
		process->incomplete |= TRACE_INCOMPLETE_NATIVE;
		if (had_native)
			say_given_up(engine, process, "native frames", &stacks->native);
	}
	if (stacks->none.taken) {
		flags |= TRACE_PROC_STACKLESS;
		process->incomplete |= TRACE_INCOMPLETE_STACKS;
		say_given_up(engine, process, "stacks", &stacks->none);
	}
	sums_set_flags(&engine->sums, process, flags);
}

static void quiet(struct trace_engine *engine, struct sums_process *process, int64_t now, const char *why)
{
	char comm[TRACE_COMM];

	if (sums_set_flags(&engine->sums, process, process->flags | TRACE_PROC_QUIET) < 0)
		return;
	budget_take(&process->budget.quiet, now);
	process->incomplete |= TRACE_INCOMPLETE_QUIET;
	memcpy(comm, process->comm, sizeof(comm));
	utf8_sanitize(comm);
	engine_notice(engine, LOG_NOTICE, "%s[%u]: %s: its calls are only counted for %llds", comm,
		      process->tgid, why, (long long)(process->budget.quiet.length_ns / NSEC_PER_SEC));
}

static void unquiet(struct trace_engine *engine, struct sums_process *process, int64_t now)
{
	int r = sums_set_flags(&engine->sums, process, process->flags & ~(uint32_t)TRACE_PROC_QUIET);

	if (r == 0)
		budget_give_back(&process->budget.quiet, now);
}

/* ---- groups ---- */

/* A bit for each group that is given up or absent in all files of the process. */
static unsigned gone_groups(const struct mapper *mapper)
{
	unsigned gone = (1U << PROBE_GROUPS) - 1;

	for (uint8_t i = 0; i < mapper->files_n; i++)
		for (int g = 0; g < PROBE_GROUPS; g++)
			if (mapper->files[i]->groups[g].entries)
				gone &= ~(1U << g);
	return gone;
}

static const struct target_file *target_of(const struct trace_engine *engine, const struct file_probes *file)
{
	for (uint32_t i = 0; i < engine->files_n; i++)
		if (engine->files[i]->data == file)
			return engine->files[i];
	return NULL;
}

static void mark_mappers(struct trace_engine *engine)
{
	for (uint32_t i = 0; i < engine->sums.processes_n; i++) {
		struct sums_process *process = engine->sums.processes[i];

		if (!process->ended)
			engine_mark(engine, process);
	}
}

/*
 * Before launches are given up, they lose their return probes. Where the runtime is probed as well this
 * would count the driver's launch within one of the runtime's again. False: nothing was left to take away.
 */
static bool reduce(struct trace_engine *engine, const struct sums_process *process, enum probe_group group,
		   int64_t now)
{
	struct mapper *mapper = engine_mapper(engine, process->tgid);
	bool any = false;

	if (group != PROBE_GROUP_LAUNCH || engine->query.libraries[PROBE_CUDART])
		return false;
	for (uint8_t i = 0; mapper && i < mapper->files_n; i++) {
		struct file_probes *file = mapper->files[i];
		const struct target_file *target = target_of(engine, file);

		if (!file->groups[group].returns || !target)
			continue;
		any |= files_reduce(&engine->probing, file, target->fd, group, now) == 0;
		engine_notice(engine, LOG_NOTICE,
			      "tracing process %u takes %.1f %% of a core, more than trace.max_overhead: the "
			      "returns of %s calls of %s are not probed for %llds",
			      process->tgid, 100 * process->budget.overhead, probe_group_name(group),
			      target->path,
			      (long long)(file->groups[group].reduced.length_ns / NSEC_PER_SEC));
	}
	if (any)
		mark_mappers(engine);
	return any;
}

static void give_up(struct trace_engine *engine, const struct sums_process *process, enum probe_group group,
		    int64_t now)
{
	struct mapper *mapper = engine_mapper(engine, process->tgid);

	if (reduce(engine, process, group, now))
		return;
	for (uint8_t i = 0; mapper && i < mapper->files_n; i++) {
		struct file_probes *file = mapper->files[i];
		const struct target_file *target = target_of(engine, file);

		if (!file->groups[group].entries || !target)
			continue;
		files_give_up(&engine->probing, file, group, now);
		engine->groups_given_up++;
		engine_notice(engine, LOG_NOTICE,
			      "tracing process %u takes %.1f %% of a core, more than trace.max_overhead: the "
			      "probes on %s calls of %s "
			      "are taken away for %llds, from all its processes",
			      process->tgid, 100 * process->budget.overhead, probe_group_name(group),
			      target->path, (long long)(file->groups[group].budget.length_ns / NSEC_PER_SEC));
	}
	mark_mappers(engine);
}

static void restore(struct trace_engine *engine, const struct target_file *target, enum probe_group group,
		    int64_t now)
{
	int r = files_restore(&engine->probing, target->data, target->fd, group, now);

	engine_notice(engine, r < 0 ? LOG_WARNING : LOG_NOTICE,
		      "returns of %s calls of %s are probed again%s%s", probe_group_name(group), target->path,
		      r < 0 ? ", or would be: " : "", r < 0 ? strerror(-r) : "");
}

static void take_back(struct trace_engine *engine, int64_t now)
{
	for (uint32_t i = 0; i < engine->files_n; i++) {
		struct file_probes *file = engine->files[i]->data;

		for (int g = 0; g < PROBE_GROUPS; g++) {
			int r;

			if (budget_due(&file->groups[g].reduced, now))
				restore(engine, engine->files[i], (enum probe_group)g, now);
			if (!budget_due(&file->groups[g].budget, now))
				continue;
			r = files_take_back(&engine->probing, file, engine->files[i]->fd, (enum probe_group)g,
					    now);
			engine_notice(engine, r < 0 ? LOG_WARNING : LOG_NOTICE,
				      "%s calls of %s are probed again%s%s",
				      probe_group_name((enum probe_group)g), engine->files[i]->path,
				      r < 0 ? ", or would be: " : "", r < 0 ? strerror(-r) : "");
			if (r < 0) { /* tries again after a longer back-off */
				budget_give_back(&file->groups[g].budget, now);
				budget_take(&file->groups[g].budget, now);
			}
		}
	}
}

/* ---- each collection ---- */

static void judge(struct trace_engine *engine, struct sums_process *process, int64_t now)
{
	const struct mapper *mapper = engine_mapper(engine, process->tgid);
	enum probe_group group;

	judge_stacks(engine, process, now);
	if (budget_due(&process->budget.quiet, now))
		unquiet(engine, process, now);
	switch (budget_judge(&process->budget, engine->config.max_overhead,
			     mapper ? gone_groups(mapper) : (1U << PROBE_GROUPS) - 1, now, &group)) {
	case BUDGET_QUIET:
		quiet(engine, process, now, "tracing it takes more than trace.max_overhead");
		break;
	case BUDGET_GIVE_UP:
		give_up(engine, process, group, now);
		break;
	case BUDGET_FINE:
		break;
	}
}

static void judge_self(struct trace_engine *engine, int64_t now)
{
	struct sums_process *busiest = NULL;

	if (!budget_own_judge(&engine->own, engine->event_seconds, engine->config.max_overhead, now))
		return;
	for (uint32_t i = 0; i < engine->sums.processes_n; i++) {
		struct sums_process *process = engine->sums.processes[i];

		if (!process->ended && !process->budget.quiet.taken && process->budget.event_rate > 0 &&
		    (!busiest || process->budget.event_rate > busiest->budget.event_rate))
			busiest = process;
	}
	if (busiest)
		quiet(engine, busiest, now, "its events take more of gpusonde's CPU than trace.max_overhead");
}

void engine_budget(struct trace_engine *engine)
{
	int64_t now = clock_mono_ns();

	measure_stacks(engine);
	for (uint32_t i = 0; i < engine->sums.processes_n; i++)
		if (!engine->sums.processes[i]->ended)
			judge(engine, engine->sums.processes[i], now);
	judge_self(engine, now);
	take_back(engine, now);
}
