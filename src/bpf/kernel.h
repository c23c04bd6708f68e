// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: the kernel's structures. CO-RE sets the offsets of members when the program is
 * loaded, so only members that are read are declared.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

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

/* A call whose return somebody probes. */
struct return_instance {
	unsigned long stack; /* the stack pointer when it was entered */
	unsigned long orig_ret_vaddr;
	struct return_instance *next; /* further up the stack */
} KERNEL_STRUCT;

struct uprobe_task {
	struct return_instance *return_instances;
} KERNEL_STRUCT;

struct task_struct {
	struct thread_struct thread;
	struct uprobe_task *utask;
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
