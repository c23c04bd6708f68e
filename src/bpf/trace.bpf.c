// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel side of tracing. README.md describes how it is compiled and its interface to user space.
 *
 *   call_entry   finds or creates the thread's entry in `threads`; counts a nested call, or fills the frame
 *                of an outermost one
 *   call_return  finds the frame by its stack pointer, updates the sums and sends the event; or sends the
 *                event of a pending call
 *   empty_*      do nothing, for measuring the cost of a probe
 *   task_exit    removes the thread, and with the last thread its process
 *   task_exec    removes the process's state from before exec
 *   task_switch  a thread is taken off a CPU, and another one put on it; loaded only for Python's lock
 *   entry_free   run by user space: deletes an entry of the sums
 *
 * A thread has one frame in each layer (enum trace_layer), for its outermost probed call there. The stack
 * pointer shows which calls are nested in it, and whether it was left by an exception or longjmp. The CUDA
 * layer's frame is in `threads`; those of the layers above are in `layers`, which is read only for threads
 * that have called such a layer. Nested calls that send events are stored separately (struct pending_call).
 */
#include "bpf/machine.h"
#include "bpf/maps.h"
#include "bpf/operands.h"
#include "bpf/blas_operands.h"
#include "bpf/nccl_operands.h"
#include "bpf/emit.h"
#include "bpf/layers.h"
#include "bpf/operators.h"
#include "bpf/nccl.h"
#include "bpf/torch.h"
#include "bpf/sums.h"
#include "bpf/variables.h"
#include "bpf/stacks.h"
#include "bpf/gil.h"
#include "bpf/garbage.h"

/* ---- end of a call ---- */

static __always_inline bool is_launch(const struct trace_spec *spec)
{
	return spec->shape >= TRACE_SHAPE_LAUNCH && spec->shape <= TRACE_SHAPE_LAUNCH_CONFIG;
}

/*
 * The result code of a function that returned @value, by its convention; 0: success, or it does not report
 * failure.
 */
static __always_inline __s32 result_of(const struct trace_spec *spec, __u64 value)
{
	if (spec->result == TRACE_RESULT_POINTER)
		return value ? 0 : TRACE_RESULT_NULL;
	if (spec->result == TRACE_RESULT_NCCL && (__s32)value == NCCL_IN_PROGRESS)
		return 0;
	return spec->result == TRACE_RESULT_NONE ? 0 : (__s32)value;
}

static __always_inline bool is_failure(const struct trace_spec *spec, __s32 result)
{
	if (result == NOT_READY && spec->result == TRACE_RESULT_CUDA &&
	    (spec->op == TRACE_OP_QUERY_STREAM || spec->op == TRACE_OP_QUERY_EVENT))
		return false;
	return result != 0;
}

static __always_inline void duration_add(struct trace_stat *stat, const struct outcome *outcome)
{
	__u64 bucket = latency_bucket(outcome->duration_ns);

	SHOW_BOUND(bucket);
	ADD(&stat->total_ns, outcome->duration_ns);
	if (bucket < TRACE_BUCKETS)
		COUNT(&stat->buckets[bucket]);
}

static __always_inline void sums_add(struct trace_stat *stat, const struct outcome *outcome, __u64 bytes)
{
	COUNT(&stat->count);
	if (outcome->returned)
		duration_add(stat, outcome);
	if (bytes)
		ADD(&stat->bytes, bytes);
	stat->last_ns = outcome->now;
}

/* The string that string_send() could not read when the call was entered. */
static __always_inline void string_late(const struct trace_spec *spec, struct frame *frame)
{
	frame->flags &= ~FRAME_STRING_LATE;
	name_event(spec, frame);
}

static __always_inline void call_end(struct trace_counters *c, struct trace_control *ctl,
				     struct thread *thread, struct frame *frame,
				     const struct trace_spec *spec, __u64 id, const struct outcome *outcome)
{
	bool failed = is_failure(spec, outcome->result);
	struct trace_stat *stat;
	__u64 bytes = 0;

	if (!is_launch(spec)) {
		if (spec->flags & TRACE_SPEC_OUTPUTS)
			outputs_read(spec, frame, outcome->returned && !failed);
		if (spec->layer == TRACE_LAYER_NCCL)
			nccl_end(id, failed);
		bytes = bytes_of(spec, frame);
	}
	stat = stat_get(thread, id >> 32, frame->call);
	if (stat) {
		/* Bytes count only for calls that are known to have succeeded. */
		bool moved = outcome->returned && !failed && !(spec->flags & TRACE_SPEC_SKIP_BYTES);

		sums_add(stat, outcome, moved ? bytes : 0);
		if (failed) {
			COUNT(&stat->errors);
			error_count(frame->call, thread->incarnation, thread->owner, outcome->result);
		}
		stat_mark_active(ctl, id >> 32);
	}
	if (!(spec->flags & TRACE_SPEC_EVENT) || thread->flags & TRACE_PROC_QUIET)
		return;
	if (is_launch(spec)) {
		launch_event(c, spec, frame, outcome);
	} else if (spec->shape == TRACE_SHAPE_COMMUNICATORS && outcome->returned && !failed) {
		communicators_send(id, outcome->duration_ns);
	} else if (spec->shape == TRACE_SHAPE_NAME) {
		if (outcome->returned && !failed)
			name_event(spec, frame);
	} else if (spec->shape != TRACE_SHAPE_STRING) {
		call_event(c, spec, frame, outcome, bytes, stack_of(spec));
	} else if (outcome->returned && frame->flags & FRAME_STRING_LATE) {
		string_late(spec, frame);
	}
}

/* ---- probes ---- */

#define PENDING_NEVER (1U << 31)

static __always_inline bool has_return(const struct trace_spec *spec, __u64 site)
{
	return spec->flags & TRACE_SPEC_RETURNS && !(site & TRACE_SITE_NO_RETURN);
}

/*
 * Sends the string when the call is entered, since it may have changed by the time it returns. But if its
 * page is not in memory, and there is a return, then: by then the function has read it.
 */
static __always_inline void string_send(const struct thread *thread, const struct trace_spec *spec,
					struct frame *frame, bool returns)
{
	char first;

	if (spec->shape != TRACE_SHAPE_STRING || !(spec->flags & TRACE_SPEC_EVENT) ||
	    thread->flags & TRACE_PROC_QUIET)
		return;
	if (returns && bpf_probe_read_user(&first, sizeof(first), (void *)frame->values[TRACE_OPERAND_ADDR]))
		frame->flags |= FRAME_STRING_LATE;
	else
		name_event(spec, frame);
}

/* The event of a nested call with TRACE_SPEC_EACH, of what is told when it is entered. */
static __always_inline void each_event(const struct trace_spec *spec, struct frame *frame, __u64 id,
				       bool returns)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_counters *c = counters_get();
	struct outcome outcome = {};

	if (!thread || !c)
		return;
	string_send(thread, spec, frame, returns);
	if (returns || spec->shape == TRACE_SHAPE_STRING || !(spec->flags & TRACE_SPEC_EVENT) ||
	    thread->flags & TRACE_PROC_QUIET)
		return;
	frame->flags |= TRACE_FLAG_NO_RESULT;
	call_event(c, spec, frame, &outcome, frame->values[TRACE_OPERAND_SIZE], TRACE_STACK_OFF);
}

/* The key is on the stack here only: the stacks of functions within each other may take 512 bytes. */
static __always_inline void pending_keep(const struct trace_spec *spec, struct pending_call *pending,
					 __u64 id, __u64 sp)
{
	struct pending_key key = { .id = id, .sp = sp };

	if (spec->flags & TRACE_SPEC_EACH)
		bpf_map_update_elem(&pending_each, &key, pending, BPF_ANY);
	else
		bpf_map_update_elem(&pending_calls, &key, pending, BPF_ANY);
}

static __always_inline void pending_forget(__u64 id, __u64 sp)
{
	const struct pending_key key = { .id = id, .sp = sp };

	bpf_map_delete_elem(&pending_each, &key);
}

/*
 * A call at @sp of thread @id, nested in its outermost one of that layer, of which more than that is told
 * when it returns. @call: PENDING_NEVER is set where its return will not be seen, or not told from another
 * one's. Not static, as in shares.h. The kernel knows the context by @regs's type.
 */
__noinline int pending_begin(bpf_user_pt_regs_t *regs, __u64 id, __u64 sp, __u32 call)
{
	struct pt_regs *ctx = (struct pt_regs *)regs;
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	__u32 row = call & TRACE_SITE_CALL;
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &row);
	struct frames *frames = NULL;
	struct pending_call *pending;
	struct frame *outer;

	if (!spec || !thread)
		return 0;
	if (spec->layer != TRACE_LAYER_CUDA)
		frames = bpf_map_lookup_elem(&layers, &id);
	outer = frame_of(thread, frames, spec->layer);
	if (!outer)
		return 0;
	pending = &thread->pending;
	pending->outer_ns = outer->entry_ns;
	pending->frame.sp = sp;
	pending->frame.call = row;
	pending->frame.flags = spec->event_flags;
	pending->frame.enclosing = outer->enclosing;
	pending->frame.within = outer->within;
	operands_read(ctx, spec, &pending->frame);
	pending->frame.entry_ns = bpf_ktime_get_ns();
	if (spec->flags & TRACE_SPEC_EACH)
		each_event(spec, &pending->frame, id, !(call & PENDING_NEVER));
	if (call & PENDING_NEVER)
		return 0;
	pending_keep(spec, pending, id, sp);
	return 0;
}

/*
 * For a return of thread @id at @sp, of @value, within another call: adds the duration and failure of the
 * nested call with TRACE_SPEC_EACH that it ends, and sends its event. False: there is none. Not static, as
 * in shares.h.
 */
__noinline int each_return(__u64 id, __u64 sp, __u64 value)
{
	struct pending_key key = { .id = id, .sp = sp };
	struct pending_call *found = bpf_map_lookup_elem(&pending_each, &key), *pending;
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct outcome outcome = { .now = bpf_ktime_get_ns(), .returned = 1 };
	struct trace_counters *c = counters_get();
	const struct trace_spec *spec;
	struct frame *outer, *frame;
	struct trace_stat *stat;
	__u32 call;

	if (!found || !thread || !c || !ctl)
		return false;
	pending = &thread->pending;
	*pending = *found;
	bpf_map_delete_elem(&pending_each, &key);
	frame = &pending->frame;
	call = frame->call;
	spec = bpf_map_lookup_elem(&specs, &call);
	if (!spec)
		return false;
	/* An old entry may have the same stack pointer, if its return was not seen. */
	outer = frame_of(thread, bpf_map_lookup_elem(&layers, &id), TRACE_LAYER_USER);
	if (!outer || !outer->sp || outer->entry_ns != pending->outer_ns)
		return false;
	outcome.duration_ns = outcome.now - frame->entry_ns;
	outcome.result = result_of(spec, value);
	stat = stat_get(thread, id >> 32, call);
	if (stat) {
		duration_add(stat, &outcome);
		stat->last_ns = outcome.now;
		if (is_failure(spec, outcome.result)) {
			COUNT(&stat->errors);
			error_count(call, thread->incarnation, thread->owner, outcome.result);
		}
		stat_mark_active(ctl, id >> 32);
	}
	if (!(spec->flags & TRACE_SPEC_EVENT) || thread->flags & TRACE_PROC_QUIET)
		return true;
	if (spec->shape != TRACE_SHAPE_STRING)
		call_event(c, spec, frame, &outcome, frame->values[TRACE_OPERAND_SIZE], TRACE_STACK_OFF);
	else if (frame->flags & FRAME_STRING_LATE)
		string_late(spec, frame);
	return true;
}

/*
 * For a return of thread @id at @sp, of @value, without a frame: whether it is that of a pending call,
 * whose event this sends. Not static, as in shares.h.
 */
__noinline int pending_return(__u64 id, __u64 sp, __u64 value)
{
	struct pending_key key = { .id = id, .sp = sp };
	struct pending_call *found = bpf_map_lookup_elem(&pending_calls, &key), *pending;
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct outcome outcome = { .returned = 1 };
	struct trace_counters *c = counters_get();
	struct frames *frames = NULL;
	const struct trace_spec *spec;
	struct frame *outer;
	__u32 call;

	if (!found)
		return false;
	if (!thread || !c)
		return true;
	pending = &thread->pending;
	*pending = *found;
	bpf_map_delete_elem(&pending_calls, &key);
	call = pending->frame.call;
	spec = bpf_map_lookup_elem(&specs, &call);
	if (!spec || is_failure(spec, result_of(spec, value)) || thread->flags & TRACE_PROC_QUIET)
		return true;
	/* An old entry may have the same stack pointer, if its outermost call was left without a return. */
	if (spec->layer != TRACE_LAYER_CUDA)
		frames = bpf_map_lookup_elem(&layers, &id);
	outer = frame_of(thread, frames, spec->layer);
	if (!outer || !outer->sp || outer->entry_ns != pending->outer_ns)
		return true;
	outcome.now = bpf_ktime_get_ns();
	outcome.duration_ns = outcome.now - pending->frame.entry_ns;
	outputs_read(spec, &pending->frame, true);
	if (spec->shape == TRACE_SHAPE_NAME)
		name_event(spec, &pending->frame);
	else
		call_event(c, spec, &pending->frame, &outcome, 0, TRACE_STACK_OFF);
	return true;
}

/* The outermost call of the thread in its layer begins. */
static __always_inline void call_begin(struct pt_regs *ctx, struct trace_counters *c,
				       struct trace_control *ctl, struct thread *thread, struct frame *frame,
				       const struct trace_spec *spec, __u64 id, __u64 site, __u64 sp)
{
	struct outcome outcome = {};

	frame->sp = sp;
	frame->call = site & TRACE_SITE_CALL;
	frame->flags = spec->event_flags;
	frame->tails = 0;
	if (spec->layer != TRACE_LAYER_CUDA) {
		frame->number = ++thread->numbered;
		thread->above |= 1U << spec->layer;
	}
	frame_fill(ctx, spec, frame);
	if (has_other(spec)) {
		nccl_read(spec, frame);
		blas_read(ctx, spec, frame);
	}
	frame->entry_ns = bpf_ktime_get_ns();
	string_send(thread, spec, frame, has_return(spec, site));
	if (has_return(spec, site))
		return;
	frame->flags |= TRACE_FLAG_NO_RESULT;
	outcome.now = frame->entry_ns;
	call_end(c, ctl, thread, frame, spec, id, &outcome);
	frame->sp = 0;
}

/*
 * @each: as a call of its own. Now, since the kernel probes no returns of a thread beyond 64 within each
 * other (MAX_URETPROBE_DEPTH in kernel/events/uprobes.c), and the oldest pending ones are replaced.
 */
static __always_inline void nested_count(struct trace_control *ctl, const struct thread *thread, __u32 tgid,
					 __u32 call, bool each)
{
	struct trace_stat *stat = stat_get(thread, tgid, call);

	if (!stat)
		return;
	if (each)
		COUNT(&stat->count);
	else
		COUNT(&stat->nested);
	stat_mark_active(ctl, tgid);
}

/* For a stack of native frames. @entry_sp: as in struct registers. */
static __always_inline void registers_keep(struct pt_regs *ctx, const struct trace_control *ctl,
					   struct thread *thread, __u64 entry_sp)
{
	__u64 fp;

	if (!(ctl->stack_kinds & TRACE_STACK_NATIVE))
		return;
	FRAME_POINTER(fp, ctx);
	thread->registers.ip = PT_REGS_IP(ctx);
	thread->registers.sp = PT_REGS_SP(ctx);
	thread->registers.fp = fp;
	thread->registers.link = link_register(ctx);
	thread->registers.entry_sp = entry_sp;
}

static __always_inline int entry_probe(struct pt_regs *ctx, struct trace_counters *c, __u64 site)
{
	__u32 call = site & TRACE_SITE_CALL;
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &call);
	__u64 sp = PT_REGS_SP(ctx) + (site >> TRACE_SITE_STACK_SHIFT);
	__u64 id = bpf_get_current_pid_tgid();
	struct frames *frames = NULL;
	struct thread *thread;
	struct frame *frame;
	__u32 enclosing = 0;

	if (!ctl || !spec || ctl->ended)
		return 0;
	thread = thread_get(c, ctl, id);
	if (!thread)
		return 0;
	registers_keep(ctx, ctl, thread, sp);
	if (spec->op == TRACE_OP_OPERATOR)
		return operator_enter(id, sp, call, link_register(ctx));
	if (spec->op >= TRACE_OP_TORCH_FIRST && spec->op <= TRACE_OP_TORCH_LAST)
		return torch_enter((bpf_user_pt_regs_t *)ctx, id, sp, call);
	if (spec->op >= TRACE_OP_PYTHON_FIRST && spec->op <= TRACE_OP_PYTHON_LAST)
		return python_enter(id, spec->op, call, register_arg(ctx, 0), register_arg(ctx, 1));
	if (spec->op == TRACE_OP_INIT && !(thread->flags & TRACE_PROC_QUIET))
		variables_send(spec, call);
	if (thread->above || spec->layer != TRACE_LAYER_CUDA) {
		frames = frames_get(id, thread->owner);
		if (!frames)
			return 0;
		enclosing = layers_unwind(id, sp, spec->layer, link_register(ctx));
	}
	frame = frame_of(thread, frames, spec->layer);
	if (!frame)
		return 0;
	if (frame->sp && ((ctl->gone_ns > frame->entry_ns && is_gone(frame)) ||
			  (sp < frame->sp && was_left(link_register(ctx), frame)))) {
		COUNT(&c->abandoned);
		frame->sp = 0;
	}
	if (frame->sp) {
		bool tail = sp == frame->sp && is_tail_call(link_register(ctx), sp);

		if (tail || sp < frame->sp) {
			bool returns = has_return(spec, site);
			bool each = spec->flags & TRACE_SPEC_EACH;

			nested_count(ctl, thread, id >> 32, call, each);
			if (tail && returns)
				frame->tails++;
			/* What is left of an older call there, whose return was not seen. */
			if (thread->above && returns)
				pending_forget(id, sp);
			if (each && (tail || !returns))
				call |= PENDING_NEVER;
			if (each ||
			    (returns && spec->flags & TRACE_SPEC_ALWAYS && spec->flags & TRACE_SPEC_EVENT))
				return pending_begin((bpf_user_pt_regs_t *)ctx, id, sp, call);
			return 0;
		}
		COUNT(&c->abandoned);
	}
	frame->enclosing = enclosing;
	frame->within = thread->nested ? operators_around(id, sp) : 0;
	call_begin(ctx, c, ctl, thread, frame, spec, id, site, sp);
	return 0;
}

static __always_inline int return_probe(struct pt_regs *ctx, struct trace_counters *c)
{
	__u64 id = bpf_get_current_pid_tgid(), sp = PT_REGS_SP(ctx) - RETURN_POPS;
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	const struct trace_spec *spec;
	struct outcome outcome = { .returned = 1 };
	struct frame *frame = NULL;
	__u32 call;

	if (!ctl || ctl->ended)
		return 0;
	if (thread)
		registers_keep(ctx, ctl, thread, 0);
	if (thread && thread->above)
		frame = frame_of(thread, bpf_map_lookup_elem(&layers, &id), layer_returning(id, sp));
	else if (thread)
		frame = &thread->frame;
	if (!frame || !frame->sp) {
		COUNT(&c->return_hits);
		if (!pending_return(id, sp, PT_REGS_RC(ctx)) &&
		    !(thread ? thread->flags & TRACE_PROC_IGNORE : id >> 32 == ctl->own_tgid))
			COUNT(&c->unmatched);
		return 0;
	}
	thread->return_hits++;
	call = frame->call;
	if (sp < frame->sp) {
		if (thread->above && each_return(id, sp, PT_REGS_RC(ctx)))
			return 0;
		pending_return(id, sp, PT_REGS_RC(ctx)); /* or of another nested call */
		return 0;
	}
	if (sp == frame->sp && frame->tails) {
		frame->tails--; /* the last tail call returns first */
		pending_return(id, sp, PT_REGS_RC(ctx));
		return 0;
	}
	if (sp > frame->sp) {
		COUNT(&c->abandoned);
		COUNT(&c->unmatched);
		frame->sp = 0;
		return 0;
	}
	spec = bpf_map_lookup_elem(&specs, &call);
	if (!spec)
		return 0;
	outcome.now = bpf_ktime_get_ns();
	outcome.duration_ns = outcome.now - frame->entry_ns;
	outcome.result = result_of(spec, PT_REGS_RC(ctx));
	call_end(c, ctl, thread, frame, spec, id, &outcome);
	frame->sp = 0;
	return 0;
}

#ifdef TRACE_MULTI
static __always_inline bool site_find(struct pt_regs *ctx, __u64 *ret_site)
{
	*ret_site = bpf_get_attach_cookie(ctx);
	return true;
}
#else
/* Finds the site by the code after the probe. */
static __always_inline bool site_find(struct pt_regs *ctx, __u64 *ret_site)
{
	__u64 ip = PT_REGS_IP(ctx) + BREAKPOINT;
	struct trace_signature signature = { .page_offset = PT_REGS_IP(ctx) & (PAGE - 1), .salt = salt };
	__u64 left = PAGE - BREAKPOINT - signature.page_offset;
	__u64 *site;

	asm volatile("" : "+r"(left));
	if (left > sizeof(signature.code) - BREAKPOINT)
		left = sizeof(signature.code) - BREAKPOINT;
	bpf_probe_read_user(signature.code, left, (void *)ip);
	site = bpf_map_lookup_elem(&sites, &signature);
	if (!site)
		return false;
	*ret_site = *site;
	return true;
}
#endif

SEC("uprobe")
int call_entry(struct pt_regs *ctx)
{
	struct trace_counters *c = counters_get();
	__u64 site;

	KEEP_OWN_STACK(ctx);
	if (!c)
		return 0;
	if (!site_find(ctx, &site)) {
		COUNT(&c->hits);
		COUNT(&c->unidentified);
		return 0;
	}
	return entry_probe(ctx, c, site);
}

SEC("uprobe")
int call_return(struct pt_regs *ctx)
{
	struct trace_counters *c = counters_get();

	KEEP_OWN_STACK(ctx);
	if (!c)
		return 0;
	return return_probe(ctx, c);
}

SEC("uprobe")
int empty_entry(struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

SEC("uprobe")
int empty_return(struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

/* ---- exit, exec and fork of processes ---- */

static __noinline void frames_remove(struct trace_counters *c, __u64 id, __u64 owner)
{
	struct frames *frames = bpf_map_lookup_elem(&layers, &id);

	if (!frames)
		return;
	for (__u32 i = 0; i < TRACE_LAYERS - 1; i++)
		if (frames->at[i].sp)
			COUNT(&c->abandoned);
	if (bpf_map_delete_elem(&layers, &id) == 0)
		share_give(owner, TRACE_TABLE_LAYERS);
}

static __always_inline void thread_remove(struct trace_counters *c, __u64 id)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	__u64 owner;

	python_remove(id);
	if (!thread)
		return;
	owner = thread->owner;
	if (thread->frame.sp)
		COUNT(&c->abandoned);
	if (thread->numbered)
		frames_remove(c, id, owner);
	nest_remove(id, owner);
	hits_flush(c, thread);
	if (bpf_map_delete_elem(&walks, &id) == 0)
		share_give(owner, TRACE_TABLE_WALKS);
	if (bpf_map_delete_elem(&threads, &id) == 0)
		share_give(owner, TRACE_TABLE_THREADS);
}

/*
 * Adds a followed process before its first call. It is charged to nobody, as the first one that is followed,
 * which user space has added: a user's own command.
 */
static __always_inline void proc_enter(__u32 tgid, __u64 start_boot_ns, __u32 flags)
{
	struct trace_proc new = {
		.incarnation = bpf_ktime_get_ns(),
		.start_boot_ns = start_boot_ns,
		.flags = flags | TRACE_PROC_UNSEEN,
	};

	if (bpf_map_update_elem(&procs, &tgid, &new, BPF_ANY))
		table_lost(0, TRACE_TABLE_PROCS);
}

/* If threads race, the one that deletes the entry sends the event. */
static __always_inline void proc_remove(struct trace_counters *c, __u32 tgid, enum trace_event_type type)
{
	struct trace_proc *proc = bpf_map_lookup_elem(&procs, &tgid), old;

	bpf_map_delete_elem(&pythons, &tgid);
	bpf_map_delete_elem(&spaces, &tgid);
	if (!proc)
		return;
	old = *proc;
	if (bpf_map_delete_elem(&procs, &tgid) == 0) {
		share_give(old.owner, TRACE_TABLE_PROCS);
		if (!(old.flags & (TRACE_PROC_IGNORE | TRACE_PROC_UNSEEN)))
			process_event(c, type, &old);
	}
	if (type == TRACE_EVENT_EXEC && old.flags & TRACE_PROC_FOLLOW)
		proc_enter(tgid, old.start_boot_ns, old.flags);
}

SEC("raw_tracepoint/sched_process_exit")
int task_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	struct trace_counters *c = counters_get();
	__u64 id = bpf_get_current_pid_tgid();

	if (!c)
		return 0;
	thread_remove(c, id);
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		proc_remove(c, id >> 32, TRACE_EVENT_EXIT);
	return 0;
}

SEC("raw_tracepoint/sched_process_exec")
int task_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct trace_counters *c = counters_get();
	__u64 id = bpf_get_current_pid_tgid();

	if (!c)
		return 0;
	/* The thread that calls exec gets its leader's TID. */
	thread_remove(c, id);
	thread_remove(c, (id & ~0xffffffffULL) | (__u32)ctx->args[1]);
	proc_remove(c, id >> 32, TRACE_EVENT_EXEC);
	return 0;
}

SEC("raw_tracepoint/sched_process_fork")
int task_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	struct trace_proc *proc = from == to ? NULL : bpf_map_lookup_elem(&procs, &from);
	struct trace_python *python = from == to ? NULL : bpf_map_lookup_elem(&pythons, &from);
	struct unwind_space *space = from == to ? NULL : bpf_map_lookup_elem(&spaces, &from);

	if (proc && proc->flags & TRACE_PROC_FOLLOW)
		proc_enter(to, BPF_CORE_READ(child, start_boottime), proc->flags);
	/* Of others user space hears with their first call: so there are no more of them than of `procs`. */
	if (python && proc && proc->flags & TRACE_PROC_FOLLOW)
		bpf_map_update_elem(&pythons, &to, python, BPF_ANY);
	if (space)
		bpf_map_update_elem(&spaces, &to, space, BPF_ANY);
	return 0;
}

/* A thread is taken off a CPU, and another one put on it. */
SEC("raw_tracepoint/sched_switch")
int task_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *from = (void *)ctx->args[1], *to = (void *)ctx->args[2];
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32;
	bool preempted = ctx->args[0] & 1;

	if (!preempted && bpf_map_lookup_elem(&pythons, &tgid) && task_waits(from))
		gil_off(id);
	gil_on((__u64)BPF_CORE_READ(to, tgid) << 32 | (__u32)BPF_CORE_READ(to, pid));
	return 0;
}

/* ---- run by user space ---- */

static __always_inline void stat_free(const struct trace_stat_key *key)
{
	struct trace_stat *stat = bpf_map_lookup_elem(&stats, key);
	__u64 owner = stat ? stat->owner : 0;

	if (stat && bpf_map_delete_elem(&stats, key) == 0)
		share_give(owner, TRACE_TABLE_STATS);
}

static __always_inline void operator_free(const struct trace_stat_key *key)
{
	struct trace_operator *sum = bpf_map_lookup_elem(&operators, key);
	__u64 owner = sum ? sum->owner : 0;

	if (sum && bpf_map_delete_elem(&operators, key) == 0)
		share_give(owner, TRACE_TABLE_OPERATORS);
}

static __always_inline void error_free(const struct trace_error_key *key)
{
	struct trace_error *error = bpf_map_lookup_elem(&errors, key);
	__u64 owner = error ? error->owner : 0;

	if (error && bpf_map_delete_elem(&errors, key) == 0)
		share_give(owner, TRACE_TABLE_ERRORS);
}

SEC("raw_tracepoint/entry_free")
int entry_free(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tgid = ctx->args[TRACE_FREE_CALL] >> 32, call = ctx->args[TRACE_FREE_CALL];
	__u64 incarnation = ctx->args[TRACE_FREE_INCARNATION];

	if (ctx->args[TRACE_FREE_TABLE] != TRACE_TABLE_ERRORS) {
		const struct trace_stat_key key = { .tgid = tgid, .call = call, .incarnation = incarnation };

		if (ctx->args[TRACE_FREE_TABLE] == TRACE_TABLE_STATS)
			stat_free(&key);
		else
			operator_free(&key);
	} else {
		const struct trace_error_key key = { .tgid = tgid,
						     .call = call,
						     .incarnation = incarnation,
						     .result = ctx->args[TRACE_FREE_RESULT] };

		error_free(&key);
	}
	return 0;
}

/*
 * Run once by user space: stores its PID in the initial namespace, which it cannot know within another one.
 */
SEC("raw_tracepoint/own_tgid")
int own_tgid(struct bpf_raw_tracepoint_args *ctx)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);

	(void)ctx;
	if (!ctl)
		return 0;
	ctl->own_tgid = bpf_get_current_pid_tgid() >> 32;
	ctl->version = TRACE_VERSION;
	return 0;
}

/* Some of the helpers used may be called only by programs with a GPL-compatible license. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
