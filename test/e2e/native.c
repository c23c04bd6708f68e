// SPDX-License-Identifier: Apache-2.0
/*
 * Calls cudaMalloc from stacks of many kinds, with a size of its own each, and says what the C library's own
 * unwinder has at that moment: lines "BYTES FILE+OFFSET...", the innermost caller first.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 512, FIRST = 1000, TRIES = 100 };

extern int cudaMalloc(void **address, size_t n);
void allocate(void);

static FILE *truth;
static size_t bytes = FIRST;

/* Keeps a call from being the last thing that a function does. */
#define AFTER() __asm__ volatile("" ::: "memory")

static void say(void *address)
{
	Dl_info info;

	/* Within the instruction that makes the call. */
	if (dladdr((char *)address - 1, &info) && info.dli_fname)
		fprintf(truth, " %s+%td", info.dli_fname, (char *)address - 1 - (char *)info.dli_fbase);
	else
		fputs(" ?", truth);
}

/* What @allocate is called from, then the call. */
void allocate(void)
{
	void *frames[FRAMES], *address;
	int n = backtrace(frames, FRAMES);

	fprintf(truth, "%zu", ++bytes);
	for (int i = 1; i < n; i++)
		say(frames[i]);
	fputc('\n', truth);
	if (cudaMalloc(&address, bytes) != 0)
		abort();
	AFTER();
}

static int deep(int n, volatile int *sum)
{
	if (n == 0)
		allocate();
	else
		*sum += deep(n - 1, sum);
	AFTER();
	return *sum;
}

/* A frame whose size is not known when it is compiled. */
static void large(size_t n)
{
	volatile char array[n];

	array[0] = array[n - 1] = 1;
	allocate();
	AFTER();
}

/* The stack pointer is aligned by hand. */
static void aligned(void)
{
	_Alignas(64) volatile char array[640];

	array[0] = 1;
	(void)array[0];
	allocate();
	AFTER();
}

/* Arguments on the stack. */
static void many(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	volatile int sum = a + b + c + d + e + f + g + h + i;

	(void)sum;
	allocate();
	AFTER();
}

static int compare(const void *a, const void *b)
{
	static bool once;

	if (!once) {
		once = true;
		allocate();
	}
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int signal)
{
	(void)signal;
	allocate();
	AFTER();
}

static void interrupted(void)
{
	raise(SIGUSR1);
	AFTER();
}

/* Code that was made while the program runs, keeps a frame pointer, and is named by a perf map. */
static void made(void)
{
#ifdef __x86_64__
	/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
	static const uint32_t code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif
	void *page = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = page == MAP_FAILED ? NULL : fopen(path, "wx");
	if (!map)
		abort();
	memcpy(page, code, sizeof(code));
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	fprintf(map, "%lx %zx made_by_hand\n", (unsigned long)page, sizeof(code));
	fclose(map);
	for (int i = 0; i < TRIES; i++) {
		((void (*)(void (*)(void)))page)(allocate);
		usleep(20000);
	}
	unlink(path);
}

/* Calls by way of a function of a library, and where it was. */
static void *pass(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW), *at = handle ? dlsym(handle, name) : NULL;

	if (!at)
		abort();
	/* The first ones tell gpusonde that there is code that it does not know. */
	for (int i = 0; i < TRIES; i++) {
		((void (*)(void (*)(void)))at)(allocate);
		usleep(20000);
	}
	dlclose(handle);
	return at;
}

/* The other library lies where the one before has lain. */
static void replace(const char *library, const char *other)
{
	void *before = pass(library, "through");

	if (pass(other, "passing") != before)
		fputs("moved\n", truth);
}

static void run(const char *library)
{
	int numbers[] = { 3, 1, 2 };
	volatile int sum = 0;

	allocate();
	deep(20, &sum);
	deep(100, &sum);
	deep(200, &sum);
	large(77);
	large(70000);
	aligned();
	many(1, 2, 3, 4, 5, 6, 7, 8, 9);
	qsort(numbers, 3, sizeof(*numbers), compare);
	interrupted();
	pass(library, "through");
}

/* FILE LIBRARY [OTHER]: what was seen, and native_through; "-": only made(); with OTHER: only replace(). */
int main(int argc, char **argv)
{
	void *address;

	truth = argc >= 3 ? fopen(argv[1], "w") : NULL;
	if (!truth)
		return 2;
	signal(SIGUSR1, on_signal);
	backtrace(&address, 1); /* loads what it needs */
	/* Till the rules of the program's files are read. */
	for (int i = 0; i < TRIES; i++) {
		if (cudaMalloc(&address, 1) != 0)
			return 1;
		usleep(10000);
	}
	if (argc > 3)
		replace(argv[2], argv[3]);
	else if (strcmp(argv[2], "-") == 0)
		made();
	else
		run(argv[2]);
	return fclose(truth) != 0;
}
