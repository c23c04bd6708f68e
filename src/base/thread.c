// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

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
		/* The thread inherits the mask: signals are the main loop's. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = pthread_create(ret_thread, &attributes, run, userdata);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -r;
}

bool thread_join(pthread_t thread, int64_t patience_ns)
{
	struct timespec until;
	int64_t end;

	/* Not by the time of day, which may be set meanwhile. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	end = until.tv_nsec + patience_ns;
	until.tv_sec += end / NSEC_PER_SEC;
	until.tv_nsec = end % NSEC_PER_SEC;
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}
