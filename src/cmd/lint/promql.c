// SPDX-License-Identifier: Apache-2.0
#include "cmd/lint/promql.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static bool is_promql_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

bool promql_is(const struct promql_token *token, const char *word)
{
	return token->kind != PROMQL_TEXT && token->n == strlen(word) &&
	       strncasecmp(token->at, word, token->n) == 0;
}

/* Bytes of the variable that begins here; 0: none does. */
static size_t variable_length(const char *at)
{
	const char *end = at;

	if (strncmp(at, "[[", 2) == 0)
		end = strstr(at, "]]") ? strstr(at, "]]") + 2 : at;
	else if (strncmp(at, "${", 2) == 0)
		end = strchr(at, '}') ? strchr(at, '}') + 1 : at;
	else if (*at == '$')
		for (end = at + 1; is_promql_word(*end) && *end != ':';)
			end++;
	return (size_t)(end - at);
}

static const char *read_word(const char *at, struct promql_token *token)
{
	const char *end = at;
	size_t n;

	token->kind = PROMQL_WORD;
	for (;; end += n) {
		n = is_promql_word(*end) ? 1 : variable_length(end);
		if (n == 0)
			break;
		if (!is_promql_word(*end))
			token->kind = PROMQL_VARIABLE;
	}
	token->at = at;
	token->n = (size_t)(end - at);
	return end;
}

static const char *read_quoted(const char *at, struct promql_token *token)
{
	const char *end = at + 1;

	while (*end && *end != *at)
		end += *end == '\\' && *at != '`' && end[1] ? 2 : 1;
	*token = (struct promql_token){ .kind = PROMQL_TEXT, .at = at + 1, .n = (size_t)(end - at - 1) };
	return *end ? end + 1 : end;
}

/* What stands between tokens: spaces, comments, ranges. */
static const char *skip(const char *at)
{
	for (;;) {
		if (isspace((unsigned char)*at))
			at++;
		else if (*at == '#')
			at += strcspn(at, "\n");
		else if (*at == '[' && variable_length(at) == 0)
			at += strcspn(at, "]") + (strchr(at, ']') != NULL);
		else
			return at;
	}
}

/* The pair that opened last is closed first; what is open at the end has no partner. */
static void find_partners(struct promql_token *tokens, unsigned n)
{
	unsigned open[PROMQL_TOKENS_MAX], depth = 0;

	for (unsigned i = 0; i < n; i++) {
		tokens[i].partner = i;
		if (promql_is(&tokens[i], "(") || promql_is(&tokens[i], "{")) {
			open[depth++] = i;
		} else if (depth > 0 && (promql_is(&tokens[i], ")") || promql_is(&tokens[i], "}"))) {
			tokens[i].partner = open[--depth];
			tokens[open[depth]].partner = i;
		}
	}
}

int promql_read(const char *query, struct promql_token tokens[static PROMQL_TOKENS_MAX])
{
	unsigned n = 0;

	for (const char *at = skip(query); *at; at = skip(at)) {
		struct promql_token *token = &tokens[n];

		if (n++ == PROMQL_TOKENS_MAX)
			return -E2BIG;
		*token = (struct promql_token){ .kind = PROMQL_SIGN, .at = at, .n = 1 };
		if (*at == '"' || *at == '\'' || *at == '`')
			at = read_quoted(at, token);
		else if (is_promql_word(*at) || variable_length(at) > 0)
			at = read_word(at, token);
		else
			at++;
	}
	find_partners(tokens, n);
	return (int)n;
}
