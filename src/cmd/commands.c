// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/nearest.h"

const struct command commands[] = {
	{ "agent", agent_main, USE_AGENT, "sample the GPUs and serve every view of them",
	  "Runs the agent: samples every GPU, MIG instance and GPU process once a period, adds it up, and serves\n"
	  "Prometheus and OpenMetrics, the DCGM exporter's names, JSON, and atop's protocol. SIGHUP reloads the\n"
	  "configuration, SIGTERM ends it." },
	{ "gpus", show_main, USE_READ, "show the GPUs and MIG instances",
	  "Shows the GPUs and MIG instances of this machine, from the running agent; where none runs it samples for\n"
	  "itself, and says so." },
	{ "ps", show_main, USE_READ, "show the processes on the GPUs",
	  "Shows the processes that use GPUs, from the running agent; where none runs it samples for itself, and\n"
	  "says so." },
	{ "snapshot", show_main, USE_READ, "show everything: GPUs, processes, node",
	  "Shows GPUs, processes and the node in one document, from the running agent; where none runs it samples\n"
	  "for itself, and says so." },
	{ "doctor", doctor_main, USE_DOCTOR, "say what works, what does not, and the remedy",
	  "Checks the driver, permissions, the kernel, ports and the running agent, and names the remedy for what does\n"
	  "not work. The exit status is 1 when something that the agent needs does not work." },
	{ "release", control_main, USE_CONTROL, "make the agent let go of the driver",
	  "Makes the running agent let go of the driver, so that it can be unloaded or MIG reconfigured, and waits until\n"
	  "it has. The agent goes on serving its last values, marked stale, until gpusonde resume." },
	{ "resume", control_main, USE_CONTROL, "make the agent take the driver again",
	  "Makes the running agent attach to the driver again after gpusonde release." },
	{ "atopgpud", atopgpud_main, USE_ATOPGPUD, "stand in for atop's own GPU daemon",
	  "Serves atop, and nothing else: in place of the atopgpud that comes with atop. Logs to syslog's facility\n"
	  "daemon. Ends at once, with exit status 0, on a machine without a GPU." },
	{ "help", help_main, USE_HELP, "show help about a command",
	  "Shows help about a command, or a list of them." },
	{ 0 },
};

const struct command *command_find(const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (const struct command *c = commands; c->name; c++) {
		if (STRV_EQ(c->name, name))
			return c;
		nearest_offer(&nearest, c->name);
	}
	fprintf(stderr, "gpusonde: unknown command \"%s\": ", name);
	if (nearest.best)
		fprintf(stderr, "did you mean %s?\n", nearest.best);
	else
		fprintf(stderr, "see gpusonde --help for a list\n");
	return NULL;
}

int put_stdout(const struct strbuf *text)
{
	ssize_t n = text->failed ? -ENOMEM : write_all(STDOUT_FILENO, text->data, text->len);

	if (n >= 0 || n == -EPIPE)
		return EXIT_SUCCESS;
	fprintf(stderr, "gpusonde: cannot write to standard output: %s\n", strerror((int)-n));
	return EXIT_FAILURE;
}

void put_complaints(const struct invocation *inv, const struct strbuf *lines)
{
	for (const char *line = lines->data; *line;) {
		size_t n = strcspn(line, "\n");

		fprintf(stderr, "gpusonde %s: %.*s\n", inv->command->name, (int)n, line);
		line += n + (line[n] == '\n');
	}
}
