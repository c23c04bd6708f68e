// SPDX-License-Identifier: Apache-2.0
/* Threads: how they are started, and how long they are waited for. */
#include "test.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/thread.h"

enum { STACK_BYTES = 256 << 10 };

static const int64_t patience_ns = 20 * NSEC_PER_SEC; /* far more than is needed */
static const int64_t brief_ns = NSEC_PER_SEC / 20;

static void *note_mask(void *userdata)
{
	pthread_sigmask(SIG_SETMASK, NULL, userdata);
	return NULL;
}

static void gets_no_signal_and_leaves_ours_alone(_unused_ void **state)
{
	sigset_t there, before, after;
	pthread_t thread;

	sigemptyset(&there);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(STACK_BYTES, note_mask, &there, &thread), 0);
	assert_true(thread_join(thread, patience_ns));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++) {
		if (s != SIGKILL && s != SIGSTOP)
			assert_int_equal(sigismember(&there, s), 1);
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
	}
}

static void says_why_it_cannot_start(_unused_ void **state)
{
	pthread_t thread;

	/* less than PTHREAD_STACK_MIN */
	assert_int_equal(thread_start(1, note_mask, NULL, &thread), -EINVAL);
}

static void *wait_for_leave(void *userdata)
{
	while (sem_wait(userdata) < 0)
		;
	return NULL;
}

static int64_t join_takes_ns(pthread_t thread, int64_t wait_ns, bool *ret_ended)
{
	int64_t begun = clock_mono_ns();

	*ret_ended = thread_join(thread, wait_ns);
	return clock_mono_ns() - begun;
}

static void waits_so_long_and_no_longer(_unused_ void **state)
{
	pthread_t thread;
	sem_t leave;
	bool ended;

	sem_init(&leave, 0, 0);
	assert_int_equal(thread_start(STACK_BYTES, wait_for_leave, &leave, &thread), 0);
	assert_in_range(join_takes_ns(thread, brief_ns, &ended), brief_ns, patience_ns / 2);
	assert_false(ended);
	assert_true(join_takes_ns(thread, 0, &ended) < patience_ns / 2);
	assert_false(ended);
	sem_post(&leave);
	assert_true(join_takes_ns(thread, patience_ns, &ended) < patience_ns / 2);
	assert_true(ended);
	sem_destroy(&leave);
}

static time_t step_s;

/* In place of the C library's: the time of day as it was before it was set. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (r == 0 && clock == CLOCK_REALTIME)
		ret->tv_sec -= step_s;
	return r;
}

static void waits_alike_when_the_time_of_day_is_set(_unused_ void **state)
{
	pthread_t thread;
	sem_t leave;
	bool ended;

	for (int hours = -1; hours <= 1; hours += 2) {
		step_s = (time_t)hours * 3600;
		sem_init(&leave, 0, 0);
		assert_int_equal(thread_start(STACK_BYTES, wait_for_leave, &leave, &thread), 0);
		assert_in_range(join_takes_ns(thread, brief_ns, &ended), brief_ns, patience_ns / 2);
		assert_false(ended);
		sem_post(&leave);
		assert_true(thread_join(thread, patience_ns));
		sem_destroy(&leave);
	}
	step_s = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gets_no_signal_and_leaves_ours_alone),
		cmocka_unit_test(says_why_it_cannot_start),
		cmocka_unit_test(waits_so_long_and_no_longer),
		cmocka_unit_test(waits_alike_when_the_time_of_day_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
