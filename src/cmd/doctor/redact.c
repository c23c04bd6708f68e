// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor/redact.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"

enum {
	NAMES_MAX = 4096, /* beyond, a name becomes "<user>", without a number */
	SECRETS_MAX = 1024,
	NAME_FOUND_MIN =
		4, /* shorter ones are replaced where they are members alone: they would be in any text */
	SECRET_MIN = 6, /* of a file of one word; of more: */
	SECRET_WORD_MIN = 16,
	GROUPS = 4,
};

const char *const redact_words[REDACT_KINDS] = {
#define KIND(id_, word_, is_name_) [REDACT_##id_] = word_,
#include "cmd/doctor/redact.def"
};

static const bool is_name[REDACT_KINDS] = {
#define KIND(id_, word_, is_name_) [REDACT_##id_] = is_name_,
#include "cmd/doctor/redact.def"
};

static const struct member {
	enum redact_kind kind;
	const char *parent, *name;
} members[] = {
#define MEMBER(kind_, parent_, name_) { REDACT_##kind_, parent_, name_ },
#include "cmd/doctor/redact.def"
};

static const struct pattern {
	enum redact_kind kind;
	unsigned group;
	const char *regex;
} patterns[] = {
#define PATTERN(kind_, group_, regex_) { REDACT_##kind_, group_, regex_ },
#include "cmd/doctor/redact.def"
};

static const char *const common[] = {
#define COMMON(word_) word_,
#include "cmd/doctor/redact.def"
};

struct redactor {
	bool with_names;
	regex_t compiled[ARRAY_SIZE(patterns)];
	unsigned compiled_n;
	struct hashmap numbers; /* of a kind and a name: its number */
	struct hashmap kinds; /* of a name: its kind */
	uint32_t next[REDACT_KINDS];
	char *secrets[SECRETS_MAX];
	unsigned secrets_n;
	struct strbuf line, next_line; /* of redact_text() */
};

int redactor_new(bool with_names, struct redactor **ret_redactor)
{
	_cleanup_(redactor_freep) struct redactor *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	strbuf_init(&r->line, 0);
	strbuf_init(&r->next_line, 0);
	r->with_names = with_names;
	for (; r->compiled_n < ARRAY_SIZE(patterns); r->compiled_n++)
		if (regcomp(&r->compiled[r->compiled_n], patterns[r->compiled_n].regex,
			    REG_EXTENDED | REG_ICASE))
			return -ENOMEM;
	*ret_redactor = TAKE_PTR(r);
	return 0;
}

void redactor_free(struct redactor *r)
{
	if (!r)
		return;
	while (r->compiled_n > 0)
		regfree(&r->compiled[--r->compiled_n]);
	for (unsigned i = 0; i < r->secrets_n; i++) {
		explicit_bzero(r->secrets[i], strlen(r->secrets[i]));
		free(r->secrets[i]);
	}
	hashmap_done(&r->numbers);
	hashmap_done(&r->kinds);
	strbuf_done(&r->line);
	strbuf_done(&r->next_line);
	free(r);
}

void redactor_secrets(struct redactor *r, const char *text)
{
	static const char blanks[] = " \t\r\n";
	const char *word = text + strspn(text, blanks), *rest = word + strcspn(word, blanks);
	size_t min = rest[strspn(rest, blanks)] ? SECRET_WORD_MIN : SECRET_MIN;

	while (*word && r->secrets_n < SECRETS_MAX) {
		size_t n = strcspn(word, blanks);

		if (n >= min && word[n - 1] != ':') {
			r->secrets[r->secrets_n] = strndup(word, n);
			r->secrets_n += r->secrets[r->secrets_n] != NULL;
		}
		word += n;
		word += strspn(word, blanks);
	}
}

/* ---- names ---- */

static bool is_common(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (strlen(common[i]) == n && memcmp(common[i], name, n) == 0)
			return true;
	return n == 0;
}

static uint64_t name_key(enum redact_kind kind, const char *name, size_t n)
{
	return hash_bytes_secret(name, n) + (uint64_t)kind * 0x9e3779b97f4a7c15;
}

/* Its number among those of the kind; 0: there are too many. */
static uint32_t name_number(struct redactor *r, enum redact_kind kind, const char *name, size_t n)
{
	uint32_t number;

	if (hashmap_get(&r->numbers, name_key(kind, name, n), &number))
		return number;
	if (r->numbers.count >= NAMES_MAX ||
	    hashmap_put(&r->numbers, name_key(kind, name, n), r->next[kind] + 1) < 0)
		return 0;
	if (n >= NAME_FOUND_MIN && !hashmap_get(&r->kinds, hash_bytes_secret(name, n), &number))
		hashmap_put(&r->kinds, hash_bytes_secret(name, n), kind);
	return ++r->next[kind];
}

/* False: it stays. */
static bool put_instead(struct redactor *r, enum redact_kind kind, const char *name, size_t n,
			struct strbuf *out)
{
	uint32_t number;

	if (!is_name[kind]) {
		strbuf_addf(out, "<%s>", redact_words[kind]);
		return true;
	}
	if (r->with_names || is_common(name, n))
		return false;
	number = name_number(r, kind, name, n);
	if (number)
		strbuf_addf(out, "<%s-%u>", redact_words[kind], number);
	else
		strbuf_addf(out, "<%s>", redact_words[kind]);
	return true;
}

/* REDACT_KINDS: nothing of the table. */
static enum redact_kind kind_of_member(const char *parent, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (strlen(members[i].name) == n && memcmp(members[i].name, name, n) == 0 &&
		    (!members[i].parent || (parent && STRV_EQ(members[i].parent, parent))))
			return members[i].kind;
	return REDACT_KINDS;
}

/* ---- any text ---- */

static void take_next(struct redactor *r)
{
	struct strbuf line = r->line;

	r->line = r->next_line;
	r->next_line = line;
}

static void replace_secrets(struct redactor *r, unsigned *redacted)
{
	for (unsigned i = 0; i < r->secrets_n; i++) {
		const char *at = r->line.data, *found;
		size_t n = strlen(r->secrets[i]);

		if (!strstr(at, r->secrets[i]))
			continue;
		strbuf_reset(&r->next_line);
		for (; (found = strstr(at, r->secrets[i])) != NULL; at = found + n) {
			strbuf_add(&r->next_line, at, (size_t)(found - at));
			put_instead(r, REDACT_SECRET, found, n, &r->next_line);
			redacted[REDACT_SECRET]++;
		}
		strbuf_adds(&r->next_line, at);
		take_next(r);
	}
}

/* What was put instead of something. */
static bool is_instead(const char *text)
{
	for (unsigned k = 0; *text == '<' && k < REDACT_KINDS; k++) {
		size_t n = strlen(redact_words[k]);

		if (strncmp(text + 1, redact_words[k], n) == 0 && (text[1 + n] == '>' || text[1 + n] == '-'))
			return true;
	}
	return false;
}

static void replace_pattern(struct redactor *r, unsigned i, unsigned *redacted)
{
	const struct pattern *pattern = &patterns[i];
	const char *at = r->line.data;
	regmatch_t match[GROUPS];

	strbuf_reset(&r->next_line);
	while (*at && regexec(&r->compiled[i], at, GROUPS, match, at > r->line.data ? REG_NOTBOL : 0) == 0) {
		const regmatch_t *group = &match[pattern->group];
		const char *from = at + group->rm_so;
		size_t n = (size_t)(group->rm_eo - group->rm_so);

		strbuf_add(&r->next_line, at, (size_t)group->rm_so);
		if (!is_instead(from) && put_instead(r, pattern->kind, from, n, &r->next_line))
			redacted[pattern->kind]++;
		else
			strbuf_add(&r->next_line, from, n);
		at += group->rm_eo;
	}
	strbuf_adds(&r->next_line, at);
	take_next(r);
}

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || (unsigned char)c >= 0x80;
}

/* Learned names, where they are whole words. */
static void replace_names(struct redactor *r, unsigned *redacted)
{
	const char *at = r->line.data;

	if (r->with_names || r->kinds.count == 0)
		return;
	strbuf_reset(&r->next_line);
	while (*at) {
		size_t n = 0;
		uint32_t kind;

		while (is_of_name(at[n]))
			n++;
		while (n > 0 && at[n - 1] == '.')
			n--;
		if (n == 0) {
			strbuf_addc(&r->next_line, *at++);
			continue;
		}
		if ((at == r->line.data || at[-1] != '<') &&
		    hashmap_get(&r->kinds, hash_bytes_secret(at, n), &kind) &&
		    put_instead(r, (enum redact_kind)kind, at, n, &r->next_line))
			redacted[kind]++;
		else
			strbuf_add(&r->next_line, at, n);
		at += n;
	}
	take_next(r);
}

/* r->line, in place. */
static void redact_line(struct redactor *r, unsigned *redacted)
{
	replace_secrets(r, redacted);
	for (unsigned i = 0; i < r->compiled_n; i++)
		replace_pattern(r, i, redacted);
	replace_names(r, redacted);
}

void redact_text(struct redactor *r, const char *text, struct strbuf *out,
		 unsigned redacted[static REDACT_KINDS])
{
	bool in_key = false;

	while (*text) {
		size_t n = strcspn(text, "\n");
		bool begins, ends;

		strbuf_reset(&r->line);
		strbuf_add(&r->line, text, n);
		begins = strstr(r->line.data, "-----BEGIN ") && strstr(r->line.data, "PRIVATE KEY");
		ends = strstr(r->line.data, "-----END ") != NULL;
		in_key |= begins;
		if (begins) {
			put_instead(r, REDACT_SECRET, text, n, out);
			redacted[REDACT_SECRET]++;
		} else if (!in_key) {
			redact_line(r, redacted);
			strbuf_add(out, r->line.data, r->line.len);
		}
		if (text[n] && (begins || !in_key))
			strbuf_addc(out, '\n');
		in_key &= !ends;
		out->failed |= r->line.failed || r->next_line.failed;
		text += n + (text[n] != '\0');
	}
}

/* ---- JSON ---- */

/* Each text that the table names. */
static void learn_json(struct redactor *r, const char *parent, const char *name, const json_t *json)
{
	struct strbuf unused;
	enum redact_kind kind;
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach(json, i, value)
		learn_json(r, parent, name, value);
	json_object_foreach((json_t *)json, key, value)
		learn_json(r, name, key, value);
	if (!json_is_string(json) || !name)
		return;
	kind = kind_of_member(parent, name, strlen(name));
	if (kind == REDACT_KINDS)
		return;
	strbuf_init(&unused, 0);
	put_instead(r, kind, json_string_value(json), json_string_length(json), &unused);
	strbuf_done(&unused);
}

void redactor_learn_json(struct redactor *r, const json_t *json)
{
	learn_json(r, NULL, NULL, json);
}

/* A value where @kind is that of its member, or REDACT_KINDS. */
static void redact_value(struct redactor *r, enum redact_kind kind, const char *text, size_t n,
			 struct strbuf *out, unsigned *redacted)
{
	if (kind < REDACT_KINDS && put_instead(r, kind, text, n, out)) {
		redacted[kind]++;
		return;
	}
	redact_text(r, text, out, redacted);
}

static int redact_string(struct redactor *r, const char *parent, const char *name, json_t *json,
			 unsigned *redacted)
{
	const char *text = json_string_value(json);
	struct strbuf out;
	int result = 0;

	strbuf_init(&out, 0);
	redact_value(r, name ? kind_of_member(parent, name, strlen(name)) : REDACT_KINDS, text,
		     json_string_length(json), &out, redacted);
	if (out.failed || json_string_set_nocheck(json, out.data) < 0)
		result = -ENOMEM;
	strbuf_done(&out);
	return result;
}

static int redact_member(struct redactor *r, const char *parent, const char *name, json_t *json,
			 unsigned *redacted)
{
	const char *key;
	json_t *value;
	int result = 0;
	size_t i;

	if (json_is_string(json))
		return redact_string(r, parent, name, json, redacted);
	json_array_foreach(json, i, value)
		if (result == 0)
			result = redact_member(r, parent, name, value, redacted);
	json_object_foreach(json, key, value)
		if (result == 0)
			result = redact_member(r, name, key, value, redacted);
	return result;
}

int redact_json(struct redactor *r, json_t *json, unsigned redacted[static REDACT_KINDS])
{
	return redact_member(r, NULL, NULL, json, redacted);
}

/* ---- labels of /metrics ---- */

/* The next NAME="VALUE" from *@at on, which is moved behind it; VALUE as written. False: none follows. */
static bool next_label(const char **at, const char **ret_name, size_t *ret_name_n, const char **ret_value,
		       size_t *ret_value_n)
{
	const char *equals = strstr(*at, "=\""), *name, *end;

	if (!equals)
		return false;
	for (name = equals; name > *at && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
		name--;
	for (end = equals + 2; *end && *end != '"' && *end != '\n'; end++)
		end += *end == '\\' && end[1] && end[1] != '\n';
	*ret_name = name;
	*ret_name_n = (size_t)(equals - name);
	*ret_value = equals + 2;
	*ret_value_n = (size_t)(end - *ret_value);
	*at = end;
	return true;
}

void redactor_learn_labels(struct redactor *r, const char *metrics)
{
	const char *name, *value;
	size_t name_n, value_n;

	while (next_label(&metrics, &name, &name_n, &value, &value_n)) {
		enum redact_kind kind = kind_of_member(NULL, name, name_n);

		if (kind < REDACT_KINDS && is_name[kind] && !r->with_names && !is_common(value, value_n))
			name_number(r, kind, value, value_n);
	}
}

void redact_labels(struct redactor *r, const char *metrics, struct strbuf *out,
		   unsigned redacted[static REDACT_KINDS])
{
	const char *at = metrics, *name, *value;
	size_t name_n, value_n;

	while (next_label(&metrics, &name, &name_n, &value, &value_n)) {
		_cleanup_free_ char *copy = strndup(value, value_n);

		strbuf_add(out, at, (size_t)(value - at));
		if (copy)
			redact_value(r, kind_of_member(NULL, name, name_n), copy, value_n, out, redacted);
		out->failed |= !copy;
		at = metrics;
	}
	strbuf_adds(out, at);
}
