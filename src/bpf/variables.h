// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: sends the environment variables that select a process's devices, when it calls
 * cuInit.
 */
#pragma once

#include "bpf/emit.h"
#include "bpf/environment.h"

enum {
	AUXV_MAX = 48, /* entries; AT_VECTOR_SIZE in include/linux/mm_types.h has 20 to 24 */
};

/* `environ` of the current process; 0: not found. */
static __noinline __u64 own_environ(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	const char *auxv = (const char *)mm + bpf_core_field_offset(mm->saved_auxv);
	__u64 entry[2], headers = 0, headers_n = 0, size = 0;

	for (__u32 i = 0; i < AUXV_MAX; i++) {
		if (bpf_probe_read_kernel(entry, sizeof(entry), auxv + i * sizeof(entry)) ||
		    entry[0] == AT_NULL)
			break;
		if (entry[0] == AT_PHDR)
			headers = entry[1];
		else if (entry[0] == AT_PHNUM)
			headers_n = entry[1];
		else if (entry[0] == AT_PHENT)
			size = entry[1];
	}
	/* Another size: a program of 32 bits. */
	return size == sizeof(Elf64_Phdr) ? environ_find(0, headers, headers_n) : 0;
}

static __noinline int variable_send(const struct trace_spec *spec, __u32 call, __u64 variable, __u32 which)
{
	__u64 value = environ_get(0, variable, which);
	struct frame frame = { .call = call, .entry_ns = bpf_ktime_get_ns() };

	frame.values[TRACE_OPERAND_HANDLE] = which;
	frame.values[TRACE_OPERAND_STREAM] = value == ENVIRON_UNSET  ? TRACE_SET_NO :
					     value == ENVIRON_UNREAD ? TRACE_SET_UNKNOWN :
								       TRACE_SET_YES;
	if (value != ENVIRON_UNSET && value != ENVIRON_UNREAD)
		frame.values[TRACE_OPERAND_ADDR] = value;
	name_event(spec, &frame);
	return 0;
}

/*
 * CUDA reads the variables in cuInit, so what they are now is what counts, whatever the program sets later. A
 * process that calls cuInit in a loop sends them TRACE_INITS_MAX times.
 */
static __noinline int variables_send(const struct trace_spec *spec, __u32 call)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	__u64 variable;

	if (!proc || proc->inits >= TRACE_INITS_MAX)
		return 0;
	proc->inits++;
	variable = own_environ();
	for (__u32 which = 0; which < TRACE_VARIABLES; which++)
		variable_send(spec, call, variable, which);
	return 0;
}
