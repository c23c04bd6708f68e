// SPDX-License-Identifier: Apache-2.0
/*
 * Completions of shells, from the tables of commands, flags and options:
 * `gpusonde help --generate completion.SHELL`.
 */
#include "cmd/completion.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cmd/flag_words.h"

/* What a shell offers as a flag's value. */
enum offer { OFFER_NOTHING, OFFER_WORDS, OFFER_FILES, OFFER_USERS, OFFER_PIDS, OFFER_COMMANDS, OFFERS };

/* What follows a flag on the command line; an option's flag is of any command that has it. */
struct taken {
	const struct command *command;
	const char *name;
	char letter; /* 0: none */
	const char *placeholder; /* NULL: no value */
	bool optional; /* a value only after '=' */
	const char *help;
};

typedef void taken_fn(const struct taken *taken, struct strbuf *out);

static const struct {
	const char *placeholder;
	enum offer offer;
	const char *words;
} offers[] = {
	{ "FILE", OFFER_FILES, NULL },         { "PATH", OFFER_FILES, NULL },
	{ "USER", OFFER_USERS, NULL },         { "PID", OFFER_PIDS, NULL },
	{ "BOOL", OFFER_WORDS, "true false" }, { "LEVEL", OFFER_WORDS, "error warning notice info debug" },
};

static enum offer offer_of(const char *placeholder, struct strbuf *ret_words)
{
	strbuf_reset(ret_words);
	for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
		if (!STRV_EQ(offers[i].placeholder, placeholder))
			continue;
		strbuf_adds(ret_words, offers[i].words ? offers[i].words : "");
		return offers[i].offer;
	}
	flag_words(placeholder, ret_words);
	return ret_words->len > 0 ? OFFER_WORDS : OFFER_NOTHING;
}

static void for_each_taken(const struct command *command, taken_fn *fn, struct strbuf *out)
{
	char name[OPTION_NAME_MAX];

	for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++) {
		const struct taken taken = { command, f->name, f->letter, f->value, flag_value_optional(f),
					     f->help };

		if (f->uses & command->use)
			fn(&taken, out);
	}
	for (const struct option *o = option_table; o < option_table + OPTIONS; o++) {
		if (!(o->uses & command->use))
			continue;
		option_flag(o, name);
		const struct taken taken = { command, o->alias ? o->alias : name,
					     0,       option_placeholder(o),
					     false,   o->help };

		fn(&taken, out);
	}
}

static bool is_hidden(const struct command *command)
{
	return command->translate; /* another program's command line */
}

static void add_commands(struct strbuf *out)
{
	for (const struct command *c = commands; c->name; c++)
		if (!is_hidden(c))
			strbuf_addf(out, "%s%s", c == commands ? "" : " ", c->name);
}

/* Operands that are words themselves ("start|stop"), else files, or another program. */
static enum offer operands_offer(const struct command *command, struct strbuf *ret_words)
{
	char first[64];
	const char *operands = command->operands;

	strbuf_reset(ret_words);
	if (STRV_EQ(command->name, "help")) {
		add_commands(ret_words);
		return OFFER_WORDS;
	}
	if (command->command_line || !operands)
		return operands ? OFFER_COMMANDS : OFFER_NOTHING;
	operands += strspn(operands, "[");
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(operands, " ]."), operands);
	if (STRV_EQ(first, "A"))
		return OFFER_FILES;
	return offer_of(first, ret_words);
}

/*
 * The first sentence up to what explains it, within single quotes; @quote: how the shell writes one there.
 * Brackets end zsh's descriptions.
 */
static void add_sentence(struct strbuf *out, const char *help, const char *quote)
{
	for (const char *p = help; *p && !strchr(":;", *p); p++) {
		if ((*p == '.' && (p[1] == ' ' || !p[1])) || strncmp(p, " (", 2) == 0)
			break;
		if (*p == '\'')
			strbuf_adds(out, quote);
		else if (!strchr("[]\\", *p))
			strbuf_addc(out, *p);
	}
}

/* ---- bash ---- */

/* What completes @offer, for "cur", as a command that prints the candidates. */
static void bash_offer(enum offer offer, const char *words, struct strbuf *out)
{
	static const char *const generators[OFFERS] = {
		[OFFER_FILES] = "-f",
		[OFFER_USERS] = "-u",
		[OFFER_PIDS] = "-W \"$(cd /proc && echo [0-9]*)\"",
		[OFFER_COMMANDS] = "-c",
	};

	if (offer == OFFER_NOTHING)
		strbuf_adds(out, "return 0");
	else if (offer == OFFER_WORDS)
		strbuf_addf(out, "_gpusonde_offer -W '%s'", words);
	else
		strbuf_addf(out, "_gpusonde_offer %s", generators[offer]);
}

static void bash_value(const struct taken *t, struct strbuf *out)
{
	struct strbuf words;

	if (!t->placeholder || t->optional)
		return;
	strbuf_init(&words, 0);
	enum offer offer = offer_of(t->placeholder, &words);

	strbuf_addf(out, "\t%s:%s", t->command->name, t->name);
	if (t->letter)
		strbuf_addf(out, "|%s:-%c", t->command->name, t->letter);
	strbuf_adds(out, ") ");
	bash_offer(offer, words.data ? words.data : "", out);
	strbuf_adds(out, "; return ;;\n");
	strbuf_done(&words);
}

static void bash_name(const struct taken *t, struct strbuf *out)
{
	strbuf_addf(out, " %s", t->name);
}

static void bash_command(const struct command *c, struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 0);
	enum offer offer = operands_offer(c, &words);

	strbuf_addf(out, "\t%s)\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_gpusonde_offer -W '", c->name);
	for_each_taken(c, bash_name, out);
	strbuf_adds(out, "'\n\t\telse\n\t\t\t");
	bash_offer(offer, words.data ? words.data : "", out);
	strbuf_adds(out, "\n\t\tfi ;;\n");
	strbuf_done(&words);
}

void completion_bash(struct strbuf *out)
{
	strbuf_adds(out, "# bash completion of gpusonde\n"
			 "_gpusonde_offer() {\n"
			 "\tmapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n"
			 "}\n\n"
			 "_gpusonde() {\n"
			 "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
			 "\tlocal command=${COMP_WORDS[1]} i\n"
			 "\tCOMPREPLY=()\n"
			 "\t# \"--flag=value\" is three words\n"
			 "\tif [[ $cur == = ]]; then\n"
			 "\t\tcur=\n"
			 "\telif [[ $prev == = ]]; then\n"
			 "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
			 "\tfi\n"
			 "\tif ((COMP_CWORD == 1)); then\n"
			 "\t\t_gpusonde_offer -W '--help --version ");
	add_commands(out);
	strbuf_adds(out, "'\n\t\treturn\n\tfi\n"
			 "\t# what follows \"--\" is another program's command line\n"
			 "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
			 "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
			 "\t\t\tif declare -F _command_offset >/dev/null; then\n"
			 "\t\t\t\t_command_offset $((i + 1))\n"
			 "\t\t\telif ((i + 1 == COMP_CWORD)); then\n"
			 "\t\t\t\t_gpusonde_offer -c\n"
			 "\t\t\telse\n"
			 "\t\t\t\t_gpusonde_offer -f\n"
			 "\t\t\tfi\n"
			 "\t\t\treturn\n"
			 "\t\tfi\n"
			 "\tdone\n"
			 "\tcase $command:$prev in\n");
	for (const struct command *c = commands; c->name; c++)
		if (!is_hidden(c))
			for_each_taken(c, bash_value, out);
	strbuf_adds(out, "\tesac\n\tcase $command in\n");
	for (const struct command *c = commands; c->name; c++)
		if (!is_hidden(c))
			bash_command(c, out);
	strbuf_adds(out, "\tesac\n}\n\ncomplete -o filenames -o bashdefault -F _gpusonde gpusonde\n");
}

/* ---- zsh ---- */

#define ZSH_QUOTE "'\\''"

static void zsh_offer(enum offer offer, const char *words, struct strbuf *out)
{
	static const char *const actions[OFFERS] = { [OFFER_NOTHING] = " ",
						     [OFFER_FILES] = "_files",
						     [OFFER_USERS] = "_users",
						     [OFFER_PIDS] = "_pids",
						     [OFFER_COMMANDS] = "_normal" };

	if (offer == OFFER_WORDS)
		strbuf_addf(out, "(%s)", words);
	else
		strbuf_adds(out, actions[offer]);
}

static void zsh_taken(const struct taken *t, struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 0);
	strbuf_adds(out, " \\\n\t\t\t");
	if (t->letter)
		strbuf_addf(out, "'(-%c %s)'{-%c,%s%s}'[", t->letter, t->name, t->letter, t->name,
			    t->placeholder && !t->optional ? "=" : "");
	else
		strbuf_addf(out, "'%s%s[", t->name, t->placeholder ? t->optional ? "=-" : "=" : "");
	add_sentence(out, t->help, ZSH_QUOTE);
	strbuf_addc(out, ']');
	if (t->placeholder) {
		enum offer offer = offer_of(t->placeholder, &words);

		strbuf_adds(out, t->optional ? "::value:" : ":value:");
		zsh_offer(offer, words.data ? words.data : "", out);
	}
	strbuf_addc(out, '\'');
	strbuf_done(&words);
}

static void zsh_command(const struct command *c, struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 0);
	strbuf_addf(out, "\t%s)\n\t\t_arguments -S", c->name);
	for_each_taken(c, zsh_taken, out);
	if (c->operands) {
		enum offer offer = operands_offer(c, &words);

		strbuf_addf(out, " \\\n\t\t\t'*:%soperand:", c->command_line ? ":" : "");
		zsh_offer(offer, words.data ? words.data : "", out);
		strbuf_addc(out, '\'');
	}
	strbuf_adds(out, " ;;\n");
	strbuf_done(&words);
}

void completion_zsh(struct strbuf *out)
{
	strbuf_adds(out, "#compdef gpusonde\n\nlocal -a commands\ncommands=(\n");
	for (const struct command *c = commands; c->name; c++) {
		if (is_hidden(c))
			continue;
		strbuf_addf(out, "\t'%s:", c->name);
		add_sentence(out, c->summary, ZSH_QUOTE);
		strbuf_adds(out, "'\n");
	}
	strbuf_adds(out, ")\n\nif ((CURRENT == 2)); then\n"
			 "\t_describe -t commands command commands\n"
			 "\treturn\nfi\n"
			 "shift words\n((CURRENT--))\n"
			 "case $words[1] in\n");
	for (const struct command *c = commands; c->name; c++)
		if (!is_hidden(c))
			zsh_command(c, out);
	strbuf_adds(out, "esac\n");
}

/* ---- fish ---- */

#define FISH_QUOTE "\\'"

static void fish_taken(const struct taken *t, struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 0);
	strbuf_addf(out, "complete -c gpusonde -n '__fish_seen_subcommand_from %s' -l %s", t->command->name,
		    t->name + 2);
	if (t->letter)
		strbuf_addf(out, " -s %c", t->letter);
	if (t->placeholder && !t->optional) {
		switch (offer_of(t->placeholder, &words)) {
		case OFFER_FILES:
			strbuf_adds(out, " -r -F");
			break;
		case OFFER_WORDS:
			strbuf_addf(out, " -x -a '%s'", words.data);
			break;
		case OFFER_USERS:
			strbuf_adds(out, " -x -a '(__fish_complete_users)'");
			break;
		case OFFER_PIDS:
			strbuf_adds(out, " -x -a '(__fish_complete_pids)'");
			break;
		default:
			strbuf_adds(out, " -x");
		}
	}
	strbuf_adds(out, " -d '");
	add_sentence(out, t->help, FISH_QUOTE);
	strbuf_adds(out, "'\n");
	strbuf_done(&words);
}

static void fish_operands(const struct command *c, struct strbuf *out)
{
	struct strbuf words;

	strbuf_init(&words, 0);
	enum offer offer = operands_offer(c, &words);

	strbuf_addf(out, "complete -c gpusonde -n '__fish_seen_subcommand_from %s'", c->name);
	if (offer == OFFER_COMMANDS)
		strbuf_adds(out, " -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n");
	else if (offer == OFFER_FILES)
		strbuf_adds(out, " -F\n");
	else
		strbuf_addf(out, " -f -a '%s'\n", words.data ? words.data : "");
	strbuf_done(&words);
}

void completion_fish(struct strbuf *out)
{
	strbuf_adds(out, "# fish completion of gpusonde\ncomplete -c gpusonde -f\n");
	for (const struct command *c = commands; c->name; c++) {
		if (is_hidden(c))
			continue;
		strbuf_addf(out, "complete -c gpusonde -n __fish_use_subcommand -a %s -d '", c->name);
		add_sentence(out, c->summary, FISH_QUOTE);
		strbuf_adds(out, "'\n");
	}
	for (const struct command *c = commands; c->name; c++) {
		if (is_hidden(c))
			continue;
		for_each_taken(c, fish_taken, out);
		fish_operands(c, out);
	}
}
