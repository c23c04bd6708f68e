// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/nearest.h"

#define WRONG_COMMAND_LINE                                                                  \
	{                                                                                   \
		"2", "The command line or the configuration is wrong: nothing was started." \
	}

static const struct exit_status agent_statuses[] = {
	{ "0",
	  "SIGTERM or SIGINT ended it; with --check-config or --print-config: the configuration is right." },
	{ "1", "It could not start, or its main loop failed: the log says why." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status show_statuses[] = {
	{ "0", "What was asked for is shown as it is now: also that a driver has no GPU, or a GPU no "
	       "process." },
	{ "1", "There is no driver, or no current data (\"error\" of --json says why); or the output "
	       "failed." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status trace_statuses[] = {
	{ "0", "Without a COMMAND: it was interrupted, or the process of -p has ended." },
	{ "N", "With a COMMAND: the command's own exit status." },
	{ "128+N", "With a COMMAND: signal N killed it." },
	{ "126", "The COMMAND cannot be run." },
	{ "127", "The COMMAND is not found." },
	{ "1", "CUDA calls cannot be traced, and no COMMAND was run; or the output failed." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status probes_statuses[] = {
	{ "0", "The functions are listed, those that cannot be probed, too." },
	{ "1", "FILE cannot be read, or has no function that tracing would probe; or the output failed." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status inspect_statuses[] = {
	{ "0", "Device code was found, and what --arch and --kernel ask for; parts of it may be "
	       "unreadable." },
	{ "1",
	  "No device code, none that can be read, or none that --arch and --kernel ask for; or the output "
	  "failed." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status doctor_statuses[] = {
	{ "0", "No check failed; there may be warnings." },
	{ "1", "At least one check failed (\"ok\" of --json is false), as that of the configuration; or the "
	       "output failed." },
	{ 0 },
};

static const struct exit_status release_statuses[] = {
	{ "0", "No process of the agent holds the driver any more." },
	{ "1", "No agent can be asked, or after 30 seconds it still holds the driver." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status resume_statuses[] = {
	{ "0", "The driver gives the agent data again." },
	{ "1", "No agent can be asked, or the driver gives it no data within 30 seconds." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status atopgpud_statuses[] = {
	{ "0", "There is no GPU on this machine, or SIGTERM or SIGINT ended it." },
	{ "1", "It could not start, or none of atop's addresses could be had: the log says why." },
	WRONG_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status help_statuses[] = {
	{ "0", "The help is shown." },
	{ "1", "It cannot be written." },
	{ "2", "There is no such command." },
	{ 0 },
};

const struct command commands[] = {
	{ .name = "agent",
	  .run = agent_main,
	  .use = USE_AGENT,
	  .statuses = agent_statuses,
	  .summary = "sample the GPUs and serve every view of them",
	  .about = "Runs the agent: samples every GPU, MIG instance and GPU process once a period, adds it "
		   "up, and serves\n"
		   "Prometheus and OpenMetrics, the DCGM exporter's names, JSON, and atop's protocol. "
		   "SIGHUP reloads the\n"
		   "configuration, SIGTERM ends it." },
	{ .name = "gpus",
	  .run = show_main,
	  .use = USE_READ,
	  .statuses = show_statuses,
	  .summary = "show the GPUs and MIG instances",
	  .about = "Shows the GPUs and MIG instances of this machine, from the running agent; where none "
		   "runs it samples for\n"
		   "itself, and says so." },
	{ .name = "ps",
	  .run = show_main,
	  .use = USE_READ,
	  .statuses = show_statuses,
	  .summary = "show the processes on the GPUs",
	  .about = "Shows the processes that use GPUs, from the running agent; where none runs it samples "
		   "for itself, and\n"
		   "says so." },
	{ .name = "snapshot",
	  .run = show_main,
	  .use = USE_READ,
	  .statuses = show_statuses,
	  .summary = "show everything: GPUs, processes, node",
	  .about = "Shows GPUs, processes and the node in one document, from the running agent; where none "
		   "runs it samples\n"
		   "for itself, and says so." },
	{ .name = "trace",
	  .run = trace_main,
	  .use = USE_TRACE,
	  .statuses = trace_statuses,
	  .summary = "show the CUDA calls of running programs, or of a command",
	  .about = "Shows which functions of the CUDA driver and runtime programs call: how often, how long "
		   "they take, what they\n"
		   "fail with, how many bytes they move. Without a COMMAND: of all programs, or with -p of "
		   "one, in a live table\n"
		   "until interrupted. With a COMMAND: runs it, probes each library before the command can "
		   "call into it, and\n"
		   "prints a summary on standard error when it has ended. Of calls that are made by other "
		   "traced calls (the\n"
		   "runtime's into the driver) the outer one counts.\n"
		   "In the table of --kernels, MEAN THREADS are those of a launch, on average; GRID and "
		   "BLOCK are of the most\n"
		   "used shape, with \"+\" where there are others; SHARED is declared + asked for by the "
		   "launch, in bytes; OCC is\n"
		   "the theoretical occupancy, and LIMITED BY what bounds it; \"~\" is an estimate. \"-\" "
		   "is not known: REGS, SHARED\n"
		   "and OCC need the kernel's image, OCC the device, too. NAMED BY says where the name is "
		   "from: handle (asked for by\n"
		   "name), registered (by the program), symbol or memory (of the program), unresolved (none "
		   "found).",
	  .operands = "[--] [COMMAND [ARGUMENT...]]",
	  .command_line = true },
	{ .name = "probes",
	  .run = probes_main,
	  .use = USE_PROBES,
	  .statuses = probes_statuses,
	  .summary = "show where probes go in a library, and what they cost",
	  .about = "Shows each function of a CUDA library or program that tracing would probe: at which "
		   "instruction, what the\n"
		   "kernel makes of it, why it was chosen or refused, and what a hit costs. For root these "
		   "are measured on the\n"
		   "running kernel, with a child of its own, else what is known of kernels in general. The "
		   "file is only read.",
	  .operands = "FILE" },
	{ .name = "inspect",
	  .run = inspect_main,
	  .use = USE_INSPECT,
	  .statuses = inspect_statuses,
	  .summary = "show the kernels of a CUDA binary, and what they need",
	  .about = "Shows the kernels that are compiled into a program, library, object, archive, fatbin "
		   "or cubin, for each\n"
		   "architecture: registers, shared, constant, local and stack memory, code, barriers, "
		   "threads, in bytes where\n"
		   "that is the unit, and the theoretical occupancy at the most threads that a block may "
		   "have, without dynamic\n"
		   "shared memory and with the largest carve-out; \"-\" is what the file does not say. "
		   "Then the images that they\n"
		   "are in. \"*\" behind an architecture: relocatable, to be linked with others first; "
		   "figures are the compiler's,\n"
		   "not yet those of the kernel that runs. PTX and what the linker compiles have no "
		   "kernels yet. The file is only\n"
		   "read.",
	  .operands = "[FILE]" },
	{ .name = "doctor",
	  .run = doctor_main,
	  .use = USE_DOCTOR,
	  .statuses = doctor_statuses,
	  .summary = "say what works, what does not, and the remedy",
	  .about = "Checks the driver, permissions, the kernel, ports and the running agent, and names the "
		   "remedy for what does\n"
		   "not work." },
	{ .name = "release",
	  .run = control_main,
	  .use = USE_CONTROL,
	  .statuses = release_statuses,
	  .summary = "make the agent let go of the driver",
	  .about = "Makes the running agent let go of the driver, so that it can be unloaded or MIG "
		   "reconfigured, and waits until\n"
		   "it has. The agent goes on serving its last values, marked stale, until gpusonde "
		   "resume." },
	{ .name = "resume",
	  .run = control_main,
	  .use = USE_CONTROL,
	  .statuses = resume_statuses,
	  .summary = "make the agent take the driver again",
	  .about = "Makes the running agent attach to the driver again after gpusonde release." },
	{ .name = "atopgpud",
	  .run = atopgpud_main,
	  .use = USE_ATOPGPUD,
	  .statuses = atopgpud_statuses,
	  .summary = "stand in for atop's own GPU daemon",
	  .about = "Serves atop, and nothing else: in place of the atopgpud that comes with atop. Logs to "
		   "syslog's facility\n"
		   "daemon. Ends at once on a machine without a GPU." },
	{ .name = "help",
	  .run = help_main,
	  .use = USE_HELP,
	  .statuses = help_statuses,
	  .summary = "show help about a command",
	  .about = "Shows help about a command, or a list of them.",
	  .operands = "[COMMAND]" },
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
