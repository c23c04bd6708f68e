// SPDX-License-Identifier: Apache-2.0
/* "gpusonde agent": runs the agent, or checks or prints its configuration. */
#include "agent/agent.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"

static int print_config(const struct options *options)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	options_print(options, &out);
	int status = put_stdout(&out);

	strbuf_done(&out);
	return status;
}

/* Prints what is wrong with the file of counters, and what of it is left out. */
static int check_collectors(const struct options *options)
{
	struct dcgm_style style = { 0 };
	struct strbuf errors, warnings;
	int r;

	strbuf_init(&errors, 0);
	strbuf_init(&warnings, 0);
	r = dcgm_style_init(options, &errors, &warnings, &style);
	fprintf(stderr, "%s%s", warnings.data, errors.data);
	strbuf_done(&errors);
	strbuf_done(&warnings);
	dcgm_style_done(&style);
	return r;
}

/* What this machine lacks, and the agent would go on without. Its values are valid, or main() ends before. */
static int check_config(const struct options *options)
{
	const char *group = options_text(options, OPT_control_group);

	if (group && !getgrnam(group)) {
		fprintf(stderr,
			"gpusonde agent: control.group: there is no group %s on this machine: create it with "
			"groupadd, or name another\n",
			group);
		return EXIT_USAGE;
	}
	if (check_collectors(options) < 0)
		return EXIT_USAGE;
	printf("%s: ok\n", options->file ? options->file : "no configuration file");
	return EXIT_SUCCESS;
}

int agent_main(struct invocation *invocation)
{
	if (invocation->flag[FLAG_PRINT_CONFIG])
		return print_config(&invocation->options);
	if (invocation->flag[FLAG_CHECK_CONFIG])
		return check_config(&invocation->options);
	return agent_run(invocation);
}
