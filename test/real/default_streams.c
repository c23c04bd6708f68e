// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the runtime as its headers have it: CUDA_API_PER_THREAD_DEFAULT_STREAM makes them call the twins
 * whose default stream is the thread's own. Tells in TRUTH, as driver_calls does, what it called by which
 * name.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

enum { MANY = 40 };

static struct {
	const char *name;
	int code;
	unsigned times;
} told[MANY];

static void tell(const char *name, int code)
{
	unsigned i;

	for (i = 0; i < MANY && told[i].name; i++)
		if (strcmp(told[i].name, name) == 0 && told[i].code == code)
			break;
	if (i == MANY)
		_exit(3);
	told[i].name = name;
	told[i].code = code;
	told[i].times++;
}

/* The name is what the header made of the function's. */
#define NAME_OF(function) #function
#define CALL(function, ...) tell(NAME_OF(function), (int)(function)(__VA_ARGS__))

static void call_all(cudaStream_t stream)
{
	static char from[64], to[64];
	const dim3 grid = { 1, 2, 3 }, block = { 4, 5, 6 };
	void *memory = to;
	void *args[] = { &memory };

	CALL(cudaMalloc, &memory, 64);
	CALL(cudaMemcpy, to, from, sizeof(to), cudaMemcpyHostToHost);
	CALL(cudaMemcpyAsync, to, from, sizeof(to), cudaMemcpyHostToHost, stream);
	CALL(cudaMemcpy2D, to, 8, from, 8, 8, 8, cudaMemcpyHostToHost);
	CALL(cudaMemset, to, 0, sizeof(to));
	CALL(cudaMemsetAsync, to, 0, sizeof(to), stream);
	CALL(cudaMallocAsync, &memory, 64, stream);
	CALL(cudaFreeAsync, to, stream);
	CALL(cudaLaunchKernel, (const void *)tell, grid, block, args, 7, stream);
	CALL(cudaStreamQuery, stream);
	CALL(cudaStreamSynchronize, stream);
	CALL(cudaDeviceSynchronize, );
	CALL(cudaFree, NULL);
}

int main(int argc, char **argv)
{
	FILE *truth = argc == 2 ? fopen(argv[1], "we") : NULL;

	if (!truth) {
		fprintf(stderr, "usage: default_streams TRUTH\n");
		return 2;
	}
	for (int i = 0; i < 3; i++)
		call_all(NULL);
	call_all(cudaStreamLegacy);
	call_all(cudaStreamPerThread);
	fprintf(truth, "{\"pid\":%d,\"calls\":[", getpid());
	for (unsigned i = 0; i < MANY && told[i].name; i++)
		fprintf(truth, "%s\n{\"api\":\"%s\",\"results\":{\"%d\":%u}}", i ? "," : "", told[i].name,
			told[i].code, told[i].times);
	fprintf(truth, "]}\n");
	return fclose(truth) != 0;
}
