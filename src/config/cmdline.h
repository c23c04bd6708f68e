// SPDX-License-Identifier: Apache-2.0
/*
 * src/config is what a user sets: options and their four origins, the command line, and the places of sockets
 * and state. One row of options.def is an option, one of flags.def a flag.
 */
#pragma once

#include "config/options.h"

enum flag_id {
#define FLAG(id_, ...) FLAG_##id_,
#include "config/flags.def"
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

extern const struct flag flag_table[FLAGS];

/*
 * Takes flags apart (config/cmdline.c); options given as flags go to @options. What is wrong goes to @errors.
 * -ENOMEM.
 */
int cmdline_parse(struct invocation *invocation, struct options *options, struct strbuf *errors);
/*
 * All four origins. Called again to reload. What is wrong goes to @errors, near misses to @warnings. -ENOMEM.
 */
int cmdline_options(struct invocation *invocation, struct options *ret_options, struct strbuf *errors,
		    struct strbuf *warnings);
