// SPDX-License-Identifier: Apache-2.0
/*
 * What a traced call means for an analysis: the same where it is live and where it was read from a timeline.
 */
#pragma once

#include <stdbool.h>

#include "analysis/analysis.h"
#include "trace/probe.h"

/* Of a traced function; what is not known is 0. */
struct analysis_call {
	const struct probe *probe;
	uint64_t address, bytes, stream;
	uint32_t kind; /* as the operation has it (bpf/operations.h) */
	int32_t result;
};

/*
 * Sets kind, flags, copy, result, bytes, ...; what is left to the caller are process, times, name, what is
 * known of a communicator, and a launch's threads. False: an analysis has no use for it.
 */
bool analysis_of_call(const struct analysis_call *call, struct analysis_event *event);
/* The same of what PyTorch's record_function() begins: an optimizer's step, a data loader's turn. */
bool analysis_of_range(const char *name, struct analysis_event *event);
