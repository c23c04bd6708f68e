// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/trace/request.h"
#include "pipeline/analysis_late.h"
#include "pipeline/measured.h"
#include "view/findings.h"

int trace_findings_start(struct pipeline *pipeline, struct stack_sums *stacks, const char *job,
			 struct live_analysis **ret_analysis)
{
	struct measured *measured = pipeline_measured(pipeline);
	int r = live_analysis_new(pipeline, ANALYSIS_LATE_COMMAND, ret_analysis);

	if (r == 0) {
		live_analysis_set_stacks(*ret_analysis, stacks);
		live_analysis_set_job(*ret_analysis, job);
	}
	if (r == 0)
		r = span_sinks_add(pipeline_span_sinks(pipeline), live_analysis_spans(*ret_analysis));
	if (r >= 0 && measured)
		r = work_sinks_add(measured_sinks(measured), live_analysis_works(*ret_analysis));
	if (r < 0)
		fprintf(stderr, "gpusonde %s: nothing can be analysed: %s\n", trace_command_name(),
			strerror(-r));
	return r;
}

const char *trace_findings_collect(struct live_analysis *analysis, const struct snapshot *node)
{
	const char *new;

	free(live_analysis_tick(analysis, node, (uint64_t)clock_mono_ns(), &new));
	if (new)
		fprintf(stderr, "gpusonde %s: found: %s\n", trace_command_name(), new);
	return new;
}

int trace_findings(struct live_analysis *analysis, const struct table_options *options, struct strbuf *out)
{
	_cleanup_free_ struct findings *findings = live_analysis_finish(analysis);
	int r = -ENOMEM;

	if (findings && options)
		return text_findings(findings, options, out);
	if (findings)
		r = json_findings(findings, out);
	strbuf_addc(out, '\n');
	return r;
}
