// SPDX-License-Identifier: Apache-2.0
/*
 * calls [TURNS [WAIT]]: a loop over cudaMalloc, cudaMemcpy, a launch, cudaDeviceSynchronize and cudaFree that prints how
 * often it called each, and what they returned:
 *
 *	{"pid":1,"calls":{"cudaMalloc":{"count":3,"errors":{"35":3}}}}
 *
 * With WAIT it prints "ready" first and waits for a line, so that somebody can attach before the first call.
 */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>

#include <cuda_runtime.h>

#include "kernel.cuh"

struct Count {
	unsigned long count = 0;
	std::map<int, unsigned long> errors;
};
static std::map<std::string, Count> counts;

static void called(const char *name, cudaError_t error)
{
	Count &count = counts[name];

	count.count++;
	if (error != cudaSuccess)
		count.errors[(int)error]++;
}

static void turn()
{
	const size_t bytes = 1 << 20;
	static char host[1 << 20];
	void *device = nullptr, *arguments[4] = {};
	int count = 0;

	arguments[0] = arguments[1] = arguments[2] = &device;
	arguments[3] = &count;
	called("cudaMalloc", cudaMalloc(&device, bytes));
	called("cudaMemcpy", cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
	called("cudaLaunchKernel", cudaLaunchKernel((const void *)vector_add, dim3(16, 2), dim3(64), arguments, 0, 0));
	called("cudaDeviceSynchronize", cudaDeviceSynchronize());
	called("cudaFree", cudaFree(device));
}

static void print()
{
	const char *between = "";

	std::printf("{\"pid\":%d,\"calls\":{", (int)getpid());
	for (const auto &[name, count] : counts) {
		const char *comma = "";

		std::printf("%s\"%s\":{\"count\":%lu,\"errors\":{", between, name.c_str(), count.count);
		for (const auto &[code, failed] : count.errors) {
			std::printf("%s\"%d\":%lu", comma, code, failed);
			comma = ",";
		}
		std::printf("}}");
		between = ",";
	}
	std::printf("}}\n");
}

int main(int argc, char **argv)
{
	const int turns = argc > 1 ? std::atoi(argv[1]) : 10;
	char line[64];

	if (argc > 2) {
		std::printf("ready\n");
		std::fflush(stdout);
		if (!std::fgets(line, sizeof(line), stdin))
			return 1;
	}
	for (int i = 0; i < turns; i++)
		turn();
	print();
	return 0;
}
