// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: the machine's registers. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <asm/bpf_perf_event.h>
#include <asm/ptrace.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
/*
 * Loads a member of the context. In assembly, since the compiler would merge loads at several offsets into
 * one at a computed offset, which the verifier refuses for a context.
 */
#define CONTEXT_LOAD(value, ctx, offset) \
	asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"(offset))

/*
 * Used before a comparison: forces the compiler to compare this value itself, so that the verifier learns its
 * bound.
 */
#define SHOW_BOUND(value) asm volatile("" : "+r"(value))

#if defined(__TARGET_ARCH_x86) || (!defined(__bpf__) && defined(__x86_64__))
enum {
	REGISTER_ARGS = 6,
	BREAKPOINT = 1,
	RETURN_POPS = 8, /* bytes that a return pops off the stack */
	STACK_ARGS = 8, /* offset of stack arguments from the stack pointer at a function's entry */
	/*
	 * where registers are from the stack pointer on when a signal's handler has returned (struct
	 * rt_sigframe and ucontext in the kernel)
	 */
	SIGNAL_FP = 120,
	SIGNAL_SP = 160,
	SIGNAL_IP = 168,
	SIGNAL_LINK = 0,
};
/* mov $15, %rax; syscall: its first 8 bytes. The C library's code where a signal's handler returns to. */
#define SIGNAL_RETURN_CODE 0x0f0000000fc0c748ULL
#define CODE_ADDRESS(address) (address)
#define FRAME_POINTER(value, ctx) CONTEXT_LOAD(value, ctx, offsetof(struct pt_regs, rbp))

static __always_inline __u64 register_arg(struct pt_regs *ctx, __u32 i)
{
	__u64 v = 0;

	switch (i) {
	case 0:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, rdi));
		break;
	case 1:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, rsi));
		break;
	case 2:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, rdx));
		break;
	case 3:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, rcx));
		break;
	case 4:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, r8));
		break;
	case 5:
		CONTEXT_LOAD(v, ctx, offsetof(struct pt_regs, r9));
		break;
	}
	return v;
}

/* Where the current task's thread-local storage is: pthread_self(). */
#define THREAD_POINTER(task) BPF_CORE_READ((task), thread.fsbase)
enum { THREAD_SELF_BELOW = 0 }; /* bytes by which pthread_self() may be below it, at most */

#define RETURN_ON_STACK 1

/* The link register; 0 on machines that have none. */
static __always_inline __u64 link_register(struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

/* The return address of a function that was just entered. */
static __always_inline __u64 return_address(__u64 link, __u64 sp)
{
	__u64 address = 0;

	(void)link;
	bpf_probe_read_user(&address, sizeof(address), (void *)sp);
	return address;
}
#elif defined(__TARGET_ARCH_arm64) || (!defined(__bpf__) && defined(__aarch64__))
enum {
	REGISTER_ARGS = 8,
	BREAKPOINT = 4,
	RETURN_POPS = 0,
	STACK_ARGS = 0,
	SIGNAL_FP = 544,
	SIGNAL_LINK = 552,
	SIGNAL_SP = 560,
	SIGNAL_IP = 568,
};
/* mov x8, #139; svc #0: in the vDSO */
#define SIGNAL_RETURN_CODE 0xd4000001d2801168ULL
/* Without the bits that sign it. */
#define CODE_ADDRESS(address) ((address) & ((1ULL << 48) - 1))
#define FRAME_POINTER(value, ctx) CONTEXT_LOAD(value, ctx, ARM64_REGISTER(29))

#define ARM64_REGISTER(i) offsetof(struct user_pt_regs, regs[i])
static __always_inline __u64 register_arg(struct pt_regs *ctx, __u32 i)
{
	__u64 v = 0;

	switch (i) {
	case 0:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(0));
		break;
	case 1:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(1));
		break;
	case 2:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(2));
		break;
	case 3:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(3));
		break;
	case 4:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(4));
		break;
	case 5:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(5));
		break;
	case 6:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(6));
		break;
	case 7:
		CONTEXT_LOAD(v, ctx, ARM64_REGISTER(7));
		break;
	}
	return v;
}

/*
 * The kernel has it from the last time when another task ran. pthread_self() is that much lower as the C
 * library's structure of a thread is large: some 2 KiB. Two threads are farther apart.
 */
#define THREAD_POINTER(task) BPF_CORE_READ((task), thread.uw.tp_value)
enum { THREAD_SELF_BELOW = 8191 };

#define RETURN_ON_STACK 0 /* in the link register; a function may save it anywhere */

static __always_inline __u64 link_register(struct pt_regs *ctx)
{
	__u64 address;

	CONTEXT_LOAD(address, ctx, ARM64_REGISTER(30));
	return address;
}

static __always_inline __u64 return_address(__u64 link, __u64 sp)
{
	(void)sp;
	return link;
}
#else
#error "unsupported machine"
#endif
