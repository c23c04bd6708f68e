// SPDX-License-Identifier: Apache-2.0
/*
 * Options from the environment: GPUSONDE_*, and the variables of exporters that gpusonde replaces, so that
 * their deployments need no other.
 */
#include "config/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/nearest.h"

enum { VALUE_MAX = 4096 };

/* Variables of such exporters that change nothing here. */
static const char *const foreign[] = {
#define FOREIGN(name_) #name_,
#include "config/foreign.def"
#undef FOREIGN
};

/* Words for a level: logrus's and zap's, in any case. */
static const struct {
	const char *word, *level;
} level_words[] = {
	{ "warn", "warning" }, { "trace", "debug" },  { "fatal", "error" },
	{ "panic", "error" },  { "dpanic", "error" },
};

static void lower_level(const char *text, char *out, size_t n)
{
	size_t i = 0;

	for (; i + 1 < n && text[i]; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[i] = '\0';
	for (i = 0; i < ARRAY_SIZE(level_words); i++)
		if (STRV_EQ(level_words[i].word, out))
			snprintf(out, n, "%s", level_words[i].level);
}

static bool is_port(const char *text)
{
	uint64_t port;

	return parse_u64(text, &port) == 0 && port >= 1 && port <= UINT16_MAX;
}

/* "true" or "false"; NULL: neither. The words are those of Go's strconv.ParseBool. */
static const char *translate_bool(const char *text)
{
	static const char *const words[2][6] = {
		{ "0", "f", "F", "false", "FALSE", "False" },
		{ "1", "t", "T", "true", "TRUE", "True" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words[0]); i++) {
		if (STRV_EQ(words[0][i], text))
			return "false";
		if (STRV_EQ(words[1][i], text))
			return "true";
	}
	return NULL;
}

/* Of forms that are not the option's own: how a value must look. */
static const char *const form_words[ENV_FORMS] = {
	[ENV_PORT] = "a port, 1 to 65535",
	[ENV_SECONDS] = "a whole number of seconds",
	[ENV_MILLISECONDS] = "a whole number of milliseconds",
	[ENV_BOOL] = "true or false",
};

/* @text in the option's own syntax, perhaps in @buf; NULL: it is not of the variable's form. */
static const char *translate(enum env_form form, const char *text, char buf[static VALUE_MAX])
{
	uint64_t number;

	switch (form) {
	case ENV_PORT:
		snprintf(buf, VALUE_MAX, ":%s", text);
		return is_port(text) ? buf : NULL;
	case ENV_SECONDS:
	case ENV_MILLISECONDS:
		snprintf(buf, VALUE_MAX, "%s%s", text, form == ENV_SECONDS ? "s" : "ms");
		return parse_u64(text, &number) == 0 ? buf : NULL;
	case ENV_BOOL:
		return translate_bool(text);
	case ENV_LEVEL:
		lower_level(text, buf, VALUE_MAX);
		return buf;
	case ENV_AS_IT_IS:
	case ENV_FORMS:
		break;
	}
	return text;
}

static int take_alias(struct options *options, const struct option *option, const char *text,
		      struct strbuf *errors)
{
	char buf[VALUE_MAX];
	const char *translated = translate(option->env_form, text, buf);

	if (translated)
		return options_set(options, option, translated, ORIGIN_ENVIRONMENT, option->env_alias,
				   errors);
	strbuf_addf(errors, "%s: %s cannot be \"%.80s\": it must be %s\n", option->env_alias, option->key,
		    text, form_words[option->env_form]);
	return 0;
}

static int take_aliases(struct options *options, unsigned uses, struct strbuf *errors)
{
	for (const struct option *o = option_table; o < option_table + OPTIONS; o++) {
		const char *text = o->env_alias && (o->uses & uses) ? getenv(o->env_alias) : NULL;
		int r = text && *text ? take_alias(options, o, text, errors) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* All in one line, once. */
static void note_foreign(struct strbuf *warnings)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		if (!getenv(foreign[i]))
			continue;
		strbuf_addf(warnings, "%s%s",
			    any ? ", " : "settings without a meaning for gpusonde are ignored: ",
			    foreign[i]);
		any = true;
	}
	if (any)
		strbuf_addc(warnings, '\n');
}

/* The simulated driver's own variables. */
#define SIMULATED_PREFIX "GPUSONDE_SIM_"

/*
 * Warns of a variable that is probably a misspelt option. Others with the prefix (Kubernetes sets some) are
 * ignored.
 */
static void warn_near_miss(const char *variable, struct strbuf *warnings)
{
	char names[OPTIONS][OPTION_NAME_MAX], word[OPTION_NAME_MAX];
	const char *equals_sign = strchr(variable, '=');
	struct nearest nearest;

	if (!equals_sign || (size_t)(equals_sign - variable) >= sizeof(word) ||
	    strncmp(variable, SIMULATED_PREFIX, strlen(SIMULATED_PREFIX)) == 0)
		return;
	snprintf(word, sizeof(word), "%.*s", (int)(equals_sign - variable), variable);
	nearest_init(&nearest, word);
	nearest.distance = 3;
	for (unsigned i = 0; i < OPTIONS; i++) {
		option_environment(&option_table[i], names[i]);
		nearest_offer(&nearest, names[i]);
	}
	if (nearest.best && nearest.distance > 0)
		strbuf_addf(warnings,
			    "environment variable %s is no option and is ignored: did you mean %s?\n", word,
			    nearest.best);
}

int options_from_environment(struct options *options, unsigned uses, struct strbuf *errors,
			     struct strbuf *warnings)
{
	extern char **environ;
	char name[OPTION_NAME_MAX];

	if (uses & (USE_AGENT | USE_DOCTOR)) {
		int r = take_aliases(options, uses, errors);

		if (r < 0)
			return r;
		note_foreign(warnings);
	}
	for (unsigned i = 0; i < OPTIONS; i++) {
		option_environment(&option_table[i], name);
		const char *text = getenv(name);
		int r = text ? options_set(options, &option_table[i], text, ORIGIN_ENVIRONMENT, name,
					   errors) :
			       0;

		if (r < 0)
			return r;
	}
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, "GPUSONDE_", 9) == 0)
			warn_near_miss(*e, warnings);
	return 0;
}
