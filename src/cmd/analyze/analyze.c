// SPDX-License-Identifier: Apache-2.0
/* gpusonde analyze: why programs were slow, by their timelines, or are, as they are traced (cmd/trace). */
#include "cmd/analyze/analyze.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "pipeline/findings.h"
#include "view/findings.h"

enum { FITS = 256 }; /* models in a window: nobody waits for a file */

static int put_findings(const struct invocation *inv, const struct findings *findings)
{
	const struct table_options options = output_options(inv, STDOUT_FILENO);
	struct strbuf out;
	int r;

	strbuf_init(&out, 0);
	if (inv->flag[FLAG_JSON])
		r = json_findings(findings, &out);
	else
		r = text_findings(findings, &options, &out);
	if (r == 0 && inv->flag[FLAG_JSON])
		strbuf_addc(&out, '\n');
	r = r == 0 ? put_stdout(&out) : EXIT_FAILURE;
	strbuf_done(&out);
	return r;
}

static int analyze(const struct invocation *inv, struct analyze_inputs *inputs)
{
	_cleanup_free_ struct findings *findings = NULL;

	if (!analyze_open(inputs) || (inputs->n > 1 && !analyze_align(inputs)) || !analyze_read(inputs))
		return EXIT_FAILURE;
	findings = findings_of(inputs->analysis, analyze_file_real_offset(inputs->list[0].file));
	if (findings)
		return put_findings(inv, findings);
	fprintf(stderr, "gpusonde analyze: %s\n", strerror(ENOMEM));
	return EXIT_FAILURE;
}

static bool job_is_possible(const struct invocation *inv)
{
	static const char claimed[] = "claimed:";
	const char *job = inv->flag[FLAG_JOB], *why = NULL;

	if (job && (inv->flag[FLAG_PID] || inv->is_command))
		why = "--job is of all processes of the job: leave out --pid and the command";
	else if (job && strncmp(job, claimed, strlen(claimed)) == 0)
		why = "--job is of processes in the job's cgroup: one that only claims to be of it is not";
	if (why)
		fprintf(stderr, "gpusonde analyze: %s\n", why);
	return !why;
}

int analyze_main(struct invocation *inv)
{
	const struct analysis_options options = { .fits = FITS };
	struct analyze_inputs inputs = { .n = (uint32_t)inv->operands_n };
	int status;

	if (!job_is_possible(inv))
		return EXIT_USAGE;
	if (inv->is_command || ((inv->flag[FLAG_PID] || inv->flag[FLAG_JOB]) && inv->operands_n == 0))
		return trace_main(inv);
	if (inv->operands_n == 0) {
		fprintf(stderr,
			"gpusonde analyze: what? Name a FILE.pftrace, as gpusonde trace --timeline "
			"FILE.pftrace writes it, a process (-p PID), a job (--job JOB), or a command "
			"(-- COMMAND)\n");
		return EXIT_USAGE;
	}
	if (inv->flag[FLAG_PID] || inv->flag[FLAG_JOB] || inv->flag[FLAG_DURATION] ||
	    inv->flag[FLAG_OUTPUT]) {
		fprintf(stderr,
			"gpusonde analyze: --pid, --job, --duration and --output are of programs that run: "
			"leave them out with files\n");
		return EXIT_USAGE;
	}
	if (analysis_new(&options, &inputs.analysis) < 0) {
		fprintf(stderr, "gpusonde analyze: %s\n", strerror(ENOMEM));
		return EXIT_FAILURE;
	}
	for (uint32_t i = 0; i < inputs.n; i++)
		inputs.list[i].path = inv->operands[i];
	status = analyze(inv, &inputs);
	analyze_close(&inputs);
	analysis_free(inputs.analysis);
	return status;
}
