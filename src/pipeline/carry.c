// SPDX-License-Identifier: Apache-2.0
/*
 * An ended process is in exactly one view, with its final figures. The main thread may fetch fewer views than
 * are made, so ended processes of an unfetched view are carried over to the next one: those with series of
 * their own, at most PIPELINE_CARRIED_MAX.
 */
#include <string.h>

#include "pipeline/private.h"

static bool is_carried(const struct traced_process *process)
{
	return process->exited && process->has_series;
}

struct carry_room {
	uint32_t processes, devices, calls, errors, kernels;
};

static void add_room(struct carry_room *room, const struct trace_view *view,
		     const struct traced_process *process)
{
	room->processes++;
	room->devices += process->devices_n;
	room->calls += process->calls_n;
	room->kernels += process->kernels_n;
	for (uint32_t i = 0; i < process->calls_n; i++)
		room->errors += view->calls[process->calls_first + i].errors_n;
}

static void copy_call(const struct trace_view *from, const struct traced_call *call, struct trace_view *to,
		      struct traced_call *copy)
{
	*copy = *call;
	copy->errors_first = to->errors_n;
	for (uint32_t i = 0; i < call->errors_n; i++)
		to->errors[to->errors_n++] = from->errors[call->errors_first + i];
}

static void copy_process(const struct trace_view *from, const struct traced_process *process,
			 struct trace_view *to)
{
	struct traced_process *copy = &to->processes[to->processes_n];

	*copy = *process;
	copy->devices_first = to->devices_n;
	copy->calls_first = to->calls_n;
	copy->kernels_first = to->kernels_n;
	for (uint32_t i = 0; i < process->devices_n; i++) {
		to->devices[to->devices_n] = from->devices[process->devices_first + i];
		to->devices[to->devices_n++].process = to->processes_n;
	}
	for (uint32_t i = 0; i < process->calls_n; i++) {
		copy_call(from, &from->calls[process->calls_first + i], to, &to->calls[to->calls_n]);
		to->calls[to->calls_n++].process = to->processes_n;
	}
	for (uint32_t i = 0; i < process->kernels_n; i++) {
		struct traced_kernel *kernel = &to->kernels[to->kernels_n++];

		*kernel = from->kernels[process->kernels_first + i];
		kernel->process = to->processes_n;
		kernel_ref(kernel->kernel);
	}
	to->processes_n++;
}

/* Copies everything that does not belong to a single process. */
static void copy_rest(const struct trace_view *from, struct trace_view *to)
{
	to->enabled = from->enabled;
	to->boot_ns = from->boot_ns;
	memcpy(to->why, from->why, sizeof(to->why));
	memcpy(to->backend, from->backend, sizeof(to->backend));
	memcpy(to->agent, from->agent, sizeof(to->agent));
	memcpy(to->agent_p, from->agent_p, sizeof(to->agent_p));
	for (uint32_t i = 0; i < from->all_calls_n; i++)
		copy_call(from, &from->all_calls[i], to, &to->all_calls[i]);
	to->all_calls_n = from->all_calls_n;
	for (uint32_t i = 0; i < from->totals_n; i++)
		to->totals[i] = from->totals[i];
	to->totals_n = from->totals_n;
}

/* Merges by PID; of processes with the same PID the ended one comes first. */
static void views_merge(const struct trace_view *before, const struct trace_view *view, uint32_t carried,
			struct trace_view *to)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < before->processes_n && carried > 0; i++) {
		const struct traced_process *process = &before->processes[i];

		if (!is_carried(process))
			continue;
		while (at < view->processes_n && view->processes[at].id.pid < process->id.pid)
			copy_process(view, &view->processes[at++], to);
		copy_process(before, process, to);
		carried--;
	}
	while (at < view->processes_n)
		copy_process(view, &view->processes[at++], to);
	copy_rest(view, to);
}

struct trace_view *pipeline_carry(const struct trace_view *before, struct trace_view *view,
				  uint64_t *left_out)
{
	struct carry_room room = { 0 };
	struct trace_view *both;

	for (uint32_t i = 0; before && i < before->processes_n; i++) {
		if (!is_carried(&before->processes[i]))
			continue;
		if (room.processes < PIPELINE_CARRIED_MAX)
			add_room(&room, before, &before->processes[i]);
		else
			(*left_out)++;
	}
	if (before) {
		view->nccl = pipeline_carry_nccl(before->nccl, view->nccl, left_out);
		view->blas = pipeline_carry_blas(before->blas, view->blas, left_out);
		view->python = pipeline_carry_python(before->python, view->python, left_out);
		view->torch = pipeline_carry_torch(before->torch, view->torch, left_out);
	}
	if (room.processes == 0)
		return view;
	if (trace_view_new(room.processes + view->processes_n, room.devices + view->devices_n,
			   room.calls + view->calls_n, view->all_calls_n, room.errors + view->errors_n,
			   view->totals_n, room.kernels + view->kernels_n, &both) < 0) {
		*left_out += room.processes;
		return view;
	}
	views_merge(before, view, room.processes, both);
	both->arguments = TAKE_PTR(view->arguments);
	both->arguments_n = view->arguments_n;
	both->operators = TAKE_PTR(view->operators);
	both->operators_n = view->operators_n;
	both->blas = TAKE_PTR(view->blas);
	both->stacks = TAKE_PTR(view->stacks);
	both->stacks_error = view->stacks_error;
	both->python = TAKE_PTR(view->python);
	both->findings = TAKE_PTR(view->findings);
	both->nccl = TAKE_PTR(view->nccl);
	both->torch = TAKE_PTR(view->torch);
	trace_view_unref(view);
	return both;
}
