// SPDX-License-Identifier: Apache-2.0
/*
 * As much of CUDA's runtime as a program needs to start, and to be given handles of its own: 0x5a0000000000
 * plus the host function's address.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KEPT(type, name, ...) __attribute__((visibility("default"))) type name(__VA_ARGS__)

KEPT(void **, __cudaRegisterFatBinary, void *binary);
void **__cudaRegisterFatBinary(void *binary)
{
	static void *handle;

	handle = binary;
	return &handle;
}

KEPT(void, __cudaRegisterFatBinaryEnd, void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

KEPT(void, __cudaUnregisterFatBinary, void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

KEPT(char, __cudaInitModule, void **handle);
char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

KEPT(void, __cudaRegisterFunction, void **handle, const char *host, char *function, const char *name,
     int limit, void *a, void *b, void *c, void *d, int *e);
void __cudaRegisterFunction(void **handle, const char *host, char *function, const char *name, int limit,
			    void *a, void *b, void *c, void *d, int *e)
{
	(void)handle, (void)host, (void)function, (void)name, (void)limit, (void)a, (void)b, (void)c, (void)d,
		(void)e;
}

struct size {
	unsigned x, y, z;
};

KEPT(unsigned, __cudaPushCallConfiguration, struct size grid, struct size block, size_t shared, void *stream);
unsigned __cudaPushCallConfiguration(struct size grid, struct size block, size_t shared, void *stream)
{
	(void)grid, (void)block, (void)shared, (void)stream;
	return 0;
}

KEPT(int, __cudaPopCallConfiguration, struct size *grid, struct size *block, size_t *shared, void **stream);
int __cudaPopCallConfiguration(struct size *grid, struct size *block, size_t *shared, void **stream)
{
	*grid = *block = (struct size){ 1, 1, 1 };
	*shared = 0;
	*stream = NULL;
	return 0;
}

KEPT(int, __cudaGetKernel, void **handle, const void *host);
int __cudaGetKernel(void **handle, const void *host)
{
	*handle = (void *)((uintptr_t)host + UINT64_C(0x5a0000000000));
	return 0;
}

KEPT(int, __cudaLaunchKernel, void *kernel, struct size grid, struct size block, void **args, size_t shared,
     void *stream);
int __cudaLaunchKernel(void *kernel, struct size grid, struct size block, void **args, size_t shared,
		       void *stream)
{
	(void)grid, (void)block, (void)args, (void)shared, (void)stream;
	printf("launched %p\n", kernel);
	return 0;
}

KEPT(int, cudaLaunchKernel, const void *host, struct size grid, struct size block, void **args, size_t shared,
     void *stream);
int cudaLaunchKernel(const void *host, struct size grid, struct size block, void **args, size_t shared,
		     void *stream)
{
	return __cudaLaunchKernel((void *)(uintptr_t)host, grid, block, args, shared, stream);
}
