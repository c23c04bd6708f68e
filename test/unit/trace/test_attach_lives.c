// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/macro.h"
#include "tracing.h"

enum { CALL = 3 };

static const struct trace_spec with_events = { .flags = TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT };

static void call_once(_unused_ void *userdata)
{
	traced_outer(0, 0, 0, 0, 0, 0);
}

static unsigned entries(const struct tracing *tracing, const char *map)
{
	int fd = attach_map_fd(tracing->backend, map);
	char key[64], next[64];
	void *before = NULL;
	unsigned n = 0;

	while (bpf_map_get_next_key(fd, before, next) == 0) {
		memcpy(key, next, sizeof(key));
		before = key;
		n++;
	}
	return n;
}

static void a_process_is_told_of_from_its_first_call_to_its_end(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *begin, *stat, *end;
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_once, NULL, &pid), 0);
	tracing_drain(tracing);
	begin = tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 0);
	stat = tracing_event(tracing, TRACE_EVENT_STAT, CALL, pid, 0);
	end = tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 0);
	assert_non_null(begin);
	assert_non_null(stat);
	assert_non_null(end);
	assert_true(begin < stat && stat < end);
	assert_int_equal(begin->process.ns_tgid, pid);
	assert_true(begin->process.start_boot_ns > 0);
	assert_int_equal(begin->process.incarnation, stat->stat.incarnation);
	assert_int_equal(begin->process.incarnation, end->process.incarnation);
	assert_string_equal(begin->process.comm, end->process.comm);
	assert_int_equal(strncmp(begin->process.comm, program_invocation_short_name, TRACE_COMM - 1), 0);
	assert_null(tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 1));
	assert_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 1));
	/* Nothing of it stays but its sums. */
	assert_int_equal(entries(tracing, "threads"), 0);
	assert_int_equal(entries(tracing, "procs"), 0);
	assert_int_equal(entries(tracing, "stats"), 1);
}

static void *call_from_thread(_unused_ void *userdata)
{
	call_once(NULL);
	return NULL;
}

static void call_from_eight(_unused_ void *userdata)
{
	pthread_t threads[8];

	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		if (pthread_create(&threads[i], NULL, call_from_thread, NULL) != 0)
			_exit(1);
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
}

static void threads_that_end_end_no_process(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_from_eight, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_non_null(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 7));
	assert_non_null(tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 0));
	assert_null(tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 1));
	assert_non_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 0));
	assert_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 1));
	assert_int_equal(entries(tracing, "threads"), 0);
}

static void *execute(_unused_ void *userdata)
{
	call_once(NULL);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

static void call_and_execute(_unused_ void *userdata)
{
	pthread_t thread;

	call_once(NULL);
	/* Of a thread: it takes over the leader's number. */
	if (pthread_create(&thread, NULL, execute, NULL) == 0)
		pthread_join(thread, NULL);
	_exit(1);
}

static void a_process_that_executes_another_program_begins_anew(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *begin, *end;
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_and_execute, NULL, &pid), 0);
	tracing_drain(tracing);
	begin = tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 0);
	end = tracing_event(tracing, TRACE_EVENT_EXEC, -1, pid, 0);
	assert_non_null(begin);
	assert_non_null(end);
	assert_int_equal(begin->process.incarnation, end->process.incarnation);
	/* The other program makes no call: nothing is known of it, so nothing ends. */
	assert_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 0));
	assert_int_equal(entries(tracing, "threads"), 0);
	assert_int_equal(entries(tracing, "procs"), 0);
}

static void processes_to_ignore_leave_no_trace(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	attach_control(tracing->backend)->default_flags = TRACE_PROC_IGNORE;
	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_once, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_int_equal(tracing->events_n, 0);
	assert_int_equal(entries(tracing, "stats"), 0);
	assert_int_equal(entries(tracing, "procs"), 0);
	assert_int_equal(tracing_counters(tracing).hits, 1);
	assert_int_equal(tracing_counters(tracing).unmatched, 0);
}

static void quiet_processes_are_counted_and_send_no_calls(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	attach_control(tracing->backend)->default_flags = TRACE_PROC_QUIET;
	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_once, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_int_equal(tracing_stat(tracing, pid, CALL).count, 1);
	assert_null(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 0));
	assert_non_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 0));
}

/* Calls, answers, and calls again each time that it is told to. */
static void call_when_told(void *userdata)
{
	int fd = *(int *)userdata;
	char byte;

	while (read(fd, &byte, 1) == 1) {
		call_once(NULL);
		if (write(fd, &byte, 1) != 1)
			break;
	}
}

static void tell(int fd)
{
	char byte = 0;

	assert_int_equal(write(fd, &byte, 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
}

static void flags_that_change_reach_threads_that_run(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_control *control = attach_control(tracing->backend);
	struct trace_proc proc;
	int pair[2], procs = attach_map_fd(tracing->backend, "procs");
	uint32_t key;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		call_when_told(&pair[1]);
		_exit(0);
	}
	close(pair[1]);
	tell(pair[0]);
	tell(pair[0]);
	key = (uint32_t)pid;
	assert_int_equal(bpf_map_lookup_elem(procs, &key, &proc), 0);
	proc.flags = TRACE_PROC_IGNORE;
	assert_int_equal(bpf_map_update_elem(procs, &key, &proc, BPF_EXIST), 0);
	control->epoch++;
	tell(pair[0]);
	assert_int_equal(tracing_stat(tracing, pid, CALL).count, 2);
	proc.flags = 0;
	assert_int_equal(bpf_map_update_elem(procs, &key, &proc, BPF_EXIST), 0);
	control->epoch++;
	tell(pair[0]);
	assert_int_equal(tracing_stat(tracing, pid, CALL).count, 3);
	assert_int_equal(control->active[(uint32_t)pid % TRACE_ACTIVE], 1);
	close(pair[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_full_maps_lose_is_counted(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_proc proc = { .incarnation = 1 };
	int procs = attach_map_fd(tracing->backend, "procs");

	for (uint32_t key = UINT32_MAX; bpf_map_update_elem(procs, &key, &proc, BPF_NOEXIST) == 0; key--)
		;
	tracing_attach(tracing, (const void *)traced_outer, CALL, &with_events);
	assert_int_equal(traced_run(call_once, NULL, NULL), 0);
	assert_int_equal(tracing_counters(tracing).lost[TRACE_TABLE_PROCS], 1);
	assert_int_equal(entries(tracing, "stats"), 0);
}

/* ---- the tracer is killed ---- */

static void trace_until_killed(const struct attach_config *config, int fd)
{
	struct attach_site site = traced_site((const void *)traced_outer, CALL);
	struct attach_backend *backend;
	struct attach_error error;
	struct attachment *returns, *entry;

	if (attach_backend_new(config, &backend, &error) < 0 ||
	    attach_set_spec(backend, CALL, &with_events) < 0 ||
	    attach(backend, traced_file(), 0, true, &site, 1, &returns) < 0 ||
	    attach(backend, traced_file(), 0, false, &site, 1, &entry) < 0 || write(fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static bool events_left(pid_t pid)
{
	static const char *const places[] = { "/sys/kernel/tracing/uprobe_events",
					      "/sys/kernel/debug/tracing/uprobe_events" };
	char line[512], wanted[64];
	bool found = false;

	snprintf(wanted, sizeof(wanted), "gpusonde/g%d_", pid);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		FILE *file = fopen(places[i], "re");

		while (file && fgets(line, sizeof(line), file))
			found |= strstr(line, wanted) != NULL;
		if (file)
			fclose(file);
	}
	return found;
}

static void killing_the_tracer_leaves_the_traced_running(void **state)
{
	bool no_multi = strcmp(attach_backend_name(tracing_of(state)->backend), "uprobe_multi") != 0;
	const struct attach_config config = {
		.ring_bytes = 64 << 10, .stats = 16, .procs = 16, .threads = 16, .no_multi = no_multi
	};
	struct attach_backend *backend;
	struct attach_error error;
	int calls[2], tracer[2], status;
	pid_t pid, traced;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, calls), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, tracer), 0);
	traced = fork();
	if (traced == 0) {
		close(calls[0]);
		call_when_told(&calls[1]);
		_exit(7);
	}
	pid = fork();
	if (pid == 0)
		trace_until_killed(&config, tracer[1]);
	close(calls[1]);
	close(tracer[1]);
	assert_int_equal(read(tracer[0], &byte, 1), 1);
	tell(calls[0]);
	kill(pid, SIGKILL);
	tell(calls[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	tell(calls[0]);
	/* What it has left behind goes when the next one starts. */
	assert_int_equal(attach_backend_new(&config, &backend, &error), 0);
	attach_backend_free(backend);
	assert_false(events_left(pid));
	tell(calls[0]);
	close(calls[0]);
	close(tracer[0]);
	assert_int_equal(waitpid(traced, &status, 0), traced);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(a_process_is_told_of_from_its_first_call_to_its_end),
		TRACING_TEST(threads_that_end_end_no_process),
		TRACING_TEST(a_process_that_executes_another_program_begins_anew),
		TRACING_TEST(processes_to_ignore_leave_no_trace),
		TRACING_TEST(quiet_processes_are_counted_and_send_no_calls),
		TRACING_TEST(flags_that_change_reach_threads_that_run),
		TRACING_TEST(what_full_maps_lose_is_counted),
		TRACING_TEST(killing_the_tracer_leaves_the_traced_running),
	};

	return cmocka_run_group_tests_name("attach_lives", tests, NULL, NULL);
}
