// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde analyze" of programs that run: why they are slow, as they are traced; and what "gpusonde trace
 * --last" writes its timeline at.
 */
#pragma once

#include "base/strbuf.h"
#include "pipeline/analysis.h"
#include "view/view.h"

/* With the spans and measured times of the pipeline, and stacks. @job: NULL: of all. Errors are printed. */
int trace_findings_start(struct pipeline *pipeline, struct stack_sums *stacks, const char *job,
			 struct live_analysis **ret_analysis);
/*
 * To be called once a second: says what is new, and gives its name; NULL: nothing is. @node: its newest
 * figures, NULL: none.
 */
const char *trace_findings_collect(struct live_analysis *analysis, const struct snapshot *node);
/* All, at the end. @options: of the text; NULL: JSON. 0, or -ENOMEM/-E2BIG. */
int trace_findings(struct live_analysis *analysis, const struct table_options *options, struct strbuf *out);
