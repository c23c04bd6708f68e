// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One row for each function of the driver that is called. */
#define FUNCTIONS(F)                                                                                        \
	F(cuInit, (unsigned flags))                                                                         \
	F(cuDeviceGet, (int *device, int number))                                                           \
	F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                    \
	F(cuDevicePrimaryCtxRetain, (void **context, int device))                                           \
	F(cuCtxSetCurrent, (void *context))                                                                 \
	F(cuModuleLoadData, (void **module, const void *image))                                             \
	F(cuModuleGetFunction, (void **function, void *module, const char *name))                           \
	F(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                                \
	F(cuMemFree_v2, (uint64_t address))                                                                 \
	F(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                   \
	F(cuMemFreeHost, (void *address))                                                                   \
	F(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                                   \
	F(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                                         \
	F(cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t bytes))                                      \
	F(cuMemsetD32_v2, (uint64_t at, unsigned value, size_t count))                                      \
	F(cuEventCreate, (void **event, unsigned flags))                                                    \
	F(cuEventRecord, (void *event, void *stream))                                                       \
	F(cuEventElapsedTime, (float *ms, void *from, void *to))                                            \
	F(cuStreamCreate, (void **stream, unsigned flags))                                                  \
	F(cuStreamSynchronize, (void *stream))                                                              \
	F(cuStreamDestroy_v2, (void *stream))                                                               \
	F(cuCtxSynchronize, (void))                                                                         \
	F(cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
			   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra))

/* The kernels of program.c: nothing, a wait of so many nanoseconds, and 1 added to each of n numbers. */
/* PTX of an old version for an old architecture: every driver since compiles it for its own. */
static const char ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry gpusonde_empty()\n"
			  "{\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry gpusonde_spin(.param .u64 ns)\n"
			  "{\n"
			  "	.reg .u64 %t<4>;\n"
			  "	.reg .pred %p;\n"
			  "	ld.param.u64 %t0, [ns];\n"
			  "	mov.u64 %t1, %globaltimer;\n"
			  "AGAIN:\n"
			  "	mov.u64 %t2, %globaltimer;\n"
			  "	sub.u64 %t3, %t2, %t1;\n"
			  "	setp.lt.u64 %p, %t3, %t0;\n"
			  "	@%p bra AGAIN;\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry gpusonde_add(.param .u64 numbers, .param .u32 n)\n"
			  "{\n"
			  "	.reg .u32 %r<6>;\n"
			  "	.reg .u64 %a<3>;\n"
			  "	.reg .pred %p;\n"
			  "	ld.param.u64 %a0, [numbers];\n"
			  "	ld.param.u32 %r0, [n];\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mov.u32 %r2, %ntid.x;\n"
			  "	mov.u32 %r3, %tid.x;\n"
			  "	mad.lo.u32 %r4, %r1, %r2, %r3;\n"
			  "	setp.ge.u32 %p, %r4, %r0;\n"
			  "	@%p bra DONE;\n"
			  "	mul.wide.u32 %a1, %r4, 4;\n"
			  "	add.u64 %a2, %a0, %a1;\n"
			  "	ld.global.u32 %r5, [%a2];\n"
			  "	add.u32 %r5, %r5, 1;\n"
			  "	st.global.u32 [%a2], %r5;\n"
			  "DONE:\n"
			  "	ret;\n"
			  "}\n";
