// SPDX-License-Identifier: Apache-2.0
/*
 * How long a program that opens a library runs before its calls are probed: it calls a function continuously
 * and detects when calls become slow.
 *
 *	probe_delay LIBRARY SYMBOL
 *
 * Prints nanoseconds from before the library was opened; exit status 1: not within 5 s.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
	CALLS = 64,
	SLOW_NS = 80,
	IN_A_ROW = 8
}; /* without a probe a call takes 2 to 6 ns; several slow calls, so that preemption does not count */

static int64_t batch_ns(int (*function)(void))
{
	int64_t begin_ns = clock_mono_ns();

	for (int i = 0; i < CALLS; i++)
		function();
	return clock_mono_ns() - begin_ns;
}

int main(int argc, char **argv)
{
	int64_t begin_ns = clock_mono_ns(), now_ns = begin_ns, since_ns = 0;
	int (*function)(void) = NULL;
	int slow = 0;
	void *library;

	if (argc != 3)
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (library)
		*(void **)&function = dlsym(library, argv[2]);
	if (!function) {
		fprintf(stderr, "probe_delay: %s\n", dlerror());
		return 2;
	}
	for (; slow < IN_A_ROW && now_ns - begin_ns < 5 * NSEC_PER_SEC; now_ns = clock_mono_ns()) {
		if (batch_ns(function) < CALLS * SLOW_NS) {
			slow = 0;
			continue;
		}
		if (slow++ == 0)
			since_ns = now_ns;
	}
	printf("%" PRId64 "\n", since_ns - begin_ns);
	return slow == IN_A_ROW ? EXIT_SUCCESS : EXIT_FAILURE;
}
