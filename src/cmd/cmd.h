// SPDX-License-Identifier: Apache-2.0
/*
 * src/cmd is the top floor (L3): the command line, the agent, and the wiring of sources, model and views. It is the only
 * place that knows all three, and, beside the named long-running loops, the only one that writes to the log.
 *
 * One row of `commands` (commands.c) is a subcommand; one row of options.def an option, one of flags.def a flag.
 * Exit status: 0 what was asked for was done, 1 a failure whose cause and remedy were said, 2 the command line or configuration
 * is wrong; what that means for each subcommand is in its row, too.
 */
#pragma once

#include "cmd/options.h"

enum { EXIT_USAGE = 2 };

enum flag_id {
#define FLAG(id_, ...) FLAG_##id_,
#include "cmd/flags.def"
	FLAGS,
};

struct flag {
	const char *name;
	char letter;
	const char *value;
	unsigned uses;
	const char *help;
};

struct invocation;

struct exit_status {
	const char *value;
	const char *meaning; /* one line */
};

struct command {
	const char *name;
	int (*run)(struct invocation *invocation);
	enum use use;
	const char *summary; /* one line */
	const char *about; /* paragraphs */
	const struct exit_status *statuses; /* ends with value NULL; commands that end alike share one list */
	const char *operands; /* what stands beside the flags, as usage shows it; NULL: nothing may */
	bool command_line; /* the operands are another program's command line: the first one ends our flags */
};

/* A command line, taken apart, and the options in effect. */
struct invocation {
	const struct command *command;
	int argc; /* what followed the command's name */
	char **argv;
	const char *flag[FLAGS]; /* its value, "" for one that takes none; NULL: not given */
	char **operands; /* into argv; one, or with command->command_line all the rest up to a NULL */
	int operands_n;
	struct options options;
	bool options_bad; /* the errors are in @complaints; only doctor runs nevertheless */
	struct strbuf complaints;
};

extern const struct command commands[]; /* ends with name NULL */
extern const struct flag flag_table[FLAGS];

const struct command *command_find(const char *name);

/* Takes flags apart (cmd/cmdline.c); options given as flags go to @options. What is wrong goes to @errors. -ENOMEM. */
int cmdline_parse(struct invocation *invocation, struct options *options, struct strbuf *errors);
/* All four origins. Called again to reload. What is wrong goes to @errors, near misses to @warnings. -ENOMEM. */
int cmdline_options(struct invocation *invocation, struct options *ret_options, struct strbuf *errors,
		    struct strbuf *warnings);

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
