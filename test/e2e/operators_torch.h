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
/* What PyTorch's functions take. */
struct torch_node {
	const void *type; /* after a pointer to its type's name */
	uint64_t self[2], sequence;
};
struct torch_edge {
	struct torch_node *node;
	uint64_t shared, input;
};

/* torch_add(), whose node is tied to a tensor. */
void torch_tied_add(const struct torch *torch, struct torch_node *node)
	SYMBOL("_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_");
void torch_tie(void *tensor, const struct torch_edge *edge)
	SYMBOL("_ZN5torch8autograd4impl17set_gradient_edgeERKN2at6TensorENS0_4EdgeE");
/* torch_add(). */
void torch_evaluate(const struct torch *torch, void *task, struct torch_node *node)
	SYMBOL("_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeE"
	       "RNS0_11InputBufferE");
/* bytes of memory from an allocator, or given back */
void torch_report(void *memory, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device)
	SYMBOL("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void torch_oom(int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device)
	SYMBOL("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
#if defined(__x86_64__)
void torch_range(void *record, const char *const *name)
#else
void torch_range(const char *const *name)
#endif
	SYMBOL("_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt11"
	       "char_traitsIcESaIcEEERKSt8optionalIS7_E");
/* torch_linear(). */
void torch_backward(const struct torch *torch) SYMBOL("_Z22THPEngine_run_backwardP7_objectS0_S0_");
