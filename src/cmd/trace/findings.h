// SPDX-License-Identifier: Apache-2.0
/* "gpusonde analyze" of programs that run: why they are slow, as they are traced. */
#pragma once

#include "base/strbuf.h"
#include "pipeline/analysis.h"
#include "view/view.h"

/* With the pipeline's spans and the stacks of calls. @job: NULL: of all. An error is printed. */
int trace_findings_start(struct pipeline *pipeline, struct stack_sums *stacks, const char *job,
			 struct live_analysis **ret_analysis);
/* To be called once a second: says what is new. @node: its newest figures, NULL: none. */
void trace_findings_collect(struct live_analysis *analysis, const struct snapshot *node);
/* All, at the end. @options: of the text; NULL: JSON. 0, or -ENOMEM/-E2BIG. */
int trace_findings(struct live_analysis *analysis, const struct table_options *options, struct strbuf *out);
