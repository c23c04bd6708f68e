// SPDX-License-Identifier: Apache-2.0
#include "agent/usage.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/fd.h"

static double clock_seconds(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (double)ts.tv_sec + (double)ts.tv_nsec / NSEC_PER_SEC;
}

static double timeval_seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / USEC_PER_SEC;
}

/* The second number of /proc/PID/statm, in pages. */
static double resident_bytes(pid_t pid)
{
	char path[64], text[128];
	struct cursor c;
	uint64_t pages;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (read_file(path, text, sizeof(text), &n) < 0)
		return 0;
	c = cursor_over(text, n);
	if (cursor_u64(&c, &pages) < 0)
		return 0;
	cursor_skip_space(&c);
	if (cursor_u64(&c, &pages) < 0)
		return 0;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void usage_read(const pid_t *children, unsigned n, struct usage *ret_usage)
{
	struct rusage ended = { 0 };
	clockid_t clock;

	getrusage(RUSAGE_CHILDREN, &ended);
	*ret_usage = (struct usage){
		.cpu_seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) + timeval_seconds(ended.ru_utime) +
			       timeval_seconds(ended.ru_stime),
		.resident_bytes = resident_bytes(getpid()),
	};
	for (unsigned i = 0; i < n; i++) {
		if (children[i] <= 0)
			continue;
		ret_usage->resident_bytes += resident_bytes(children[i]);
		if (clock_getcpuclockid(children[i], &clock) == 0)
			ret_usage->cpu_seconds += clock_seconds(clock);
	}
}
