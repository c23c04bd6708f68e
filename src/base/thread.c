// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

int thread_start(size_t stack_bytes, void *(*run)(void *), void *userdata, pthread_t *ret_thread)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r = pthread_attr_init(&attributes);

	if (r != 0)
		return -r;
	r = pthread_attr_setstacksize(&attributes, stack_bytes);
	if (r == 0) {
		/* The thread inherits the mask: only the main loop handles signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = pthread_create(ret_thread, &attributes, run, userdata);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -r;
}

/*
 * Polls: pthread_timedjoin_np() uses the time of day, which may be set meanwhile, and pthread_clockjoin_np()
 * is not known to gcc 12's thread sanitizer.
 */
bool thread_join(pthread_t thread, int64_t patience_ns)
{
	int64_t end = clock_mono_ns() + patience_ns;
	int r;

	while ((r = pthread_tryjoin_np(thread, NULL)) == EBUSY && clock_mono_ns() < end)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = NSEC_PER_MSEC }, NULL);
	return r == 0;
}
