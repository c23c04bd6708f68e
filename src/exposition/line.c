// SPDX-License-Identifier: Apache-2.0
#include "exposition/line.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "exposition/float.h"

/* ---- tokens ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool starts_label(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool continues_label(char c)
{
	return starts_label(c) || (c >= '0' && c <= '9');
}

static struct cursor take_until_blank(struct cursor *c)
{
	struct cursor token = { c->p, c->p };

	while (c->p < c->end && !is_blank(*c->p))
		c->p++;
	token.end = c->p;
	return token;
}

static struct cursor take_metric_name(struct cursor *c)
{
	struct cursor token = { c->p, c->p };

	if (c->p < c->end && (starts_label(*c->p) || *c->p == ':'))
		while (c->p < c->end && (continues_label(*c->p) || *c->p == ':'))
			c->p++;
	token.end = c->p;
	return token;
}

static struct cursor take_label_name(struct cursor *c)
{
	struct cursor token = { c->p, c->p };

	if (c->p < c->end && starts_label(*c->p))
		while (c->p < c->end && continues_label(*c->p))
			c->p++;
	token.end = c->p;
	return token;
}

static bool same(const struct cursor *a, const struct cursor *b)
{
	return cursor_left(a) == cursor_left(b) && memcmp(a->p, b->p, cursor_left(a)) == 0;
}

/* ---- comments ---- */

/* Behind the #. */
static enum scrape_line begin_comment(struct cursor c, struct line *line)
{
	struct cursor keyword;
	bool help, type;

	cursor_skip_space(&c);
	keyword = take_until_blank(&c);
	help = cursor_equals(&keyword, "HELP");
	type = cursor_equals(&keyword, "TYPE");
	if (cursor_eof(&c) || (!help && !type))
		return SCRAPE_LINE_TAKEN;
	cursor_skip_space(&c);
	line->name = take_metric_name(&c);
	if (cursor_eof(&c))
		return SCRAPE_LINE_TAKEN;
	if (!is_blank(*c.p))
		return SCRAPE_LINE_NAME;
	cursor_skip_space(&c);
	line->rest = c;
	line->kind = help ? LINE_HELP : LINE_TYPE;
	return SCRAPE_LINE_TAKEN;
}

enum scrape_line line_help(const struct line *line)
{
	for (const char *p = line->rest.p; p < line->rest.end; p++) {
		if (*p != '\\')
			continue;
		if (++p == line->rest.end || (*p != '\\' && *p != 'n'))
			return SCRAPE_LINE_ESCAPE;
	}
	return SCRAPE_LINE_TAKEN;
}

enum scrape_line line_begin(const char *p, size_t n, struct line *line)
{
	struct cursor c = cursor_over(p, n);

	line->kind = LINE_NOTHING;
	line->labels_n = 0;
	cursor_skip_space(&c);
	line->name = line->rest = (struct cursor){ c.p, c.p };
	if (cursor_eof(&c))
		return SCRAPE_LINE_TAKEN;
	if (*c.p == '#') {
		c.p++;
		return begin_comment(c, line);
	}
	line->kind = LINE_SAMPLE;
	line->name = take_metric_name(&c);
	if (cursor_eof(&line->name))
		return SCRAPE_LINE_NAME;
	cursor_skip_space(&c);
	line->rest = c;
	return SCRAPE_LINE_TAKEN;
}

/* ---- samples ---- */

/* Behind the quote that begins it. */
static enum scrape_line take_label_value(struct cursor *c, struct line_label *label)
{
	const char *p = c->p;

	label->value.p = p;
	label->escaped = false;
	for (; p < c->end && *p != '"'; p++) {
		if (*p != '\\')
			continue;
		label->escaped = true;
		if (++p == c->end || (*p != '"' && *p != '\\' && *p != 'n'))
			return SCRAPE_LINE_ESCAPE;
	}
	if (p >= c->end)
		return SCRAPE_LINE_LABELS;
	label->value.end = p;
	c->p = p + 1;
	return utf8_valid(label->value.p, cursor_left(&label->value)) ? SCRAPE_LINE_TAKEN : SCRAPE_LINE_UTF8;
}

static bool is_duplicate(const struct line *line, const struct line_label *label)
{
	for (uint32_t i = 0; i < line->labels_n; i++)
		if (same(&line->labels[i].name, &label->name))
			return true;
	return false;
}

/* A name, an equals sign and a value. */
static enum scrape_line take_label(struct cursor *c, struct line *line, const char *apart)
{
	struct line_label *label = &line->labels[line->labels_n];
	enum scrape_line why;
	double number;
	bool is_apart, whole;

	if (line->labels_n == LINE_LABELS_MAX)
		return SCRAPE_LINE_LABELS;
	label->name = take_label_name(c);
	cursor_skip_space(c);
	if (cursor_eof(&label->name) || !cursor_literal(c, "=") || cursor_equals(&label->name, "__name__"))
		return SCRAPE_LINE_LABELS;
	is_apart = apart && cursor_equals(&label->name, apart);
	if (!is_apart && is_duplicate(line, label))
		return SCRAPE_LINE_DUPLICATE;
	cursor_skip_space(c);
	if (!cursor_literal(c, "\""))
		return SCRAPE_LINE_LABELS;
	why = take_label_value(c, label);
	if (why != SCRAPE_LINE_TAKEN)
		return why;
	if (is_apart)
		return float_parse(label->value.p, cursor_left(&label->value), &number, &whole) ?
			       SCRAPE_LINE_TAKEN :
			       SCRAPE_LINE_LABELS;
	line->labels_n++;
	return SCRAPE_LINE_TAKEN;
}

static enum scrape_line take_labels(struct cursor *c, struct line *line, const char *apart)
{
	for (;;) {
		enum scrape_line why;

		cursor_skip_space(c);
		if (cursor_literal(c, "}"))
			break;
		why = take_label(c, line, apart);
		if (why != SCRAPE_LINE_TAKEN)
			return why;
		cursor_skip_space(c);
		if (!cursor_literal(c, ",") && (cursor_eof(c) || *c->p != '}'))
			return SCRAPE_LINE_LABELS;
	}
	cursor_skip_space(c);
	return SCRAPE_LINE_TAKEN;
}

/* A sign and digits, within 64 bits. */
static bool is_timestamp(struct cursor token)
{
	const uint64_t most = (uint64_t)INT64_MAX;
	bool negative = false;
	uint64_t value;

	if (cursor_left(&token) > 0 && (*token.p == '+' || *token.p == '-'))
		negative = *token.p++ == '-';
	return cursor_u64(&token, &value) == 0 && cursor_eof(&token) && value <= most + negative;
}

enum scrape_line line_sample(struct line *line, const char *apart)
{
	struct cursor c = line->rest, token;
	enum scrape_line why = SCRAPE_LINE_TAKEN;

	if (cursor_literal(&c, "{"))
		why = take_labels(&c, line, apart);
	if (why != SCRAPE_LINE_TAKEN)
		return why;
	token = take_until_blank(&c);
	if (!float_parse(token.p, cursor_left(&token), &line->value, &line->whole))
		return SCRAPE_LINE_VALUE;
	if (cursor_eof(&c))
		return SCRAPE_LINE_TAKEN;
	cursor_skip_space(&c);
	token = take_until_blank(&c);
	return is_timestamp(token) && cursor_eof(&c) ? SCRAPE_LINE_TAKEN : SCRAPE_LINE_TIMESTAMP;
}

size_t line_unescape(const struct line_label *label, char *to, size_t size)
{
	size_t n = 0;

	for (const char *p = label->value.p; p < label->value.end; p++) {
		char c = *p;

		if (c == '\\' && label->escaped)
			c = *++p == 'n' ? '\n' : *p;
		if (n == size)
			return size + 1;
		to[n++] = c;
	}
	return n;
}
