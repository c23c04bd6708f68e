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

void torch_tie(void *tensor, const struct torch_edge *edge)
{
	asm volatile("" : : "r"(tensor), "r"(edge) : "memory");
}

void torch_tied_add(const struct torch *torch, struct torch_node *node)
{
	const struct torch_edge edge = { .node = node };

	torch_add(torch);
	torch_tie(NULL, &edge);
	torch_report(node, 512, 512, 4096, 1 | 3 << 8);
}

void torch_evaluate(const struct torch *torch, void *task, struct torch_node *node)
{
	asm volatile("" : : "r"(task) : "memory");
	torch_add(torch);
	torch_report(node, -512, 0, 4096, 1 | 3 << 8);
}

void torch_report(void *memory, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device)
{
	asm volatile("" : : "r"(memory), "r"(bytes), "r"(allocated), "r"(reserved), "r"(device) : "memory");
}

void torch_oom(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device)
{
	asm volatile("" : : "r"(bytes), "r"(allocated), "r"(reserved), "r"(device) : "memory");
}

#if defined(__x86_64__)
void torch_range(void *record, const char *const *name)
{
	asm volatile("" : : "r"(record), "r"(name) : "memory");
}
#else
void torch_range(const char *const *name)
{
	asm volatile("" : : "r"(name) : "memory");
}
#endif
