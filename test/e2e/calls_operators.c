// SPDX-License-Identifier: Apache-2.0
/*
 * Calls operators (operators_torch.c), as often as operators.py knows; with "wait" once a line has come. With
 * "train" what else PyTorch does: allocators' reports, graphs, ranges.
 */
#include <stdio.h>
#include <string.h>

#include "operators_torch.h"

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuMemAlloc_v2(uint64_t *memory, size_t size);

enum { TIMES = 50 };

static jmp_buf caught;

/* Overwrites the stack where operators were, and launches from below there. */
static __attribute__((noinline)) void launch_deep(const struct torch *torch)
{
	volatile char room[8192];

	memset((char *)room, 1, sizeof(room));
	torch_launch(torch);
}

static void call_all(struct torch *torch)
{
	for (volatile int i = 0; i < TIMES; i++) {
		torch_add(torch);
		torch_linear(torch);
		if (setjmp(caught) == 0)
			torch_mm(torch);
		torch_backward(torch);
		launch_deep(torch);
	}
}

/* A type as the Itanium C++ ABI has it: what a node begins with is behind a pointer to it. */
static const struct {
	const void *functions;
	const char *name;
} type_of_mul = { NULL, "N5torch8autograd9generated12MulBackward0E" };
static const struct {
	const void *type;
	const void *functions[1];
} table_of_mul = { &type_of_mul, { NULL } };

/*
 * Each round: a node is made and evaluated; another one at its address, which no operator has made; a step.
 * At the end 1,000 bytes are held, of no operator.
 */
static void train(struct torch *torch)
{
	static const char *const step = "Optimizer.step#SGD.step";
	static struct torch_node node = { .type = table_of_mul.functions };

	for (int i = 0; i < TIMES; i++) {
		node.sequence++;
		torch_tied_add(torch, &node);
		torch_evaluate(torch, NULL, &node);
		node.sequence++;
		torch_evaluate(torch, NULL, &node);
#if defined(__x86_64__)
		torch_range(NULL, &step);
#else
		torch_range(&step);
#endif
	}
	torch_report(torch, 1000, 1000, 8192, 1 | 3 << 8);
	torch_oom(1 << 20, 1000, 8192, 1 | 3 << 8);
}

int main(int argc, char **argv)
{
	struct torch torch = { .caught = &caught };
	void *context, *module;
	char image[64] = "\177ELF", line[8]; /* all that is looked at */
	int device;

	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
	    cuCtxSetCurrent(context) || cuModuleLoadData(&module, image) ||
	    cuModuleGetFunction(&torch.function, module, "work") || cuMemAlloc_v2(&torch.memory, 4096))
		return 1;
	if (argc > 1 && strcmp(argv[1], "train") == 0) {
		train(&torch);
		return argc > 2 &&
		       (puts("trained") < 0 || fflush(stdout) || !fgets(line, sizeof(line), stdin));
	}
	if (argc > 1 && strcmp(argv[1], "wait") == 0 &&
	    (puts("ready") < 0 || fflush(stdout) || !fgets(line, sizeof(line), stdin)))
		return 2;
	call_all(&torch);
	if (argc > 1 && (puts("called") < 0 || fflush(stdout) || !fgets(line, sizeof(line), stdin)))
		return 3;
	return 0;
}
