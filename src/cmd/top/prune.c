// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/prune.h"

#include <string.h>

#include "view/view.h"

/* Each takes a place in the text, and returns one after it, at most the end. */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_word(char c)
{
	return is_blank(c) || c == ',' || c == ':' || c == '"' || c == '{' || c == '}' || c == '[' ||
	       c == ']';
}

static const char *after_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/* Of a number, true, false or null. */
static const char *after_word(const char *at, const char *end)
{
	do
		at++;
	while (at < end && !ends_word(*at));
	return at;
}

/* Of a string that begins here. */
static const char *after_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

static const char *after_value(const char *at, const char *end)
{
	size_t depth = 0;

	do {
		at = after_blanks(at, end);
		if (at == end)
			break;
		if (*at == '"') {
			at = after_string(at, end);
		} else if (*at == '{' || *at == '[') {
			depth++;
			at++;
		} else if (*at == '}' || *at == ']') {
			depth -= depth > 0;
			at++;
		} else {
			at = after_word(at, end);
		}
	} while (depth > 0);
	return at;
}

static bool is_null(const char *at, const char *end)
{
	return end - at > 4 && memcmp(at, "null", 4) == 0 && ends_word(at[4]);
}

/* With the comma that follows; without one, the comma before it goes. */
static const char *drop_member(const char *value, const char *end, struct strbuf *out)
{
	const char *at = after_blanks(after_value(value, end), end);
	size_t before;

	if (at < end && *at == ',')
		return at + 1;
	for (before = out->len; before > 0 && is_blank(out->data[before - 1]);)
		before--;
	if (before > 0 && out->data[before - 1] == ',')
		strbuf_truncate(out, before - 1);
	return at;
}

void prune(const char *text, size_t length, struct strbuf *out)
{
	const char *end = text + length, *kept = text, *at = text;

	/* What is no string, and is not in a member that goes, stays as it is. */
	while (length > 0 && (at = memchr(at, '"', (size_t)(end - at)))) {
		const char *name = at + 1, *value;

		at = after_string(at, end);
		value = after_blanks(at, end);
		if (value == end || *value != ':')
			continue;
		value = after_blanks(value + 1, end);
		if (!is_null(value, end) && !json_brief_omits(name, (size_t)(at - name) - 1))
			continue;
		strbuf_add(out, kept, (size_t)(name - 1 - kept));
		kept = at = drop_member(value, end, out);
	}
	strbuf_add(out, kept, (size_t)(end - kept));
}
