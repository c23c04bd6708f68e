// SPDX-License-Identifier: Apache-2.0
/*
 * Calls functions of a made-up library, and looks whether each got its arguments and gave the result that it
 * was asked for.
 *
 *	caller LIBRARY TRUTH <<< "NAME TIMES"...
 *
 * The file TRUTH gets {"pid":N,"calls":[{"api":NAME,"results":{"CODE":TIMES},"size":N}]}; size: third
 * arguments of calls that gave 0, added up. Exit status 1, and a line that says why, when a call did not do
 * what it should.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "body.h"

enum { RESULTS = 4 };

typedef int function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		     uint64_t);

static int call(const char *name, function *fn, struct unknown_last *last, unsigned k, uint64_t *size)
{
	const uint64_t a[UNKNOWN_ARGUMENTS] = { 0x7000000000001000 + k,
						0xffffffff00000001 + k,
						100 + 7 * k,
						k & 1,
						0x8000000000000000 + k,
						UINT64_MAX - k,
						UINT64_C(0x600000006) + k,
						k,
						0x7777777777777777 };
	uint64_t before = last->calls;
	int result = fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);

	if (result != (int)(k & 3) || last->calls != before + 1 ||
	    memcmp(last->arguments, a, sizeof(a)) != 0) {
		fprintf(stderr, "%s, call %u: result %d, %llu bodies, first argument 0x%llx\n", name, k,
			result, (unsigned long long)(last->calls - before),
			(unsigned long long)last->arguments[0]);
		exit(EXIT_FAILURE);
	}
	*size += result == 0 ? a[2] : 0;
	return result;
}

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	return found;
}

int main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	FILE *truth = library ? fopen(argv[2], "w") : NULL;
	struct unknown_last *last;
	const char *comma = "";
	char name[128];
	unsigned times;

	if (!truth) {
		fprintf(stderr, "%s\n", library ? argv[2] : dlerror());
		return EXIT_FAILURE;
	}
	last = find(library, "unknown_last");
	fprintf(truth, "{\"pid\":%d,\"calls\":[", (int)getpid());
	while (scanf("%127s %u", name, &times) == 2) {
		function *fn = (function *)(uintptr_t)find(library, name);
		unsigned results[RESULTS] = { 0 };
		uint64_t size = 0;

		for (unsigned k = 0; k < times; k++)
			results[call(name, fn, last, k, &size)]++;
		fprintf(truth,
			"%s{\"api\":\"%s\",\"results\":{\"0\":%u,\"1\":%u,\"2\":%u,\"3\":%u},\"size\":%llu}",
			comma, name, results[0], results[1], results[2], results[3],
			(unsigned long long)size);
		comma = ",";
	}
	fprintf(truth, "]}\n");
	return fclose(truth) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
