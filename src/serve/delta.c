// SPDX-License-Identifier: Apache-2.0
#include "serve/delta.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"

/* From nothing, objects and arrays that are longer are sent in parts. */
enum { WHOLE_BYTES = 16 << 10 };

/* A member's name with its quotes, or the number of an element. */
struct step {
	const char *name; /* NULL: an element */
	size_t n; /* bytes of the name, or the number */
};

struct delta {
	const char *page;
	struct strbuf *out;
	size_t limit; /* of out->len; 0: none */
	size_t event; /* where the current event begins in out */
	bool open, start; /* an event has been begun; changes are of an empty document */
	unsigned depth;
	struct step path[DELTA_DEPTH_MAX];
	int error;
};

struct cursor {
	const char *at, *end;
	bool bad;
};

/* ---- JSON text ---- */

static char peek(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
		c->at++;
	return c->at < c->end ? *c->at : '\0';
}

static bool accept_char(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->at++;
	return true;
}

/* Control characters are no part of one, so that none gets into an event. */
static void skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end && (unsigned char)*c->at >= ' '; c->at++) {
		if (*c->at == '"') {
			c->at++;
			return;
		}
		if (*c->at == '\\' && (++c->at == c->end || (unsigned char)*c->at < ' '))
			break;
	}
	c->bad = true;
}

static void skip_scalar(struct cursor *c)
{
	const char *from = c->at;

	while (c->at < c->end && (unsigned char)*c->at > ' ' && !strchr(",]}", *c->at))
		c->at++;
	c->bad |= c->at == from;
}

/* Objects and arrays by counting their brackets, whatever their depth is. */
static struct delta_text json_value_next(struct cursor *c)
{
	size_t depth = 0;
	const char *from;

	peek(c);
	from = c->at;
	do {
		char next = peek(c);

		if (c->at >= c->end) {
			c->bad = true;
		} else if (next == '"') {
			skip_string(c);
		} else if (next == '{' || next == '[') {
			depth++;
			c->at++;
		} else if (next == '}' || next == ']') {
			c->bad |= depth == 0;
			depth -= depth > 0;
			c->at++;
		} else if (next == ',' || next == ':') {
			c->bad |= depth == 0;
			c->at++;
		} else {
			skip_scalar(c);
		}
	} while (depth > 0 && !c->bad);
	return (struct delta_text){ from, (size_t)(c->at - from) };
}

/* The next member of an object, or none; @first says whether it is behind the bracket. */
static bool next_member(struct cursor *c, bool first, struct step *ret_name, struct delta_text *ret_value)
{
	const char *name;

	if (c->bad || peek(c) == '}' || (!first && !accept_char(c, ',')))
		return false;
	if (peek(c) != '"') {
		c->bad = true;
		return false;
	}
	name = c->at;
	skip_string(c);
	*ret_name = (struct step){ name, (size_t)(c->at - name) };
	if (!accept_char(c, ':'))
		c->bad = true;
	*ret_value = json_value_next(c);
	return !c->bad;
}

static bool next_element(struct cursor *c, bool first, struct delta_text *ret_value)
{
	if (c->bad || peek(c) == ']' || (!first && !accept_char(c, ',')))
		return false;
	*ret_value = json_value_next(c);
	return !c->bad;
}

static struct cursor inside(const struct delta_text *value)
{
	return (struct cursor){ value->text + 1, value->text + value->n, false };
}

/* ---- events ---- */

static void end_event(struct delta *d, bool more)
{
	if (d->open)
		strbuf_addf(d->out, "]%s}\n\n", more ? ",\"more\":true" : "");
	d->open = false;
}

static void begin_event(struct delta *d)
{
	d->event = d->out->len;
	strbuf_addf(d->out, "event: change\ndata: {\"page\":\"%s\",%s\"changes\":[", d->page,
		    d->start ? "\"start\":true," : "");
	d->open = true;
	d->start = false;
}

static void begin_change(struct delta *d)
{
	if (d->open && d->out->len - d->event > DELTA_EVENT_BYTES)
		end_event(d, true);
	if (!d->open)
		begin_event(d);
	else if (d->out->data[d->out->len - 1] == ']')
		strbuf_addc(d->out, ',');
	strbuf_adds(d->out, "[[");
	for (unsigned i = 0; i < d->depth; i++) {
		if (i > 0)
			strbuf_addc(d->out, ',');
		if (d->path[i].name)
			strbuf_add(d->out, d->path[i].name, d->path[i].n);
		else
			strbuf_add_u64(d->out, d->path[i].n);
	}
}

static void set_value(struct delta *d, const struct delta_text *value)
{
	begin_change(d);
	strbuf_adds(d->out, "],");
	/* A line break would end the event; in a string there is none. */
	for (size_t i = 0; i < value->n; i++)
		if (value->text[i] != '\n' && value->text[i] != '\r')
			strbuf_addc(d->out, value->text[i]);
	strbuf_addc(d->out, ']');
	if (d->out->failed || (d->limit > 0 && d->out->len > d->limit))
		d->error = -E2BIG;
}

static void set_length(struct delta *d, size_t n)
{
	begin_change(d);
	strbuf_addf(d->out, "%s\"length\"],%zu]", d->depth > 0 ? "," : "", n);
}

/* ---- from nothing ---- */

static void send_value(struct delta *d, const struct delta_text *value)
{
	struct delta_text member, empty = { *value->text == '{' ? "{}" : "[]", 2 };
	struct cursor c = inside(value);
	struct step name = { 0 };

	if (value->n <= WHOLE_BYTES || d->depth == DELTA_DEPTH_MAX ||
	    (*value->text != '{' && *value->text != '[')) {
		set_value(d, value);
		return;
	}
	set_value(d, &empty);
	d->depth++;
	for (size_t i = 0; d->error == 0; i++) {
		if (*value->text == '{' ? !next_member(&c, i == 0, &name, &member) :
					  !next_element(&c, i == 0, &member))
			break;
		d->path[d->depth - 1] = *value->text == '{' ? name : (struct step){ NULL, i };
		send_value(d, &member);
	}
	d->depth--;
	if (c.bad && d->error == 0)
		d->error = -EBADMSG;
}

/* ---- from another text ---- */

static void compare_values(struct delta *d, const struct delta_text *old, const struct delta_text *new);

/* Whether both have members of the same names in the same order. */
static bool same_names(const struct delta_text *old, const struct delta_text *new)
{
	struct cursor a = inside(old), b = inside(new);
	struct delta_text value;
	struct step x, y;
	bool first = true;

	while (next_member(&a, first, &x, &value)) {
		if (!next_member(&b, first, &y, &value) || x.n != y.n || memcmp(x.name, y.name, x.n) != 0)
			return false;
		first = false;
	}
	return !next_member(&b, first, &y, &value) && !a.bad && !b.bad;
}

static void compare_objects(struct delta *d, const struct delta_text *old, const struct delta_text *new)
{
	struct cursor a = inside(old), b = inside(new);
	struct delta_text x, y;
	struct step name;
	bool first = true;

	if (!same_names(old, new)) {
		set_value(d, new);
		return;
	}
	d->depth++;
	while (d->error == 0 && next_member(&a, first, &name, &x) && next_member(&b, first, &name, &y)) {
		d->path[d->depth - 1] = name;
		compare_values(d, &x, &y);
		first = false;
	}
	d->depth--;
}

static void compare_arrays(struct delta *d, const struct delta_text *old, const struct delta_text *new)
{
	struct cursor a = inside(old), b = inside(new);
	struct delta_text x, y;
	size_t n = 0;
	bool had = true;

	d->depth++;
	for (; d->error == 0; n++) {
		had = had && next_element(&a, n == 0, &x);
		if (!next_element(&b, n == 0, &y))
			break;
		d->path[d->depth - 1] = (struct step){ NULL, n };
		if (had)
			compare_values(d, &x, &y);
		else
			set_value(d, &y);
	}
	d->depth--;
	if (had && d->error == 0)
		set_length(d, n);
	if ((a.bad || b.bad) && d->error == 0)
		d->error = -EBADMSG;
}

static void compare_values(struct delta *d, const struct delta_text *old, const struct delta_text *new)
{
	if (old->n == new->n && memcmp(old->text, new->text, new->n) == 0)
		return;
	if (d->depth < DELTA_DEPTH_MAX && *old->text == '{' && *new->text == '{')
		compare_objects(d, old, new);
	else if (d->depth < DELTA_DEPTH_MAX && *old->text == '[' && *new->text == '[')
		compare_arrays(d, old, new);
	else
		set_value(d, new);
}

/* The one value of a text. */
static bool whole(const struct delta_text *text, struct delta_text *ret_value)
{
	struct cursor c = { text->text, text->text + text->n, false };

	*ret_value = json_value_next(&c);
	return !c.bad && peek(&c) == '\0' && c.at == c.end;
}

int delta_events(const char *page, const struct delta_text *old, const struct delta_text *new,
		 struct strbuf *out)
{
	struct delta d = { .page = page, .out = out, .start = old->n == 0 };
	struct delta_text a, b;

	if (!whole(new, &b) || (old->n > 0 && !whole(old, &a)))
		return -EBADMSG;
	if (old->n > 0) {
		d.limit = out->len + new->n;
		compare_values(&d, &a, &b);
	} else {
		send_value(&d, &b);
	}
	end_event(&d, false);
	return d.error;
}
