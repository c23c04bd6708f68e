// SPDX-License-Identifier: Apache-2.0
/* Kernels of every kind; never run. test/real/cubins.py knows what is known of them before they are compiled. */
#include <cstdio>

__constant__ float table[100];
__device__ int counter;

extern "C" __global__ void plain(float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] *= 2.0f;
}

extern "C" __global__ void empty()
{
}

/* LONG_NAME and LONGER_NAME are given by the test. */
template <typename T> __global__ void LONG_NAME(T *out, long a, char b)
{
	*out = a + b;
}
template __global__ void LONG_NAME<float>(float *, long, char);
template __global__ void LONG_NAME<double>(double *, long, char);

__global__ void LONGER_NAME(float *out)
{
	*out = 1;
}

__global__ void shared_static(float *out)
{
	__shared__ float s[333];

	s[threadIdx.x] = out[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = s[332 - threadIdx.x];
}

__global__ void shared_dynamic(float *out)
{
	extern __shared__ float d[];

	d[threadIdx.x] = out[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = d[blockDim.x - threadIdx.x];
}

__global__ void shared_both(float *out)
{
	extern __shared__ float d[];
	__shared__ double s[77];

	d[threadIdx.x] = out[threadIdx.x];
	s[threadIdx.x] = out[threadIdx.x + 1];
	__syncthreads();
	out[threadIdx.x] = d[blockDim.x - threadIdx.x] + s[76 - threadIdx.x];
}

__global__ void local_array(int *out, int n)
{
	int a[301];

	for (int i = 0; i < 301; i++)
		a[i] = out[i * n];
	for (int i = 0; i < 301; i++)
		out[a[i]] = a[(i * n) % 301];
}

__global__ void __launch_bounds__(1024, 2) spilling(double *out)
{
	double a[48];

#pragma unroll
	for (int i = 0; i < 48; i++)
		a[i] = out[i * 32 + threadIdx.x];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < 48; i++)
		out[threadIdx.x * 48 + i] = a[47 - i] * a[i] + a[(i * 7) % 48];
}

__device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursive(int *out)
{
	*out = fibonacci(*out);
}

__device__ __noinline__ float helper(float *p, int n)
{
	volatile float a[20];

	for (int i = 0; i < 20; i++)
		a[i] = p[i * n];
	return a[n % 20];
}

__global__ void calls_helper(float *out, int n)
{
	out[n] = helper(out, n) + table[n];
}

__global__ void __launch_bounds__(192) bounded(float *out)
{
	out[threadIdx.x] = table[threadIdx.x];
}

__global__ void __launch_bounds__(256, 3) bounded_twice(float *out)
{
	out[threadIdx.x] += 1;
}

__global__ void barriers(int *out)
{
	asm volatile("bar.sync 3, 64;" ::: "memory");
	out[threadIdx.x]++;
	asm volatile("bar.sync 5, 64;" ::: "memory");
	out[threadIdx.x]++;
	__syncthreads();
}

__global__ void any_barrier(int *out, int which)
{
	asm volatile("bar.sync %0, 64;" ::"r"(which) : "memory");
	out[threadIdx.x]++;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __block_size__((32, 4, 2)) required(float *out)
{
	out[threadIdx.x] += 3;
}

__global__ void __cluster_dims__(2, 3, 1) clustered(int *out)
{
	asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
	out[threadIdx.x] = 1;
}
#endif

__global__ void prints(int n)
{
	printf("%d %d\n", n, counter);
}

struct large {
	char bytes[3000];
};
__global__ void large_parameter(large l, int n, char *out)
{
	*out = l.bytes[n];
}

namespace
{
__global__ void internal(int *out)
{
	*out = 3;
}
} // namespace

/* Without a launch it would not be compiled. */
extern "C" void launch(int *i)
{
	internal<<<1, 1>>>(i);
}
