// SPDX-License-Identifier: Apache-2.0
/*
 * What nvcc makes of a program with three kernels, in C that any compiler takes: functions that stand for
 * kernels, the code that registers them, and launches as CUDA 13 makes them, or (LEGACY) as older ones do.
 * UNREGISTERED: nothing is registered. CLANG_NAMES: called as clang calls them. Built for machines without
 * headers and libraries, too.
 */
#pragma once

struct dim3 {
	unsigned x, y, z;
};
struct wrapper {
	int magic, version;
	const void *data;
	void *unused;
};

/* Elsewhere, or in registering_runtime.c. */
#ifndef RUNTIME
#define RUNTIME extern
#endif
RUNTIME void **__cudaRegisterFatBinary(void *wrapper);
RUNTIME void __cudaRegisterFatBinaryEnd(void **handle);
RUNTIME void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
				    int threads, void *thread, void *block, struct dim3 *block_size,
				    struct dim3 *grid_size, int *warp);
/* Not a kernel: the same arguments, but a variable where the host function is. */
RUNTIME void __cudaRegisterVar(void **handle, char *variable, char *device, const char *name, int external,
			       unsigned long size, int constant, int global);
RUNTIME int __cudaGetKernel(void **handle, const void *host);
RUNTIME int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, unsigned long *shared,
				       void *stream);
RUNTIME int __cudaLaunchKernel(void *handle, struct dim3 grid, struct dim3 block, void **arguments,
			       unsigned long shared, void *stream);
RUNTIME int cudaLaunchKernel(const void *host, struct dim3 grid, struct dim3 block, void **arguments,
			     unsigned long shared, void *stream);
/* Takes what __cudaRegisterFunction does. */
RUNTIME void unlike(void *p, const void *host, const char *a, const char *b, int n);
