// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "timeline/timeline.h"

enum { EVENT = 1, BASE, PHASE, NAME, CATEGORY, TIME, DURATION, PID, TID };
enum { PIECE = 64 << 10, DECIMALS = 3 /* of microseconds: what is less than a nanosecond is cut */ };
#define NS_MAX (INT64_C(1) << 61)

/* The event at hand. */
struct chrome_event {
	char phase;
	bool has_time, has_duration, has_name;
	uint64_t time_ns, duration_ns;
	struct chrome_place place;
	uint32_t name, category;
};

/* A slice that has begun, the newest one of its place first. */
struct chrome_open {
	struct chrome_slice slice;
	uint32_t below; /* plus one; 0: none. Of one that is free: the next free one */
};

struct reading {
	struct chrome_file *file;
	struct chrome_event event;
	struct hashmap place_by;
	struct row_list open; /* struct chrome_open */
	struct row_list tops; /* uint32_t by place: its newest, plus one */
	uint32_t free_open; /* plus one */
	bool any; /* events were seen */
};

/* Microseconds with decimals, as digits: a double has too few of them. */
static bool parse_us(const char *text, size_t n, uint64_t *ret_ns)
{
	uint64_t ns = 0;
	unsigned decimals = 0;
	bool point = false;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (point && decimals++ >= DECIMALS)
			continue;
		if (ns > (uint64_t)NS_MAX / 10)
			return false;
		ns = 10 * ns + (uint64_t)(text[i] - '0');
	}
	for (; decimals < DECIMALS && ns <= (uint64_t)NS_MAX / 10; decimals++)
		ns *= 10;
	if (decimals < DECIMALS)
		return false;
	*ret_ns = ns;
	return n > 0 && ns <= (uint64_t)NS_MAX;
}

/* Of a number, too; "" if it does not fit. */
static void copy_value(char *to, size_t size, const struct json_value *value)
{
	size_t n = value->n < size && !memchr(value->text, 0, value->n) ? value->n : 0;

	memcpy(to, value->text, n);
	to[n] = '\0';
}

/* Programs write times as strings, too, and with an exponent where Python does. */
static bool time_of(const struct json_value *value, uint64_t *ret_ns)
{
	char text[64], *end;
	double us;

	if (parse_us(value->text, value->n, ret_ns))
		return true;
	copy_value(text, sizeof(text), value);
	us = strtod(text, &end);
	if (!text[0] || *end || !(us >= 0) || us * 1e3 > (double)NS_MAX)
		return false;
	*ret_ns = (uint64_t)(us * 1e3);
	return true;
}

static int own_text(struct reading *r, const struct json_value *value, uint32_t *ret_text)
{
	int error = texts_add(&r->file->texts, value->text, value->n, ret_text);

	return error == -ENOBUFS ? texts_add(&r->file->texts, "", 0, ret_text) : error;
}

static int identity(struct reading *r, const struct json_value *value, uint32_t *ret_text,
		    uint32_t *ret_number)
{
	char text[32];
	uint64_t number;

	copy_value(text, sizeof(text), value);
	if (parse_u64(text, &number) == 0 && number <= INT32_MAX)
		*ret_number = (uint32_t)number;
	return own_text(r, value, ret_text);
}

static int on_value(int id, const struct json_value *value, void *userdata)
{
	struct reading *r = userdata;
	struct chrome_event *e = &r->event;
	uint64_t base;
	char text[32];

	if (value->kind != JSON_VALUE_TEXT && value->kind != JSON_VALUE_NUMBER)
		return 0;
	switch (id) {
	case BASE:
		copy_value(text, sizeof(text), value);
		if (parse_u64(text, &base) == 0 && base < (uint64_t)NS_MAX)
			r->file->base_ns = (int64_t)base;
		return 0;
	case PHASE:
		e->phase = value->n == 1 ? value->text[0] : '\0';
		return 0;
	case NAME:
		e->has_name = true;
		return own_text(r, value, &e->name);
	case CATEGORY:
		return own_text(r, value, &e->category);
	case TIME:
		e->has_time = time_of(value, &e->time_ns);
		return 0;
	case DURATION:
		e->has_duration = time_of(value, &e->duration_ns);
		return 0;
	case PID:
		return identity(r, value, &e->place.process, &e->place.pid);
	case TID:
		return identity(r, value, &e->place.thread, &e->place.tid);
	default:
		return 0;
	}
}

static int event_begins(int id, void *userdata)
{
	struct reading *r = userdata;
	uint32_t none;
	int error;

	if (id != EVENT)
		return 0;
	r->any = true;
	error = texts_add(&r->file->texts, "", 0, &none);
	r->event = (struct chrome_event){ .place = { .process = none, .thread = none },
					  .name = none,
					  .category = none };
	return error;
}

/* ---- slices ---- */

static bool chrome_place_of(struct reading *r, const struct chrome_place *place, uint32_t *ret_index)
{
	uint64_t key = (uint64_t)place->process << 32 | place->thread;
	struct chrome_place *row;
	uint32_t *top;

	if (hashmap_get(&r->place_by, key, ret_index))
		return true;
	row = row_list_add(&r->file->places);
	top = row ? row_list_add(&r->tops) : NULL;
	if (!top || hashmap_put(&r->place_by, key, r->file->places.n - 1) < 0)
		return false;
	*row = *place;
	*ret_index = r->file->places.n - 1;
	return true;
}

static struct chrome_open *chrome_open_at(const struct reading *r, uint32_t i)
{
	return &((struct chrome_open *)r->open.list)[i];
}

static uint32_t *top_of(const struct reading *r, uint32_t place)
{
	return &((uint32_t *)r->tops.list)[place];
}

static void slice_add(struct reading *r, const struct chrome_slice *slice)
{
	struct chrome_slice *row = slice->end_ns < slice->begin_ns ? NULL : row_list_add(&r->file->slices);

	if (row)
		*row = *slice;
	else
		r->file->left_out++;
}

static void slice_opens(struct reading *r, const struct chrome_slice *slice)
{
	uint32_t *top = top_of(r, slice->place), index = r->free_open;
	struct chrome_open *row;

	if (index) {
		row = chrome_open_at(r, index - 1);
		r->free_open = row->below;
	} else {
		row = row_list_add(&r->open);
		index = r->open.n;
	}
	if (!row) {
		r->file->left_out++;
		return;
	}
	*row = (struct chrome_open){ .slice = *slice, .below = *top };
	*top = index;
}

static void slice_closes(struct reading *r, uint32_t place, uint64_t end_ns)
{
	uint32_t *top = top_of(r, place), index = *top;
	struct chrome_open *row = index ? chrome_open_at(r, index - 1) : NULL;

	if (!row) {
		r->file->left_out++;
		return;
	}
	row->slice.end_ns = end_ns;
	slice_add(r, &row->slice);
	*top = row->below;
	row->below = r->free_open;
	r->free_open = index;
}

static void chrome_take(struct reading *r)
{
	const struct chrome_event *e = &r->event;
	struct chrome_slice slice = { .begin_ns = e->time_ns, .name = e->name, .category = e->category };
	bool is_known = strchr("XBE", e->phase) && e->phase, is_whole = e->has_time &&
									(e->phase == 'E' || e->has_name) &&
									(e->phase != 'X' || e->has_duration);

	if (!is_known)
		return;
	if (!is_whole || !chrome_place_of(r, &e->place, &slice.place)) {
		r->file->left_out++;
		return;
	}
	slice.end_ns = e->time_ns + e->duration_ns;
	if (e->phase == 'X')
		slice_add(r, &slice);
	else if (e->phase == 'B')
		slice_opens(r, &slice);
	else
		slice_closes(r, slice.place, e->time_ns);
}

static int event_ends(int id, void *userdata)
{
	if (id == EVENT)
		chrome_take(userdata);
	return 0;
}

/* ---- in order, and nested ---- */

static int by_place(const void *a, const void *b)
{
	const struct chrome_slice *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* What ends after the slice that it begins in is cut: viewers would close the wrong one. */
static int nest(struct chrome_file *file)
{
	uint32_t n = file->slices.n, depth = 0, place = UINT32_MAX;
	_cleanup_free_ uint64_t *ends = calloc(MAX(n, 1U), sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	if (n > 0)
		qsort(file->slices.list, n, file->slices.size, by_place);
	for (uint32_t i = 0; i < n; i++) {
		struct chrome_slice *slice = chrome_slice_at(file, i);

		if (slice->place != place)
			depth = 0;
		place = slice->place;
		while (depth > 0 && ends[depth - 1] <= slice->begin_ns)
			depth--;
		if (depth > 0 && slice->end_ns > ends[depth - 1]) {
			slice->end_ns = ends[depth - 1];
			file->cut++;
		}
		ends[depth++] = slice->end_ns;
	}
	return 0;
}

/* ---- the file ---- */

/* One that ends within an event was being written when its program was killed. */
static int feed(int fd, struct json_reader *reader)
{
	_cleanup_free_ char *piece = malloc(PIECE);
	int r = 0;

	if (!piece)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, piece, PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		r = json_feed(reader, piece, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int make_reader(struct reading *reading, struct json_reader **ret_reader)
{
	static const struct json_ops ops = { .value = on_value, .begin = event_begins, .end = event_ends };
	static const struct json_path base = { "baseTimeNanoseconds", BASE }, of_event[] = {
		{ "", EVENT },  { "ph", PHASE },     { "name", NAME }, { "cat", CATEGORY },
		{ "ts", TIME }, { "dur", DURATION }, { "pid", PID },   { "tid", TID },
	};
	int r = json_reader_new(&ops, reading, ret_reader);

	if (r == 0)
		r = json_reader_add(*ret_reader, "", &base, 1);
	if (r == 0)
		r = json_reader_add(*ret_reader, "[]", of_event, ARRAY_SIZE(of_event));
	if (r == 0)
		r = json_reader_add(*ret_reader, "traceEvents []", of_event, ARRAY_SIZE(of_event));
	return r;
}

int chrome_file_read(int fd, struct chrome_file *file)
{
	struct reading reading = {
		.file = file,
		.open = { .size = sizeof(struct chrome_open), .max = CHROME_OPEN_MAX },
		.tops = { .size = sizeof(uint32_t), .max = CHROME_PLACES_MAX },
	};
	_cleanup_(json_reader_freep) struct json_reader *reader = NULL;
	int r;

	*file = (struct chrome_file){
		.places = { .size = sizeof(struct chrome_place), .max = CHROME_PLACES_MAX },
		.slices = { .size = sizeof(struct chrome_slice), .max = CHROME_SLICES_MAX },
	};
	texts_init(&file->texts);
	r = make_reader(&reading, &reader);
	if (r == 0)
		r = feed(fd, reader);
	if (r == 0 && !reading.any)
		r = -EBADMSG;
	for (uint32_t i = 0; i < reading.tops.n; i++)
		for (uint32_t at = *top_of(&reading, i); at; at = chrome_open_at(&reading, at - 1)->below)
			file->left_out++;
	if (r == 0)
		r = nest(file);
	hashmap_done(&reading.place_by);
	row_list_done(&reading.open);
	row_list_done(&reading.tops);
	return r;
}

void chrome_file_done(struct chrome_file *file)
{
	texts_done(&file->texts);
	row_list_done(&file->places);
	row_list_done(&file->slices);
}
