// SPDX-License-Identifier: Apache-2.0
/*
 * Documentation generated from the option table: --print-config, --help, the man pages and
 * docs/configuration.md.
 */
#include "config/options.h"

#include <string.h>

#include "config/places.h"
#include "config.h"

static const struct option *next_in(const char *section, const struct option *after)
{
	for (const struct option *o = after ? after + 1 : option_table; o < option_table + OPTIONS; o++)
		if (STRV_EQ(o->section, section))
			return o;
	return NULL;
}

#define FOREACH_OPTION(o, section) \
	for (const struct option *o = next_in(section, NULL); o; o = next_in(section, o))

static const char *initial(const struct option *option)
{
	return option->initial[0] ? option->initial : option->empty;
}

/* Double-quoted YAML. Values have no ASCII control characters. */
static void add_quoted(struct strbuf *out, const char *text)
{
	/* What YAML 1.1 takes for the end of a line or for no character of a text. */
	static const struct {
		const char *utf8, *escape;
	} escapes[] = {
		{ "\"", "\\\"" },        { "\\", "\\\\" },        { "\u2028", "\\L" },
		{ "\u2029", "\\P" },     { "\uFEFF", "\\uFEFF" }, { "\uFFFE", "\\uFFFE" },
		{ "\uFFFF", "\\uFFFF" },
	};

	strbuf_addc(out, '"');
	while (*text) {
		const unsigned char *c = (const unsigned char *)text;
		size_t i = 0;

		while (i < ARRAY_SIZE(escapes) &&
		       strncmp(text, escapes[i].utf8, strlen(escapes[i].utf8)) != 0)
			i++;
		if (i < ARRAY_SIZE(escapes)) {
			strbuf_adds(out, escapes[i].escape);
			text += strlen(escapes[i].utf8);
		} else if (c[0] == 0xc2 && c[1] < 0xa0) { /* U+0080 to U+009F */
			strbuf_addf(out, "\\x%02X", c[1]);
			text += 2;
		} else {
			strbuf_addc(out, *text++);
		}
	}
	strbuf_addc(out, '"');
}

static void add_origin(struct strbuf *out, const struct option_value *value)
{
	size_t begin = out->len;

	strbuf_addf(out, "%s", value->origin == ORIGIN_DEFAULT ? "default" : value->where);
	for (size_t i = begin; i < out->len; i++)
		if ((unsigned char)out->data[i] < ' ')
			out->data[i] = '?';
}

void options_print(const struct options *options, struct strbuf *out)
{
	strbuf_addf(out, "# gpusonde %s: the configuration in effect, and where each value comes from\n",
		    GPUSONDE_VERSION);
	for (unsigned s = 0; s < section_count; s++) {
		strbuf_addf(out, "%s:\n", section_table[s].name);
		FOREACH_OPTION(o, section_table[s].name)
		{
			const struct option_value *v = &options->v[o - option_table];
			struct place place;

			strbuf_addf(out, "  %s: ", o->name);
			add_quoted(out, place_of_option(options, (enum option_id)(o - option_table), &place));
			strbuf_adds(out, "  # ");
			add_origin(out, v);
			strbuf_addc(out, '\n');
		}
	}
}

void options_help(unsigned use, struct strbuf *out)
{
	char flag[OPTION_NAME_MAX];

	for (unsigned s = 0; s < section_count; s++) {
		bool begun = false;

		FOREACH_OPTION(o, section_table[s].name)
		{
			if (!(o->uses & use))
				continue;
			if (!begun)
				strbuf_addf(out, "\n%s:\n", section_table[s].title);
			begun = true;
			option_flag(o, flag);
			strbuf_addf(out, "  %s%s%s %s (default: %s)\n", o->alias ? o->alias : "",
				    o->alias ? ", " : "", flag, option_placeholder(o), initial(o));
			strbuf_add_wrapped(out, o->help, "        ", 100);
		}
	}
}

void options_names(unsigned use, struct strbuf *out)
{
	char flag[OPTION_NAME_MAX];
	struct strbuf names;

	strbuf_init(&names, 0);
	for (unsigned s = 0; s < section_count; s++)
		FOREACH_OPTION(o, section_table[s].name)
		{
			if (!(o->uses & use))
				continue;
			option_flag(o, flag);
			strbuf_addf(&names, "%s%s", names.len ? ", " : "", o->alias ? o->alias : flag);
		}
	if (names.len)
		strbuf_add_wrapped(out, names.data, "  ", 100);
	strbuf_done(&names);
}

void options_sample(struct strbuf *out)
{
	strbuf_adds(out,
		    "# Configuration of gpusonde: " OPTIONS_FILE
		    ". Every key is here with its default, behind a #; to change\n"
		    "# one, remove that # and the one of the section above it. gpusonde agent --check-config "
		    "looks it over, and\n"
		    "# gpusonde.yaml(5) tells more.\n");
	for (unsigned s = 0; s < section_count; s++) {
		strbuf_addf(out, "\n# %s\n#%s:\n", section_table[s].title, section_table[s].name);
		FOREACH_OPTION(o, section_table[s].name)
		{
			strbuf_add_wrapped(out, o->help, "#  # ", 100);
			strbuf_addf(out, "#  %s: ", o->name);
			add_quoted(out, o->initial);
			if (!o->initial[0])
				strbuf_addf(out, "  # %s", o->empty);
			strbuf_addc(out, '\n');
		}
	}
}

/* Escapes bars, which would end the table's cell. */
static void add_cell(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			strbuf_addc(out, '\\');
		strbuf_addc(out, *text);
	}
}

static void markdown_row(const struct option *o, struct strbuf *out)
{
	char flag[OPTION_NAME_MAX], name[OPTION_NAME_MAX];

	option_flag(o, flag);
	option_environment(o, name);
	strbuf_addf(out, "| `%s` | `%s`%s%s%s | `%s`%s%s%s | %s%s%s | ", o->key, flag, o->alias ? ", `" : "",
		    o->alias ? o->alias : "", o->alias ? "`" : "", name, o->env_alias ? ", `" : "",
		    o->env_alias ? o->env_alias : "", o->env_alias ? "`" : "", o->initial[0] ? "`" : "",
		    initial(o), o->initial[0] ? "`" : "");
	option_describe(o, out);
	strbuf_addf(out, " | %s | ", o->restart ? "no" : "yes");
	add_cell(out, o->help);
	strbuf_adds(out, " |\n");
}

void options_markdown(struct strbuf *out)
{
	strbuf_adds(
		out,
		"# Configuration\n\n"
		"<!-- Generated from src/config/options.def: run `ninja -C build docs`, do not edit. -->\n\n"
		"Every option can be given in three places. Where several give it, the first of these "
		"wins:\n\n"
		"1. a flag: `--sample-period 500ms`\n"
		"2. an environment variable: `GPUSONDE_SAMPLE_PERIOD=500ms`; some options have a second "
		"one, of an exporter that\n   gpusonde replaces, which only the agent and "
		"`gpusonde doctor` read\n"
		"3. the configuration file, `" OPTIONS_FILE
		"` unless `--config FILE` or `GPUSONDE_CONFIG` names another:\n\n"
		"   ```yaml\n   sample:\n     period: 500ms\n   ```\n\n"
		"`gpusonde agent --check-config` reports every unknown key and bad value with its file, "
		"line and remedy.\n"
		"`gpusonde agent --print-config` shows the values in effect and where each one comes from; "
		"what it prints is a\n"
		"configuration file. `SIGHUP` reads the file again; a file with errors is refused as a "
		"whole and the old\n"
		"configuration stays. Options marked *no* under *reload* are taken at the next start.\n");
	for (unsigned s = 0; s < section_count; s++) {
		strbuf_addf(
			out,
			"\n## %s\n\n| option | flag | environment | default | values | reload | meaning |\n"
			"| --- | --- | --- | --- | --- | --- | --- |\n",
			section_table[s].title);
		FOREACH_OPTION(o, section_table[s].name)
		markdown_row(o, out);
	}
}

/* In roff a hyphen needs a backslash, and a line that begins with a dot or quote is a request. */
static void add_roff(struct strbuf *out, const char *text)
{
	bool line_begins = true;

	for (; *text; text++) {
		if (line_begins && (*text == '.' || *text == '\''))
			strbuf_adds(out, "\\&");
		if (*text == '-')
			strbuf_adds(out, "\\-");
		else if (*text == '\\')
			strbuf_adds(out, "\\e");
		else
			strbuf_addc(out, *text);
		line_begins = *text == '\n';
	}
}

static void man_text(const struct option *o, struct strbuf *out)
{
	add_roff(out, o->help);
	strbuf_adds(out, "\nDefault: ");
	add_roff(out, initial(o));
	strbuf_adds(out, ".\n");
}

void options_man_flags(struct strbuf *out)
{
	char flag[OPTION_NAME_MAX], name[OPTION_NAME_MAX];

	for (unsigned s = 0; s < section_count; s++) {
		strbuf_addf(out, ".SS %s\n", section_table[s].title);
		FOREACH_OPTION(o, section_table[s].name)
		{
			option_flag(o, flag);
			option_environment(o, name);
			strbuf_adds(out, ".TP\n.BR ");
			add_roff(out, flag);
			if (o->alias) {
				strbuf_adds(out, " \", \" ");
				add_roff(out, o->alias);
			}
			strbuf_addf(out, " \" \\fI%s\\fP (%s%s%s)\"\n", option_placeholder(o), name,
				    o->env_alias ? ", " : "", o->env_alias ? o->env_alias : "");
			man_text(o, out);
		}
	}
}

void options_man_keys(struct strbuf *out)
{
	for (unsigned s = 0; s < section_count; s++) {
		strbuf_addf(out, ".SS %s: %s\n", section_table[s].name, section_table[s].title);
		FOREACH_OPTION(o, section_table[s].name)
		{
			strbuf_addf(out, ".TP\n.BR %s \": \\fI%s\\fP\"\n", o->name, option_placeholder(o));
			man_text(o, out);
			strbuf_adds(out, "Values: ");
			struct strbuf values;

			strbuf_init(&values, 0);
			option_describe(o, &values);
			add_roff(out, values.data);
			strbuf_done(&values);
			strbuf_adds(out, o->restart ? ".\nTaken at the next start of the agent.\n" :
						      ".\nReloaded with SIGHUP.\n");
		}
	}
}
