// SPDX-License-Identifier: Apache-2.0
/*
 * Calls functions of a real library that finds no GPU, and tells exactly how often each gave which result.
 *
 *	driver_calls LIBRARY TRUTH <<< "NAME TIMES"...
 *
 * One pair a line, called in that order. Each argument is the address of a page of zeros, which does for pointers, handles and sizes
 * alike: without a device nearly every function gives its error before it looks. cuInit, whose flags must be 0, gets zeros. What it tells
 * goes to the file TRUTH, as JSON: {"pid":N,"calls":[{"api":NAME,"results":{"CODE":TIMES}}]}.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SIZE = 128, CODES = 8 };

/* More arguments than any of them takes; a callee that takes fewer does not look at the rest. */
typedef int (*function)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
			void *, void *);

struct results {
	int code[CODES];
	unsigned times[CODES];
	unsigned used;
};

static char zeros[65536];

static int call(function f, const char *name)
{
	void *a = strcmp(name, "cuInit") ? zeros : NULL;

	/* What one call leaves there must not become the next one's argument. */
	memset(zeros, 0, sizeof(zeros));
	return f(a, a, a, a, a, a, a, a, a, a, a, a);
}

static int results_add(struct results *results, int code)
{
	unsigned i;

	for (i = 0; i < results->used && results->code[i] != code; i++)
		;
	if (i == CODES)
		return -E2BIG;
	if (i == results->used) {
		results->code[i] = code;
		results->used++;
	}
	results->times[i]++;
	return 0;
}

static void results_print(const struct results *results, const char *name, bool first, FILE *truth)
{
	unsigned i;

	fprintf(truth, "%s\n{\"api\":\"%s\",\"results\":{", first ? "" : ",", name);
	for (i = 0; i < results->used; i++)
		fprintf(truth, "%s\"%d\":%u", i ? "," : "", results->code[i], results->times[i]);
	fprintf(truth, "}}");
}

static int call_all(void *library, FILE *truth)
{
	char name[NAME_SIZE];
	unsigned times, lines;

	for (lines = 0; scanf("%127s %u", name, &times) == 2; lines++) {
		struct results results = {};
		function f = (function)dlsym(library, name);

		if (!f) {
			fprintf(stderr, "driver_calls: the library has no %s\n", name);
			return -ENOENT;
		}
		while (times--) {
			if (results_add(&results, call(f, name)) < 0) {
				fprintf(stderr, "driver_calls: %s gives more than %d different results\n",
					name, CODES);
				return -E2BIG;
			}
		}
		results_print(&results, name, !lines, truth);
		fflush(truth);
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *library;
	FILE *truth;
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: driver_calls LIBRARY TRUTH <<< \"NAME TIMES\"...\n");
		return 2;
	}
	library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "driver_calls: %s\n", dlerror());
		return 1;
	}
	truth = fopen(argv[2], "we");
	if (!truth) {
		fprintf(stderr, "driver_calls: %s: %m\n", argv[2]);
		return 1;
	}
	fprintf(truth, "{\"pid\":%d,\"calls\":[", getpid());
	r = call_all(library, truth);
	fprintf(truth, "\n]}\n");
	if (fclose(truth) || r < 0)
		return 1;
	/* Destructors of a driver that never came up are no part of this. */
	_exit(0);
}
