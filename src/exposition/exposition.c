// SPDX-License-Identifier: Apache-2.0
#include "exposition/exposition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hashmap.h"
#include "base/macro.h"

/* A family of the page, by its name's hash: 64 bits of a good hash, among a few thousand names. */
struct seen_family {
	uint64_t hash; /* 0: free */
	const void *family; /* NULL: not read */
	enum family_type type;
	bool help;
};

static const struct {
	const char *word;
	enum family_type type;
} type_words[] = {
	{ "counter", TYPE_COUNTER },     { "gauge", TYPE_GAUGE },
	{ "summary", TYPE_SUMMARY },     { "untyped", TYPE_UNTYPED },
	{ "histogram", TYPE_HISTOGRAM }, { "gauge_histogram", TYPE_GAUGE_HISTOGRAM },
};

void exposition_init(struct exposition *e, bool strict, exposition_find_fn *find,
		     exposition_sample_fn *sample, void *userdata)
{
	memset(e, 0, offsetof(struct exposition, line));
	e->strict = strict;
	e->find = find;
	e->sample = sample;
	e->userdata = userdata;
}

void exposition_done(struct exposition *e)
{
	free(TAKE_PTR(e->partial));
	free(TAKE_PTR(e->seen));
}

/* ---- families of the page ---- */

static uint64_t hash_of(const char *name, size_t n)
{
	uint64_t hash = hash_bytes(name, n);

	return hash ? hash : 1;
}

/* The place of this hash, or the free one where it belongs. There is always a free one. */
static struct seen_family *place_of(struct seen_family *list, uint32_t room, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & (room - 1);

	while (list[at].hash != 0 && list[at].hash != hash)
		at = (at + 1) & (room - 1);
	return &list[at];
}

static struct seen_family *seen_find(struct exposition *e, const char *name, size_t n)
{
	struct seen_family *found;

	if (!e->seen)
		return NULL;
	found = place_of(e->seen, e->seen_room, hash_of(name, n));
	return found->hash ? found : NULL;
}

static int make_room(struct exposition *e)
{
	uint32_t room = e->seen_room ? e->seen_room * 2 : 256;
	struct seen_family *list;

	if (e->seen_n >= EXPOSITION_FAMILIES_MAX)
		return -E2BIG;
	if (e->seen_n < e->seen_room / 4 * 3)
		return 0;
	list = calloc(room, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->seen_room; i++)
		if (e->seen[i].hash)
			*place_of(list, room, e->seen[i].hash) = e->seen[i];
	free(e->seen);
	e->seen = list;
	e->seen_room = room;
	return 0;
}

static bool ends_with(const struct cursor *name, const char *end)
{
	size_t n = strlen(end);

	return cursor_left(name) > n && memcmp(name->end - n, end, n) == 0;
}

/* X for the samples X_sum and X_count of a summary, and X_bucket of a histogram, if that is a family. */
static struct seen_family *whole_family(struct exposition *e, const struct cursor *name)
{
	static const struct {
		const char *end;
		bool summary;
	} ends[] = { { "_count", true }, { "_sum", true }, { "_bucket", false } };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct seen_family *found;

		if (!ends_with(name, ends[i].end))
			continue;
		found = seen_find(e, name->p, cursor_left(name) - strlen(ends[i].end));
		if (found &&
		    (found->type == TYPE_HISTOGRAM || (ends[i].summary && found->type == TYPE_SUMMARY)))
			return found;
	}
	return NULL;
}

/* The family of the line. Lenient and not read: 0 and NULL. */
static int get_family(struct exposition *e, const struct cursor *name, struct seen_family **ret_seen)
{
	const size_t n = cursor_left(name);
	const void *family = e->find(name->p, n, e->userdata);
	struct seen_family *seen;
	int r;

	*ret_seen = NULL;
	if (!e->strict && !family)
		return 0;
	seen = seen_find(e, name->p, n);
	if (!seen && e->strict)
		seen = whole_family(e, name);
	if (!seen) {
		r = make_room(e);
		if (r < 0)
			return r;
		seen = place_of(e->seen, e->seen_room, hash_of(name->p, n));
		*seen = (struct seen_family){ .hash = hash_of(name->p, n), .family = family };
		e->seen_n++;
	}
	*ret_seen = seen;
	return 0;
}

/* ---- lines ---- */

static enum scrape_line take_type(const struct line *line, struct seen_family *seen)
{
	const size_t n = cursor_left(&line->rest);

	if (seen->type != TYPE_NONE)
		return SCRAPE_LINE_COMMENT;
	for (size_t i = 0; i < ARRAY_SIZE(type_words); i++)
		if (n == strlen(type_words[i].word) &&
		    strncasecmp(line->rest.p, type_words[i].word, n) == 0) {
			seen->type = type_words[i].type;
			return SCRAPE_LINE_TAKEN;
		}
	return SCRAPE_LINE_COMMENT;
}

static enum scrape_line take_help(const struct line *line, struct seen_family *seen)
{
	if (seen->help)
		return SCRAPE_LINE_COMMENT;
	seen->help = true;
	return line_help(line);
}

/* Strict as the reference: only gauges and counters have a value. Lenient: also what has no type. */
static void hand_on(struct exposition *e, const struct seen_family *seen)
{
	bool number = seen->type == TYPE_COUNTER || seen->type == TYPE_GAUGE;

	if (!seen->family || (!e->strict && !number && seen->type != TYPE_UNTYPED && seen->type != TYPE_NONE))
		return;
	if (e->strict && !number)
		e->line.value = 0;
	e->sample(seen->family, &e->line, e->userdata);
}

static enum scrape_line take_sample(struct exposition *e, struct seen_family *seen)
{
	const char *apart = seen->type == TYPE_SUMMARY   ? "quantile" :
			    seen->type == TYPE_HISTOGRAM ? "le" :
							   NULL;
	enum scrape_line why;

	if (e->strict && seen->type == TYPE_NONE)
		seen->type = TYPE_UNTYPED;
	why = line_sample(&e->line, apart);
	if (why == SCRAPE_LINE_TAKEN)
		hand_on(e, seen);
	return why;
}

static int leave_out(struct exposition *e, enum scrape_line why)
{
	e->dropped[why]++;
	if (!e->strict)
		return 0;
	e->failed = why;
	return -EBADMSG;
}

static int exposition_take_line(struct exposition *e, const char *p, size_t n)
{
	enum scrape_line why = line_begin(p, n, &e->line);
	struct seen_family *seen = NULL;
	int r = 0;

	e->lines++;
	if (why == SCRAPE_LINE_TAKEN && e->line.kind != LINE_NOTHING)
		r = get_family(e, &e->line.name, &seen);
	if (r == -E2BIG)
		return leave_out(e, SCRAPE_LINE_ROWS);
	if (r < 0)
		return r;
	if (seen && e->line.kind == LINE_HELP && !cursor_eof(&e->line.rest))
		why = take_help(&e->line, seen);
	else if (seen && e->line.kind == LINE_TYPE && !cursor_eof(&e->line.rest))
		why = take_type(&e->line, seen);
	else if (seen && e->line.kind == LINE_SAMPLE)
		why = take_sample(e, seen);
	return why == SCRAPE_LINE_TAKEN ? 0 : leave_out(e, why);
}

/* ---- bytes ---- */

static int keep(struct exposition *e, const char *data, size_t n)
{
	if (e->skipping)
		return 0;
	if (n > EXPOSITION_LINE_MAX - e->partial_n) {
		e->skipping = true;
		e->lines++;
		e->partial_n = 0;
		return leave_out(e, SCRAPE_LINE_TOO_LONG);
	}
	if (e->partial_n + n > e->partial_room) {
		size_t room = MIN(MAX(2 * (e->partial_n + n), (size_t)1024), (size_t)EXPOSITION_LINE_MAX);
		char *partial = realloc(e->partial, room);

		if (!partial)
			return -ENOMEM;
		e->partial = partial;
		e->partial_room = room;
	}
	memcpy(e->partial + e->partial_n, data, n);
	e->partial_n += n;
	return 0;
}

/* A line whose beginning has been kept, or of which too much has come. */
static int end_partial(struct exposition *e, const char *data, size_t n)
{
	int r = keep(e, data, n);

	if (r == 0 && !e->skipping)
		r = exposition_take_line(e, e->partial, e->partial_n);
	e->skipping = false;
	e->partial_n = 0;
	return r;
}

int exposition_feed(struct exposition *e, const char *data, size_t n)
{
	const char *end = data + n;
	int r = 0;

	while (r == 0 && data < end) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		size_t length = (size_t)((newline ? newline : end) - data);

		if (!newline)
			return keep(e, data, length);
		if (e->partial_n > 0 || e->skipping || length > EXPOSITION_LINE_MAX)
			r = end_partial(e, data, length);
		else
			r = exposition_take_line(e, data, length);
		data = newline + 1;
	}
	return r;
}

int exposition_end(struct exposition *e)
{
	struct cursor c = cursor_over(e->partial, e->partial_n);

	cursor_skip_space(&c);
	if (cursor_eof(&c))
		return 0;
	/* Prometheus's parser wants the last line to have an end. */
	return e->strict ? leave_out(e, SCRAPE_LINE_END) : end_partial(e, "", 0);
}
