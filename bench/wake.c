// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of waking up once a second and doing nothing, in CPU nanoseconds per wake-up: the minimum for any
 * program that samples at 1 Hz.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM = 3, TIMES = 15 };

static long long ran_ns(void)
{
	long long ns = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");

	if (!f || fscanf(f, "%lld", &ns) != 1)
		exit(EXIT_FAILURE);
	fclose(f);
	return ns;
}

int main(void)
{
	long long begin = 0;

	for (int i = 0; i < WARM + TIMES; i++) {
		if (i == WARM)
			begin = ran_ns();
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	printf("%lld\n", (ran_ns() - begin) / TIMES);
	return EXIT_SUCCESS;
}
