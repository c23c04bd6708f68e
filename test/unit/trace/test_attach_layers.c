// SPDX-License-Identifier: Apache-2.0
/*
 * Calls nest within their layer only: functions of three layers call each other, return, fail, jump, recurse
 * and are left by longjmp.
 */
#include "test.h"

#include <setjmp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "tracing.h"

/* Call numbers. TOP is of the layer above MIDDLE's, which is above CUDA's. */
enum { TOP = 5, MIDDLE, CUDA, CUDA_INNER, TAIL, TIMES = 10 };

#define RETURNS (TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT)
#define CALL(layer_, result_)                                                                    \
	{                                                                                        \
		.op = TRACE_OP_COPY, .flags = RETURNS, .layer = TRACE_LAYER_##layer_,            \
		.result = TRACE_RESULT_##result_,                                                \
		.operands = {                                                                    \
			[TRACE_OPERAND_SIZE] = { .from = TRACE_FROM_ARG, .arg = 1, .width = 8 }, \
		},                                                                               \
	}
static const struct trace_spec top = CALL(TORCH, INT), middle = CALL(NCCL, INT), cuda = CALL(CUDA, CUDA);
static const struct trace_spec pointer = CALL(NCCL, POINTER), none = CALL(NCCL, NONE);

/* What a function does: (step, size, result). */
enum step {
	GIVE, /* nothing but its result */
	CALL_CUDA, /* a call of CUDA, and one within it */
	CALL_CUDA_INNER,
	CALL_MIDDLE,
	CALL_ITSELF,
	JUMP, /* calls CUDA, which never returns */
	JUMP_AWAY,
};

static jmp_buf away;

static int act(uint64_t step, uint64_t size, uint64_t result, _unused_ uint64_t d, _unused_ uint64_t e,
	       _unused_ uint64_t f)
{
	switch ((enum step)step) {
	case CALL_CUDA:
		traced_third(CALL_CUDA_INNER, 3 * size, result, 0, 0, 0);
		break;
	case CALL_CUDA_INNER:
		traced_fourth(GIVE, 1, 0, 0, 0, 0);
		break;
	case CALL_MIDDLE:
		traced_inner(CALL_CUDA, size, result, 0, 0, 0);
		break;
	case CALL_ITSELF:
		traced_inner(CALL_CUDA, size, result, 0, 0, 0);
		break;
	case JUMP:
		traced_third(JUMP_AWAY, size, 0, 0, 0, 0);
		break;
	case JUMP_AWAY:
		longjmp(away, 1);
	case GIVE:
		break;
	}
	return (int)result;
}

static struct tracing *start(void **state, const struct trace_spec *of_middle)
{
	struct tracing *tracing = tracing_of(state);

	traced_body = act;
	tracing_attach(tracing, (const void *)traced_outer, TOP, &top);
	tracing_attach(tracing, (const void *)traced_inner, MIDDLE, of_middle);
	tracing_attach(tracing, (const void *)traced_third, CUDA, &cuda);
	tracing_attach(tracing, (const void *)traced_fourth, CUDA_INNER, &cuda);
	return tracing;
}

static void check(const struct tracing *tracing, pid_t pid, uint16_t call, uint64_t count, uint64_t nested)
{
	struct trace_stat stat = tracing_stat(tracing, pid, call);
	uint64_t timed = 0;

	assert_int_equal(stat.count, count);
	assert_int_equal(stat.nested, nested);
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		timed += stat.buckets[i];
	assert_int_equal(timed, count); /* each with its latency */
}

static void check_no_losses(const struct tracing *tracing)
{
	struct trace_counters c = tracing_counters(tracing);

	assert_int_equal(c.abandoned, 0);
	assert_int_equal(c.unmatched, 0);
	assert_int_equal(c.lost[TRACE_TABLE_LAYERS], 0);
	assert_int_equal(c.dropped, 0);
}

static const struct trace_call *event_of(const struct tracing *tracing, uint16_t call, pid_t pid, unsigned i)
{
	const union tracing_event *event = tracing_event(tracing, TRACE_EVENT_CALL, call, pid, i);

	assert_non_null(event);
	return &event->call;
}

/* ---- each layer by itself ---- */

static void call_all(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++) {
		traced_outer(CALL_MIDDLE, 100, i % 2, 0, 0, 0);
		traced_inner(CALL_CUDA, 1000, 0, 0, 0, 0);
		traced_third(CALL_CUDA_INNER, 7, 0, 0, 0, 0);
	}
}

static void each_layer_counts_its_own(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;

	assert_int_equal(traced_run(call_all, NULL, &pid), 0);
	check(tracing, pid, TOP, TIMES, 0);
	check(tracing, pid, MIDDLE, 2 * TIMES, 0);
	check(tracing, pid, CUDA, 3 * TIMES, 0);
	check(tracing, pid, CUDA_INNER, 0, 3 * TIMES);
	/* The half that fails moves nothing, in any layer. */
	assert_int_equal(tracing_stat(tracing, pid, TOP).bytes, TIMES / 2 * 100);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).bytes, TIMES / 2 * 100 + TIMES * 1000);
	assert_int_equal(tracing_stat(tracing, pid, CUDA).bytes, TIMES / 2 * 300 + TIMES * 3000 + TIMES * 7);
	assert_int_equal(tracing_errors(tracing, pid, TOP, 1), TIMES / 2);
	assert_int_equal(tracing_errors(tracing, pid, MIDDLE, 1), TIMES / 2);
	assert_int_equal(tracing_errors(tracing, pid, CUDA, 1), TIMES / 2);
	assert_true(tracing_stat(tracing, pid, TOP).total_ns > 0);
	check_no_losses(tracing);
}

static void events_name_the_enclosing_call(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;

	assert_int_equal(traced_run(call_all, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++) {
		const struct trace_call *above = event_of(tracing, TOP, pid, i);
		const struct trace_call *within = event_of(tracing, MIDDLE, pid, 2 * i);
		const struct trace_call *apart = event_of(tracing, MIDDLE, pid, 2 * i + 1);

		assert_int_equal(above->number, 3 * i + 1);
		assert_int_equal(above->header.enclosing, 0);
		assert_int_equal(within->number, 3 * i + 2);
		assert_int_equal(within->header.enclosing, above->number);
		assert_int_equal(apart->number, 3 * i + 3);
		assert_int_equal(apart->header.enclosing, 0);
		assert_int_equal(event_of(tracing, CUDA, pid, 3 * i)->header.enclosing, within->number);
		assert_int_equal(event_of(tracing, CUDA, pid, 3 * i + 1)->header.enclosing, apart->number);
		assert_int_equal(event_of(tracing, CUDA, pid, 3 * i + 2)->header.enclosing, 0);
		assert_int_equal(event_of(tracing, CUDA, pid, 3 * i)->number, 0);
		assert_int_equal(above->header.stack, 0);
	}
}

/* ---- recursion, jumps ---- */

static void call_itself(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++)
		traced_inner(CALL_ITSELF, 10, 0, 0, 0, 0);
}

static void a_call_within_its_own_layer_is_nested(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;

	assert_int_equal(traced_run(call_itself, NULL, &pid), 0);
	check(tracing, pid, MIDDLE, TIMES, TIMES);
	check(tracing, pid, CUDA, TIMES, 0);
	check_no_losses(tracing);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++)
		assert_int_equal(event_of(tracing, CUDA, pid, i)->header.enclosing,
				 event_of(tracing, MIDDLE, pid, i)->number);
}

static void call_tail(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++)
		traced_tail(GIVE, 10, i % 2, 0, 0, 0);
}

/* Both are at the same place of the stack, and return from it one after the other. */
static void a_jump_into_another_layer_is_a_call_of_it(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = act;
	tracing_attach(tracing, (const void *)traced_tail, TAIL, &middle);
	tracing_attach(tracing, (const void *)traced_inner, CUDA, &cuda);
	assert_int_equal(traced_run(call_tail, NULL, &pid), 0);
	check(tracing, pid, TAIL, TIMES, 0);
	check(tracing, pid, CUDA, TIMES, 0);
	assert_int_equal(tracing_errors(tracing, pid, TAIL, 1), TIMES / 2);
	assert_int_equal(tracing_errors(tracing, pid, CUDA, 1), TIMES / 2);
	check_no_losses(tracing);
	tracing_drain(tracing);
	for (unsigned i = 0; i < TIMES; i++)
		assert_int_equal(event_of(tracing, CUDA, pid, i)->header.enclosing,
				 event_of(tracing, TAIL, pid, i)->number);
}

/* ---- calls that are left ---- */

static void jump_out(_unused_ void *userdata)
{
	for (volatile unsigned i = 0; i < TIMES; i++) {
		if (setjmp(away) == 0)
			traced_inner(JUMP, 10, 0, 0, 0, 0);
		traced_inner(GIVE, 10, 0, 0, 0, 0);
	}
	if (setjmp(away) == 0)
		traced_inner(JUMP, 10, 0, 0, 0, 0);
	traced_third(GIVE, 10, 0, 0, 0, 0);
}

/* Neither layer's call returns; what comes after it at the same depth is in none of them. */
static void calls_left_are_abandoned_in_each_layer(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;

	assert_int_equal(traced_run(jump_out, NULL, &pid), 0);
	check(tracing, pid, MIDDLE, TIMES, 0);
	check(tracing, pid, CUDA, 1, 0);
	assert_int_equal(tracing_counters(tracing).abandoned, 2 * (TIMES + 1));
	tracing_drain(tracing);
	assert_int_equal(event_of(tracing, CUDA, pid, 0)->header.enclosing, 0);
}

static int catch_within(uint64_t step, uint64_t size, uint64_t result, uint64_t d, uint64_t e, uint64_t f)
{
	if (step == CALL_MIDDLE) {
		if (setjmp(away) == 0)
			traced_third(JUMP_AWAY, 1, 0, 0, 0, 0);
		traced_third(GIVE, 2, 0, 0, 0, 0);
		return 0;
	}
	return act(step, size, result, d, e, f);
}

static void call_and_catch(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++)
		traced_inner(CALL_MIDDLE, 10, 0, 0, 0, 0);
}

/* The call above goes on where a call of CUDA within it was left. */
static void a_call_may_catch_what_left_another_layer(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;

	traced_body = catch_within;
	assert_int_equal(traced_run(call_and_catch, NULL, &pid), 0);
	check(tracing, pid, MIDDLE, TIMES, 0);
	check(tracing, pid, CUDA, TIMES, 0);
	assert_int_equal(tracing_stat(tracing, pid, CUDA).bytes, 2 * TIMES);
	assert_int_equal(tracing_counters(tracing).abandoned, TIMES);
	assert_int_equal(tracing_counters(tracing).unmatched, 0);
}

/* ---- a call above loses its probes ---- */

static int pipes[2][2];

static int wait_in_call(uint64_t step, uint64_t size, uint64_t result, uint64_t d, uint64_t e, uint64_t f)
{
	char c = 0;

	if (step == CALL_MIDDLE) {
		assert_int_equal(write(pipes[0][1], &c, 1), 1);
		assert_int_equal(read(pipes[1][0], &c, 1), 1);
		traced_third(GIVE, 5, 0, 0, 0, 0);
		return 0;
	}
	return act(step, size, result, d, e, f);
}

static void call_once(_unused_ void *userdata)
{
	traced_inner(CALL_MIDDLE, 10, 0, 0, 0, 0);
}

static void a_call_without_its_probes_encloses_none(void **state)
{
	struct tracing *tracing = start(state, &middle);
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe(pipes[0]), 0);
	assert_int_equal(pipe(pipes[1]), 0);
	traced_body = wait_in_call;
	pid = fork();
	if (pid == 0) {
		call_once(NULL);
		_exit(0);
	}
	assert_int_equal(read(pipes[0][0], &c, 1), 1);
	assert_int_equal(attach_call_gone(tracing->backend, MIDDLE), 0);
	assert_int_equal(write(pipes[1][1], &c, 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check(tracing, pid, CUDA, 1, 0);
	tracing_drain(tracing);
	assert_int_equal(event_of(tracing, CUDA, pid, 0)->header.enclosing, 0);
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
}

/* ---- results ---- */

static void call_results(_unused_ void *userdata)
{
	for (unsigned i = 0; i < TIMES; i++)
		traced_inner(GIVE, 10, i % 5 == 0 ? 0 : 7, 0, 0, 0);
}

static void null_is_failure_where_a_pointer_is_returned(void **state)
{
	struct tracing *tracing = start(state, &pointer);
	pid_t pid;

	assert_int_equal(traced_run(call_results, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).count, TIMES);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).errors, 2);
	assert_int_equal(tracing_errors(tracing, pid, MIDDLE, TRACE_RESULT_NULL), 2);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).bytes, (TIMES - 2) * 10);
	tracing_drain(tracing);
	assert_int_equal(event_of(tracing, MIDDLE, pid, 0)->result, TRACE_RESULT_NULL);
	assert_int_equal(event_of(tracing, MIDDLE, pid, 1)->result, 0);
}

static void what_has_no_result_never_fails(void **state)
{
	struct tracing *tracing = start(state, &none);
	pid_t pid;

	assert_int_equal(traced_run(call_results, NULL, &pid), 0);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).errors, 0);
	assert_int_equal(tracing_stat(tracing, pid, MIDDLE).bytes, TIMES * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(each_layer_counts_its_own),
		TRACING_TEST(events_name_the_enclosing_call),
		TRACING_TEST(a_call_within_its_own_layer_is_nested),
		TRACING_TEST(a_jump_into_another_layer_is_a_call_of_it),
		TRACING_TEST(calls_left_are_abandoned_in_each_layer),
		TRACING_TEST(a_call_may_catch_what_left_another_layer),
		TRACING_TEST(a_call_without_its_probes_encloses_none),
		TRACING_TEST(null_is_failure_where_a_pointer_is_returned),
		TRACING_TEST(what_has_no_result_never_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
