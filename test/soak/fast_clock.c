// SPDX-License-Identifier: Apache-2.0
/*
 * A preloaded library in whose process time runs FAST_CLOCK_RATE times as fast as it does, from the moment at
 * which CLOCK_MONOTONIC was FAST_CLOCK_SINCE nanoseconds: what clocks tell, and what waits take. Processes
 * with the same two variables agree. CPU time is as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define NSEC INT64_C(1000000000)

enum { CLOCKS = 12, FDS_MAX = 4096 };

static int64_t rate = 1;
static int64_t bases[CLOCKS]; /* what each clock told at that moment */
static unsigned char clock_of[FDS_MAX]; /* of a timer's descriptor */

#define REAL(function)                     \
	static __typeof__(&function) real; \
	if (!real)                         \
	*(void **)&real = dlsym(RTLD_NEXT, #function)

static int64_t from_timespec(const struct timespec *t)
{
	/* Far future, as "never" is written. */
	return t->tv_sec > INT64_MAX / NSEC / 4 ? INT64_MAX / 4 : t->tv_sec * NSEC + t->tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC };
}

static int real_gettime(clockid_t clock, struct timespec *ret)
{
	REAL(clock_gettime);
	return real(clock, ret);
}

/* CPU times are not. */
static bool is_fast(clockid_t clock)
{
	return clock >= 0 && clock < CLOCKS && clock != CLOCK_PROCESS_CPUTIME_ID &&
	       clock != CLOCK_THREAD_CPUTIME_ID;
}

__attribute__((constructor)) static void begin(void)
{
	const char *rate_text = getenv("FAST_CLOCK_RATE"), *since_text = getenv("FAST_CLOCK_SINCE");
	struct timespec mono, now;

	if (!rate_text || !since_text)
		return;
	for (clockid_t clock = 0; clock < CLOCKS; clock++) {
		if (!is_fast(clock) || real_gettime(CLOCK_MONOTONIC, &mono) < 0 ||
		    real_gettime(clock, &now) < 0)
			continue;
		bases[clock] = from_timespec(&now) - (from_timespec(&mono) - atoll(since_text));
	}
	rate = atoll(rate_text);
}

static int64_t fast(clockid_t clock, int64_t ns)
{
	return bases[clock] + (ns - bases[clock]) * rate;
}

static int64_t slow(clockid_t clock, int64_t ns)
{
	return bases[clock] + (ns - bases[clock]) / rate;
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = real_gettime(clock, ret);

	if (r == 0 && is_fast(clock))
		*ret = to_timespec(fast(clock, from_timespec(ret)));
	return r;
}

PUBLIC time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

PUBLIC int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}

PUBLIC int timerfd_create(clockid_t clock, int flags)
{
	int fd;

	REAL(timerfd_create);
	fd = real(clock, flags);
	if (fd >= FDS_MAX)
		abort();
	if (fd >= 0)
		clock_of[fd] = (unsigned char)clock;
	return fd;
}

PUBLIC int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec its = { .it_interval = to_timespec(from_timespec(&new->it_interval) / rate) };
	int64_t value = from_timespec(&new->it_value), ns;

	REAL(timerfd_settime);
	if (value) {
		ns = flags & TFD_TIMER_ABSTIME ? slow(clock_of[fd], value) : value / rate;
		its.it_value = to_timespec(ns > 0 ? ns : 1); /* 0 would end the timer */
	}
	return real(fd, flags, &its, old);
}

static int slow_ms(int ms)
{
	return ms <= 0 ? ms : (int)((ms + rate - 1) / rate);
}

static const struct timespec *slow_span(const struct timespec *span, struct timespec *buffer)
{
	if (!span)
		return NULL;
	*buffer = to_timespec(from_timespec(span) / rate);
	return buffer;
}

PUBLIC int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	REAL(epoll_wait);
	return real(fd, events, max, slow_ms(ms));
}

PUBLIC int epoll_pwait(int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	REAL(epoll_pwait);
	return real(fd, events, max, slow_ms(ms), mask);
}

PUBLIC int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *span,
			const sigset_t *mask)
{
	struct timespec buffer;

	REAL(epoll_pwait2);
	return real(fd, events, max, slow_span(span, &buffer), mask);
}

PUBLIC int poll(struct pollfd *fds, nfds_t n, int ms)
{
	REAL(poll);
	return real(fds, n, slow_ms(ms));
}

PUBLIC int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *span, const sigset_t *mask)
{
	struct timespec buffer;

	REAL(ppoll);
	return real(fds, n, slow_span(span, &buffer), mask);
}

PUBLIC int nanosleep(const struct timespec *span, struct timespec *left)
{
	struct timespec buffer;
	int r;

	REAL(nanosleep);
	r = real(slow_span(span, &buffer), left);
	if (r < 0 && errno == EINTR && left)
		*left = to_timespec(from_timespec(left) * rate);
	return r;
}

PUBLIC int usleep(useconds_t us)
{
	struct timespec span = to_timespec((int64_t)us * 1000);

	return nanosleep(&span, NULL);
}

/* The condition does not tell its clock: a moment of CLOCK_REALTIME is decades ahead of the other. */
PUBLIC int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock,
				  const struct timespec *restrict until)
{
	int64_t ns = from_timespec(until);
	clockid_t clock = ns < bases[CLOCK_REALTIME] ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	struct timespec buffer = to_timespec(slow(clock, ns));

	REAL(pthread_cond_timedwait);
	return real(cond, lock, &buffer);
}
