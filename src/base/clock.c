// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { BOOT, MONO, REAL, N_CLOCKS };

static const clockid_t clock_ids[N_CLOCKS] = {
	[BOOT] = CLOCK_BOOTTIME,
	[MONO] = CLOCK_MONOTONIC,
	[REAL] = CLOCK_REALTIME,
};

static _Atomic int64_t advanced_ns;
static _Atomic int64_t frozen_ns[N_CLOCKS];
static atomic_bool is_frozen;

static int64_t system_ns(int which)
{
	struct timespec ts = { 0 };

	/* Cannot fail: every kernel we run on has the three clocks. */
	clock_gettime(clock_ids[which], &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static int64_t now_ns(int which)
{
	return advanced_ns + (is_frozen ? frozen_ns[which] : system_ns(which));
}

int64_t clock_boot_ns(void)
{
	return now_ns(BOOT);
}

int64_t clock_mono_ns(void)
{
	return now_ns(MONO);
}

int64_t clock_real_ns(void)
{
	return now_ns(REAL);
}

void clock_offsets(struct clock_offsets *ret_offsets)
{
	struct clock_offsets best = { .error_ns = INT64_MAX };

	for (unsigned i = 0; i < 5; i++) {
		int64_t before = clock_mono_ns(), real = clock_real_ns(), boot = clock_boot_ns(),
			after = clock_mono_ns(), middle = before + (after - before) / 2;

		if (after - before < best.error_ns)
			best = (struct clock_offsets){ real - middle, boot - middle, after - before };
	}
	*ret_offsets = best;
}

int64_t clock_thread_cpu_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

void clock_advance(int64_t ns)
{
	advanced_ns += ns;
}

void clock_freeze(bool frozen)
{
	if (frozen && !is_frozen) {
		for (int which = 0; which < N_CLOCKS; which++)
			frozen_ns[which] = system_ns(which);
	}
	is_frozen = frozen;
}

void format_rfc3339(int64_t real_ns, char buf[static 32])
{
	int64_t ms = real_ns / NSEC_PER_MSEC - (real_ns % NSEC_PER_MSEC < 0);
	int64_t ms_of_second = (ms % 1000 + 1000) % 1000;
	time_t seconds = (time_t)((ms - ms_of_second) / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	/* The modulos change nothing; they show the compiler that the text fits. */
	snprintf(buf, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)(tm.tm_year + 1900) % 10000,
		 (unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100, (unsigned)ms_of_second % 1000);
}
