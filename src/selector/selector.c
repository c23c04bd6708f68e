// SPDX-License-Identifier: Apache-2.0
#include "selector/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum label_operator { OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS, OPERATOR_MISSING };

struct requirement {
	const char *key;
	enum label_operator op;
	const char *values[SELECTOR_VALUES_MAX];
	unsigned values_n;
	/* of the object at hand */
	bool present, listed;
};

struct selector {
	char *words; /* what keys and values point into: each ends with NUL */
	size_t words_n;
	struct requirement list[SELECTOR_MAX];
	unsigned n;
};

/* ---- parsing ---- */

struct parser {
	struct selector *selector;
	const char *at;
	char *error;
	size_t error_size;
};

static int refuse_text(struct parser *p, const char *why)
{
	snprintf(p->error, p->error_size, "%s at \"%.40s\"", why, p->at);
	return -EINVAL;
}

static void pass_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static bool pass(struct parser *p, const char *text)
{
	size_t n = strlen(text);

	pass_blanks(p);
	if (strncmp(p->at, text, n) != 0)
		return false;
	p->at += n;
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("-_./", c));
}

/* A key or value, which may be empty; NULL: none is left. */
static const char *take_word(struct parser *p)
{
	struct selector *s = p->selector;
	char *word = s->words + s->words_n;
	size_t n = 0;

	pass_blanks(p);
	while (is_word(p->at[n]))
		n++;
	memcpy(word, p->at, n);
	word[n] = '\0';
	s->words_n += n + 1;
	p->at += n;
	return word;
}

static int take_values(struct parser *p, struct requirement *r)
{
	if (!pass(p, "("))
		return refuse_text(p, "a list in parentheses is expected");
	do {
		if (r->values_n == SELECTOR_VALUES_MAX)
			return -E2BIG;
		r->values[r->values_n++] = take_word(p);
	} while (pass(p, ","));
	return pass(p, ")") ? 0 : refuse_text(p, "a ) is missing");
}

static bool pass_name(struct parser *p, const char *name)
{
	size_t n = strlen(name);

	pass_blanks(p);
	if (strncmp(p->at, name, n) != 0 || is_word(p->at[n]))
		return false;
	p->at += n;
	return true;
}

static int take_operator(struct parser *p, struct requirement *r)
{
	if (pass_name(p, "in"))
		return take_values(p, r);
	if (pass_name(p, "notin")) {
		r->op = OPERATOR_NOT_IN;
		return take_values(p, r);
	}
	if (pass(p, "!="))
		r->op = OPERATOR_NOT_IN;
	else if (!pass(p, "==") && !pass(p, "=") && !pass(p, ":"))
		r->op = OPERATOR_EXISTS;
	if (r->op != OPERATOR_EXISTS)
		r->values[r->values_n++] = take_word(p);
	return 0;
}

static int take_requirement(struct parser *p)
{
	struct selector *s = p->selector;
	struct requirement *r = &s->list[s->n];
	bool missing = pass(p, "!");
	int result = 0;

	if (s->n == SELECTOR_MAX)
		return -E2BIG;
	*r = (struct requirement){ .op = missing ? OPERATOR_MISSING : OPERATOR_IN };
	r->key = take_word(p);
	if (!*r->key)
		return refuse_text(p, "a label's key is expected");
	if (!missing)
		result = take_operator(p, r);
	if (result == 0)
		s->n++;
	return result;
}

static int take_all(struct parser *p)
{
	int r;

	pass_blanks(p);
	if (!*p->at)
		return 0;
	do {
		r = take_requirement(p);
	} while (r == 0 && pass(p, ","));
	pass_blanks(p);
	return r == 0 && *p->at ? refuse_text(p, "a comma is expected") : r;
}

int selector_new(const char *text, char *error, size_t error_size, struct selector **ret_selector)
{
	_cleanup_(selector_freep) struct selector *selector = calloc(1, sizeof(*selector));
	struct parser p = { selector, text, error, error_size };
	int r;

	if (!selector)
		return -ENOMEM;
	/* Between two words there is a character at least, but for empty ones, of which a limit knows. */
	selector->words = malloc(strlen(text) + SELECTOR_MAX * (SELECTOR_VALUES_MAX + 2));
	if (!selector->words)
		return -ENOMEM;
	r = take_all(&p);
	if (r == -E2BIG)
		snprintf(error, error_size, "more than %d requirements, or %d values of one", SELECTOR_MAX,
			 SELECTOR_VALUES_MAX);
	if (r < 0)
		return r;
	*ret_selector = TAKE_PTR(selector);
	return 0;
}

void selector_free(struct selector *selector)
{
	if (!selector)
		return;
	free(selector->words);
	free(selector);
}

/* ---- matching ---- */

void selector_begin(struct selector *selector)
{
	for (unsigned i = 0; selector && i < selector->n; i++)
		selector->list[i].present = selector->list[i].listed = false;
}

static bool lists(const struct requirement *r, const char *value, size_t n)
{
	for (unsigned i = 0; i < r->values_n; i++)
		if (strlen(r->values[i]) == n && memcmp(r->values[i], value, n) == 0)
			return true;
	return false;
}

void selector_label(struct selector *selector, const char *key, const char *value, size_t n)
{
	for (unsigned i = 0; selector && i < selector->n; i++) {
		struct requirement *r = &selector->list[i];

		if (!STRV_EQ(r->key, key))
			continue;
		r->present = true;
		r->listed = lists(r, value, n);
	}
}

static bool is_met(const struct requirement *r)
{
	switch (r->op) {
	case OPERATOR_IN:
		return r->present && r->listed;
	case OPERATOR_NOT_IN:
		return !r->present || !r->listed;
	case OPERATOR_EXISTS:
		return r->present;
	case OPERATOR_MISSING:
		return !r->present;
	}
	return false;
}

bool selector_matches(const struct selector *selector)
{
	for (unsigned i = 0; selector && i < selector->n; i++)
		if (!is_met(&selector->list[i]))
			return false;
	return selector && selector->n > 0;
}
