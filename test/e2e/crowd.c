// SPDX-License-Identifier: Apache-2.0
/*
 * Fills the tables of who traces it.
 *
 *   crowd LIBRARY codes N      calls cuMemAlloc_v2 N times, each returns another error
 *   crowd LIBRARY processes N  N further processes; each and this one make every call, once
 *
 * LIBRARY is made of crowd_cuda.c. Waits for a line before and after the calls, and says "ready" each time.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef int call_fn(unsigned long code);

static const char *const names[] = {
#define CROWD_CALL(name_) #name_,
#include "crowd_calls.def"
};

static call_fn *function(void *library, const char *name)
{
	void *found = dlsym(library, name);
	call_fn *fn;

	if (!found)
		exit(1);
	memcpy(&fn, &found, sizeof(fn));
	return fn;
}

static void pause_once(void)
{
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

static void every_call(void *library)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		function(library, names[i])(1);
}

static void processes(void *library, long n)
{
	int told[2];
	char c;

	if (pipe(told) < 0)
		exit(1);
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			exit(1);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			every_call(library);
			if (write(told[1], "", 1) == 1)
				pause();
			_exit(1);
		}
	}
	for (long i = 0; i < n; i++)
		if (read(told[0], &c, 1) != 1)
			exit(1);
	every_call(library);
}

int main(int argc, char **argv)
{
	void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
	long n = library ? strtol(argv[3], NULL, 10) : 0;

	if (!library)
		return 2;
	pause_once();
	if (strcmp(argv[2], "processes") == 0)
		processes(library, n);
	for (long i = 1; strcmp(argv[2], "codes") == 0 && i <= n; i++)
		function(library, "cuMemAlloc_v2")((unsigned long)i);
	pause_once();
	return 0;
}
