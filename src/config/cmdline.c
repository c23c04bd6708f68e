// SPDX-License-Identifier: Apache-2.0
#include "config/cmdline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/nearest.h"

const struct flag flag_table[FLAGS] = {
#define FLAG(id_, name_, letter_, value_, uses_, help_) { name_, letter_, value_, uses_, help_ },
#include "config/flags.def"
};

/* A word of the command line that begins with a dash: "--name=value", "--name" or "-x". */
struct word {
	const char *name;
	size_t length;
	const char *value; /* after '=', or NULL */
};

static const struct flag *find_flag(const struct word *word, unsigned use)
{
	for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++) {
		if (!(f->uses & use))
			continue;
		if (word->length == 2 && f->letter && word->name[1] == f->letter)
			return f;
		if (strlen(f->name) == word->length && memcmp(f->name, word->name, word->length) == 0)
			return f;
	}
	return NULL;
}

/* Called for a flag that its own command does not take. */
static bool is_of_other_command(const char *text)
{
	char name[OPTION_NAME_MAX];

	for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++)
		if (STRV_EQ(f->name, text))
			return true;
	for (unsigned i = 0; i < OPTIONS; i++) {
		option_flag(&option_table[i], name);
		if (STRV_EQ(name, text) || (option_table[i].alias && STRV_EQ(option_table[i].alias, text)))
			return true;
	}
	return false;
}

static void unknown_flag(const struct command *command, const struct word *word, struct strbuf *errors)
{
	char names[OPTIONS][OPTION_NAME_MAX], text[OPTION_NAME_MAX];
	struct nearest nearest;

	snprintf(text, sizeof(text), "%.*s", (int)word->length, word->name);
	if (is_of_other_command(text)) {
		strbuf_addf(errors, "gpusonde %s does not take the option %s: see gpusonde %s --help\n",
			    command->name, text, command->name);
		return;
	}
	strbuf_addf(errors, "unknown option %s", text);
	nearest_init(&nearest, text);
	for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++)
		if (f->uses & command->use)
			nearest_offer(&nearest, f->name);
	for (unsigned i = 0; i < OPTIONS; i++) {
		option_flag(&option_table[i], names[i]);
		if (!(option_table[i].uses & command->use))
			continue;
		nearest_offer(&nearest, names[i]);
		if (option_table[i].alias)
			nearest_offer(&nearest, option_table[i].alias);
	}
	if (nearest.best)
		strbuf_addf(errors, ": did you mean %s?\n", nearest.best);
	else
		strbuf_addf(errors, ": see gpusonde %s --help\n", command->name);
}

/*
 * The value of a flag that requires one: after its '=', else the next word. NULL, with an error message, if
 * there is none.
 */
static const char *take_value(struct invocation *inv, const struct word *word, const char *placeholder,
			      int *i, struct strbuf *errors)
{
	if (word->value)
		return word->value;
	if (*i + 1 < inv->argc)
		return inv->argv[++*i];
	strbuf_addf(errors, "%.*s needs a value: %.*s %s\n", (int)word->length, word->name, (int)word->length,
		    word->name, placeholder);
	return NULL;
}

static void parse_flag(struct invocation *inv, const struct flag *flag, const struct word *word, int *i,
		       struct strbuf *errors)
{
	const char *value = "";

	if (flag_value_optional(flag))
		value = word->value ? word->value : "";
	else if (flag->value)
		value = take_value(inv, word, flag->value, i, errors);
	else if (word->value)
		strbuf_addf(errors, "%s takes no value: leave out \"=%.80s\"\n", flag->name, word->value);
	inv->flag[flag - flag_table] = value;
}

static void check_color(const struct invocation *inv, struct strbuf *errors)
{
	const char *color = inv->flag[FLAG_COLOR];

	if (color && !STRV_EQ(color, "auto") && !STRV_EQ(color, "always") && !STRV_EQ(color, "never"))
		strbuf_addf(errors, "--color cannot be \"%.80s\": it must be auto, always or never\n", color);
}

static int parse_option(struct invocation *inv, struct options *options, const struct word *word, int *i,
			struct strbuf *errors)
{
	const struct option *option = option_by_flag(word->name, word->length);
	char where[OPTION_NAME_MAX];
	const char *value;

	if (!option || !(option->uses & inv->command->use)) {
		unknown_flag(inv->command, word, errors);
		return 0;
	}
	value = take_value(inv, word, option_placeholder(option), i, errors);
	if (!value)
		return 0;
	snprintf(where, sizeof(where), "%.*s", (int)word->length, word->name);
	return options_set(options, option, value, ORIGIN_FLAG, where, errors);
}

/*
 * Handles a word that is no flag. If the command takes another program's command line, this and all following
 * words belong to it.
 */
static void take_operand(struct invocation *inv, int *i, struct strbuf *errors)
{
	const struct command *c = inv->command;

	if (!c->operands || inv->operands_n >= (inv->is_command ? 1 : MAX(c->operands_max, 1))) {
		strbuf_addf(errors, "unexpected argument \"%.80s\": see gpusonde %s --help\n", inv->argv[*i],
			    c->name);
		return;
	}
	if (!inv->is_command) {
		inv->words[inv->operands_n++] = inv->argv[*i];
		inv->operands = inv->words;
		return;
	}
	inv->operands = inv->argv + *i;
	inv->operands_n = inv->argc - *i;
	*i += inv->operands_n - 1;
}

int cmdline_parse(struct invocation *inv, struct options *options, struct strbuf *errors)
{
	bool flags_end = false;

	inv->operands_n = 0;
	inv->is_command = inv->command->command_line;
	for (int i = 0; i < inv->argc; i++) {
		const char *arg = inv->argv[i];
		struct word word = { arg, strcspn(arg, "="), NULL };
		const struct flag *flag;
		int r = 0;

		if (flags_end || arg[0] != '-') {
			take_operand(inv, &i, errors);
			continue;
		}
		if (STRV_EQ(arg, "--")) {
			flags_end = true;
			inv->is_command |= inv->command->or_command_line;
			continue;
		}
		if (arg[word.length] == '=')
			word.value = arg + word.length + 1;
		flag = find_flag(&word, inv->command->use);
		if (flag)
			parse_flag(inv, flag, &word, &i, errors);
		else
			r = parse_option(inv, options, &word, &i, errors);
		if (r < 0)
			return r;
	}
	check_color(inv, errors);
	return 0;
}

static int read_file_options(const struct invocation *inv, struct options *options, struct strbuf *errors)
{
	const char *path = inv->flag[FLAG_CONFIG];

	if (!path)
		path = getenv("GPUSONDE_CONFIG");
	if (!path || !*path)
		path = access(OPTIONS_FILE, F_OK) == 0 ? OPTIONS_FILE : NULL;
	return path ? options_from_file(options, path, errors) : 0;
}

int cmdline_options(struct invocation *inv, struct options *ret_options, struct strbuf *errors,
		    struct strbuf *warnings)
{
	bool wants_all = inv->command->use != USE_HELP; /* help must work with an invalid configuration */
	struct options options;
	int r = options_init(&options);

	if (r == 0)
		r = cmdline_parse(inv, &options, errors);
	if (r == 0 && inv->flag[FLAG_SIMULATE])
		r = options_simulate(&options, inv->flag[FLAG_SIMULATE], errors);

	if (r == 0 && wants_all)
		r = options_from_environment(&options, inv->command->use, errors, warnings);
	if (r == 0 && wants_all)
		r = read_file_options(inv, &options, errors);
	if (r < 0) {
		options_done(&options);
		return r;
	}
	*ret_options = options;
	return 0;
}
