// SPDX-License-Identifier: Apache-2.0
/*
 * A vector addition as everybody writes it, with <<<>>>: once, and whatever the calls return, which it prints.
 * Where there is a GPU, it checks the sum.
 */
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#include "kernel.cuh"

int main()
{
	const int count = 1 << 16;
	const size_t bytes = count * sizeof(float);
	std::vector<float> a(count, 1.5f), b(count, 2.25f), sum(count);
	float *device[3] = {};
	cudaError_t error = cudaSuccess;

	for (float *&memory : device)
		error = cudaMalloc(&memory, bytes);
	cudaMemcpy(device[0], a.data(), bytes, cudaMemcpyHostToDevice);
	cudaMemcpy(device[1], b.data(), bytes, cudaMemcpyHostToDevice);
	vector_add<<<(count + 255) / 256, 256>>>(device[0], device[1], device[2], count);
	cudaMemcpy(sum.data(), device[2], bytes, cudaMemcpyDeviceToHost);
	for (float *memory : device)
		cudaFree(memory);
	std::printf("{\"error\":%d,\"right\":%s}\n", (int)error, sum[count - 1] == 3.75f ? "true" : "false");
	return 0;
}
