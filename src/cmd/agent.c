// SPDX-License-Identifier: Apache-2.0
/* "gpusonde agent": runs the agent, or checks or prints its configuration. */
#include "agent/agent.h"

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

int agent_main(struct invocation *invocation)
{
	if (invocation->flag[FLAG_PRINT_CONFIG])
		return print_config(&invocation->options);
	if (invocation->flag[FLAG_CHECK_CONFIG]) { /* with errors main() does not get here */
		printf("%s: ok\n",
		       invocation->options.file ? invocation->options.file : "no configuration file");
		return EXIT_SUCCESS;
	}
	return agent_run(invocation);
}
