// SPDX-License-Identifier: Apache-2.0
/*
 * src/config has what a user can set: options from four origins, the command line, and the paths of sockets
 * and state. A row of options.def is an option, a row of flags.def a flag.
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
	const char *value; /* placeholder; NULL: it takes none; "[=...]": it may be left out */
	unsigned uses;
	const char *help;
};

/* A value that may be left out follows '=', any other also as the next word. */
static inline bool flag_value_optional(const struct flag *flag)
{
	return flag->value && flag->value[0] == '[';
}

enum { OPERANDS_MAX = 64 };

struct invocation;

struct exit_status {
	const char *value;
	const char *meaning; /* one line */
};

struct command {
	const char *name;
	int (*run)(struct invocation *invocation);
	enum use use;
	/*
	 * another program's arguments become ours, before they are parsed; an exit status. NULL: they are
	 * ours
	 */
	int (*translate)(struct invocation *invocation);
	const char *summary; /* one line */
	const char *about; /* paragraphs */
	const struct exit_status *statuses; /* ends with value NULL; commands may share a list */
	const char *operands; /* words beside the flags, as shown in usage; NULL: none allowed */
	unsigned char operands_max; /* 0: one */
	unsigned char usage_status; /* of an invalid command line or configuration; 0: EXIT_USAGE */
	/* the operands are another program's command line: our flags end at the first one */
	bool command_line;
	bool or_command_line; /* the operands are that only if they come after "--" */
};

/* A parsed command line, and the options in effect. */
struct invocation {
	const struct command *command;
	int argc; /* what followed the command's name */
	char **argv;
	const char *flag[FLAGS]; /* its value, "" for a flag without one; NULL: not given */
	/* in words, or, of a command line, in argv: all the rest up to a NULL */
	char **operands;
	int operands_n;
	bool is_command; /* @operands are another program's command line */
	char *words[OPERANDS_MAX];
	struct options options;
	bool options_bad; /* the errors are in @complaints; only doctor continues */
	struct strbuf complaints;
};

extern const struct flag flag_table[FLAGS];

/*
 * Parses flags (config/cmdline.c); options given as flags are set in @options. Errors are appended to
 * @errors. -ENOMEM.
 */
int cmdline_parse(struct invocation *invocation, struct options *options, struct strbuf *errors);
/*
 * Reads options from all four origins; also used to reload. Errors are appended to @errors, probable typos to
 * @warnings. -ENOMEM.
 */
int cmdline_options(struct invocation *invocation, struct options *ret_options, struct strbuf *errors,
		    struct strbuf *warnings);
