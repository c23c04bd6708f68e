// SPDX-License-Identifier: Apache-2.0
#pragma once

/* The kernel that all of these programs launch. */
extern "C" __global__ void vector_add(const float *a, const float *b, float *sum, int count)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < count)
		sum[i] = a[i] + b[i];
}
