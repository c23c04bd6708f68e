// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: the kernel's structures and the machine's registers. CO-RE sets the offsets of
 * members when the program is loaded, so only members that are read are declared.
 */
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

#define KERNEL_STRUCT __attribute__((preserve_access_index))

struct upid {
	int nr;
} KERNEL_STRUCT;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL_STRUCT;

struct signal_struct {
	struct {
		int counter;
	} live;
} KERNEL_STRUCT;

/* the caller's user: a number in the first user namespace, whatever the task sees */
struct kuid {
	__u32 val;
};

struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the first one */
	struct kuid owner; /* who created it */
} KERNEL_STRUCT;

struct cred {
	struct kuid uid;
	struct user_namespace *user_ns;
} KERNEL_STRUCT;

struct kernfs_node {
	__u64 id;
} KERNEL_STRUCT;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL_STRUCT;

struct css_set {
	struct cgroup *dfl_cgrp; /* of version 2 */
} KERNEL_STRUCT;

struct cgroup_namespace {
	struct css_set *root_cset;
} KERNEL_STRUCT;

struct nsproxy {
	struct cgroup_namespace *cgroup_ns;
} KERNEL_STRUCT;

struct mm_struct {
	unsigned long saved_auxv[2]; /* pairs of a tag and a value */
} KERNEL_STRUCT;

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
} KERNEL_STRUCT;

struct task_struct {
	struct thread_struct thread;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	const struct cred *real_cred;
	struct nsproxy *nsproxy;
	struct pid *thread_pid;
	void *stack; /* in the kernel */
	int tgid, pid;
	unsigned int __state; /* 0: it runs, or would if it had a CPU */
	__u64 start_boottime;
	char comm[16];
} KERNEL_STRUCT;

/* Before 5.14. */
struct task_struct___state {
	long state;
} KERNEL_STRUCT;

/* Whether the task waits for something, rather than for a CPU. */
static __always_inline bool task_waits(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state) != 0;
	return BPF_CORE_READ((struct task_struct___state *)task, state) != 0;
}

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
};

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
};

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
