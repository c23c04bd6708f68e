// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: what PyTorch does beside calling operators. All of it is seen at entries.
 *
 * The graph of a backward pass. A node is tied to the tensors that an operator returns, by
 * set_gradient_edge(), while the operator is still called: so the operator that made a node is the innermost
 * one that the thread is in then. evaluate_function() is given the same node later, on any thread. A node is
 * known by its address, its type and its sequence number, since addresses are used again.
 *
 * A node is an object of C++ with virtual functions: its first word leads to its type, and that to the type's
 * name (the Itanium C++ ABI), whatever the version of PyTorch.
 */
#pragma once

#include "bpf/operators.h"

#define NODE_NAME_AGAIN_NS (60 * 1000000000ULL) /* a name is sent again, since its event may be lost */

#if defined(__TARGET_ARCH_x86)
enum { RANGE_NAME_ARG = 1 }; /* after the address of what is returned */
#else
enum { RANGE_NAME_ARG = 0 };
#endif

/* The first members of torch::autograd::Node. */
struct node {
	__u64 type; /* its table of virtual functions, after whose type it has a place of its own */
	__u64 self[2]; /* std::enable_shared_from_this */
	__u64 sequence;
};

struct node_key {
	__u64 incarnation;
	__u64 address; /* of a node; of a type */
};

struct edge {
	__u64 type, sequence;
	__u64 call; /* the operator */
};

/* User space sets max_entries of both. LRU: nobody says when a node is deleted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct node_key);
	__type(value, struct edge);
} edges SEC(".maps");

/* When the name of a type was sent. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct node_key);
	__type(value, __u64);
} node_types SEC(".maps");

/* Thread @id ties a node to a tensor; @edge: where torch::autograd::Edge is. Not static, as in shares.h. */
__noinline int edge_set(__u64 id, __u64 sp, __u64 edge)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	__u64 call = operators_around(id, sp) & 0xffff;
	struct node_key key = {};
	struct edge made = { .call = call };
	struct node node;

	if (!thread || !call)
		return 0;
	key.incarnation = thread->incarnation;
	if (bpf_probe_read_user(&key.address, sizeof(key.address), (void *)edge) ||
	    bpf_probe_read_user(&node, sizeof(node), (void *)key.address))
		return 0;
	made.type = node.type;
	made.sequence = node.sequence;
	bpf_map_update_elem(&edges, &key, &made, BPF_ANY);
	return 0;
}

/* The operator that made the node; 0: it is not known. */
static __always_inline __u32 forward_of(__u64 incarnation, __u64 address, const struct node *node)
{
	struct node_key key = { .incarnation = incarnation, .address = address };
	struct edge *edge = bpf_map_lookup_elem(&edges, &key);

	return edge && edge->type == node->type && edge->sequence == node->sequence ? edge->call : 0;
}

/* Sends the name of a node's type, unless it was sent lately. Not static, as in shares.h. */
__noinline int node_name(__u64 incarnation, __u64 type, __u32 call)
{
	struct node_key key = { .incarnation = incarnation, .address = type };
	__u64 now = bpf_ktime_get_ns(), *sent = bpf_map_lookup_elem(&node_types, &key);
	__u64 info = 0, name = 0;

	if (sent && now - *sent < NODE_NAME_AGAIN_NS)
		return 0;
	bpf_map_update_elem(&node_types, &key, &now, BPF_ANY);
	if (bpf_probe_read_user(&info, sizeof(info), (void *)(type - 8)) ||
	    bpf_probe_read_user(&name, sizeof(name), (void *)(info + 8)))
		return 0;
	name_send(name, type, 0, now, NAME_WHAT(call, TRACE_OP_TORCH_NODE, TRACE_FLAG_NO_RESULT, 0));
	return 0;
}

/*
 * Thread @id evaluates a node, entered at @sp: it is in it as in an operator. The values of its event are
 * left in the thread's pending frame. @link: the link register. Not static, as in shares.h.
 */
__noinline int node_enter(__u64 id, __u64 sp, __u32 call, __u64 link, __u64 address)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_operator *sum;
	struct node node = {};
	struct nest *nest;
	__u32 forward = 0;
	__u64 *values;

	asm volatile("" : "+r"(link)); /* as in layers.h */
	if (!thread)
		return 0;
	if (bpf_probe_read_user(&node, sizeof(node), (void *)address) == 0)
		forward = forward_of(thread->incarnation, address, &node);
	nest = nest_get(id, thread->owner);
	if (nest) {
		nest_trim(nest, sp);
		nest_push(nest, sp, return_address(link, sp), call, forward);
		thread->nested = nest->n;
	}
	operator_count(thread, id >> 32, call, nest && nest->n == 1);
	sum = forward ? operator_sum(thread, id >> 32, forward) : NULL;
	if (sum)
		COUNT(&sum->backward);
	values = thread->pending.frame.values;
	values[TRACE_OPERAND_ADDR] = address;
	values[TRACE_OPERAND_HANDLE] = node.type;
	values[TRACE_OPERAND_SIZE] = node.sequence;
	values[TRACE_OPERAND_STREAM] = values[TRACE_OPERAND_KIND] = 0;
	return 0;
}

/* An allocator's report: what was asked for is argument @size, the others follow. */
static __always_inline void memory_read(struct pt_regs *ctx, __u64 *values, __u32 size)
{
	values[TRACE_OPERAND_ADDR] = size ? register_arg(ctx, 0) : 0;
	values[TRACE_OPERAND_SIZE] = register_arg(ctx, size);
	values[TRACE_OPERAND_STREAM] = register_arg(ctx, size + 1);
	values[TRACE_OPERAND_HANDLE] = register_arg(ctx, size + 2);
	values[TRACE_OPERAND_KIND] = register_arg(ctx, size + 3) & 0xffff;
}

/* A std::string begins with where its characters are. */
static __always_inline void range_read(struct pt_regs *ctx, __u64 *values)
{
	__u64 name = 0;

	bpf_probe_read_user(&name, sizeof(name), (void *)register_arg(ctx, RANGE_NAME_ARG));
	values[TRACE_OPERAND_ADDR] = name;
	values[TRACE_OPERAND_HANDLE] = values[TRACE_OPERAND_STREAM] = 0;
}

/* Sends the event of a call at @sp, whose values are in its frame. */
static __always_inline void torch_send(const struct trace_spec *spec, struct frame *frame, __u64 within)
{
	struct trace_counters *c = counters_get();
	struct outcome outcome = {};

	if (!c)
		return;
	frame->flags = spec->event_flags;
	frame->enclosing = 0;
	frame->number = 0;
	frame->within = within;
	frame->entry_ns = bpf_ktime_get_ns();
	if (spec->op == TRACE_OP_TORCH_RANGE)
		name_event(spec, frame);
	else
		call_event(c, spec, frame, &outcome, frame->values[TRACE_OPERAND_SIZE], TRACE_STACK_OFF);
}

/*
 * Thread @id enters a function of PyTorch that is no operator. Not static, as in shares.h; the context as in
 * pending_begin().
 */
__noinline int torch_enter(bpf_user_pt_regs_t *regs, __u64 id, __u64 sp, __u32 call)
{
	struct pt_regs *ctx = (struct pt_regs *)regs;
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &call);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct frame *frame;

	if (!spec || !thread)
		return 0;
	frame = &thread->pending.frame;
	frame->call = call;
	if (spec->op != TRACE_OP_TORCH_NODE)
		binding_enter(id, call); /* counted */
	switch (spec->op) {
	case TRACE_OP_TORCH_EDGE:
		return edge_set(id, sp, register_arg(ctx, 1));
	case TRACE_OP_TORCH_NODE:
		node_enter(id, sp, call, link_register(ctx), register_arg(ctx, 2));
		sp--; /* from here on the thread is within it */
		break;
	case TRACE_OP_TORCH_MEMORY:
		memory_read(ctx, frame->values, 1);
		break;
	case TRACE_OP_TORCH_OOM:
		memory_read(ctx, frame->values, 0);
		break;
	case TRACE_OP_TORCH_RANGE:
		range_read(ctx, frame->values);
		break;
	default:
		return 0;
	}
	if (thread->flags & TRACE_PROC_QUIET)
		return 0;
	if (spec->op == TRACE_OP_TORCH_NODE && frame->values[TRACE_OPERAND_HANDLE])
		node_name(thread->incarnation, frame->values[TRACE_OPERAND_HANDLE], call);
	torch_send(spec, frame, thread->nested ? operators_around(id, sp) : 0);
	return 0;
}
