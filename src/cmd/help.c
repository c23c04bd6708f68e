// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

#include <stdio.h>

#include "cmd/completion.h"
#include "config.h"
#include "proc/capabilities.h"

void help_overview(struct strbuf *out)
{
	strbuf_adds(out, "gpusonde " GPUSONDE_VERSION
			 ": what the GPUs of this machine do\n\nusage: gpusonde COMMAND [OPTION...]\n\n");
	for (const struct command *c = commands; c->name; c++)
		strbuf_addf(out, "  %-14s %s\n", c->name, c->summary);
	strbuf_adds(out, "\ngpusonde COMMAND --help describes a command, gpusonde(8) all of them.\n");
}

/* The agent's describes all; where they matter less, their names must do. */
static void help_options(const struct command *command, struct strbuf *out)
{
	struct strbuf names;

	if (command->use & USE_AGENT) {
		options_help(command->use, out);
		return;
	}
	strbuf_init(&names, 0);
	options_names(command->use, &names);
	if (names.len)
		strbuf_addf(out, "\nAnd these, which gpusonde agent --help describes:\n%s", names.data);
	strbuf_done(&names);
}

void help_command(const struct command *command, struct strbuf *out)
{
	strbuf_addf(out, "usage: gpusonde %s [OPTION...]%s%s\n\n%s\n\n", command->name,
		    command->operands ? " " : "", command->operands ? command->operands : "", command->about);
	for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++) {
		if (!(f->uses & command->use))
			continue;
		strbuf_adds(out, "  ");
		if (f->letter)
			strbuf_addf(out, "-%c, ", f->letter);
		strbuf_addf(out, "%s%s%s\n", f->name, f->value && !flag_value_optional(f) ? " " : "",
			    f->value ? f->value : "");
		strbuf_add_wrapped(out, f->help, "        ", 100);
	}
	help_options(command, out);
	strbuf_adds(out, "\nExit status:\n");
	for (const struct exit_status *e = command->statuses; e->value; e++)
		strbuf_addf(out, "  %-5s  %s\n", e->value, e->meaning);
	if (command->use != USE_HELP)
		strbuf_adds(
			out,
			"\nEach option is also an environment variable (--sample-period is "
			"GPUSONDE_SAMPLE_PERIOD) and a key of the\n"
			"configuration file (sample: period:). A flag has precedence over the environment, "
			"and that over the file.\n");
}

/* Text for troff, which would turn "-" into a typographic hyphen. */
static void man_text(const char *text, struct strbuf *out)
{
	for (const char *p = text; *p; p++) {
		if (*p == '-')
			strbuf_addc(out, '\\');
		strbuf_addc(out, *p);
	}
	strbuf_addc(out, '\n');
}

/* One list for consecutive commands with the same statuses. */
static void man_statuses(struct strbuf *out)
{
	for (const struct command *c = commands; c->name; c++) {
		bool first = c == commands || c[-1].statuses != c->statuses;

		strbuf_addf(out, "%s%s", first ? ".SS gpusonde " : ", ", c->name);
		if (c[1].statuses == c->statuses)
			continue;
		for (const struct exit_status *e = c->statuses; e->value; e++) {
			strbuf_addf(out, "%s.TP\n.B %s\n", e == c->statuses ? "\n" : "", e->value);
			man_text(e->meaning, out);
		}
	}
}

static void man_commands(struct strbuf *out)
{
	for (const struct command *c = commands; c->name; c++) {
		strbuf_addf(out, ".SS gpusonde %s%s%s\n", c->name, c->operands ? " " : "",
			    c->operands ? c->operands : "");
		man_text(c->about, out);
		for (const struct flag *f = flag_table; f < flag_table + FLAGS; f++) {
			if (!(f->uses & c->use) || f->uses & USE_HELP)
				continue;
			strbuf_adds(out, ".TP\n.BR ");
			if (f->letter)
				strbuf_addf(out, "\\-%c \", \" ", f->letter);
			strbuf_addf(out, "\\-\\-%s%s\\fI%s\\fP\"\n%s\n", f->name + 2,
				    flag_value_optional(f) ? " \"" : " \" ", f->value ? f->value : "",
				    f->help);
		}
	}
}

static const struct {
	const char *name;
	void (*write)(struct strbuf *out);
} parts[] = {
	{ "configuration.md", options_markdown },   { "gpusonde.yaml", options_sample },
	{ "man-commands", man_commands },           { "man-options", options_man_flags },
	{ "man-keys", options_man_keys },           { "man-statuses", man_statuses },
	{ "capabilities.md", capability_document }, { "completion.bash", completion_bash },
	{ "completion.zsh", completion_zsh },       { "completion.fish", completion_fish },
};

static int generate(const char *name, struct strbuf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (STRV_EQ(parts[i].name, name)) {
			parts[i].write(out);
			return put_stdout(out);
		}
	fprintf(stderr, "gpusonde help: there is no generated part \"%s\": see gpusonde help --help\n", name);
	return EXIT_USAGE;
}

static int help(const struct invocation *inv, struct strbuf *out)
{
	if (inv->flag[FLAG_GENERATE])
		return generate(inv->flag[FLAG_GENERATE], out);
	if (inv->operands_n > 0) {
		const struct command *command = command_find(inv->operands[0]);

		if (!command)
			return EXIT_USAGE;
		help_command(command, out);
	} else {
		help_overview(out);
	}
	return put_stdout(out);
}

int help_main(struct invocation *inv)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	int status = help(inv, &out);

	strbuf_done(&out);
	return status;
}
