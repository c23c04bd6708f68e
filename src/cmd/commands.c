// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/check/check.h"
#include "config/nearest.h"

#define INVALID_COMMAND_LINE                                                                  \
	{                                                                                     \
		"2", "The command line or the configuration is invalid: nothing was started." \
	}

static const struct exit_status agent_statuses[] = {
	{ "0",
	  "SIGTERM or SIGINT ended it; with --check-config or --print-config: the configuration is valid." },
	{ "1", "It could not start, or its main loop failed: the log says why." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status show_statuses[] = {
	{ "0", "Current data are shown, even if the driver has no GPU, or the GPUs have no processes." },
	{ "1", "There is no driver, or no current data (\"error\" of --json says why); or the output "
	       "failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status top_statuses[] = {
	{ "0", "It was ended: q, or a signal." },
	{ "1", "There is no terminal, or its kind is not known." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status explain_statuses[] = {
	{ "0", "It is explained, whatever is wrong with it." },
	{ "1",
	  "No such GPU, process or job is known here; there is no driver, or no current data; or the output "
	  "failed." },
	{ "2",
	  "The command line or the configuration is invalid, or the operand has several meanings: which is "
	  "said." },
	{ 0 },
};

static const struct exit_status check_statuses[] = {
	{ "0", "OK. With --for node-problem-detector: no condition is critical." },
	{ "1", "WARNING. With --for node-problem-detector: a condition is critical." },
	{ "2", "CRITICAL. With --for node-problem-detector: what holds is unknown." },
	{ "3", "UNKNOWN: there is no driver, or the command line or the configuration is invalid." },
	{ 0 },
};

static const struct exit_status trace_statuses[] = {
	{ "0", "Without a COMMAND: it was interrupted, or the process of -p has ended." },
	{ "N", "With a COMMAND: the command's own exit status." },
	{ "128+N", "With a COMMAND: signal N killed it." },
	{ "126", "The COMMAND cannot be run." },
	{ "127", "The COMMAND is not found." },
	{ "1", "CUDA calls cannot be traced, and no COMMAND was run; or the output failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status analyze_statuses[] = {
	{ "0", "The files were read to their ends, or a process was traced, whatever was found." },
	{ "1",
	  "A file cannot be read, or is no timeline: where and why is said; tracing cannot start; or the "
	  "output failed." },
	{ "N", "With a COMMAND: the command's own exit status." },
	{ "128+N", "With a COMMAND: signal N killed it." },
	{ "126", "The COMMAND cannot be run." },
	{ "127", "The COMMAND is not found." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status probes_statuses[] = {
	{ "0", "The functions are listed, including those that cannot be probed." },
	{ "1", "FILE cannot be read, or has no function that tracing would probe; or the output failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status lint_statuses[] = {
	{ "0", "No query has a name of the DCGM exporter, or of gpusonde's that there is not." },
	{ "1",
	  "Queries have such names, which are shown; or FILE cannot be read, is neither JSON nor YAML, or "
	  "has no query; or the output failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status inspect_statuses[] = {
	{ "0", "Device code was found that matches --arch and --kernel; parts of it may be unreadable." },
	{ "1",
	  "No device code, none that can be read, or none that matches --arch and --kernel; or the output "
	  "failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status doctor_statuses[] = {
	{ "0", "No check failed; there may be warnings. With --bundle: it is written, whatever is wrong." },
	{ "1",
	  "At least one check failed (\"ok\" of --json is false), for example that of the configuration; "
	  "or the output failed." },
	{ "2", "The command line is invalid: nothing was examined." },
	{ 0 },
};

static const struct exit_status cgroup_statuses[] = {
	{ "0", "check: every device may be opened, of a process that has nodes of NVIDIA these. allow: those "
	       "that were given or named may be now, or what gpusonde added is gone (--undo)." },
	{ "1",
	  "check: a device is denied, or that is unknown. allow: it was refused, or cannot be done, or it is "
	  "unknown whether they may be opened. Both: no driver, no such cgroup, no right; or the output "
	  "failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status release_statuses[] = {
	{ "0", "No process of the agent uses the driver any more." },
	{ "1", "No agent can be reached, or it still uses the driver after 30 seconds." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status resume_statuses[] = {
	{ "0", "The agent gets data from the driver again." },
	{ "1", "No agent can be reached, or it gets no data from the driver within 30 seconds." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status record_statuses[] = {
	{ "0", "It was interrupted, and what was recorded is in the file. start: the agent records, to the "
	       "file that is printed. stop, last: that file is written. status: it is shown." },
	{ "1", "It could not start, or a file could not be written. start, stop, status, last: no agent can "
	       "be reached, or it traces nothing. The reason is printed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status atopgpud_statuses[] = {
	{ "0", "There is no GPU on this machine, or SIGTERM or SIGINT ended it." },
	{ "1", "It could not start, or none of atop's addresses could be opened: the log says why." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status replay_statuses[] = {
	{ "0", "What was recorded is shown." },
	{ "1", "The file cannot be read, or has nothing of that time; or the output failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status report_statuses[] = {
	{ "0", "It is shown." },
	{ "1", "A file cannot be read, or has nothing of that time; or the output failed." },
	INVALID_COMMAND_LINE,
	{ 0 },
};

static const struct exit_status diff_statuses[] = {
	{ "0", "They are shown; with --threshold: and nothing has changed by more." },
	{ "1", "A file cannot be read, or has nothing of that time; or the output failed." },
	INVALID_COMMAND_LINE,
	{ "3", "With --threshold: something has changed by more." },
	{ 0 },
};

static const struct exit_status mcp_statuses[] = {
	{ "0", "Its input has ended." },
	{ "1", "It could not start, or its output failed." },
	INVALID_COMMAND_LINE,
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
		   "Prometheus and OpenMetrics, the DCGM exporter's names, GPUs by container for "
		   "collectors of\n"
		   "clusters, JSON, a web page (http.listen), and atop's protocol. SIGHUP reloads the\n"
		   "configuration, SIGTERM ends it." },
	{ .name = "gpus",
	  .run = show_main,
	  .use = USE_READ | USE_ROWS,
	  .statuses = show_statuses,
	  .summary = "show the GPUs and MIG instances",
	  .about = "Shows the GPUs and MIG instances of this machine, from the running agent. If none "
		   "runs, it takes its own\n"
		   "samples, and says so." },
	{ .name = "ps",
	  .run = show_main,
	  .use = USE_READ | USE_PS | USE_ROWS,
	  .statuses = show_statuses,
	  .summary = "show the processes on the GPUs",
	  .about = "Shows the processes that use GPUs, from the running agent. If none runs, it takes its "
		   "own samples, and says\n"
		   "so. With --by it adds up those that run now by whose they are: SM is the sum of their "
		   "GPUs' shares, 100 % is one GPU;\n"
		   "a figure that one of them lacks has no sum. What a process alone says of its job is "
		   "marked \"claimed\"." },
	{ .name = "snapshot",
	  .run = show_main,
	  .use = USE_READ,
	  .statuses = show_statuses,
	  .summary = "show everything: GPUs, processes, node",
	  .about = "Shows GPUs, processes and the node in one document, from the running agent. If none "
		   "runs, it takes its own\n"
		   "samples, and says so." },
	{ .name = "top",
	  .run = top_main,
	  .use = USE_TOP,
	  .statuses = top_statuses,
	  .summary = "a screen of GPUs, processes and what they do",
	  .about = "A screen that shows what the GPUs do and for whom, and follows it; gpusonde alone does "
		   "the same on a\n"
		   "terminal. From the running agent; if none runs, it takes its own samples, and says so. h "
		   "shows its keys.\n"
		   "HOST: those of other machines, from their agents (http.listen): a name, name:port, or\n"
		   "https://name/path. --replay: a recording.",
	  .operands = "[HOST...]",
	  .operands_max = OPERANDS_MAX },
	{ .name = "explain",
	  .run = explain_main,
	  .use = USE_EXPLAIN,
	  .statuses = explain_statuses,
	  .summary = "what GPUs or programs do, and what slows them down, in sentences",
	  .about =
		  "Explains in sentences what a GPU, a process or the processes of a batch job do, what "
		  "slows them down, by\n"
		  "which figures, and what is to be done: from the running agent, with what its analysis has "
		  "found\n"
		  "(trace.analysis); if none runs, from its own samples, and it says so. GPU: an index or a "
		  "UUID's beginning;\n"
		  "without an operand: all. gpu X, pid X and job X, or gpu:X and so on, say which is meant.",
	  .operands = "[[gpu|pid|job] PID|GPU|JOB]",
	  .operands_max = 2 },
	{ .name = "check",
	  .run = check_main,
	  .use = USE_CHECK,
	  .statuses = check_statuses,
	  .summary = "whether the GPUs are healthy, for Nagios, Icinga, Slurm and others",
	  .about =
		  "Checks conditions of the node and its GPUs as a plugin of Nagios and Icinga does: a line "
		  "with the worst of\n"
		  "them and performance data, a line for each condition, and the exit status; Slurm and "
		  "Kubernetes' node problem\n"
		  "detector can call it, too (docs/check.md). From the running agent; if none runs, which is "
		  "a warning, from its own\n"
		  "samples. CONDITION: only these: driver, agent, gpus, recovery, memory, ecc, heat, links, "
		  "xids.",
	  .operands = "[CONDITION...]",
	  .operands_max = OPERANDS_MAX,
	  .usage_status = CHECK_UNKNOWN },
	{ .name = "trace",
	  .run = trace_main,
	  .use = USE_TRACE,
	  .statuses = trace_statuses,
	  .summary = "show the CUDA calls of running programs, or of a command",
	  .about =
		  "Shows which functions of the CUDA driver and runtime programs call: how often, how long "
		  "they take, which\n"
		  "errors they return, how many bytes they move. Without a COMMAND: of all programs, or "
		  "with -p of one, in a live\n"
		  "table until interrupted. With a COMMAND: runs it, probes each library before the "
		  "command can call into it, and\n"
		  "prints a summary on standard error when it has ended. If a traced call makes another "
		  "traced call (the runtime\n"
		  "calls the driver), only the outer one is counted.\n"
		  "In the table of --kernels, MEAN THREADS is the average per launch; GRID and BLOCK are "
		  "of the most frequent\n"
		  "shape, with \"+\" if there are others; SHARED is static + dynamic (set by the launch), in "
		  "bytes; OCC is the\n"
		  "theoretical occupancy, and LIMITED BY what limits it; \"~\" is an estimate. \"-\" is "
		  "unknown: REGS, SHARED and OCC\n"
		  "need the kernel's image, OCC also the device. NAMED BY is the source of the name: "
		  "handle (looked up by name),\n"
		  "registered (by the program), symbol or memory (of the program), unresolved (none "
		  "found).",
	  .operands = "[--] [COMMAND [ARGUMENT...]]",
	  .command_line = true },
	{ .name = "analyze",
	  .run = analyze_main,
	  .use = USE_ANALYZE,
	  .statuses = analyze_statuses,
	  .summary = "find out why programs are slow",
	  .about = "Reads timelines (gpusonde trace --timeline FILE.pftrace), or traces a process or command "
		   "until it ends, and\n"
		   "shows what makes the programs slow: each finding with its evidence, how sure it is, what "
		   "to do, and where in\n"
		   "the timeline to look; then which rules could not be judged, and for want of what. Files "
		   "of several nodes are\n"
		   "put on one clock by the collectives that they have in common. docs/analysis.md has the "
		   "rules.",
	  .operands = "FILE... | -p PID | --job JOB | -- COMMAND [ARGUMENT...]",
	  .operands_max = OPERANDS_MAX,
	  .or_command_line = true },
	{ .name = "probes",
	  .run = probes_main,
	  .use = USE_PROBES,
	  .statuses = probes_statuses,
	  .summary = "show where probes go in a library, and what they cost",
	  .about = "Shows each function of a CUDA library or program that tracing would probe: at which "
		   "instruction, how the\n"
		   "kernel executes it, why it was chosen or refused, and what a hit costs. As root these "
		   "are measured on the\n"
		   "running kernel, in a child process; else they are typical of kernels in general. The "
		   "file is only read.",
	  .operands = "FILE" },
	{ .name = "lint",
	  .run = lint_main,
	  .use = USE_LINT,
	  .statuses = lint_statuses,
	  .summary = "which queries of a Grafana board or Prometheus rules break, by their names",
	  .about = "Reads a board of Grafana (JSON) or a file of Prometheus' rules (YAML) and names each "
		   "metric of the DCGM exporter\n"
		   "in its queries, what release 4.9 of the exporter calls it, what /metrics calls it, and "
		   "by what its number is to be\n"
		   "multiplied or divided then; and each metric and label of gpusonde's own in them that "
		   "there is not,\n"
		   "with the nearest name (docs/grafana.md). The file is only read.",
	  .operands = "FILE" },
	{ .name = "inspect",
	  .run = inspect_main,
	  .use = USE_INSPECT,
	  .statuses = inspect_statuses,
	  .summary = "show the kernels of a CUDA binary, and their resources",
	  .about = "Shows the kernels that are compiled into a program, library, object, archive, fatbin "
		   "or cubin, for each\n"
		   "architecture: registers, barriers, threads, and shared, constant, local and stack "
		   "memory and code in bytes,\n"
		   "and the theoretical occupancy with the most threads that a block may have (or --block), "
		   "without dynamic shared\n"
		   "memory and with the largest carve-out; \"-\" is unknown. Then the images that hold "
		   "them. \"*\" "
		   "after an architecture:\n"
		   "relocatable, must be linked with others first; its figures are the compiler's, not "
		   "those of the final kernel.\n"
		   "PTX and code for the linker hold no kernels yet. The file is only read.",
	  .operands = "[FILE]" },
	{ .name = "doctor",
	  .run = doctor_main,
	  .use = USE_DOCTOR,
	  .statuses = doctor_statuses,
	  .summary = "check what works, and show remedies",
	  .about = "Checks the driver, the GPUs, permissions, the kernel, ports and the running agent, and "
		   "shows the remedy for each\n"
		   "problem; what is wrong comes first. --bundle writes what support would ask for into "
		   "one file: docs/support.md\n"
		   "has what is in it, and what is taken out." },
	{ .name = "cgroup",
	  .run = cgroup_main,
	  .use = USE_CGROUP,
	  .statuses = cgroup_statuses,
	  .summary = "check or allow NVIDIA's devices in a container's cgroup",
	  .about =
		  "check shows for each device of NVIDIA whether a cgroup lets its processes open it, by "
		  "version 1's list of\n"
		  "devices and version 2's BPF programs, and what denies it; it only looks. allow lets "
		  "those that its processes\n"
		  "were given be opened: by rules in devices.allow, or by a copy of the cgroup's program "
		  "with rules before it, put\n"
		  "in its place; the policy for all else stays as it is. PID: the cgroup of a process; self: "
		  "our own; CGROUP: its\n"
		  "path, or the name of a systemd unit. NODE says whose /dev has a node. docs/cgroups.md has "
		  "the whole story.",
	  .operands = "check|allow PID|CGROUP",
	  .operands_max = 2 },
	{ .name = "record",
	  .run = record_main,
	  .use = USE_CONTROL | USE_RECORD,
	  .statuses = record_statuses,
	  .summary = "record snapshots in a file, or make the agent record a timeline",
	  .about = "Without an operand: samples the GPUs and their processes as the agent does, and records "
		   "every snapshot in the\n"
		   "file of --store until interrupted: each second for a day, every ten seconds for a week, "
		   "each minute for a year,\n"
		   "within a bounded size. An agent records by itself with recording.path, what it traces "
		   "included.\n"
		   "Else: makes the running agent write a timeline of the programs that it traces, in "
		   "Perfetto's format, to files\n"
		   "in the folder timeline.directory: start begins, stop ends it, status says what is "
		   "recorded and what is missing\n"
		   "in it. last writes what the agent has kept in memory of the last while "
		   "(timeline.last). docs/timeline.md and\n"
		   "docs/recordings.md say more.",
	  .operands = "[start|stop|status|last]" },
	{ .name = "replay",
	  .run = replay_main,
	  .use = USE_REPLAY,
	  .statuses = replay_statuses,
	  .summary = "show a recorded moment",
	  .about = "Shows what was recorded as it was shown then: tables, with --json the document of "
		   "gpusonde snapshot --json,\n"
		   "with --view another page. Without --at the newest moment; with --speed all that follows, "
		   "like a film.\n"
		   "--serve serves all of the agent's pages of it instead.",
	  .operands = "FILE" },
	{ .name = "report",
	  .run = report_main,
	  .use = USE_REPORT,
	  .statuses = report_statuses,
	  .summary = "show what was done in a recorded time, and for whom",
	  .about = "Adds a recording up: hours of GPUs, busy, idle and allocated, memory, energy, "
		   "throttling, XIDs; for each\n"
		   "container, pod, job or user the same, those that have ended included; calls, kernels, "
		   "operators. \"-\" is not\n"
		   "known, \"~\" an estimate. FILE is recording.path if it is left out.",
	  .operands = "[FILE]" },
	{ .name = "diff",
	  .run = diff_main,
	  .use = USE_DIFF,
	  .statuses = diff_statuses,
	  .summary = "compare two recordings, or two times of one",
	  .about = "Shows the sums of gpusonde report of two recordings beside each other. A and B are each "
		   "FILE, or\n"
		   "FILE@SINCE..UNTIL, times as of --at of replay.",
	  .operands = "A B",
	  .operands_max = 2 },
	{ .name = "release",
	  .run = control_main,
	  .use = USE_CONTROL,
	  .statuses = release_statuses,
	  .summary = "make the agent release the driver",
	  .about = "Makes the running agent release the driver, so that it can be unloaded or MIG "
		   "reconfigured, and waits until\n"
		   "that is done. The agent continues to serve its last values, marked stale after 3 "
		   "seconds, until gpusonde resume." },
	{ .name = "resume",
	  .run = control_main,
	  .use = USE_CONTROL,
	  .statuses = resume_statuses,
	  .summary = "make the agent attach to the driver again",
	  .about = "Makes the running agent attach to the driver again after gpusonde release." },
	{ .name = "mcp",
	  .run = mcp_main,
	  .use = USE_MCP,
	  .statuses = mcp_statuses,
	  .summary = "serve an assistant: the Model Context Protocol",
	  .about = "Speaks the Model Context Protocol on standard input and output, for an assistant that "
		   "starts it. Its tools are\n"
		   "commands that only read (gpus, ps, explain, doctor, report, analyze), with their JSON; "
		   "nothing is changed on the machine,\n"
		   "and no more is seen than its user may see. docs/mcp.md shows how it is set up." },
	{ .name = "atopgpud",
	  .run = atopgpud_main,
	  .use = USE_ATOPGPUD,
	  .statuses = atopgpud_statuses,
	  .summary = "replace atop's own GPU daemon",
	  .about = "Serves only atop, in place of the atopgpud that comes with atop. Logs to syslog's "
		   "facility daemon. Exits at\n"
		   "once on a machine without a GPU." },
	{ .name = "dcgm-exporter",
	  .run = agent_main,
	  .use = USE_AGENT,
	  .translate = exporter_translate,
	  .statuses = agent_statuses,
	  .summary = "replace the DCGM exporter",
	  .about =
		  "The agent with the flags and environment variables of NVIDIA's dcgm-exporter, whose "
		  "DaemonSet or unit\n"
		  "then needs another program and nothing else: it serves /metrics with DCGM's names on "
		  "port 9400, and reads\n"
		  "/etc/dcgm-exporter/default-counters.csv if that is there. docs/dcgm.md lists the flags." },
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

void put_errors(const struct invocation *inv, const struct strbuf *lines)
{
	for (const char *line = lines->data; *line;) {
		size_t n = strcspn(line, "\n");

		fprintf(stderr, "gpusonde %s: %.*s\n", inv->command->name, (int)n, line);
		line += n + (line[n] == '\n');
	}
}
