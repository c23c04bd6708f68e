// SPDX-License-Identifier: Apache-2.0
/* DEPTH: CPU time in ns of cudaDeviceSynchronize from that many functions deep, the least of many rounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 400, CALLS = 100 };

extern int cudaDeviceSynchronize(void);

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t measure(void)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t begin = now_ns(), ns;

		for (int k = 0; k < CALLS; k++)
			cudaDeviceSynchronize();
		ns = now_ns() - begin;
		least = ns < least ? ns : least;
	}
	return least / CALLS;
}

static __attribute__((noinline)) int64_t deep(long n)
{
	int64_t ns = n > 0 ? deep(n - 1) : measure();

	__asm__ volatile("" ::: "memory"); /* so that the call is not the last thing */
	return ns;
}

int main(int argc, char **argv)
{
	struct timespec second = { .tv_sec = 1 };

	if (argc != 2)
		return 2;
	/* The files' unwind rules are read meanwhile. */
	cudaDeviceSynchronize();
	nanosleep(&second, NULL);
	/* main() and what calls it are four, measure() is one, and deep(0) one of its own. */
	printf("%lld\n", (long long)deep(atol(argv[1]) - 5));
	return 0;
}
