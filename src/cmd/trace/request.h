// SPDX-License-Identifier: Apache-2.0
/* What the command line of "gpusonde trace" asks for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/cmdline.h"
#include "timeline/files.h"
#include "view/stacks/stacks.h"

struct timeline_request {
	enum timeline_format format;
	uint64_t rotate_bytes; /* 0: not by size */
	int64_t rotate_ns; /* 0: not by time */
	uint32_t keep; /* files; 0: all */
	int64_t last_ns; /* only so much is kept, in memory; 0: all is written */
};

struct trace_request {
	pid_t pid; /* 0: all processes, or a command */
	int64_t duration_ns; /* 0: until interrupted, or the command or process ends */
	int64_t interval_ns;
	bool analyze; /* gpusonde analyze: findings are shown in place of the figures */
	bool table; /* the figures are printed as a table */
	bool live; /* a table at each interval, too, in place of the one before on a terminal */
	bool series; /* a JSON object at each interval */
	unsigned stack_kinds; /* of --stacks-of: enum trace_stack_kind */
	unsigned stack_shift; /* of --sample: its logarithm */
	bool sample_auto; /* --sample=auto */
	struct timeline_request timeline;
	enum stack_weight weight; /* of --stacks FILE.folded */
};

/* request_timeline.c; as trace_request_parse() */
bool timeline_request_parse(const struct invocation *invocation, struct timeline_request *ret_request);
/* "trace" or "analyze": who says it on standard error. */
const char *trace_command_name(void);
/* False: it is invalid; the cause and the remedy were printed. */
bool trace_request_parse(const struct invocation *invocation, struct trace_request *ret_request);
