// SPDX-License-Identifier: Apache-2.0
/* Calls the functions of named.c: @1 rounds, recursing to depth @3, and then waits for @2 seconds. */
#include "named.h"

#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, depth = argc > 3 ? atoi(argv[3]) : 4;

	for (int i = 0; i < rounds; i++) {
		named_outer(i, "hello");
		named_leaf(-1, "text");
		named_recursive(depth);
		free(named_alloc(20UL * (unsigned long)i));
		cpp_named(i);
	}
	if (argc > 2)
		sleep((unsigned)atoi(argv[2]));
	return 0;
}
