// SPDX-License-Identifier: Apache-2.0
#include "userprobe/userprobe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/macro.h"
#include "base/text.h"

enum { ARGUMENT_MAX = 15 }; /* highest position of an argument */

static const struct {
	const char *name;
	unsigned width;
} types[USER_ARG_TYPES] = {
	[USER_ARG_U64] = { "u64", 8 },       [USER_ARG_S64] = { "s64", 8 }, [USER_ARG_X64] = { "x64", 8 },
	[USER_ARG_U32] = { "u32", 4 },       [USER_ARG_S32] = { "s32", 4 }, [USER_ARG_X32] = { "x32", 4 },
	[USER_ARG_STRING] = { "string", 8 },
};

static const struct {
	const char *name;
	enum user_result result;
} results[] = {
	{ "returns", USER_RESULT_NONE },
	{ "returns:status", USER_RESULT_STATUS },
	{ "returns:pointer", USER_RESULT_POINTER },
};

unsigned user_arg_width(enum user_arg_type type)
{
	return types[type].width;
}

const char *user_arg_type_name(enum user_arg_type type)
{
	return types[type].name;
}

/* ---- parsing ---- */

struct parser {
	const char *probe; /* what is being parsed, for messages */
	size_t probe_n;
	struct strbuf *errors;
};

_printf_(2, 3) static int invalid(const struct parser *parser, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	strbuf_addf(parser->errors, "the probe \"%.*s\": %s\n", (int)MIN(parser->probe_n, (size_t)120),
		    parser->probe, why);
	return -EINVAL;
}

static bool word_is(const char *word, size_t n, const char *text)
{
	return strlen(text) == n && memcmp(word, text, n) == 0;
}

static int parse_functions(const struct parser *parser, const char *word, size_t n, struct user_probe *probe)
{
	const char *colon = memchr(word, ':', n);
	size_t library_n = colon ? (size_t)(colon - word) : 0, patterns_n = colon ? n - library_n - 1 : 0;
	const char *patterns = colon ? colon + 1 : NULL;

	if (!library_n || !patterns_n)
		return invalid(parser, "write LIBRARY:PATTERN, such as libfoo.so:foo_*");
	if (memchr(word, '/', library_n) && word[0] != '/')
		return invalid(parser, "a library is a file name or an absolute path");
	if (word[library_n - 1] == '/')
		return invalid(parser, "the library is a folder; name a file");
	if (library_n >= sizeof(probe->library) || patterns_n >= sizeof(probe->patterns))
		return invalid(parser, "longer than %zu bytes", sizeof(probe->patterns) - 1);
	if (memchr(patterns, ':', patterns_n))
		return invalid(parser, "a pattern has a colon; C++ functions are named as the file's symbols "
				       "are (_ZN...), which nm -D prints");
	if (patterns[0] == ',' || patterns[patterns_n - 1] == ',' || memmem(patterns, patterns_n, ",,", 2))
		return invalid(parser, "a pattern between two commas is empty");
	memcpy(probe->library, word, library_n);
	memcpy(probe->patterns, patterns, patterns_n);
	return 0;
}

static int parse_argument(const struct parser *parser, const char *word, size_t n, struct user_probe *probe)
{
	const char *colon = memchr(word, ':', n);
	size_t name_n = colon ? (size_t)(colon - word) : n;
	char digits[3] = "";
	struct user_arg arg = { .type = USER_ARG_U64 };
	uint64_t position;

	if (name_n - strlen("arg") < sizeof(digits))
		memcpy(digits, word + strlen("arg"), name_n - strlen("arg"));
	if (parse_u64(digits, &position) < 0 || position > ARGUMENT_MAX)
		return invalid(parser, "\"%.*s\": write arg0 to arg%d, and how it is shown: arg0:string",
			       (int)n, word, ARGUMENT_MAX);
	arg.position = (uint8_t)position;
	while (colon && arg.type < USER_ARG_TYPES &&
	       !word_is(colon + 1, n - name_n - 1, types[arg.type].name))
		arg.type++;
	if (arg.type == USER_ARG_TYPES)
		return invalid(parser, "\"%.*s\": the type is u64, s64, x64, u32, s32, x32 or string", (int)n,
			       word);
	if (probe->args_n == USER_ARGS_MAX)
		return invalid(parser, "more than %d arguments", USER_ARGS_MAX);
	probe->args[probe->args_n++] = arg;
	return 0;
}

static int check_arguments(const struct parser *parser, const struct user_probe *probe)
{
	unsigned strings = 0;

	for (unsigned i = 0; i < probe->args_n; i++) {
		strings += probe->args[i].type == USER_ARG_STRING;
		for (unsigned k = 0; k < i; k++)
			if (probe->args[k].position == probe->args[i].position)
				return invalid(parser, "arg%u is there twice", probe->args[i].position);
	}
	if (strings > 1 || (strings == 1 && probe->args_n > 3))
		return invalid(parser, "at most one string and two other arguments; a second --probe of the "
				       "same functions would not help, since a function has one probe");
	return 0;
}

static int parse_word(const struct parser *parser, const char *word, size_t n, struct user_probe *probe)
{
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		if (word_is(word, n, results[i].name)) {
			probe->returns = true;
			probe->result = (uint8_t)results[i].result;
			return 0;
		}
	if (n > strlen("arg") && memcmp(word, "arg", strlen("arg")) == 0)
		return parse_argument(parser, word, n, probe);
	return invalid(parser,
		       "\"%.*s\": after the functions come argN, argN:TYPE and returns, "
		       "returns:status or returns:pointer",
		       (int)MIN(n, (size_t)80), word);
}

static int parse_probe(const struct parser *parser, struct user_probe *probe)
{
	static const char space[] = " \t";
	const char *at = parser->probe, *end = at + parser->probe_n;
	int r = 0;

	*probe = (struct user_probe){ 0 };
	while (r == 0 && at < end) {
		size_t n = MIN(strcspn(at, " \t;"), (size_t)(end - at));

		if (n > 0)
			r = probe->library[0] ? parse_word(parser, at, n, probe) :
						parse_functions(parser, at, n, probe);
		at += n;
		at += MIN(strspn(at, space), (size_t)(end - at));
	}
	return r < 0 ? r : check_arguments(parser, probe);
}

int user_probes_parse(const char *text, struct user_probes *ret_probes, struct strbuf *errors)
{
	struct user_probes probes = { 0 };

	for (size_t n; *text; text += n + (text[n] == ';')) {
		struct parser parser = { .probe = text, .errors = errors };
		int r;

		n = parser.probe_n = strcspn(text, ";");
		if (strspn(text, " \t") >= n)
			continue;
		if (probes.n == USER_PROBES_MAX)
			return invalid(&parser, "more than %d probes; one may have several patterns",
				       USER_PROBES_MAX);
		r = parse_probe(&parser, &probes.at[probes.n++]);
		if (r < 0)
			return r;
	}
	*ret_probes = probes;
	return 0;
}

/* ---- matching ---- */

bool user_probe_has_library(const struct user_probe *probe, const char *path, size_t path_n)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(probe->library), mark = strlen(deleted);
	const char *slash = memrchr(path, '/', path_n);

	if (path_n >= mark && memcmp(path + path_n - mark, deleted, mark) == 0)
		path_n -= mark;
	if (probe->library[0] != '/' && slash) {
		path_n -= MIN(path_n, (size_t)(slash + 1 - path));
		path = slash + 1;
	}
	if (path_n < n || memcmp(path, probe->library, n) != 0)
		return false;
	return path_n == n || (probe->library[0] != '/' && path[n] == '.');
}

bool user_probe_matches(const struct user_probe *probe, const char *symbol)
{
	for (const char *pattern = probe->patterns;; pattern++) {
		size_t n = strcspn(pattern, ",");

		if (glob_matches(pattern, n, symbol))
			return true;
		pattern += n;
		if (!*pattern)
			return false;
	}
}
