// SPDX-License-Identifier: Apache-2.0
/*
 * Operators are counted at entry, and calls of CUDA know which ones they are within: nested ones, ones that
 * an exception leaves, ones that have returned, more than are told apart, and those of threads.
 */
#include "test.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/macro.h"
#include "tracing.h"

enum { ADD = 5, LINEAR, BOUND, CUDA, TIMES = 10, DEEP = TRACE_OPERATORS_DEEP + 4 };

static const struct trace_spec operator= { .op = TRACE_OP_OPERATOR, .layer = TRACE_LAYER_TORCH };
static const struct trace_spec binding = { .op = TRACE_OP_BINDING, .layer = TRACE_LAYER_TORCH };
static const struct trace_spec cuda = { .op = TRACE_OP_COPY,
					.flags = TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT,
					.layer = TRACE_LAYER_CUDA,
					.result = TRACE_RESULT_CUDA };

enum step { GIVE, CALL_CUDA, CALL_ADD, CALL_THROWING, THROW, CALL_ITSELF };

static __thread jmp_buf caught;

static int act(uint64_t step, uint64_t left, _unused_ uint64_t c, _unused_ uint64_t d, _unused_ uint64_t e,
	       _unused_ uint64_t f)
{
	switch ((enum step)step) {
	case CALL_CUDA:
		traced_third(GIVE, 0, 0, 0, 0, 0);
		break;
	case CALL_ADD:
		traced_inner(CALL_CUDA, 0, 0, 0, 0, 0);
		traced_third(GIVE, 0, 0, 0, 0, 0);
		break;
	case CALL_THROWING:
		if (setjmp(caught) == 0)
			traced_inner(THROW, 0, 0, 0, 0, 0);
		traced_third(GIVE, 0, 0, 0, 0, 0);
		break;
	case THROW:
		longjmp(caught, 1);
	case CALL_ITSELF:
		if (left > 0)
			traced_inner(CALL_ITSELF, left - 1, 0, 0, 0, 0);
		else
			traced_third(GIVE, 0, 0, 0, 0, 0);
		break;
	case GIVE:
		break;
	}
	return 0;
}

static struct tracing *start(void **state)
{
	struct tracing *tracing = tracing_of(state);

	traced_body = act;
	tracing_attach(tracing, (const void *)traced_outer, LINEAR, &operator);
	tracing_attach(tracing, (const void *)traced_inner, ADD, &operator);
	tracing_attach(tracing, (const void *)traced_fourth, BOUND, &binding);
	tracing_attach(tracing, (const void *)traced_third, CUDA, &cuda);
	return tracing;
}

/* Sums of a process's operator over all its incarnations. */
static struct trace_operator counted(const struct tracing *tracing, pid_t pid, uint16_t call)
{
	int map = attach_map_fd(tracing->backend, "operators");
	struct trace_operator sum = { 0 }, one;
	struct trace_stat_key key, next;
	int r = bpf_map_get_next_key(map, NULL, &next);

	for (; r == 0; r = bpf_map_get_next_key(map, &key, &next)) {
		key = next;
		if (key.tgid != (uint32_t)pid || key.call != call || bpf_map_lookup_elem(map, &key, &one))
			continue;
		sum.calls += one.calls;
		sum.outermost += one.outermost;
	}
	return sum;
}

static void check(const struct tracing *tracing, pid_t pid, uint16_t call, uint64_t calls, uint64_t outermost)
{
	struct trace_operator sum = counted(tracing, pid, call);

	assert_int_equal(sum.calls, calls);
	assert_int_equal(sum.outermost, outermost);
}

static void within(const struct tracing *tracing, pid_t pid, unsigned i, uint16_t innermost,
		   uint16_t outermost, uint8_t n)
{
	const union tracing_event *event = tracing_event(tracing, TRACE_EVENT_CALL, CUDA, pid, i);

	assert_non_null(event);
	assert_int_equal(event->header.operator, innermost);
	assert_int_equal(event->header.operator_outer, outermost);
	assert_int_equal(event->header.operators, n);
}

/* ---- nesting ---- */

static void call_nested(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++) {
		traced_outer(CALL_ADD, 0, 0, 0, 0, 0);
		traced_fourth(CALL_CUDA, 0, 0, 0, 0, 0);
	}
}

static void calls_know_their_operators(void **state)
{
	struct tracing *tracing = start(state);
	pid_t pid;

	assert_int_equal(traced_run(call_nested, NULL, &pid), 0);
	check(tracing, pid, LINEAR, TIMES, TIMES);
	check(tracing, pid, ADD, TIMES, 0);
	check(tracing, pid, BOUND, TIMES, 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++) {
		within(tracing, pid, 3 * i, ADD, LINEAR, 2);
		within(tracing, pid, 3 * i + 1, LINEAR, LINEAR, 1);
		within(tracing, pid, 3 * i + 2, 0, 0, 0);
	}
	/* No entry of the sums of calls, no event, no frame. */
	assert_int_equal(tracing_stat(tracing, pid, ADD).count, 0);
	assert_null(tracing_event(tracing, TRACE_EVENT_CALL, ADD, pid, 0));
	assert_int_equal(tracing_counters(tracing).abandoned, 0);
}

/* ---- operators that are left ---- */

static void call_throwing(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++)
		traced_outer(CALL_THROWING, 0, 0, 0, 0, 0);
}

static void what_an_exception_leaves_has_ended(void **state)
{
	struct tracing *tracing = start(state);
	pid_t pid;

	assert_int_equal(traced_run(call_throwing, NULL, &pid), 0);
	check(tracing, pid, LINEAR, TIMES, TIMES);
	check(tracing, pid, ADD, TIMES, 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++)
		within(tracing, pid, i, LINEAR, LINEAR, 1);
}

/* Overwrites the stack below, as any call does sooner or later, and calls CUDA from there. */
static __attribute__((noinline)) void call_deep(void)
{
	volatile char room[4096];

	for (unsigned i = 0; i < sizeof(room); i++)
		room[i] = 0;
	traced_third(GIVE, room[0], 0, 0, 0, 0);
}

/* Leaves the stack below as it is. */
static __attribute__((noinline)) void call_below(void)
{
	char room[4096];

	asm volatile("" : : "r"(room) : "memory");
	traced_third(GIVE, 0, 0, 0, 0, 0);
}

static void call_after(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++) {
		traced_inner(CALL_CUDA, 0, 0, 0, 0, 0);
		call_deep();
		traced_outer(CALL_ADD, 0, 0, 0, 0, 0);
		call_below();
	}
}

static void what_is_deeper_than_an_ended_operator_is_not_its(void **state)
{
	struct tracing *tracing = start(state);
	pid_t pid;

	assert_int_equal(traced_run(call_after, NULL, &pid), 0);
	check(tracing, pid, ADD, 2 * TIMES, TIMES);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++) {
		within(tracing, pid, 5 * i, ADD, ADD, 1);
		within(tracing, pid, 5 * i + 2, ADD, LINEAR, 2);
		within(tracing, pid, 5 * i + 3, LINEAR, LINEAR, 1);
#if defined(__x86_64__)
		within(tracing, pid, 5 * i + 1, 0, 0, 0);
		within(tracing, pid, 5 * i + 4, 0, 0, 0);
#endif
	}
}

/* ---- limits ---- */

static void call_itself(_unused_ void *userdata)
{
	traced_outer(CALL_ADD, 0, 0, 0, 0, 0);
	traced_inner(CALL_ITSELF, DEEP - 1, 0, 0, 0, 0);
	traced_outer(CALL_CUDA, 0, 0, 0, 0, 0);
}

static void too_many_within_each_other_are_all_counted(void **state)
{
	struct tracing *tracing = start(state);
	pid_t pid;

	assert_int_equal(traced_run(call_itself, NULL, &pid), 0);
	check(tracing, pid, ADD, DEEP + 1, 1);
	check(tracing, pid, LINEAR, 2, 2);
	tracing_drain(tracing);
	within(tracing, pid, 2, ADD, ADD, TRACE_OPERATORS_DEEP);
	within(tracing, pid, 3, LINEAR, LINEAR, 1);
}

static void *call_from_thread(_unused_ void *userdata)
{
	traced_inner(CALL_CUDA, 0, 0, 0, 0, 0);
	return NULL;
}

enum { THREADS = 100 };

static void call_from_threads(_unused_ void *userdata)
{
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, call_from_thread, NULL))
			_exit(1);
		pthread_join(thread, NULL);
	}
}

/* There is room for fewer than that at once. */
static void threads_that_end_make_room(void **state)
{
	struct tracing *tracing = start(state);
	struct trace_control *control = attach_control(tracing->backend);
	pid_t pid;

	assert_int_equal(traced_run(call_from_threads, NULL, &pid), 0);
	check(tracing, pid, ADD, THREADS, THREADS);
	assert_int_equal(tracing_counters(tracing).lost[TRACE_TABLE_NESTS], 0);
	assert_int_equal(control->room[TRACE_TABLE_NESTS].used, 0);
}

static void an_entry_is_given_back(void **state)
{
	struct tracing *tracing = start(state);
	struct trace_control *control = attach_control(tracing->backend);
	uint64_t args[TRACE_FREE_ARGS] = { [TRACE_FREE_TABLE] = TRACE_TABLE_OPERATORS };
	int map = attach_map_fd(tracing->backend, "operators");
	struct trace_stat_key key;
	pid_t pid;

	assert_int_equal(traced_run(call_throwing, NULL, &pid), 0);
	assert_int_equal(control->room[TRACE_TABLE_OPERATORS].used, 2);
	while (bpf_map_get_next_key(map, NULL, &key) == 0) {
		args[TRACE_FREE_CALL] = (uint64_t)key.tgid << 32 | key.call;
		args[TRACE_FREE_INCARNATION] = key.incarnation;
		attach_entry_free(tracing->backend, args);
	}
	assert_int_equal(control->room[TRACE_TABLE_OPERATORS].used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(calls_know_their_operators),
		TRACING_TEST(what_an_exception_leaves_has_ended),
		TRACING_TEST(what_is_deeper_than_an_ended_operator_is_not_its),
		TRACING_TEST(too_many_within_each_other_are_all_counted),
		TRACING_TEST(threads_that_end_make_room),
		TRACING_TEST(an_entry_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
