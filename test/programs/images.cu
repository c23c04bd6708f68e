// SPDX-License-Identifier: Apache-2.0
/* Device code that `modules` loads by itself: there is no host code of it. */
extern "C" __global__ void triton_like(int *p)
{
	*p = 1;
}

__global__ void loaded(float *p, int n)
{
	p[n] = 2;
}
