// SPDX-License-Identifier: Apache-2.0
/*
 * The engine, compiled with specimens that fail under seccomp filters (failing_specimens.c): it uses no
 * return probes, says so once, marks the processes, and counts the calls of filtered programs all the same;
 * until tracing ends.
 */
#include "needs.h"
#include "test.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "trace/engine.h"
#include "trace/kernel_sites.h"
#include "trace/kernel_sites_filter.h"
#include "tracing.h"

enum { TIMES = 10 };
#define PATIENCE_US (20 * UINT64_C(1000000))

/* ---- the verdict ---- */

static void harmless(void)
{
}

static void makes_unknown_call(void)
{
	syscall(400);
}

static void breaks(void)
{
	__builtin_trap();
}

static void a_verdict_is_of_what_happens(_unused_ void **state)
{
	void (*const well[])(void) = { harmless, harmless };
	void (*const killed[])(void) = { harmless, makes_unknown_call };
	void (*const crashes[])(void) = { breaks };

	assert_int_equal(kernel_sites_try_filters(well, 2), FILTER_HARMLESS);
	assert_int_equal(kernel_sites_try_filters(killed, 2), FILTER_HARMS);
	assert_int_equal(kernel_sites_try_filters(crashes, 1), FILTER_HARMS);
}

static void failing_specimens_change_the_rules(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct site_rules rules;

	assert_int_equal(kernel_sites_probe(tracing->backend, &rules), 0);
	assert_int_equal(rules.by_kind[SITE_KIND_JUMP], SITE_EMULATED);
	assert_int_equal(rules.returns, SITE_RETURNS_KILL);
	assert_non_null(strstr(kernel_sites_no_returns(&rules), "seccomp"));
	/* Optimised where the kernel does that, and therefore refused. */
	assert_int_not_equal(rules.by_kind[SITE_KIND_NOP5], SITE_OPTIMISED);
	assert_true(!rules.nop_rewritten || rules.by_kind[SITE_KIND_NOP5] == SITE_REFUSED);
}

/* ---- the engine ---- */

struct run {
	struct trace_engine *engine;
	sd_event *event;
	pid_t pid;
	int in[2], out[2];
	unsigned notices;
	unsigned incomplete;
	uint64_t init, alloc, results_known;
	bool ended;
};

/* As a container's profile: what it does not know is killed. */
static int set_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 335, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 424, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static _Noreturn void filtered_program(int in, int out)
{
	char path[4096], c;
	void *library;
	int (*init)(unsigned), (*alloc)(uint64_t *, size_t);
	uint64_t address;

	snprintf(path, sizeof(path), "%s/sim/cuda/libcuda.so.1", test_build_root());
	library = dlopen(path, RTLD_NOW);
	init = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
	alloc = library ? (int (*)(uint64_t *, size_t))dlsym(library, "cuMemAlloc_v2") : NULL;
	if (!init || !alloc || set_filter() != 0 || write(out, "", 1) != 1 || read(in, &c, 1) != 1)
		_exit(1);
	for (int i = 0; i < TIMES; i++) {
		init(0);
		alloc(&address, 4096);
	}
	_exit(0);
}

static void on_notice(_unused_ int level, const char *text, void *userdata)
{
	((struct run *)userdata)->notices += strstr(text, "seccomp filter") != NULL;
}

static int look(const struct trace_process_sum *process, void *userdata)
{
	struct run *run = userdata;

	if (process->tgid != (uint32_t)run->pid)
		return 0;
	run->incomplete = process->incomplete;
	run->ended = process->ended;
	for (uint32_t i = 0; i < process->sums_n; i++) {
		const struct trace_sum *sum = &process->sums[i];

		if (strcmp(probes[sum->call].symbol, "cuInit") == 0)
			run->init = sum->count;
		else if (strcmp(probes[sum->call].symbol, "cuMemAlloc_v2") == 0)
			run->alloc = sum->count;
		run->results_known += sum->total_ns;
	}
	return 0;
}

static bool is_probed(struct run *run)
{
	struct trace_engine_status status;

	trace_engine_status(run->engine, &status);
	return status.files == 1;
}

static bool has_ended(struct run *run)
{
	trace_engine_each(run->engine, look, run);
	return run->ended;
}

static void turn_until(struct run *run, bool (*is_so)(struct run *run))
{
	for (uint64_t waited = 0; !is_so(run); waited += 10000) {
		assert_true(waited < PATIENCE_US);
		sd_event_run(run->event, 10000);
		trace_engine_collect(run->engine);
	}
}

static void start_engine(struct run *run)
{
	static const struct trace_engine_ops ops = { .notice = on_notice };
	struct trace_engine_config config = {
		.attach = { .ring_bytes = 1 << 20 },
		.libraries = { [PROBE_CUDA] = true, [PROBE_CUDART] = true },
		.pid = run->pid,
		.return_probes = true,
		.events = true,
		.latency_ns = 10 * NSEC_PER_MSEC,
	};
	struct attach_error error;

	assert_int_equal(sd_event_new(&run->event), 0);
	if (trace_engine_new(run->event, &config, &ops, run, &run->engine, &error) < 0) {
		close(run->in[1]);
		waitpid(run->pid, NULL, 0);
		need_unmet(error.text);
	}
}

/* The program has not made its calls yet. */
static struct run probed_program(void)
{
	struct run run = { 0 };
	char c = 0;

	assert_int_equal(pipe2(run.in, O_CLOEXEC) | pipe2(run.out, O_CLOEXEC), 0);
	run.pid = fork();
	if (run.pid == 0)
		filtered_program(run.in[0], run.out[1]);
	close(run.in[0]);
	close(run.out[1]);
	assert_int_equal(read(run.out[0], &c, 1), 1);
	return run;
}

static void make_calls(struct run *run)
{
	int ended = -1;

	assert_int_equal(write(run->in[1], "", 1), 1);
	assert_int_equal(waitpid(run->pid, &ended, 0), run->pid);
	assert_int_equal(ended, 0);
}

static void run_free(struct run *run)
{
	trace_engine_free(run->engine);
	sd_event_unref(run->event);
	close(run->in[1]);
	close(run->out[0]);
}

/* What a program does after the end of tracing is in no figure. */
static void after_the_end_nothing_is_seen(_unused_ void **state)
{
	struct run run = probed_program();

	start_engine(&run);
	turn_until(&run, is_probed);
	trace_engine_end(run.engine);
	make_calls(&run);
	trace_engine_collect(run.engine);
	trace_engine_each(run.engine, look, &run);
	assert_int_equal(run.init + run.alloc, 0);
	run_free(&run);
}

static void without_return_probes_filtered_programs_are_counted(_unused_ void **state)
{
	struct run run = probed_program();
	struct trace_engine_status status;

	start_engine(&run);
	turn_until(&run, is_probed);
	make_calls(&run);
	turn_until(&run, has_ended);
	trace_engine_status(run.engine, &status);
	assert_int_equal(run.init, TIMES);
	assert_int_equal(run.alloc, TIMES);
	assert_int_equal(run.results_known, 0);
	assert_true(run.incomplete & TRACE_INCOMPLETE_NO_RETURNS);
	assert_int_equal(run.notices, 1);
	assert_int_equal(status.return_hits, 0);
	assert_true(status.driver_only);
	assert_ptr_equal(status.no_returns, kernel_sites_no_returns(&status.rules));
	run_free(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_of_what_happens),
		TRACING_TEST(failing_specimens_change_the_rules),
		cmocka_unit_test(without_return_probes_filtered_programs_are_counted),
		cmocka_unit_test(after_the_end_nothing_is_seen),
	};

	return cmocka_run_group_tests_name("filtered", tests, NULL, NULL);
}
