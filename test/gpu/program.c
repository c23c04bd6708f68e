// SPDX-License-Identifier: Apache-2.0
/*
 * A CUDA program that says exactly what it did. It needs no toolkit: libcuda.so.1 is opened at run time, and
 * its kernels are PTX.
 *
 *	program COMMAND [ARGUMENT...]
 *
 *	calls TURNS        allocates, copies, launches, frees and fails, TURNS times; checks what comes back
 *	busy SECONDS KERNEL_MS GAP_MS BYTES
 *	                   kernels and gaps of so many ms, on all multiprocessors, with BYTES allocated
 *	latency TURNS      launches an empty kernel and waits for it
 *	launches TURNS     launches empty kernels, and waits at the end
 *	copy BYTES         copies so many bytes to the device
 *
 * It prints one line of JSON: "pid", "calls" (for each function of the driver: count, errors by code, and
 * bytes that successful calls asked for or copied), "kernels" (launches by name), and what was measured.
 *
 * With PROGRAM_PAUSE in the environment it prints "ready" once libcuda is loaded, before the first call,
 * waits for a line, and prints "working" when the device is ready. "busy" then goes on until a line comes,
 * whatever SECONDS says. It waits for another line before it ends.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define MIB (UINT64_C(1) << 20)
#define NSEC_PER_SEC 1000000000.0
#define LONGEST_S 300.0

enum {
	NUMBERS = 4096,
	BLOCK = 256,
	CODES = 4,
	CHUNK = 64 << 20,
	MULTIPROCESSOR_COUNT = 16,
	TOO_MANY = 1 << 16
};

struct counted {
	const char *symbol;
	unsigned long count, bytes, failed[CODES];
	int code[CODES];
};

enum function {
#define F(name, parameters) FUNCTION_##name,
	FUNCTIONS(F)
#undef F
		FUNCTION_COUNT
};

static struct {
#define F(name, parameters) int(*name) parameters;
	FUNCTIONS(F)
#undef F
} driver;

static struct counted calls[FUNCTION_COUNT] = {
#define F(name, parameters) [FUNCTION_##name] = { .symbol = #name },
	FUNCTIONS(F)
#undef F
};

enum kernel { EMPTY, SPIN, ADD, KERNELS };
static const char *const kernel_names[KERNELS] = { "gpusonde_empty", "gpusonde_spin", "gpusonde_add" };
static struct {
	void *function;
	unsigned long launches;
} kernels[KERNELS];

static unsigned multiprocessors = 1;

/* Counts a call that has returned; what it returned. */
static int counted(enum function function, size_t bytes, int code)
{
	struct counted *c = &calls[function];
	int i = 0;

	c->count++;
	if (code == 0) {
		c->bytes += bytes;
		return 0;
	}
	while (i < CODES - 1 && c->code[i] != code && c->code[i] != 0)
		i++;
	c->code[i] = code;
	c->failed[i]++;
	return code;
}

#define CALL_BYTES(name, bytes, ...) counted(FUNCTION_##name, bytes, driver.name(__VA_ARGS__))
#define CALL(name, ...) CALL_BYTES(name, 0, __VA_ARGS__)

/* A call that must succeed. */
#define MUST(name, ...) must(#name, CALL(name, __VA_ARGS__))
#define MUST_BYTES(name, bytes, ...) must(#name, CALL_BYTES(name, bytes, __VA_ARGS__))

static void must(const char *name, int code)
{
	if (code == 0)
		return;
	fprintf(stderr, "program: %s gives CUDA error %d\n", name, code);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NSEC_PER_SEC;
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "program: %s\n", dlerror());
		exit(1);
	}
#define F(name, parameters)                                                  \
	*(void **)&driver.name = dlsym(library, #name);                      \
	if (!driver.name) {                                                  \
		fprintf(stderr, "program: libcuda.so.1 has no %s\n", #name); \
		exit(1);                                                     \
	}
	FUNCTIONS(F)
#undef F
}

static void begin(void)
{
	void *context, *module;
	int device, count = 1;

	MUST(cuInit, 0);
	MUST(cuDeviceGet, &device, 0);
	MUST(cuDeviceGetAttribute, &count, MULTIPROCESSOR_COUNT, device);
	multiprocessors = count > 0 ? (unsigned)count : 1;
	MUST(cuDevicePrimaryCtxRetain, &context, device);
	MUST(cuCtxSetCurrent, context);
	MUST(cuModuleLoadData, &module, ptx);
	for (int i = 0; i < KERNELS; i++)
		MUST(cuModuleGetFunction, &kernels[i].function, module, kernel_names[i]);
}

static void launch(enum kernel kernel, unsigned blocks, void *stream, void **arguments)
{
	MUST(cuLaunchKernel, kernels[kernel].function, blocks, 1, 1, BLOCK, 1, 1, 0, stream, arguments, NULL);
	kernels[kernel].launches++;
}

/* The sum of what the device made of them, after one kernel added 1 to each. */
static uint64_t add_on_device(uint64_t device, uint64_t other, void *stream)
{
	static uint32_t numbers[NUMBERS];
	uint32_t n = NUMBERS;
	uint64_t sum = 0;
	void *arguments[] = { &device, &n };

	for (uint32_t i = 0; i < NUMBERS; i++)
		numbers[i] = i;
	MUST_BYTES(cuMemcpyHtoD_v2, sizeof(numbers), device, numbers, sizeof(numbers));
	launch(ADD, NUMBERS / BLOCK, stream, arguments);
	MUST(cuStreamSynchronize, stream);
	MUST_BYTES(cuMemcpyDtoD_v2, sizeof(numbers), other, device, sizeof(numbers));
	MUST_BYTES(cuMemcpyDtoH_v2, sizeof(numbers), numbers, other, sizeof(numbers));
	for (uint32_t i = 0; i < NUMBERS; i++)
		sum += numbers[i];
	return sum;
}

static void do_calls(unsigned turns)
{
	const size_t bytes = NUMBERS * sizeof(uint32_t);
	uint64_t device, other, sum = 0;
	void *host, *stream;

	for (unsigned i = 0; i < turns; i++) {
		MUST_BYTES(cuMemAlloc_v2, bytes, &device, bytes);
		MUST_BYTES(cuMemAlloc_v2, bytes, &other, bytes);
		MUST_BYTES(cuMemHostAlloc, MIB, &host, MIB, 0);
		MUST(cuStreamCreate, &stream, 0);
		MUST_BYTES(cuMemsetD32_v2, bytes, device, 0, NUMBERS);
		sum += add_on_device(device, other, stream);
		CALL(cuMemAlloc_v2, &(uint64_t){ 0 }, (size_t)1 << 60); /* more than any device has */
		CALL(cuLaunchKernel, kernels[EMPTY].function, 1, 1, 1, TOO_MANY, 1, 1, 0, stream, NULL, NULL);
		MUST(cuStreamDestroy_v2, stream);
		MUST(cuMemFreeHost, host);
		MUST(cuMemFree_v2, other);
		MUST(cuMemFree_v2, device);
	}
	printf("\"sum\":%lu,\"sum_wanted\":%lu,", (unsigned long)sum,
	       (unsigned long)turns * (NUMBERS * (NUMBERS - 1UL) / 2 + NUMBERS));
}

/* Nothing is said or waited for where nobody asked for a pause. */
static void say(const char *word)
{
	if (getenv("PROGRAM_PAUSE"))
		printf("%s\n", word);
	fflush(stdout);
}

static void wait_for_line(void)
{
	char line[64];

	if (getenv("PROGRAM_PAUSE") && !fgets(line, sizeof(line), stdin))
		exit(1);
}

/* For so long; with a pause, until a line comes. */
static bool goes_on(double start, double seconds)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (!getenv("PROGRAM_PAUSE"))
		return now() - start < seconds;
	if (poll(&input, 1, 0) == 0)
		return now() - start < LONGEST_S;
	wait_for_line();
	return false;
}

/* Each kernel between two events, so that the device says how long it ran. */
static void do_busy(double seconds, double kernel_ms, double gap_ms, size_t bytes)
{
	uint64_t memory = 0, ns = (uint64_t)(kernel_ms * 1e6);
	void *before, *after, *arguments[] = { &ns };
	double start, total = 0;
	float ms;

	if (bytes)
		MUST_BYTES(cuMemAlloc_v2, bytes, &memory, bytes);
	MUST(cuEventCreate, &before, 0);
	MUST(cuEventCreate, &after, 0);
	start = now();
	while (goes_on(start, seconds)) {
		MUST(cuEventRecord, before, NULL);
		launch(SPIN, 2 * multiprocessors, NULL, arguments);
		MUST(cuEventRecord, after, NULL);
		MUST(cuCtxSynchronize);
		MUST(cuEventElapsedTime, &ms, before, after);
		total += (double)ms / 1e3;
		if (gap_ms > 0)
			usleep((useconds_t)(gap_ms * 1e3));
	}
	printf("\"seconds\":%.6f,\"device_seconds\":%.6f,", now() - start, total);
	if (bytes)
		MUST(cuMemFree_v2, memory);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void do_latency(unsigned turns)
{
	double *took = calloc(turns + 1, sizeof(*took));
	double start = now();

	if (!took)
		exit(1);
	for (unsigned i = 0; i < turns; i++) {
		double from = now();

		launch(EMPTY, 1, NULL, NULL);
		MUST(cuCtxSynchronize);
		took[i] = now() - from;
	}
	printf("\"seconds\":%.6f,", now() - start);
	qsort(took, turns, sizeof(*took), compare_doubles);
	printf("\"p50_us\":%.3f,", took[turns / 2] * 1e6);
	printf("\"p99_us\":%.3f,", took[turns - turns / 100 - 1] * 1e6);
	free(took);
}

static void do_launches(unsigned turns)
{
	double start = now();

	for (unsigned i = 0; i < turns; i++)
		launch(EMPTY, 1, NULL, NULL);
	MUST(cuCtxSynchronize);
	printf("\"seconds\":%.6f,", now() - start);
}

static void do_copy(uint64_t bytes)
{
	uint64_t device, done = 0;
	double start;
	void *host;

	MUST_BYTES(cuMemAlloc_v2, CHUNK, &device, CHUNK);
	MUST_BYTES(cuMemHostAlloc, CHUNK, &host, CHUNK, 0);
	start = now();
	for (; done < bytes; done += CHUNK)
		MUST_BYTES(cuMemcpyHtoD_v2, CHUNK, device, host, CHUNK);
	printf("\"seconds\":%.6f,\"copied_bytes\":%lu,", now() - start, (unsigned long)done);
	MUST(cuMemFreeHost, host);
	MUST(cuMemFree_v2, device);
}

static void print_calls(void)
{
	const char *between = "";

	printf("\"calls\":{");
	for (int i = 0; i < FUNCTION_COUNT; i++) {
		const struct counted *c = &calls[i];

		if (c->count == 0)
			continue;
		printf("%s\"%s\":{\"count\":%lu,\"bytes\":%lu,\"errors\":{", between, c->symbol, c->count,
		       c->bytes);
		for (int k = 0; k < CODES && c->code[k]; k++)
			printf("%s\"%d\":%lu", k ? "," : "", c->code[k], c->failed[k]);
		printf("}}");
		between = ",";
	}
	printf("},\"kernels\":{");
	between = "";
	for (int i = 0; i < KERNELS; i++) {
		if (kernels[i].launches == 0)
			continue;
		printf("%s\"%s\":%lu", between, kernel_names[i], kernels[i].launches);
		between = ",";
	}
	printf("}");
}

static bool do_command(int argc, char **argv)
{
	double n[4] = { 0 };

	for (int i = 2; i < argc && i < 6; i++)
		n[i - 2] = atof(argv[i]);
	if (argc == 3 && strcmp(argv[1], "calls") == 0)
		do_calls((unsigned)n[0]);
	else if (argc == 6 && strcmp(argv[1], "busy") == 0)
		do_busy(n[0], n[1], n[2], (size_t)n[3]);
	else if (argc == 3 && n[0] >= 1 && strcmp(argv[1], "latency") == 0)
		do_latency((unsigned)n[0]);
	else if (argc == 3 && strcmp(argv[1], "launches") == 0)
		do_launches((unsigned)n[0]);
	else if (argc == 3 && strcmp(argv[1], "copy") == 0)
		do_copy((uint64_t)n[0]);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	load();
	say("ready");
	wait_for_line();
	begin();
	say("working");
	printf("{\"pid\":%d,", (int)getpid());
	if (!do_command(argc, argv)) {
		fprintf(stderr, "usage: program calls TURNS | busy SECONDS KERNEL_MS GAP_MS BYTES | "
				"latency TURNS | launches TURNS | copy BYTES\n");
		return 2;
	}
	print_calls();
	printf("}\n");
	fflush(stdout);
	wait_for_line();
	return 0;
}
