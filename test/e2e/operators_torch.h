// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <setjmp.h>
#include <stdint.h>

struct torch {
	void *function; /* a kernel */
	uint64_t memory;
	jmp_buf *caught; /* where torch_mm(), which never returns, goes on */
};

#define SYMBOL(name) __asm__(name) __attribute__((visibility("default"), noinline))

/* One kernel, and no operator. */
void torch_launch(const struct torch *torch) SYMBOL("torch_launch");
/* Two kernels, a copy of 100 bytes. */
void torch_add(const struct torch *torch)
	SYMBOL("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE");
/* An allocation of 4,096 bytes, torch_add(), a kernel, a wait. */
void torch_linear(const struct torch *torch) SYMBOL("_ZN2at4_ops6linear4callERKNS_6TensorES4_S4_");
/* A kernel; then it is left as by an exception. */
void torch_mm(const struct torch *torch) SYMBOL("_ZN2at4_ops2mm4callERKNS_6TensorES4_");
/* torch_linear(). */
void torch_backward(const struct torch *torch) SYMBOL("_Z22THPEngine_run_backwardP7_objectS0_S0_");
