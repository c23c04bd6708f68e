// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipeline/private.h"

void pipeline_event(struct pipeline *pipeline, const struct trace_header *event, uint32_t size)
{
	cuda_event(pipeline->cuda, event, size);
}

void pipeline_lost(struct pipeline *pipeline, uint64_t events)
{
	cuda_lost(pipeline->cuda, events);
}

void pipeline_incomplete(struct pipeline *pipeline, uint32_t tgid, uint64_t incarnation, unsigned bits)
{
	cuda_mark(pipeline->cuda, tgid, incarnation, bits);
}

void pipeline_process_over(struct pipeline *pipeline, uint32_t tgid, uint64_t incarnation)
{
	cuda_process_over(pipeline->cuda, tgid, incarnation);
	if (pipeline->symbolizer)
		symbolizer_forget(pipeline->symbolizer, (pid_t)tgid, incarnation);
}

int pipeline_new(sd_event *event, const struct pipeline_config *config, struct pipeline **ret_pipeline,
		 int *ret_unnamed)
{
	_cleanup_(pipeline_freep) struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	const struct cuda_limits limits = { .series = config->series,
					    .kernel_series = config->kernel_series };
	struct cuda_ops ops = pipeline_cuda_ops;
	int unnamed, r;

	if (!pipeline)
		return -ENOMEM;
	pipeline->config = *config;
	pipeline->devices_by_ns = clock_mono_ns() + config->devices_wait_ns;
	unnamed = config->name_kernels ? pipeline_symbols(pipeline, event, &ops) : 0;
	r = cuda_new(&limits, &ops, pipeline, &pipeline->cuda);
	if (r < 0)
		return r;
	*ret_unnamed = unnamed < 0 ? unnamed : 0;
	*ret_pipeline = TAKE_PTR(pipeline);
	return 0;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	symbolizer_free(pipeline->symbolizer);
	cuda_free(pipeline->cuda);
	free(pipeline->kept);
	free(pipeline);
}
