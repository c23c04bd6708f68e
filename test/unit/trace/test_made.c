// SPDX-License-Identifier: Apache-2.0
/*
 * A library that the tests made up, added as docs/adding.md says: one row (made/made_libraries.def) and one
 * file of probes (made/probes_made.def), with which the engine is compiled here. A program calls its ten
 * functions, which call the simulated CUDA: counts, errors, bytes and latencies of both layers are exact.
 */
#include "needs.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "trace/engine.h"

enum { TIMES = 10, BYTES = 4096, EVENTS_MAX = 4096 };
#define PATIENCE_US (20 * UINT64_C(1000000))

struct run {
	struct trace_engine *engine;
	sd_event *event;
	struct event_sink sink;
	pid_t pid;
	int in[2], out[2];
	bool over;
	struct trace_call events[EVENTS_MAX];
	unsigned events_n;
};

static int on_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct run *run = userdata;

	if (event->type == TRACE_EVENT_CALL && run->events_n < EVENTS_MAX)
		memcpy(&run->events[run->events_n++], event, sizeof(struct trace_call));
	return 0;
}

static void on_lost(uint64_t events, _unused_ void *userdata)
{
	assert_int_equal(events, 0);
}

static void on_over(_unused_ uint32_t tgid, _unused_ uint64_t incarnation, void *userdata)
{
	((struct run *)userdata)->over = true;
}

static void start_program(struct run *run)
{
	char *const argv[] = { (char *)MADE_CALLER, NULL };
	char *const env[] = { (char *)"LD_LIBRARY_PATH=" MADE_LIBRARIES, NULL };
	posix_spawn_file_actions_t actions;
	char c;

	assert_int_equal(pipe2(run->in, O_CLOEXEC) | pipe2(run->out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, run->in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, run->out[1], STDOUT_FILENO);
	assert_int_equal(posix_spawn(&run->pid, MADE_CALLER, &actions, NULL, argv, env), 0);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(read(run->out[0], &c, 1), 1); /* its libraries are mapped */
}

static bool is_probed(struct run *run)
{
	struct trace_engine_status status;

	trace_engine_status(run->engine, &status);
	return status.files == 2;
}

static bool is_over(struct run *run)
{
	return run->over;
}

static void turn_until(struct run *run, bool (*is_so)(struct run *run))
{
	for (uint64_t waited = 0; !is_so(run); waited += 10000) {
		assert_true(waited < PATIENCE_US);
		sd_event_run(run->event, 10000);
		trace_engine_collect(run->engine);
	}
}

static void trace_program(struct run *run, bool no_multi)
{
	static const struct trace_engine_ops ops = { 0 };
	struct trace_engine_config config = {
		.attach = { .ring_bytes = 1 << 20, .no_multi = no_multi },
		.libraries = { [PROBE_CUDA] = true, [PROBE_MADE] = true },
		.pid = run->pid,
		.return_probes = true,
		.events = true,
		.every_call = true,
		.latency_ns = 10 * NSEC_PER_MSEC,
	};
	struct attach_error error;
	int status = 0;
	char c = 0;

	assert_int_equal(sd_event_new(&run->event), 0);
	if (trace_engine_new(run->event, &config, &ops, run, &run->engine, &error) < 0) {
		kill(run->pid, SIGKILL);
		waitpid(run->pid, NULL, 0);
		need_unmet(error.text);
	}
	run->sink = (struct event_sink){ .sink = { .name = "test", .userdata = run },
					 .event = on_event,
					 .lost = on_lost,
					 .process_over = on_over };
	assert_int_equal(event_sinks_add(trace_engine_sinks(run->engine), &run->sink), 0);
	turn_until(run, is_probed); /* a scan ends after its slice of time, and goes on later */
	assert_int_equal(write(run->in[1], &c, 1), 1);
	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	assert_int_equal(status, 0); /* as without us, exceptions and all */
	turn_until(run, is_over);
}

static int setup(void **state, bool no_multi)
{
	struct run *run = calloc(1, sizeof(*run));

	*state = run;
	start_program(run);
	trace_program(run, no_multi);
	return 0;
}

static int teardown(void **state)
{
	struct run *run = *state;

	trace_engine_free(run->engine);
	sd_event_unref(run->event);
	for (int i = 0; i < 2; i++) {
		close(run->in[i]);
		close(run->out[i]);
	}
	free(run);
	return 0;
}

static const struct trace_sum *sum_of(const struct run *run, enum probe_library library, const char *symbol)
{
	const struct trace_sum *const *sums;
	const struct probe *probe = probe_find(library, symbol);
	uint32_t n;

	assert_non_null(probe);
	trace_engine_totals(run->engine, &sums, &n);
	assert_true(probe_call(probe) < n);
	assert_non_null(sums[probe_call(probe)]);
	return sums[probe_call(probe)];
}

static void check(const struct run *run, enum probe_library library, const char *symbol, uint64_t count,
		  uint64_t nested, uint64_t errors, uint64_t bytes)
{
	const struct trace_sum *sum = sum_of(run, library, symbol);
	bool returns = probe_find(library, symbol)->may_return;

	assert_int_equal(sum->count, count);
	assert_int_equal(sum->nested, nested);
	assert_int_equal(sum->errors, errors);
	assert_int_equal(sum->bytes, bytes);
	assert_int_equal(trace_sum_timed(sum), returns ? count : 0);
	assert_true(!returns || sum->total_ns > 0);
}

static void check_code(const struct run *run, const char *symbol, int32_t code, uint64_t count)
{
	const struct trace_sum *sum = sum_of(run, PROBE_MADE, symbol);

	assert_int_equal(sum->codes[0].code, code);
	assert_int_equal(sum->codes[0].count, count);
	assert_int_equal(sum->codes[1].count, 0);
}

static void check_sums(const struct run *run)
{
	check(run, PROBE_MADE, "madeInit", 1, 0, 0, 0);
	check(run, PROBE_MADE, "madeAlloc", 3 * TIMES, 0, TIMES, 2 * TIMES * BYTES);
	check(run, PROBE_MADE, "madeFree", TIMES, 0, 0, 0);
	/* one by itself; three of madeRepeat()'s, one of madeCall()'s are nested */
	check(run, PROBE_MADE, "madeCopy", TIMES, 4 * TIMES, 0, TIMES * BYTES);
	check(run, PROBE_MADE, "madeFail", TIMES, 0, TIMES, 0);
	check(run, PROBE_MADE, "madeRepeat", TIMES, 2 * TIMES, 0, 0);
	check(run, PROBE_MADE, "madeTail", TIMES, 0, 0, 0);
	check(run, PROBE_MADE, "madeCall", TIMES, 0, 0, 0); /* those that were left do not count */
	check(run, PROBE_MADE, "madeNote", TIMES, TIMES, 0, 0);
	check(run, PROBE_MADE, "madeThrow", TIMES, 0, 0, 0);
	check_code(run, "madeFail", 77, TIMES);
	check_code(run, "madeAlloc", TRACE_RESULT_NULL, TIMES);
	/* The layer below counts as if the one above were not probed. */
	check(run, PROBE_CUDA, "cuInit", 1, 0, 0, 0);
	check(run, PROBE_CUDA, "cuMemAlloc_v2", 3 * TIMES, 0, TIMES, 2 * TIMES * BYTES);
	check(run, PROBE_CUDA, "cuMemFree_v2", 3 * TIMES, 0, TIMES, 0);
	check(run, PROBE_CUDA, "cuMemcpyHtoD_v2", 6 * TIMES, 0, 0, TIMES * (BYTES + 3 * 100 + 1 + 10));
}

/* Which call of libmade.so each call of CUDA is made within, by time: that of its event, and only then. */
static void check_enclosing(const struct run *run)
{
	static const struct {
		const char *cuda, *made[5];
	} within[] = {
		{ "cuInit", { "madeInit" } },
		{ "cuMemAlloc_v2", { "madeAlloc" } },
		{ "cuMemFree_v2", { "madeFree", "madeTail", "madeFail" } },
		{ "cuMemcpyHtoD_v2", { "madeCopy", "madeRepeat", "madeCall", "" } }, /* "": madeThrow() */
	};
	unsigned seen[ARRAY_SIZE(within)][5] = { 0 };

	for (unsigned i = 0; i < run->events_n; i++) {
		const struct trace_call *event = &run->events[i], *outer = NULL;
		const char *outer_name = "";

		for (unsigned k = 0; k < run->events_n && event->header.enclosing; k++)
			if (run->events[k].number == event->header.enclosing)
				outer = &run->events[k];
		if (event->header.enclosing) {
			assert_non_null(outer);
			assert_true(event->header.time_ns >= outer->header.time_ns);
			assert_true(event->header.time_ns + event->duration_ns <=
				    outer->header.time_ns + outer->duration_ns);
			outer_name = probes[outer->header.call].symbol;
		}
		for (unsigned w = 0; w < ARRAY_SIZE(within); w++)
			for (unsigned m = 0; m < 5 && within[w].made[m]; m++)
				seen[w][m] += !strcmp(probes[event->header.call].symbol, within[w].cuda) &&
					      !strcmp(outer_name, within[w].made[m]);
	}
	assert_int_equal(seen[0][0], 1);
	assert_int_equal(seen[1][0], 3 * TIMES);
	assert_int_equal(seen[2][0], TIMES);
	assert_int_equal(seen[2][1], TIMES);
	assert_int_equal(seen[2][2], TIMES);
	assert_int_equal(seen[3][0], TIMES);
	assert_int_equal(seen[3][1], 3 * TIMES);
	assert_int_equal(seen[3][2], TIMES);
	assert_int_equal(seen[3][3], TIMES);
}

static void both_layers_are_exact(bool no_multi)
{
	void *state;
	struct run *run;
	struct trace_engine_status status;

	setup(&state, no_multi);
	run = state;
	trace_engine_status(run->engine, &status);
	assert_int_equal(status.sites_refused, 0);
	check_sums(run);
	check_enclosing(run);
	assert_int_equal(status.abandoned, TIMES); /* madeCall(), left by longjmp() */
	assert_int_equal(status.unmatched, 0);
	teardown(&state);
}

static void both_layers_are_exact_multi(_unused_ void **state)
{
	both_layers_are_exact(false);
}

static void both_layers_are_exact_event(_unused_ void **state)
{
	both_layers_are_exact(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_layers_are_exact_multi),
		cmocka_unit_test(both_layers_are_exact_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
