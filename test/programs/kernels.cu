// SPDX-License-Identifier: Apache-2.0
/*
 * kernels [--wait] [--fork]: kernels of all kinds, launched in all ways; what it launched is printed by truth.hh. With --wait it launches
 * everything once, prints "ready", waits for a line, and launches everything again: for those who come late. With --fork a child without a program of its own does
 * the same; each prints a line.
 */
#include <sys/wait.h>

#include "launch.cuh"

void launch_others(Launched *launched); /* kernels_other.cu */

extern "C" __global__ void plain(int *p)
{
	*p = 1;
}

__global__ void vector_add(const float *a, const float *b, float *sum, int count)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < count)
		sum[i] = a[i] + b[i];
}

__global__ void overloaded(int *p)
{
	*p = 2;
}

__global__ void overloaded(float *p)
{
	*p = 2;
}

template <typename T, int N>
__global__ void filled(T *p)
{
	p[threadIdx.x] = T(N);
}

template <typename T>
struct Doubled {
	__device__ T operator()(T x) const
	{
		return x + x;
	}
};

template <typename F, typename... T>
__global__ void applied(F f, int *p, T... more)
{
	*p = f(*p) + (0 + ... + int(more));
}

namespace outer::inner
{
__global__ void spaced(int *p)
{
	*p = 3;
}
}

namespace
{
__global__ void hidden(int *p)
{
	*p = 4;
}
}

/* In kernels_other.cu is one of the same name. */
static __global__ void same(int *p)
{
	*p = 5;
}

__global__ void shared_dynamic(int *p)
{
	extern __shared__ int bytes[];

	bytes[threadIdx.x] = (int)threadIdx.x;
	__syncthreads();
	*p = bytes[0];
}

__global__ void cooperative(int *p)
{
	*p = 6;
}

__global__ void configured(int *p, long n)
{
	p[n] = 7;
}

__global__ void by_address(int *p)
{
	*p = 8;
}

__global__ void __launch_bounds__(128, 2) bounded(int *p)
{
	*p = 9;
}

__global__ void chosen_one(int *p)
{
	*p = 10;
}

__global__ void chosen_two(int *p)
{
	*p = 11;
}

static void launch_calls(Launched *launched)
{
	int *p = nullptr;
	long n = 0;
	void *arguments[] = { &p, &n };
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute priority = {};
	cudaError_t error;

	error = cudaLaunchCooperativeKernel((const void *)cooperative, dim3(2), dim3(96), arguments, 0, 0);
	tell(launched, "_Z11cooperativePi", "cudaLaunchCooperativeKernel", (const void *)cooperative, dim3(2), dim3(96), 0,
	     error);
	priority.id = cudaLaunchAttributePriority;
	config.gridDim = dim3(3, 2);
	config.blockDim = dim3(16, 4);
	config.dynamicSmemBytes = 512;
	config.attrs = &priority;
	config.numAttrs = 1;
	error = cudaLaunchKernelExC(&config, (const void *)configured, arguments);
	tell(launched, "_Z10configuredPil", "cudaLaunchKernelExC", (const void *)configured, config.gridDim, config.blockDim,
	     512, error);
	error = cudaLaunchKernel((const void *)by_address, dim3(7), dim3(64), arguments, 0, 0);
	tell(launched, "_Z10by_addressPi", "cudaLaunchKernel", (const void *)by_address, dim3(7), dim3(64), 0, error);
}

static void launch_all(Launched *launched)
{
	static void (*const choices[])(int *) = { chosen_one, chosen_two };
	static const char *const names[] = { "_Z10chosen_onePi", "_Z10chosen_twoPi" };
	int *p = nullptr;

	LAUNCH("plain", plain, dim3(1), dim3(32), 0, p);
	LAUNCH("_Z10vector_addPKfS0_Pfi", vector_add, dim3(64), dim3(256), 0, nullptr, nullptr, nullptr, 0);
	LAUNCH("_Z10vector_addPKfS0_Pfi", vector_add, dim3(32), dim3(128), 0, nullptr, nullptr, nullptr, 0);
	LAUNCH("_Z10overloadedPi", ((void (*)(int *))overloaded), dim3(1), dim3(1), 0, p);
	LAUNCH("_Z10overloadedPf", ((void (*)(float *))overloaded), dim3(1), dim3(1), 0, nullptr);
	LAUNCH("_Z6filledIiLi4EEvPT_", (filled<int, 4>), dim3(2), dim3(4), 0, p);
	LAUNCH("_Z6filledIdLi7EEvPT_", (filled<double, 7>), dim3(2), dim3(7), 0, nullptr);
	LAUNCH("_Z6filledIcLi1EEvPT_", (filled<char, 1>), dim3(2), dim3(1), 0, nullptr);
	LAUNCH("_Z7appliedI7DoubledIiEJdfEEvT_PiDpT0_", (applied<Doubled<int>, double, float>), dim3(1, 2, 3), dim3(4, 5, 6),
	       0, Doubled<int>(), p, 1., 2.f);
	LAUNCH("_ZN5outer5inner6spacedEPi", outer::inner::spaced, dim3(5), dim3(32), 0, p);
	LAUNCH(HIDDEN, hidden, dim3(6), dim3(32), 0, p);
	LAUNCH(SAME, same, dim3(7), dim3(32), 0, p);
	LAUNCH("_Z14shared_dynamicPi", shared_dynamic, dim3(8), dim3(32), 4096, p);
	LAUNCH("_Z7boundedPi", bounded, dim3(9), dim3(128), 0, p);
	{
		auto lambda = [] __device__(int x) { return x * 3; };

		LAUNCH("_Z7appliedIZ.*10launch_all.*UliE_.*", (applied<decltype(lambda)>), dim3(11), dim3(64), 0, lambda, p);
	}
	for (unsigned i = 0; i < 2; i++)
		LAUNCH(names[i], choices[i], dim3(12 + i), dim3(32), 0, p);
	launch_calls(launched);
	launch_others(launched);
	(void)cudaDeviceSynchronize();
}

static Truth truth;

static void add(const Launch *launch)
{
	truth.add(*launch);
}

int main(int argc, char **argv)
{
	bool wait = false, forks = false;
	pid_t child = -1;

	for (int i = 1; i < argc; i++) {
		wait |= std::strcmp(argv[i], "--wait") == 0;
		forks |= std::strcmp(argv[i], "--fork") == 0;
	}
	if (forks)
		child = fork();
	launch_all(add);
	/* A child cannot read what its parent waits for. */
	if (wait && child != 0 && !wait_for_line())
		return 1;
	if (wait || forks)
		launch_all(add);
	if (child > 0)
		(void)waitpid(child, nullptr, 0);
	truth.print();
	return 0;
}
