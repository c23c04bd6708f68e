// SPDX-License-Identifier: Apache-2.0
#include "model/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Each array starts at an offset suitable for any type. */
#define ALIGNED(size_) (((size_) + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t))

/* The next `n` * `size` bytes of the allocation. */
static void *place(char *memory, size_t *at, uint32_t n, size_t size)
{
	void *here = memory + *at;

	*at += ALIGNED(n * size);
	return here;
}

int trace_view_new(uint32_t processes, uint32_t devices, uint32_t calls, uint32_t all_calls, uint32_t errors,
		   uint32_t totals, uint32_t kernels, struct trace_view **ret_view)
{
	size_t at = ALIGNED(sizeof(struct trace_view));
	struct trace_view *view;
	char *memory;

	memory = calloc(
		1, at + ALIGNED(processes * sizeof(*view->processes)) +
			   ALIGNED(devices * sizeof(*view->devices)) + ALIGNED(calls * sizeof(*view->calls)) +
			   ALIGNED(all_calls * sizeof(*view->all_calls)) +
			   ALIGNED(errors * sizeof(*view->errors)) + ALIGNED(totals * sizeof(*view->totals)) +
			   ALIGNED(kernels * sizeof(*view->kernels)));
	if (!memory)
		return -ENOMEM;
	view = (struct trace_view *)memory;
	atomic_init(&view->refs, 1);
	view->processes = place(memory, &at, processes, sizeof(*view->processes));
	view->devices = place(memory, &at, devices, sizeof(*view->devices));
	view->calls = place(memory, &at, calls, sizeof(*view->calls));
	view->all_calls = place(memory, &at, all_calls, sizeof(*view->all_calls));
	view->errors = place(memory, &at, errors, sizeof(*view->errors));
	view->totals = place(memory, &at, totals, sizeof(*view->totals));
	view->kernels = place(memory, &at, kernels, sizeof(*view->kernels));
	*ret_view = view;
	return 0;
}

struct trace_view *trace_view_ref(struct trace_view *view)
{
	if (view)
		atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
	return view;
}

void trace_view_unref(struct trace_view *view)
{
	/* As for snapshots: acquire-release, so that the freeing thread sees all accesses by others. */
	if (!view || atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < view->kernels_n; i++)
		kernel_unref(view->kernels[i].kernel);
	free(view->arguments);
	free(view->blas);
	stack_view_free(view->stacks);
	free(view->python);
	free(view->findings);
	free(view->torch);
	free(view->nccl);
	free(view->operators);
	free(view->process_operators);
	free(view);
}

uint32_t trace_view_find(const struct trace_view *view, uint32_t n, uint32_t pid)
{
	uint32_t low = LOWER_BOUND(n, middle, view->processes[middle].id.pid < pid);

	return low;
}

const char *traced_incomplete_name(unsigned bit)
{
	static const char *const names[TRACED_INCOMPLETE_BITS] = {
#define INCOMPLETE(id_, name_) name_,
#include "model/incomplete.def"
	};

	return bit < TRACED_INCOMPLETE_BITS ? names[bit] : NULL;
}

const char *traced_unplaced_name(unsigned unplaced)
{
	static const char *const names[TRACED_UNPLACEDS] = {
#define UNPLACED(id_, name_, words_) [TRACED_UNPLACED_##id_] = name_,
#include "model/unplaced.def"
	};

	return unplaced < TRACED_UNPLACEDS ? names[unplaced] : NULL;
}

const char *traced_unplaced_words(unsigned unplaced)
{
	static const char *const words[TRACED_UNPLACEDS] = {
#define UNPLACED(id_, name_, words_) [TRACED_UNPLACED_##id_] = words_,
#include "model/unplaced.def"
	};

	return unplaced < TRACED_UNPLACEDS ? words[unplaced] : NULL;
}

bool agent_metric_of_trace(enum agent_metric metric)
{
	static const char prefix[] = "trace_";

	return metric == AGENT_SOURCE_UP_TRACE ||
	       strncmp(agent_metrics[metric].family, prefix, sizeof(prefix) - 1) == 0;
}

const char *cuda_error_words(int32_t code)
{
	switch (code) {
#define CUDA_ERROR(code_, words_) \
	case code_:               \
		return words_;
#include "model/cuda_errors.def"
	default:
		return NULL;
	}
}
