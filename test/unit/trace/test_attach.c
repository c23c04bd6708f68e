// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "trace/attach_private.h"
#include "tracing.h"

enum { OUTER = 3, INNER = 4, OTHER = 5 };

static const struct trace_spec plain = { .flags = TRACE_SPEC_RETURNS };
static const struct trace_spec at_entry = { .flags = TRACE_SPEC_EVENT };

static void no_losses(const struct tracing *tracing)
{
	struct trace_counters c = tracing_counters(tracing);

	if (c.abandoned || c.unmatched)
		print_message("# hits %llu, returns %llu, abandoned %llu, unmatched %llu\n", c.hits,
			      c.return_hits, c.abandoned, c.unmatched);
	assert_int_equal(c.abandoned, 0);
	assert_int_equal(c.unmatched, 0);
	assert_int_equal(c.unidentified, 0);
	for (int i = 0; i < TRACE_TABLES; i++)
		assert_int_equal(c.lost[i], 0);
}

/* ---- many threads ---- */

enum { THREADS = 64, CALLS = 500 };

/* Calls 0, 7, 14, ... fail with 2, those before them with 700. */
static int fail_some(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		     _unused_ uint64_t e, _unused_ uint64_t f)
{
	return a % 7 == 0 ? 2 : a % 7 == 6 ? 700 : 0;
}

static void *call_many(_unused_ void *userdata)
{
	for (unsigned i = 0; i < CALLS; i++)
		traced_outer(i, 0, 0, 0, 0, 0);
	return NULL;
}

static void call_from_threads(_unused_ void *userdata)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, call_many, NULL) != 0)
			_exit(1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void counts_are_exact_with_64_threads(void **state)
{
	struct tracing *tracing = tracing_of(state);
	uint64_t in_buckets = 0, twos = 0, others = 0;
	struct trace_stat stat;
	pid_t pid;

	for (unsigned i = 0; i < CALLS; i++) {
		twos += i % 7 == 0;
		others += i % 7 == 6;
	}
	traced_body = fail_some;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	assert_int_equal(traced_run(call_from_threads, NULL, &pid), 0);
	no_losses(tracing);
	stat = tracing_stat(tracing, pid, OUTER);
	assert_int_equal(stat.count, THREADS * CALLS);
	assert_int_equal(stat.errors, THREADS * (twos + others));
	assert_int_equal(tracing_errors(tracing, pid, OUTER, 2), THREADS * twos);
	assert_int_equal(tracing_errors(tracing, pid, OUTER, 700), THREADS * others);
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		in_buckets += stat.buckets[i];
	assert_int_equal(in_buckets, THREADS * CALLS);
	assert_int_equal(stat.nested, 0);
	assert_int_equal(tracing_counters(tracing).hits, THREADS * CALLS);
	assert_int_equal(tracing_counters(tracing).return_hits, THREADS * CALLS);
	no_losses(tracing);
}

/* ---- calls within calls ---- */

static int inner_thrice(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			_unused_ uint64_t e, _unused_ uint64_t f)
{
	for (unsigned i = 0; a == 1 && i < 3; i++)
		traced_inner(0, 0, 0, 0, 0, 0);
	return 0;
}

static void call_nested(_unused_ void *userdata)
{
	for (unsigned i = 0; i < 10; i++)
		traced_outer(1, 0, 0, 0, 0, 0);
	traced_inner(0, 0, 0, 0, 0, 0);
}

static void nested_calls_are_counted_as_nested(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = inner_thrice;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	tracing_attach(tracing, (const void *)traced_inner, INNER, &plain);
	assert_int_equal(traced_run(call_nested, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).nested, 0);
	assert_int_equal(tracing_stat(tracing, pid, INNER).count, 1);
	assert_int_equal(tracing_stat(tracing, pid, INNER).nested, 30);
	no_losses(tracing);
}

static void call_tail(_unused_ void *userdata)
{
	for (unsigned i = 0; i < 10; i++)
		traced_tail(0, 0, 0, 0, 0, 0);
}

/* By its end, the inner function looks like the outer one: same stack pointer, same result. */
static void a_jump_into_another_call_is_nested_too(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_tail, OUTER, &plain);
	tracing_attach(tracing, (const void *)traced_inner, INNER, &plain);
	assert_int_equal(traced_run(call_tail, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
	assert_int_equal(tracing_stat(tracing, pid, INNER).count, 0);
	assert_int_equal(tracing_stat(tracing, pid, INNER).nested, 10);
	no_losses(tracing);
}

/* ---- calls that do not return ---- */

static jmp_buf away;

static int jump_away(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		     _unused_ uint64_t e, _unused_ uint64_t f)
{
	if (a)
		longjmp(away, 1);
	return 0;
}

static void call_and_jump(_unused_ void *userdata)
{
	for (volatile unsigned i = 0; i < 10; i++)
		if (setjmp(away) == 0)
			traced_outer(i % 2, 0, 0, 0, 0, 0);
	traced_outer(0, 0, 0, 0, 0, 0);
}

static void calls_left_by_longjmp_are_abandoned(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = jump_away;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	assert_int_equal(traced_run(call_and_jump, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 6);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).nested, 0);
	assert_int_equal(tracing_counters(tracing).abandoned, 5);
}

/* ---- without return probes ---- */

static void call_ten(_unused_ void *userdata)
{
	for (unsigned i = 0; i < 10; i++)
		traced_outer(i, 0, 0, 0, 0, 0);
}

static void without_return_probes_calls_count_at_entry(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *event;
	struct trace_stat stat;
	pid_t pid;

	traced_body = fail_some;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &at_entry);
	assert_int_equal(traced_run(call_ten, NULL, &pid), 0);
	stat = tracing_stat(tracing, pid, OUTER);
	assert_int_equal(stat.count, 10);
	assert_int_equal(stat.errors, 0);
	assert_int_equal(stat.total_ns, 0);
	tracing_drain(tracing);
	event = tracing_event(tracing, TRACE_EVENT_CALL, OUTER, pid, 9);
	assert_non_null(event);
	assert_int_equal(event->header.flags, TRACE_FLAG_NO_RESULT);
	no_losses(tracing);
}

static void a_site_may_lack_the_return_probe_of_its_call(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct attach_site site = traced_site((const void *)traced_outer, OUTER);
	pid_t pid;

	site.no_return = true;
	assert_int_equal(attach_set_spec(tracing->backend, OUTER, &plain), 0);
	assert_int_equal(attach(tracing->backend, traced_file(), 0, false, &site, 1, &tracing->attached[0]),
			 0);
	tracing->attached_n = 1;
	assert_int_equal(traced_run(call_ten, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
	no_losses(tracing);
}

/* ---- overflow ---- */

static void call_a_lot(_unused_ void *userdata)
{
	for (unsigned i = 0; i < 40000; i++)
		traced_outer(i, 0, 0, 0, 0, 0);
}

static void what_the_ring_loses_is_counted_to_the_event(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_spec spec = { .flags = TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT };
	static struct trace_counters per_cpu[TRACING_CPUS];
	struct trace_counters sum;
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, OUTER, &spec);
	assert_int_equal(traced_run(call_a_lot, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_int_equal(traced_run(call_from_threads, NULL, NULL), 0);
	tracing_drain(tracing);
	assert_int_equal(attach_counters(tracing->backend, &sum, per_cpu, TRACING_CPUS), 0);
	assert_true(sum.dropped > 0);
	assert_true(sum.produced >= 40000 + THREADS * CALLS);
	for (unsigned cpu = 0; cpu < TRACING_CPUS; cpu++)
		assert_int_equal(tracing->received[cpu] + per_cpu[cpu].dropped, per_cpu[cpu].produced);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 40000);
}

/* ---- which processes, which sites ---- */

static void wait_and_call(void *userdata)
{
	int fd = *(int *)userdata;
	char byte;

	if (read(fd, &byte, 1) == 1)
		call_ten(NULL);
}

static void only_the_process_asked_for_is_traced(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct attach_site site = traced_site((const void *)traced_outer, OUTER);
	int pair[2], status;
	pid_t pid, other;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		wait_and_call(&pair[1]);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(attach_set_spec(tracing->backend, OUTER, &plain), 0);
	assert_int_equal(attach(tracing->backend, traced_file(), pid, true, &site, 1, &tracing->attached[0]),
			 0);
	assert_int_equal(attach(tracing->backend, traced_file(), pid, false, &site, 1, &tracing->attached[1]),
			 0);
	tracing->attached_n = 2;
	assert_int_equal(traced_run(call_ten, NULL, &other), 0);
	assert_int_equal(write(pair[0], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
	assert_int_equal(tracing_stat(tracing, other, OUTER).count, 0);
	no_losses(tracing);
}

static void gpusonde_itself_is_not_traced(void **state)
{
	struct tracing *tracing = tracing_of(state);

	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	call_ten(NULL);
	assert_int_equal(tracing_stat(tracing, getpid(), OUTER).count, 0);
	assert_int_equal(tracing_counters(tracing).hits, 10);
	no_losses(tracing);
}

static void one_place_may_mean_two_calls(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, OUTER, &at_entry);
	tracing_attach(tracing, (const void *)traced_outer, OTHER, &at_entry);
	assert_int_equal(traced_run(call_ten, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
	assert_int_equal(tracing_stat(tracing, pid, OTHER).count, 10);
	/* One goes, the other stays. */
	attachment_free(tracing->attached[0]);
	tracing->attached[0] = tracing->attached[1];
	tracing->attached_n = 1;
	assert_int_equal(traced_run(call_ten, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 0);
	assert_int_equal(tracing_stat(tracing, pid, OTHER).count, 10);
	no_losses(tracing);
}

static void a_detached_probe_is_not_hit(void **state)
{
	struct tracing *tracing = tracing_of(state);

	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	tracing_detach(tracing);
	assert_int_equal(traced_run(call_ten, NULL, NULL), 0);
	assert_int_equal(tracing_counters(tracing).hits, 0);
}

/* While its old probes are still going: nothing is counted by both. */
static void what_is_let_go_of_may_be_probed_again(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	for (unsigned round = 0; round < 5; round++) {
		tracing_attach(tracing, (const void *)traced_outer, OUTER, &at_entry);
		assert_int_equal(traced_run(call_ten, NULL, &pid), 0);
		assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 10);
		attachment_free_later(tracing->attached[0]);
		tracing->attached_n = 0;
	}
	no_losses(tracing);
}

/* Closing them one after another takes many times as long as all at the same time. */
static void the_end_takes_no_longer_with_many_probes(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct attach_site site = traced_site((const void *)traced_outer, OUTER);
	struct attachment *attached[40];
	int64_t begin_ns;

	if (!STRV_EQ(attach_backend_name(tracing->backend), "uprobe_multi"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(attached); i++)
		assert_int_equal(attach(tracing->backend, traced_file(), 0, false, &site, 1, &attached[i]),
				 0);
	begin_ns = clock_mono_ns();
	attach_backend_end(tracing->backend);
	for (size_t i = 0; i < ARRAY_SIZE(attached); i++)
		attachment_free(attached[i]);
	ring_buffer__free(TAKE_PTR(tracing->ring));
	attach_backend_free(TAKE_PTR(tracing->backend));
	assert_true(clock_mono_ns() - begin_ns < 2 * NSEC_PER_SEC);
}

static int told[2], go_on[2];

static int wait_then_inner(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			   _unused_ uint64_t e, _unused_ uint64_t f)
{
	char byte = 0;

	if (a == 0)
		return 0;
	if (write(told[1], &byte, 1) != 1 || read(go_on[0], &byte, 1) != 1)
		_exit(2);
	for (unsigned i = 0; i < 3; i++)
		traced_inner(0, 0, 0, 0, 0, 0);
	return 0;
}

static void a_call_that_lost_its_probes_hides_no_others(void **state)
{
	struct tracing *tracing = tracing_of(state);
	int status;
	char byte;
	pid_t pid;

	assert_true(pipe(told) == 0 && pipe(go_on) == 0);
	traced_body = wait_then_inner;
	tracing_attach(tracing, (const void *)traced_inner, INNER, &plain);
	assert_int_equal(tracing->attached_n, 2);
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &plain);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		traced_outer(1, 0, 0, 0, 0, 0);
		_exit(0);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	for (unsigned i = 2; i < tracing->attached_n; i++)
		attachment_free(tracing->attached[i]);
	tracing->attached_n = 2;
	assert_int_equal(attach_call_gone(tracing->backend, OUTER), 0);
	assert_int_equal(write(go_on[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(tracing_stat(tracing, pid, INNER).count, 3);
	assert_int_equal(tracing_stat(tracing, pid, INNER).nested, 0);
	for (unsigned i = 0; i < 2; i++) {
		close(told[i]);
		close(go_on[i]);
	}
}

static void a_place_that_is_no_code_is_refused(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct attach_site site = traced_site((const void *)traced_outer, OUTER);
	struct attachment *attachment = NULL;

	site.offset = UINT64_C(1) << 40;
	assert_true(attach(tracing->backend, traced_file(), 0, false, &site, 1, &attachment) < 0);
	assert_null(attachment);
	assert_int_equal(attach(tracing->backend, traced_file(), 0, false, &site, 0, &attachment), -EINVAL);
}

/* ---- the verifier ---- */

/* Instructions that the kernel followed to verify the program; 0: it does not tell. */
static uint32_t verified(const struct attach_backend *backend, const char *program)
{
	struct bpf_program *found = bpf_object__find_program_by_name(backend->programs[0], program);
	struct bpf_prog_info info = { 0 };
	uint32_t n = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(found), &info, &n), 0);
	return info.verified_insns;
}

/* It is most of what the start of tracing costs. */
static void without_stacks_what_takes_them_is_not_verified(void **state)
{
	static const char *const programs[] = { "call_entry", "call_return" };
	const struct tracing *tracing = tracing_of(state);
	const struct attach_config config = { .ring_bytes = 4096,
					      .stacks = true,
					      .no_multi = !tracing->backend->way->multi };
	struct attach_backend *with = NULL;
	struct attach_error error;

	if (verified(tracing->backend, "call_entry") == 0)
		need_unmet("this kernel does not tell how much it verifies");
	assert_int_equal(attach_backend_new(&config, &with, &error), 0);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		print_message("# %s: %u, with stacks %u\n", programs[i],
			      verified(tracing->backend, programs[i]), verified(with, programs[i]));
		assert_true(verified(tracing->backend, programs[i]) < verified(with, programs[i]) / 2);
	}
	attach_backend_free(with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST_BOTH(counts_are_exact_with_64_threads),
		TRACING_TEST_BOTH(nested_calls_are_counted_as_nested),
		TRACING_TEST_BOTH(a_jump_into_another_call_is_nested_too),
		TRACING_TEST_BOTH(calls_left_by_longjmp_are_abandoned),
		TRACING_TEST_BOTH(without_return_probes_calls_count_at_entry),
		TRACING_TEST_BOTH(a_site_may_lack_the_return_probe_of_its_call),
		TRACING_TEST_BOTH(what_the_ring_loses_is_counted_to_the_event),
		TRACING_TEST_BOTH(only_the_process_asked_for_is_traced),
		TRACING_TEST_BOTH(gpusonde_itself_is_not_traced),
		TRACING_TEST_BOTH(one_place_may_mean_two_calls),
		TRACING_TEST_BOTH(a_detached_probe_is_not_hit),
		TRACING_TEST_BOTH(a_call_that_lost_its_probes_hides_no_others),
		TRACING_TEST_BOTH(what_is_let_go_of_may_be_probed_again),
		TRACING_TEST_BOTH(the_end_takes_no_longer_with_many_probes),
		TRACING_TEST_BOTH(a_place_that_is_no_code_is_refused),
		TRACING_TEST_BOTH(without_stacks_what_takes_them_is_not_verified),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
