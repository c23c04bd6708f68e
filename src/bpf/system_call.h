// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: the system call that the current task is in. */
#pragma once

#include "bpf/machine.h"

/* The kernel's struct pt_regs, of which programs see only the first part on arm64; of both machines. */
struct pt_regs___kernel {
	unsigned long di, orig_ax;
	unsigned long r10;
	unsigned long orig_x0;
	unsigned long regs[31];
	int syscallno;
} KERNEL_STRUCT;

#if defined(__TARGET_ARCH_x86)
enum { SYSTEM_CALL_FUTEX = 202 };
#define SYSTEM_CALL(regs) ((__u32)BPF_CORE_READ((regs), orig_ax))
#define SYSTEM_CALL_FIRST(regs) BPF_CORE_READ((regs), di)
#define SYSTEM_CALL_FOURTH(regs) BPF_CORE_READ((regs), r10)
#else
enum { SYSTEM_CALL_FUTEX = 98 };
#define SYSTEM_CALL(regs) ((__u32)BPF_CORE_READ((regs), syscallno))
#define SYSTEM_CALL_FIRST(regs) BPF_CORE_READ((regs), orig_x0)
#define SYSTEM_CALL_FOURTH(regs) BPF_CORE_READ((regs), regs[3])
#endif
enum { TASK_STACK = 16384 }; /* bytes of a task's stack in kernels before 5.15 */

/* Whether it is futex(), of which address, and where its time limit is; 0: it has none. */
static __always_inline bool futex_of_current(__u64 *ret_address, __u64 *ret_limit)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct pt_regs___kernel *regs;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		regs = BPF_CORE_READ(task, stack) + TASK_STACK - bpf_core_type_size(struct pt_regs___kernel);
	if (SYSTEM_CALL(regs) != SYSTEM_CALL_FUTEX)
		return false;
	*ret_address = SYSTEM_CALL_FIRST(regs);
	*ret_limit = SYSTEM_CALL_FOURTH(regs);
	return true;
}
