// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "model/python.h"
#include "model/torch.h"
#include "pipeline/pipeline.h"

/* ---- what ends while nobody looks ---- */

static struct trace_view *view_new(void)
{
	struct trace_view *view;

	assert_int_equal(trace_view_new(400, 4, 4, 1, 8, 1, 0, &view), 0);
	view->enabled = true;
	return view;
}

static struct traced_process *add(struct trace_view *view, uint32_t pid, bool exited)
{
	struct traced_process *process = &view->processes[view->processes_n++];

	*process = (struct traced_process){ .id.pid = pid, .exited = exited, .has_series = true };
	return process;
}

/* With a device, and a call that failed twice with @code. */
static void add_figures(struct trace_view *view, int32_t code)
{
	uint32_t index = view->processes_n - 1;
	struct traced_process *process = &view->processes[index];

	process->devices_first = view->devices_n;
	process->devices_n = 1;
	view->devices[view->devices_n].process = index;
	view->devices[view->devices_n++].v[TRACED_LAUNCHES] = code;
	process->calls_first = view->calls_n;
	process->calls_n = 1;
	view->calls[view->calls_n++] = (struct traced_call){
		.process = index, .api = "cuInit", .count = 2, .errors_first = view->errors_n, .errors_n = 1
	};
	view->errors[view->errors_n++] = (struct traced_error){ code, 2, NULL };
}

static void assert_figures(const struct trace_view *view, uint32_t index, int32_t code)
{
	const struct traced_process *process = &view->processes[index];
	const struct traced_device *device = &view->devices[process->devices_first];
	const struct traced_call *call = &view->calls[process->calls_first];

	assert_int_equal(process->devices_n, 1);
	assert_int_equal(process->calls_n, 1);
	assert_int_equal(device->process, index);
	assert_int_equal(call->process, index);
	assert_true(device->v[TRACED_LAUNCHES] == code);
	assert_int_equal(view->errors[call->errors_first].code, code);
}

/* The next view, made while @before was not taken; @before is given up. */
static struct trace_view *carry(struct trace_view *before, struct trace_view *view)
{
	uint64_t left_out = 0;
	struct trace_view *both = pipeline_carry(before, view, &left_out);

	assert_int_equal(left_out, 0);
	trace_view_unref(before);
	return both;
}

static void what_ended_is_kept_until_it_is_taken(_unused_ void **state)
{
	struct trace_view *view = view_new();

	add(view, 10, false);
	add_figures(view, 1);
	add(view, 20, true);
	add_figures(view, 2);
	add(view, 30, true)->has_series = false;
	view = carry(NULL, view);
	struct trace_view *next = view_new();

	add(next, 5, true);
	add_figures(next, 3);
	view = carry(carry(view, next), view_new());
	assert_true(view->enabled);
	assert_int_equal(view->processes_n, 2);
	assert_int_equal(view->processes[0].id.pid, 5);
	assert_figures(view, 0, 3);
	assert_true(view->processes[1].exited);
	assert_figures(view, 1, 2);
	trace_view_unref(view);
}

static void what_is_kept_stands_in_order(_unused_ void **state)
{
	struct trace_view *before = view_new(), *view = view_new();
	static const uint32_t pids[] = { 5, 10, 20, 20, 40 };
	uint64_t left_out = 0;

	add(before, 20, true);
	add_figures(before, 2);
	add(before, 40, true);
	add_figures(before, 3);
	add(view, 5, false);
	add_figures(view, 4);
	add(view, 10, false);
	add_figures(view, 5);
	add(view, 20, false); /* its successor */
	add_figures(view, 6);
	view->all_calls[view->all_calls_n++] =
		(struct traced_call){ .api = "cuInit", .errors_first = view->errors_n, .errors_n = 1 };
	view->errors[view->errors_n++] = (struct traced_error){ 7, 1, NULL };
	view->totals[view->totals_n++].v[TRACED_LAUNCHES] = 8;
	view = pipeline_carry(before, view, &left_out);
	assert_int_equal(view->processes_n, ARRAY_SIZE(pids));
	for (uint32_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(view->processes[i].id.pid, pids[i]);
	assert_true(view->processes[2].exited);
	assert_false(view->processes[3].exited);
	assert_figures(view, 0, 4);
	assert_figures(view, 2, 2);
	assert_figures(view, 3, 6);
	assert_figures(view, 4, 3);
	assert_int_equal(view->errors[view->all_calls[0].errors_first].code, 7);
	assert_true(view->totals[0].v[TRACED_LAUNCHES] == 8);
	assert_int_equal(left_out, 0);
	trace_view_unref(before);
	trace_view_unref(view);
}

static void only_so_many_are_kept(_unused_ void **state)
{
	struct trace_view *before = view_new(), *view = view_new();
	uint64_t left_out = 0;

	for (uint32_t i = 0; i < PIPELINE_CARRIED_MAX + 10; i++)
		add(before, i + 1, true);
	add(view, 1000, false);
	view = pipeline_carry(before, view, &left_out);
	assert_int_equal(view->processes_n, PIPELINE_CARRIED_MAX + 1);
	assert_int_equal(view->processes[PIPELINE_CARRIED_MAX].id.pid, 1000);
	assert_int_equal(left_out, 10);
	trace_view_unref(before);
	trace_view_unref(view);
}

/* ---- what processes did with NCCL and cuBLAS, and operators ---- */

/* Of one process: a row of so many calls, and of NCCL a communicator. */
static void add_layers(struct trace_view *view, uint32_t pid, bool exited, uint64_t calls)
{
	uint32_t i = view->nccl->processes_n++;

	view->nccl->processes[i] = (struct nccl_process){ .pid = pid,
							  .exited = exited,
							  .has_series = true,
							  .rows_first = view->nccl->rows_n,
							  .rows_n = 1,
							  .communicators_first = view->nccl->communicators_n,
							  .communicators_n = 1 };
	view->nccl->rows[view->nccl->rows_n++].calls = calls;
	view->nccl->communicators[view->nccl->communicators_n++].handle = calls;
	view->blas->processes[i] = (struct blas_process){ .pid = pid,
							  .exited = exited,
							  .has_series = true,
							  .rows_first = view->blas->rows_n,
							  .rows_n = 1 };
	view->python->processes[i] = (struct python_process){ .pid = pid,
							      .exited = exited,
							      .has_series = true,
							      .waiters_first = view->python->waiters_n,
							      .waiters_n = 1 };
	view->python->processes_n++;
	view->python->waiters[view->python->waiters_n++].tid = (uint32_t)calls;
	view->torch->processes[i] = (struct torch_process){ .pid = pid,
							    .exited = exited,
							    .has_series = true,
							    .memories_first = view->torch->memories_n,
							    .memories_n = 1,
							    .nodes_first = view->torch->counts_n,
							    .nodes_n = 1,
							    .ranges_first = view->torch->counts_n + 1,
							    .ranges_n = 1,
							    .operators_first = view->torch->operators_n,
							    .operators_n = 1 };
	view->torch->processes_n++;
	view->torch->operators[view->torch->operators_n++].v[OPERATOR_METRIC_CALLS] = (double)calls;
	view->torch->memories[view->torch->memories_n++].allocated = calls;
	view->torch->counts[view->torch->counts_n++].count = calls;
	view->torch->counts[view->torch->counts_n++].count = calls + 100;
	view->blas->processes_n++;
	view->blas->rows[view->blas->rows_n++].sum.calls = calls;
}

static struct trace_view *layers_new(void)
{
	struct trace_view *view = view_new();

	view->nccl = nccl_view_new(400, 400, 400, 1);
	view->blas = blas_view_new(400, 400);
	assert_non_null(view->nccl);
	assert_non_null(view->blas);
	view->python = python_view_new(400, 400);
	assert_non_null(view->python);
	view->torch = torch_view_new(400, 400, 800, 400);
	assert_non_null(view->torch);
	return view;
}

static void assert_layers(const struct trace_view *view, uint32_t i, uint32_t pid, bool exited,
			  uint64_t calls)
{
	const struct nccl_process *nccl = &view->nccl->processes[i];
	const struct blas_process *blas = &view->blas->processes[i];
	const struct python_process *python = &view->python->processes[i];
	const struct torch_process *torch = &view->torch->processes[i];

	assert_int_equal(nccl->pid, pid);
	assert_int_equal(nccl->exited, exited);
	assert_int_equal(view->nccl->rows[nccl->rows_first].calls, calls);
	assert_int_equal(view->nccl->communicators[nccl->communicators_first].handle, calls);
	assert_int_equal(blas->pid, pid);
	assert_int_equal(blas->exited, exited);
	assert_int_equal(view->blas->rows[blas->rows_first].sum.calls, calls);
	assert_int_equal(python->pid, pid);
	assert_int_equal(python->exited, exited);
	assert_int_equal(view->python->waiters[python->waiters_first].tid, calls);
	assert_int_equal(torch->pid, pid);
	assert_int_equal(torch->exited, exited);
	assert_int_equal(view->torch->memories[torch->memories_first].allocated, calls);
	assert_int_equal(view->torch->counts[torch->nodes_first].count, calls);
	assert_int_equal(view->torch->counts[torch->ranges_first].count, calls + 100);
	assert_int_equal(view->torch->operators[torch->operators_first].v[OPERATOR_METRIC_CALLS], calls);
}

static void what_it_did_with_other_layers_is_kept(_unused_ void **state)
{
	struct trace_view *before = layers_new(), *view = layers_new();

	add_layers(before, 10, false, 1);
	add_layers(before, 20, true, 2);
	add_layers(before, 40, true, 3);
	add_layers(view, 10, false, 4);
	add_layers(view, 20, false, 5); /* its successor */
	view->nccl->totals[view->nccl->totals_n++].calls = 6;
	view->nccl->beyond = view->blas->beyond = 7;
	view->nccl->groups = view->blas->unsized = 8;
	view->blas->totals[BLAS_BF16].calls = 9;
	view->python->waits.count = 10;
	view->python->unknown = view->torch->beyond = 12;
	view->python->collections[1].count = 11;
	view = carry(before, view);
	assert_int_equal(view->nccl->processes_n, 4);
	assert_int_equal(view->blas->processes_n, 4);
	assert_layers(view, 0, 10, false, 4);
	assert_layers(view, 1, 20, true, 2);
	assert_layers(view, 2, 20, false, 5);
	assert_layers(view, 3, 40, true, 3);
	assert_int_equal(view->nccl->totals_n, 1);
	assert_int_equal(view->nccl->totals[0].calls, 6);
	assert_int_equal(view->nccl->beyond, 7);
	assert_int_equal(view->blas->beyond, 7);
	assert_int_equal(view->nccl->groups, 8);
	assert_int_equal(view->blas->unsized, 8);
	assert_int_equal(view->blas->totals[BLAS_BF16].calls, 9);
	assert_int_equal(view->python->waits.count, 10);
	assert_int_equal(view->python->collections[1].count, 11);
	assert_int_equal(view->python->unknown, 12);
	assert_int_equal(view->torch->beyond, 12);
	/* A layer that is not traced any more. */
	view = carry(view, view_new());
	assert_null(view->nccl);
	assert_null(view->blas);
	trace_view_unref(view);
}

static void only_so_many_of_other_layers_are_kept(_unused_ void **state)
{
	struct trace_view *before = layers_new(), *view = layers_new();
	uint64_t left_out = 0;

	for (uint32_t i = 0; i < PIPELINE_CARRIED_MAX + 3; i++)
		add_layers(before, i + 1, true, i);
	add_layers(view, 1000, false, 1);
	view = pipeline_carry(before, view, &left_out);
	assert_int_equal(view->nccl->processes_n, PIPELINE_CARRIED_MAX + 1);
	assert_int_equal(left_out, 4 * 3);
	trace_view_unref(before);
	trace_view_unref(view);
}

static void operators_are_those_of_the_newer_view(_unused_ void **state)
{
	struct trace_view *before = view_new(), *view = view_new();

	add(before, 20, true);
	view->operators = calloc(1, sizeof(*view->operators));
	assert_non_null(view->operators);
	view->operators_n = 1;
	strcpy(view->operators[0].name, "add.Tensor");
	view = carry(before, view);
	assert_int_equal(view->processes_n, 1);
	assert_int_equal(view->operators_n, 1);
	assert_string_equal(view->operators[0].name, "add.Tensor");
	trace_view_unref(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ended_is_kept_until_it_is_taken),
		cmocka_unit_test(what_is_kept_stands_in_order),
		cmocka_unit_test(only_so_many_are_kept),
		cmocka_unit_test(what_it_did_with_other_layers_is_kept),
		cmocka_unit_test(only_so_many_of_other_layers_are_kept),
		cmocka_unit_test(operators_are_those_of_the_newer_view),
	};

	return cmocka_run_group_tests_name("carry", tests, NULL, NULL);
}
