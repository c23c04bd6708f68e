// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses its devices itself, as programs do that set CUDA_VISIBLE_DEVICES before they use CUDA.
 *
 *   chooses LIBRARY STEP...
 *     set=NAME=VALUE    setenv()
 *     put=NAME=VALUE    putenv()
 *     unset=NAME        unsetenv()
 *     clear             clearenv()
 *     load              loads the driver, LIBRARY
 *     init              cuInit, a context on its first device
 *     alloc             an allocation
 *     fork              what follows is done by a child, which this process waits for
 *     wait              says "ready", and waits for a line
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path;
static void *library;

static void fail(const char *what)
{
	fprintf(stderr, "chooses: %s\n", what);
	exit(1);
}

static void function(const char *name, void *ret_function)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found)
		fail(name);
	memcpy(ret_function, &found, sizeof(found));
}

static void set(char *variable)
{
	char *value = strchr(variable, '=');

	if (!value)
		fail("set=NAME=VALUE");
	*value = '\0';
	setenv(variable, value + 1, 1);
	*value = '=';
}

static void load(void)
{
	library = dlopen(path, RTLD_NOW);
	if (!library)
		fail(dlerror());
}

static void init(void)
{
	int (*cuInit)(unsigned), (*cuCtxCreate)(void **, unsigned, int);
	void *context;

	function("cuInit", &cuInit);
	function("cuCtxCreate_v2", &cuCtxCreate);
	if (cuInit(0) || cuCtxCreate(&context, 0, 0))
		fail("CUDA");
}

static void alloc(void)
{
	int (*cuMemAlloc)(unsigned long *, size_t);
	unsigned long address;

	function("cuMemAlloc_v2", &cuMemAlloc);
	if (cuMemAlloc(&address, 4096))
		fail("cuMemAlloc");
}

static void be_forked(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail("fork");
	if (child == 0)
		return;
	exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
}

static void step(char *word)
{
	if (strncmp(word, "set=", 4) == 0)
		set(word + 4);
	else if (strncmp(word, "put=", 4) == 0)
		putenv(word + 4);
	else if (strncmp(word, "unset=", 6) == 0)
		unsetenv(word + 6);
	else if (strcmp(word, "clear") == 0)
		clearenv();
	else if (strcmp(word, "load") == 0)
		load();
	else if (strcmp(word, "init") == 0)
		init();
	else if (strcmp(word, "alloc") == 0)
		alloc();
	else if (strcmp(word, "fork") == 0)
		be_forked();
	else if (strcmp(word, "wait") == 0)
		puts("ready"), fflush(stdout), getchar();
	else
		fail(word);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("no library");
	path = argv[1];
	for (int i = 2; i < argc; i++)
		step(argv[i]);
	return 0;
}
