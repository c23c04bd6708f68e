// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: numbers events and writes them to the ring. */
#pragma once

#include "bpf/operands.h"

static __always_inline struct trace_counters *counters_get(void)
{
	return bpf_map_lookup_elem(&counters, &zero);
}

/* Atomic: a program may be preempted by another one on its CPU, and may run on several CPUs. */
#define ADD(p, n) ((void)__sync_fetch_and_add((p), (n)))
#define COUNT(p) ADD(p, 1)

/* ---- events ---- */

/*
 * The next event number on this CPU. Before 5.12 no atomic add returns the old value, but preemption is
 * disabled there.
 */
static __always_inline __u64 produced_next(struct trace_counters *c)
{
#ifdef TRACE_FETCH
	return __sync_fetch_and_add(&c->produced, 1) + 1;
#else
	return ++c->produced;
#endif
}

static __always_inline void header_fill(struct trace_header *h, enum trace_event_type type, __u64 seq,
					__u64 time_ns)
{
	__u64 id = bpf_get_current_pid_tgid();

	h->time_ns = time_ns;
	h->seq = seq;
	h->tgid = id >> 32;
	h->tid = id;
	h->cpu = bpf_get_smp_processor_id();
	h->call = 0;
	h->type = type;
	h->op = TRACE_OP_NONE;
	h->flags = 0;
	h->operator= h->operator_outer = h->forward = 0;
	h->operators = h->pad = 0;
	h->enclosing = 0;
	h->stack = 0;
}

/* NULL: the ring is full, which is counted. */
static __always_inline void *event_begin(struct trace_counters *c, __u64 size, enum trace_event_type type,
					 __u64 time_ns)
{
	__u64 seq = produced_next(c);
	struct trace_header *h = bpf_ringbuf_reserve(&events, size, 0);

	if (!h) {
		COUNT(&c->dropped);
		return NULL;
	}
	header_fill(h, type, seq, time_ns);
	return h;
}

/* User space polls the ring with a timer; it is woken early when much is pending. */
static __always_inline void event_submit(void *event)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if ((((struct trace_header *)event)->seq & (FILL_CHECK_EVERY - 1)) == 0) {
		struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);

		if (ctl && bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= ctl->wake_bytes)
			flags = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(event, flags);
}

/* One of TRACE_EVENT_PROCESS, _EXEC, _EXIT, about the current process. */
static __noinline void process_event(struct trace_counters *c, enum trace_event_type type,
				     const struct trace_proc *proc)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	struct trace_process *event = event_begin(c, sizeof(*event), type, bpf_ktime_get_ns());
	__u32 level;

	if (!event)
		return;
	event->incarnation = proc->incarnation;
	event->start_boot_ns = proc->start_boot_ns;
	event->ns_tgid = 0;
	event->lost = proc->lost;
	level = BPF_CORE_READ(pid, level);
	/* Uses the element size of the running kernel, not of this declaration. */
	bpf_probe_read_kernel(&event->ns_tgid, sizeof(event->ns_tgid),
			      (char *)pid + bpf_core_field_offset(pid->numbers) +
				      (__u64)level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(((struct upid *)0)->nr));
	__builtin_memset(event->comm, 0, sizeof(event->comm));
	BPF_CORE_READ_INTO(&event->comm, leader, comm);
	event_submit(event);
}

/* ---- events of calls that have ended ---- */

/* stacks.h: the thread's stack, or an enum trace_stack_none; from bit 32 on: as in trace_header's flags. */
__noinline __u64 stack_take(__u64 id);

static __always_inline __u64 stack_of(const struct trace_spec *spec)
{
	return spec->flags & TRACE_SPEC_STACK ? stack_take(bpf_get_current_pid_tgid()) : TRACE_STACK_OFF;
}

static __always_inline void header_call(struct trace_header *h, const struct trace_spec *spec,
					const struct frame *frame, __u64 stack)
{
	h->call = frame->call;
	h->op = spec->op;
	h->flags = frame->flags | stack >> 32;
	h->enclosing = frame->enclosing;
	h->operator= frame->within;
	h->operator_outer = frame->within >> 16;
	h->operators = frame->within >> 32;
	h->forward = frame->within >> 48;
	h->stack = stack;
}

static __always_inline void launch_event(struct trace_counters *c, const struct trace_spec *spec,
					 const struct frame *frame, const struct outcome *outcome)
{
	__u64 stack = stack_of(spec);
	struct trace_launch *event = event_begin(c, sizeof(*event), TRACE_EVENT_LAUNCH, frame->entry_ns);

	if (!event)
		return;
	header_call(&event->header, spec, frame, stack);
	event->duration_ns = outcome->duration_ns;
	event->function = frame->function;
	event->stream = frame->values[TRACE_OPERAND_STREAM];
	__builtin_memcpy(event->grid, frame->dim, sizeof(event->grid) + sizeof(event->block));
	event->shared_bytes = frame->shared >> 32 ? ~0U : frame->shared;
	event->result = outcome->result;
	event_submit(event);
}

/* @stack: stack_of() of an outermost call; else TRACE_STACK_OFF, since chains of functions have 512 bytes. */
static __always_inline void call_event(struct trace_counters *c, const struct trace_spec *spec,
				       const struct frame *frame, const struct outcome *outcome, __u64 bytes,
				       __u64 stack)
{
	struct trace_call *event = event_begin(c, sizeof(*event), TRACE_EVENT_CALL, frame->entry_ns);

	if (!event)
		return;
	header_call(&event->header, spec, frame, stack);
	event->duration_ns = outcome->duration_ns;
	event->addr = frame->values[TRACE_OPERAND_ADDR];
	event->size = bytes;
	event->stream = frame->values[TRACE_OPERAND_STREAM];
	event->handle = frame->values[TRACE_OPERAND_HANDLE];
	event->kind = frame->values[TRACE_OPERAND_KIND];
	event->result = outcome->result;
	event->number = frame->number;
	event->other = has_other(spec) ? frame->values[TRACE_OPERAND_TIMES] : 0;
	event_submit(event);
}

/* What a NAME event tells: the name at @from in the process's memory, and members of struct trace_name. */
struct name_parts {
	__u64 from, handle, of;
	__u64 time_ns;
	__u64 what; /* NAME_WHAT() */
};

/*
 * Of an event's header: call, op, flags (of which no event uses more than 8 bits) and enclosing, in one
 * number.
 */
#define NAME_WHAT(call_, op_, flags_, enclosing_) \
	((__u64)(enclosing_) << 32 | (__u64)(__u8)(flags_) << 24 | (__u64)(__u8)(op_) << 16 | (__u16)(call_))

/*
 * @capacity: of the name; a constant, since the size of a reservation must be. Separate functions, so that
 * the compiler cannot merge them into one with a variable size.
 */
#define NAME_SEND(function, capacity)                                                                   \
	static __noinline void function(struct trace_counters *c, const struct name_parts *parts)       \
	{                                                                                               \
		struct trace_name *event =                                                              \
			event_begin(c, sizeof(*event) + (capacity), TRACE_EVENT_NAME, parts->time_ns);  \
		char last = 0;                                                                          \
		long n;                                                                                 \
                                                                                                        \
		if (!event)                                                                             \
			return;                                                                         \
		event->header.call = parts->what;                                                       \
		event->header.op = parts->what >> 16;                                                   \
		event->header.flags = (__u8)(parts->what >> 24);                                        \
		event->header.enclosing = parts->what >> 32;                                            \
		event->handle = parts->handle;                                                          \
		event->of = parts->of;                                                                  \
		n = bpf_probe_read_user_str(event->name, (capacity), (void *)parts->from);              \
		if (n == (capacity))                                                                    \
			bpf_probe_read_user(&last, sizeof(last), (void *)(parts->from + (capacity)-1)); \
		if (n <= 0) {                                                                           \
			event->header.flags |= TRACE_FLAG_UNREAD;                                       \
			event->name[0] = 0;                                                             \
			n = 1;                                                                          \
		}                                                                                       \
		event->name_n = n - 1;                                                                  \
		event->cut = last != 0;                                                                 \
		event_submit(event);                                                                    \
	}
NAME_SEND(name_send_small, TRACE_NAME_SMALL)
NAME_SEND(name_send_medium, TRACE_NAME_MEDIUM)
NAME_SEND(name_send_large, TRACE_NAME_LARGE)

/* Sends struct name_parts in the smallest record that fits. Not static, as in shares.h. */
__noinline int name_send(__u64 from, __u64 handle, __u64 of, __u64 time_ns, __u64 what)
{
	const struct name_parts parts = {
		.from = from, .handle = handle, .of = of, .time_ns = time_ns, .what = what
	};
	char *scratch = bpf_map_lookup_elem(&lengths, &zero);
	struct trace_counters *c = counters_get();
	long n;

	if (!scratch || !c)
		return 0;
	n = bpf_probe_read_user_str(scratch, TRACE_NAME_LARGE, (void *)from);
	if (n <= TRACE_NAME_SMALL)
		name_send_small(c, &parts);
	else if (n <= TRACE_NAME_MEDIUM)
		name_send_medium(c, &parts);
	else
		name_send_large(c, &parts);
	return 0;
}

static __always_inline void name_event(const struct trace_spec *spec, const struct frame *frame)
{
	name_send(frame->values[TRACE_OPERAND_ADDR], frame->values[TRACE_OPERAND_HANDLE],
		  frame->values[TRACE_OPERAND_STREAM], frame->entry_ns,
		  NAME_WHAT(frame->call, spec->op, frame->flags, frame->enclosing));
}
