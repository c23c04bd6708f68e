// SPDX-License-Identifier: Apache-2.0
/* The other half of kernels.cu: a static kernel, an anonymous namespace's and a template that are in both. */
#include "launch.cuh"

static __global__ void same(int *p)
{
	*p = 55;
}

namespace
{
__global__ void hidden(int *p)
{
	*p = 44;
}
}

template <typename T, int N>
__global__ void filled(T *p)
{
	p[threadIdx.x] = T(N);
}

void launch_others(Launched *launched)
{
	int *p = nullptr;

	LAUNCH(SAME, same, dim3(70), dim3(32), 0, p);
	LAUNCH(HIDDEN, hidden, dim3(60), dim3(32), 0, p);
	LAUNCH("_Z6filledIiLi4EEvPT_", (filled<int, 4>), dim3(20), dim3(4), 0, p);
}
