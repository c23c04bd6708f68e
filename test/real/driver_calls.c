// SPDX-License-Identifier: Apache-2.0
/*
 * Calls functions of a real library that finds no GPU, and tells exactly how often each gave which result.
 *
 *	driver_calls LIBRARY TRUTH <<< "NAME TIMES [LOOKUP VERSION FLAGS]"...
 *
 * One function a line, called in that order. With LOOKUP, which is cuGetProcAddress or cuGetProcAddress_v2,
 * it is what that function gives for name, version and flags; it is told under the name by which the library
 * exports it. What is not found is not called.
 *
 * Each argument is the address of a page of zeros, which does for pointers, handles and sizes alike: without
 * a device nearly every function gives its error before it looks. cuInit, whose flags must be 0, gets zeros.
 * What it tells goes to the file TRUTH, as JSON:
 * {"pid":N,"calls":[{"api":NAME,"results":{"CODE":TIMES}}],
 * "lookups":[{"name":NAME,"version":N,"flags":N,"result":CODE,"api":NAME}]}.
 *
 * Compiled with FUNCTIONS, the name of a file of lines F(NAME), it calls what it is linked with, and LIBRARY
 * is not opened: for runtimes that are linked into programs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SIZE = 128, LINE_SIZE = 512, CODES = 8 };

/* More arguments than any of them takes; a callee that takes fewer does not look at the rest. */
typedef int (*function)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
			void *, void *);
/* The second one has a last argument, where the first does not look. */
typedef int (*lookup)(const char *, void **, int, uint64_t, int *);

struct results {
	int code[CODES];
	unsigned times[CODES];
	unsigned used;
};

struct line {
	char name[NAME_SIZE], lookup[NAME_SIZE];
	unsigned times;
	int version;
	unsigned flags;
};

static char zeros[65536];
static FILE *lookups;

#ifdef FUNCTIONS
#define F(name) extern int name(void);
#include FUNCTIONS
#undef F

static const struct {
	const char *name;
	int (*function)(void);
} linked[] = {
#define F(name) { #name, name },
#include FUNCTIONS
};

static void *find(void *library, const char *name)
{
	(void)library;
	for (size_t i = 0; i < sizeof(linked) / sizeof(linked[0]); i++)
		if (strcmp(linked[i].name, name) == 0)
			return (void *)linked[i].function;
	return NULL;
}
#else
static void *find(void *library, const char *name)
{
	return dlsym(library, name);
}
#endif

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

/* What was asked for and what came of it, in the order of asking. */
static void note_lookup(const struct line *line, int code, const char *api)
{
	fprintf(lookups, "%s\n{\"name\":\"%s\",\"version\":%d,\"flags\":%u,\"result\":%d,\"api\":\"%s\"}",
		ftell(lookups) > 0 ? "," : "", line->name, line->version, line->flags, code, api);
}

/* NULL where nothing was found. The line's name becomes the one that the function is exported by. */
static function look_up(void *library, struct line *line)
{
	lookup get = (lookup)find(library, line->lookup);
	void *found = NULL;
	int code, status = 0;
	Dl_info info;

	code = get ? get(line->name, &found, line->version, line->flags, &status) : -ENOSYS;
	/* A place between exported functions has no name of its own. */
	if (code == 0 && found && (!dladdr(found, &info) || info.dli_saddr != found))
		info.dli_sname = "not exported";
	note_lookup(line, code, code == 0 && found ? info.dli_sname : "");
	if (code != 0 || !found)
		return NULL;
	snprintf(line->name, sizeof(line->name), "%s", info.dli_sname);
	return (function)found;
}

static int call_times(function f, const struct line *line, bool first, FILE *truth)
{
	struct results results = {};

	for (unsigned i = 0; i < line->times; i++) {
		if (results_add(&results, call(f, line->name)) < 0) {
			fprintf(stderr, "driver_calls: %s gives more than %d different results\n", line->name,
				CODES);
			return -E2BIG;
		}
	}
	results_print(&results, line->name, first, truth);
	fflush(truth);
	return 0;
}

/* How many were called, 0 or 1; -errno. */
static int call_line(void *library, const char *text, bool first, FILE *truth)
{
	struct line line = {};
	int n = sscanf(text, "%127s %u %127s %d %u", line.name, &line.times, line.lookup, &line.version,
		       &line.flags);
	function f;
	int r;

	if (n != 2 && n != 5) {
		fprintf(stderr, "driver_calls: no line of a plan: %s", text);
		return -EINVAL;
	}
	f = n == 5 ? look_up(library, &line) : (function)find(library, line.name);
	if (!f && n == 5)
		return 0;
	if (!f) {
		fprintf(stderr, "driver_calls: the library has no %s\n", line.name);
		return -ENOENT;
	}
	r = call_times(f, &line, first, truth);
	return r < 0 ? r : 1;
}

static int call_all(void *library, FILE *truth)
{
	char text[LINE_SIZE];
	int r = 0, called = 0;

	while (r >= 0 && fgets(text, sizeof(text), stdin)) {
		r = call_line(library, text, called == 0, truth);
		called += r;
	}
	return r;
}

static int tell(void *library, FILE *truth)
{
	char *text = NULL;
	size_t n;
	int r;

	lookups = open_memstream(&text, &n);
	if (!lookups)
		return -errno;
	fprintf(truth, "{\"pid\":%d,\"calls\":[", getpid());
	r = call_all(library, truth);
	fclose(lookups);
	fprintf(truth, "\n],\"lookups\":[%s]}\n", text);
	free(text);
	return r;
}

int main(int argc, char **argv)
{
	void *library = NULL;
	FILE *truth;
	int r;

	if (argc != 3) {
		fprintf(stderr,
			"usage: driver_calls LIBRARY TRUTH <<< \"NAME TIMES [LOOKUP VERSION FLAGS]\"...\n");
		return 2;
	}
#ifndef FUNCTIONS
	library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "driver_calls: %s\n", dlerror());
		return 1;
	}
#endif
	truth = fopen(argv[2], "we");
	if (!truth) {
		fprintf(stderr, "driver_calls: %s: %m\n", argv[2]);
		return 1;
	}
	r = tell(library, truth);
	if (fclose(truth) || r < 0)
		return 1;
	/* Destructors of a driver that never came up are no part of this. */
	_exit(0);
}
