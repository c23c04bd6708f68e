// SPDX-License-Identifier: Apache-2.0
/* Words of PromQL, with Grafana's variables in it: as much as names and labels are found by. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PROMQL_TOKENS_MAX = 4096 };

enum promql_kind {
	PROMQL_WORD, /* of letters, digits, _ and : */
	PROMQL_VARIABLE, /* a word that has a variable in it: $x, ${x}, [[x]] */
	PROMQL_TEXT, /* without its quotes */
	PROMQL_SIGN, /* one byte; ranges in [ ] are left out */
};

struct promql_token {
	enum promql_kind kind;
	const char *at; /* in the query */
	size_t n;
	unsigned partner; /* of ( ) { }: the other one's index, its own if there is none */
};

/* How many tokens; -E2BIG: more than there is room for. */
int promql_read(const char *query, struct promql_token tokens[static PROMQL_TOKENS_MAX]);
/* Keywords may be in capitals. */
bool promql_is(const struct promql_token *token, const char *word);
