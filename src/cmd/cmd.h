// SPDX-License-Identifier: Apache-2.0
/*
 * src/cmd is the top layer: the subcommands. Each is a row of `commands` (commands.c); a small one is one
 * file, a large one a folder. Exit status: 0 success, 1 a failure whose cause and remedy were printed, 2 an
 * invalid command line or configuration. The rows describe the exit statuses of each subcommand.
 */
#pragma once

#include "config/cmdline.h"

enum { EXIT_USAGE = 2 };

extern const struct command commands[]; /* ends with name NULL */
const struct command *command_find(const char *name);

/* Help texts (cmd/help.c). */
void help_overview(struct strbuf *out);
void help_command(const struct command *command, struct strbuf *out);

/* Writes to standard output and returns the exit status; a closed pipe (| head) is no failure. */
int put_stdout(const struct strbuf *text);
/* Prints each line of @lines on standard error, after "gpusonde COMMAND: ". */
void put_errors(const struct invocation *invocation, const struct strbuf *lines);

int agent_main(struct invocation *invocation);
int analyze_main(struct invocation *invocation);
int atopgpud_main(struct invocation *invocation);
int check_main(struct invocation *invocation);
int cgroup_main(struct invocation *invocation);
int control_main(struct invocation *invocation); /* release, resume */
/* The DCGM exporter's command line becomes the agent's (cmd/exporter.c); an exit status. */
int exporter_translate(struct invocation *invocation);
int doctor_main(struct invocation *invocation);
int explain_main(struct invocation *invocation);
int help_main(struct invocation *invocation);
int inspect_main(struct invocation *invocation);
int lint_main(struct invocation *invocation);
int mcp_main(struct invocation *invocation);
int probes_main(struct invocation *invocation);
int top_main(struct invocation *invocation);
int trace_main(struct invocation *invocation);
int record_main(struct invocation *invocation);
int recorder_main(struct invocation *invocation); /* record, in the foreground */
int replay_main(struct invocation *invocation);
int report_main(struct invocation *invocation);
int diff_main(struct invocation *invocation);
int show_main(struct invocation *invocation); /* gpus, ps, snapshot */
