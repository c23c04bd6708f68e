// SPDX-License-Identifier: Apache-2.0
/* Functions by the names of PyTorch's operators, which call the simulated CUDA. Becomes libtorch_cpu.so. */
#include "operators_torch.h"

#include <stddef.h>

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuCtxSynchronize(void);

static char host[4096];

void torch_launch(const struct torch *torch)
{
	cuLaunchKernel(torch->function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

void torch_add(const struct torch *torch)
{
	torch_launch(torch);
	torch_launch(torch);
	cuMemcpyHtoD_v2(torch->memory, host, 100);
}

void torch_linear(const struct torch *torch)
{
	uint64_t memory;

	cuMemAlloc_v2(&memory, 4096);
	torch_add(torch);
	torch_launch(torch);
	cuCtxSynchronize();
}

void torch_mm(const struct torch *torch)
{
	torch_launch(torch);
	longjmp(*torch->caught, 1);
}

void torch_backward(const struct torch *torch)
{
	torch_linear(torch);
}
