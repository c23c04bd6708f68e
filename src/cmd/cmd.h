// SPDX-License-Identifier: Apache-2.0
/*
 * src/cmd is the top layer: the subcommands. One row of `commands` (commands.c) is a subcommand; a small one
 * is one file, a large one a folder. Exit status: 0 what was asked for was done, 1 a failure whose cause and
 * remedy were said, 2 the command line or configuration is wrong; what that means for each subcommand is in
 * its row, too.
 */
#pragma once

#include "config/cmdline.h"

enum { EXIT_USAGE = 2 };

extern const struct command commands[]; /* ends with name NULL */
const struct command *command_find(const char *name);

/* Help texts (cmd/help.c). */
void help_overview(struct strbuf *out);
void help_command(const struct command *command, struct strbuf *out);

/* Writes to standard output and gives the exit status: a reader that has gone away (| head) is no failure. */
int put_stdout(const struct strbuf *text);
/* Each line of @lines on standard error, after "gpusonde COMMAND: ". */
void put_complaints(const struct invocation *invocation, const struct strbuf *lines);

int agent_main(struct invocation *invocation);
int atopgpud_main(struct invocation *invocation);
int control_main(struct invocation *invocation); /* release, resume */
int doctor_main(struct invocation *invocation);
int help_main(struct invocation *invocation);
int inspect_main(struct invocation *invocation);
int probes_main(struct invocation *invocation);
int trace_main(struct invocation *invocation);
int show_main(struct invocation *invocation); /* gpus, ps, snapshot */
