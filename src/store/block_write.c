// SPDX-License-Identifier: Apache-2.0
#include "store/block.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "store/block_pack.h"
#include "store/block_private.h"

/* Of zstd: of a block that is put into the file again and again, and of the one that stays. */
enum { LEVEL = 6, LAST_LEVEL = 19 };
/* So much takes some tenths of a second; of what is larger snapshots would be missed meanwhile. */
enum { LAST_LEVEL_BYTES = 2 << 20 };

struct track {
	uint64_t hash; /* of its key, and which of those with this key it is */
	uint32_t place; /* in the newest frame, from 1; 0: it is not there */
	uint32_t seen; /* number of the newest frame with it, from 1 */
	uint64_t *cells; /* by field */
	uint32_t *series; /* by field, and the place: index plus 1; NULL: nothing changed yet */
};

struct series {
	uint32_t table, track, field;
	uint32_t frame; /* of its newest value */
	struct series_state state;
	struct strbuf bytes;
};

/* A field's first values in all tracks: of those that differ from the track's before. */
struct first_column {
	uint32_t track; /* of its newest value */
	struct series_state state;
	uint64_t cell;
	struct strbuf bytes;
};

struct writer_table {
	struct track *tracks;
	uint32_t n, room;
	struct hashmap by_key;
	struct first_column
		*firsts; /* by field, then the frame and the place that it came with; NULL: no row */
};

struct block_writer {
	const struct fields *fields;
	struct stored_layout layout; /* the same, as a reader has it */
	uint32_t frames;
	struct writer_table tables[STORE_TABLES];
	struct series *series;
	uint32_t series_n, series_room;
	uint32_t tracks_n;
	size_t cells; /* of all tracks */
	size_t series_bytes;
	struct strbuf texts; /* each with its NUL; the first is of number 1 */
	uint32_t *text_at;
	uint32_t texts_n, texts_room;
	struct hashmap text_by;
	size_t firsts_bytes;
};

/* ---- numbers ---- */

/* Whole; the state follows. */
static void put_real(struct strbuf *out, uint64_t cell, struct series_state *state)
{
	struct decimal d;

	if (!decimal_of(real_of(cell), &d)) {
		strbuf_addc(out, (char)REAL_RAW);
		strbuf_add(out, &cell, sizeof(cell));
		*state = (struct series_state){ .scale = REAL_RAW };
		return;
	}
	strbuf_addc(out, (char)d.scale);
	put_varint(out, zigzag((uint64_t)d.digits));
	*state = (struct series_state){ .value = (uint64_t)d.digits, .scale = d.scale };
}

/* The difference times two, or 1 and the whole number. */
static void put_real_change(struct strbuf *out, uint64_t cell, struct series_state *state)
{
	struct decimal d;

	if (state->scale != REAL_RAW && decimal_of(real_of(cell), &d) && d.scale <= state->scale &&
	    decimal_rescale(&d, state->scale)) {
		put_varint(out, zigzag((uint64_t)d.digits - state->value) << 1);
		state->value = (uint64_t)d.digits;
		return;
	}
	put_varint(out, 1);
	put_real(out, cell, state);
}

static void put_change(struct strbuf *out, unsigned kind, uint64_t cell, struct series_state *state)
{
	uint64_t step = cell - state->value;

	switch (kind) {
	case COLUMN_REAL:
		put_real_change(out, cell, state);
		return;
	case COLUMN_TEXT:
	case COLUMN_STRING:
		put_varint(out, cell);
		return;
	case COLUMN_TIME:
		put_varint(out, zigzag(step - state->step));
		state->step = step;
		break;
	case COLUMN_INT:
		put_int_change(out, step);
		break;
	default:
		put_varint(out, zigzag(step));
	}
	state->value = cell;
}

/* ---- texts ---- */

static const char *interned(const struct block_writer *w, uint64_t number)
{
	return number ? w->texts.data + w->text_at[number - 1] : NULL;
}

/* @n bytes, without NUL. 0: "", or no memory, which strbuf.failed tells. */
static uint64_t intern(struct block_writer *w, const char *text, size_t n)
{
	uint64_t hash = hash_bytes_secret(text, n);
	uint32_t number;

	/* Of others with this hash. */
	while (hashmap_get(&w->text_by, hash, &number)) {
		const char *known = interned(w, number);

		if (strlen(known) == n && memcmp(known, text, n) == 0)
			return number;
		hash++;
	}
	if (w->texts_n == w->texts_room) {
		uint32_t room = MAX(256u, w->texts_room * 2);
		uint32_t *at = reallocarray(w->text_at, room, sizeof(*at));

		if (!at) {
			w->texts.failed = true;
			return 0;
		}
		w->text_at = at;
		w->texts_room = room;
	}
	w->text_at[w->texts_n] = (uint32_t)w->texts.len;
	strbuf_add(&w->texts, text, n);
	strbuf_addc(&w->texts, '\0');
	if (w->texts.failed || hashmap_put(&w->text_by, hash, w->texts_n + 1) < 0) {
		w->texts.failed = true;
		return 0;
	}
	return ++w->texts_n;
}

/* @before: what the field was, if anything. */
static uint64_t text_cell(struct block_writer *w, const char *text, size_t n, uint64_t before)
{
	const char *known = interned(w, before);

	if (known && strncmp(known, text, n) == 0 && known[n] == '\0')
		return before;
	return intern(w, text, n);
}

/* ---- cells ---- */

static uint64_t load_number(const uint8_t *at, unsigned size, bool is_signed)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int8_t)*at : *at;
	case 2:
		memcpy(&u16, at, sizeof(u16));
		return is_signed ? (uint64_t)(int16_t)u16 : u16;
	case 4:
		memcpy(&u32, at, sizeof(u32));
		return is_signed ? (uint64_t)(int32_t)u32 : u32;
	default:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
}

static uint64_t load_cell(struct block_writer *w, const struct frame *frame, const uint8_t *row,
			  const struct field *field, uint64_t before)
{
	const char *text = (const char *)row + field->offset;
	double v;

	switch (field->kind) {
	case COLUMN_TEXT:
		return *text ? text_cell(w, text, strnlen(text, field->size), before) : 0;
	case COLUMN_STRING:
		text = frame_string(frame, row, field);
		return text ? text_cell(w, text, strlen(text), before) : 0;
	case COLUMN_REAL:
		/* The zero that all begins with is one. */
		memcpy(&v, text, sizeof(v));
		return v == 0 ? 0 : cell_of(v);
	default:
		return load_number(row + field->offset, field->size,
				   field->kind == COLUMN_INT || field->kind == COLUMN_TIME);
	}
}

/* Rows of a table without keys are found again by their @place. */
static uint64_t row_key(const struct frame *frame, const uint8_t *row, const struct fields *fields,
			uint32_t place)
{
	uint64_t hash = 0;
	bool any = false;

	for (uint32_t f = 0; f < fields->n; f++) {
		const struct field *field = &fields->list[f];
		const char *text = (const char *)row + field->offset;
		uint64_t part;

		if (!field->key)
			continue;
		if (field->kind == COLUMN_TEXT) {
			part = hash_bytes_secret(text, strnlen(text, field->size));
		} else if (field->kind == COLUMN_STRING) {
			text = frame_string(frame, row, field);
			part = text ? hash_bytes_secret(text, strlen(text)) : 0;
		} else {
			part = hash_bytes_secret(text, field->size);
		}
		hash = hash * 0x9e3779b97f4a7c15 + part;
		any = true;
	}
	return any ? hash : place;
}

/* ---- tracks ---- */

static struct track *track_add(struct block_writer *w, unsigned table, uint64_t hash)
{
	struct writer_table *t = &w->tables[table];
	uint32_t room = MAX(16u, t->room * 2);
	struct track *tracks;

	if (w->tracks_n >= BLOCK_TRACKS_MAX || w->cells + w->fields[table].n > BLOCK_CELLS_MAX)
		return NULL;
	if (t->n == t->room) {
		tracks = reallocarray(t->tracks, room, sizeof(*tracks));
		if (!tracks)
			return NULL;
		t->tracks = tracks;
		t->room = room;
	}
	if (hashmap_put(&t->by_key, hash, t->n) < 0)
		return NULL;
	tracks = &t->tracks[t->n];
	*tracks = (struct track){ .hash = hash,
				  .cells = calloc(w->fields[table].n + 1, sizeof(*tracks->cells)) };
	if (!tracks->cells)
		return NULL;
	t->n++;
	w->tracks_n++;
	w->cells += w->fields[table].n;
	return tracks;
}

static void put_first(struct block_writer *w, struct first_column *column, unsigned kind, uint32_t track,
		      uint64_t cell)
{
	size_t before = column->bytes.len;

	if (cell == column->cell)
		return;
	put_varint(&column->bytes, track - column->track);
	put_change(&column->bytes, kind, cell, &column->state);
	column->track = track;
	column->cell = cell;
	w->firsts_bytes += column->bytes.len - before;
}

static int put_track(struct block_writer *w, unsigned table, const struct track *track)
{
	struct writer_table *t = &w->tables[table];
	const struct fields *fields = &w->fields[table];
	uint32_t number = (uint32_t)(track - t->tracks);
	bool failed = false;

	if (!t->firsts)
		t->firsts = calloc(fields->n + FIRST_EXTRAS, sizeof(*t->firsts));
	if (!t->firsts)
		return -ENOMEM;
	for (uint32_t f = 0; f < fields->n; f++)
		put_first(w, &t->firsts[f], first_kind(fields->list[f].kind), number, track->cells[f]);
	put_first(w, &t->firsts[fields->n + FIRST_FRAME], COLUMN_UINT, number, w->frames);
	put_first(w, &t->firsts[fields->n + FIRST_PLACE], COLUMN_UINT, number, track->place);
	for (uint32_t f = 0; f < fields->n + FIRST_EXTRAS; f++)
		failed |= t->firsts[f].bytes.failed;
	return failed ? -ENOMEM : 0;
}

/* ---- series ---- */

static struct series *series_of(struct block_writer *w, unsigned table, struct track *track, uint32_t field)
{
	uint32_t fields = w->fields[table].n, room = MAX(256u, w->series_room * 2);
	unsigned kind = field < fields ? w->fields[table].list[field].kind : COLUMN_UINT;
	struct series *series;

	if (!track->series)
		track->series = calloc(fields + 1, sizeof(*track->series));
	if (!track->series)
		return NULL;
	if (track->series[field])
		return &w->series[track->series[field] - 1];
	if (w->series_n >= BLOCK_SERIES_MAX)
		return NULL;
	if (w->series_n == w->series_room) {
		series = reallocarray(w->series, room, sizeof(*series));
		if (!series)
			return NULL;
		w->series = series;
		w->series_room = room;
	}
	series = &w->series[w->series_n++];
	*series = (struct series){
		.table = table,
		.track = (uint32_t)(track - w->tables[table].tracks),
		.field = field,
		.state = state_of(kind, field < fields ? track->cells[field] : track->place),
	};
	strbuf_init(&series->bytes, 0);
	track->series[field] = w->series_n;
	return series;
}

static int add_change(struct block_writer *w, unsigned table, struct track *track, uint32_t field,
		      uint64_t cell)
{
	uint32_t fields = w->fields[table].n;
	struct series *series = series_of(w, table, track, field);
	size_t before;

	if (!series)
		return -ENOMEM;
	before = series->bytes.len;
	put_varint(&series->bytes, w->frames - series->frame);
	put_change(&series->bytes, field < fields ? w->fields[table].list[field].kind : COLUMN_UINT, cell,
		   &series->state);
	series->frame = w->frames;
	w->series_bytes += series->bytes.len - before;
	if (field < fields)
		track->cells[field] = cell;
	else
		track->place = (uint32_t)cell;
	return series->bytes.failed ? -ENOMEM : 0;
}

/* ---- frames ---- */

/* The row's track that this frame has not had yet; NULL: a new one. */
static struct track *find_track(struct block_writer *w, unsigned table, uint64_t *hash)
{
	struct writer_table *t = &w->tables[table];
	uint32_t index;

	while (hashmap_get(&t->by_key, *hash, &index)) {
		if (t->tracks[index].seen != w->frames + 1)
			return &t->tracks[index];
		*hash += 1;
	}
	return NULL;
}

static int change_row(struct block_writer *w, const struct frame *frame, unsigned table, struct track *track,
		      const uint8_t *row)
{
	const struct fields *fields = &w->fields[table];
	int r = 0;

	for (uint32_t f = 0; r == 0 && f < fields->n; f++) {
		uint64_t cell = load_cell(w, frame, row, &fields->list[f], track->cells[f]);

		if (cell != track->cells[f])
			r = add_change(w, table, track, f, cell);
	}
	return r;
}

static int add_frame_row(struct block_writer *w, const struct frame *frame, unsigned table, uint32_t place,
			 const uint8_t *row)
{
	const struct fields *fields = &w->fields[table];
	uint64_t hash = row_key(frame, row, fields, place);
	struct track *track = find_track(w, table, &hash);
	int r = 0;

	if (!track) {
		track = track_add(w, table, hash);
		if (!track)
			return -ENOMEM;
		track->place = place;
		for (uint32_t f = 0; f < fields->n; f++)
			track->cells[f] = load_cell(w, frame, row, &fields->list[f], 0);
		r = put_track(w, table, track);
	} else {
		r = change_row(w, frame, table, track, row);
		if (r == 0 && track->place != place)
			r = add_change(w, table, track, PLACE_FIELD(fields->n), place);
	}
	track->seen = w->frames + 1;
	return r;
}

static int add_table(struct block_writer *w, const struct frame *frame, unsigned table)
{
	struct writer_table *t = &w->tables[table];
	uint32_t row_bytes = store_tables[table].row_bytes;
	int r = 0;

	if (frame->n[table] == FRAME_UNCHANGED)
		return 0;
	for (uint32_t i = 0; r == 0 && i < frame->n[table]; i++)
		r = add_frame_row(w, frame, table, i + 1, frame->rows[table] + (size_t)i * row_bytes);
	for (uint32_t i = 0; r == 0 && i < t->n; i++)
		if (t->tracks[i].seen != w->frames + 1 && t->tracks[i].place)
			r = add_change(w, table, &t->tracks[i], PLACE_FIELD(w->fields[table].n), 0);
	return r;
}

int block_writer_add(struct block_writer *w, const struct frame *frame)
{
	int r = w->frames < BLOCK_FRAMES_MAX ? 0 : -E2BIG;

	for (unsigned t = 0; r == 0 && t < STORE_TABLES; t++)
		r = add_table(w, frame, t);
	if (r == 0 && w->texts.failed)
		r = -ENOMEM;
	if (r == 0)
		w->frames++;
	return r;
}

uint32_t block_writer_frames(const struct block_writer *w)
{
	return w->frames;
}

bool block_writer_is_full(const struct block_writer *w)
{
	return w->frames >= BLOCK_FRAMES_MAX || w->tracks_n >= BLOCK_TRACKS_MAX / 2 ||
	       w->cells >= BLOCK_CELLS_MAX / 2 || w->series_n >= BLOCK_SERIES_MAX / 2 ||
	       w->texts.len + w->firsts_bytes + w->series_bytes >= BLOCK_FULL_BYTES;
}

/* ---- the block ---- */

static int by_field(const void *a, const void *b)
{
	const struct series *const *x = a, *const *y = b;

	if ((*x)->table != (*y)->table)
		return (*x)->table < (*y)->table ? -1 : 1;
	if ((*x)->field != (*y)->field)
		return (*x)->field < (*y)->field ? -1 : 1;
	return (*x)->track < (*y)->track ? -1 : (*x)->track > (*y)->track;
}

static int put_series(const struct block_writer *w, struct strbuf *out)
{
	_cleanup_free_ const struct series **list = calloc(w->series_n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->series_n; i++)
		list[i] = &w->series[i];
	qsort(list, w->series_n, sizeof(*list), by_field);
	put_varint(out, w->series_n);
	for (uint32_t i = 0; i < w->series_n; i++) {
		put_varint(out, list[i]->table);
		put_varint(out, list[i]->field);
		put_varint(out, list[i]->track);
		put_varint(out, list[i]->bytes.len);
	}
	for (uint32_t i = 0; i < w->series_n; i++)
		strbuf_add(out, list[i]->bytes.data, list[i]->bytes.len);
	return 0;
}

/* Tracks and, of each field that is not 0 in all, how far it is from the one before, and its values. */
static void put_firsts(const struct block_writer *w, unsigned table, struct strbuf *out)
{
	const struct writer_table *t = &w->tables[table];
	uint32_t next = 0;

	put_varint(out, table);
	put_varint(out, t->n);
	for (uint32_t f = 0; f < w->fields[table].n + FIRST_EXTRAS; f++) {
		const struct strbuf *bytes = &t->firsts[f].bytes;

		if (bytes->len == 0)
			continue;
		put_varint(out, f - next + 1);
		put_varint(out, bytes->len);
		strbuf_add(out, bytes->data, bytes->len);
		next = f + 1;
	}
	put_varint(out, 0);
}

static int put_plain(const struct block_writer *w, struct strbuf *out)
{
	strbuf_add(out, BLOCK_MAGIC, sizeof(BLOCK_MAGIC) - 1);
	put_varint(out, w->frames);
	put_varint(out, w->texts_n);
	put_varint(out, w->texts.len);
	strbuf_add(out, w->texts.data, w->texts.len);
	for (unsigned t = 0; t < STORE_TABLES; t++)
		if (w->tables[t].n > 0)
			put_firsts(w, t, out);
	put_varint(out, STORE_TABLES);
	return put_series(w, out);
}

static int compress(const struct strbuf *plain, int level, struct strbuf *out)
{
	size_t room = ZSTD_compressBound(plain->len), n;
	_cleanup_free_ char *packed = malloc(room);

	if (!packed)
		return -ENOMEM;
	n = ZSTD_compress(packed, room, plain->data, plain->len, level);
	if (ZSTD_isError(n))
		return -ENOMEM;
	strbuf_add(out, packed, n);
	return out->failed ? -ENOMEM : 0;
}

/* What stays is packed, where that is not too much. */
static int finish_last(const struct block_writer *w, const struct strbuf *plain, struct strbuf *out)
{
	struct strbuf packed;
	int r;

	strbuf_init(&packed, BLOCK_BYTES_MAX);
	r = block_pack(&w->layout, plain, &packed);
	if (r == 0)
		r = compress(&packed, packed.len <= LAST_LEVEL_BYTES ? LAST_LEVEL : LEVEL, out);
	else if (r == -E2BIG)
		r = compress(plain, LEVEL, out);
	strbuf_done(&packed);
	return r;
}

int block_writer_finish(struct block_writer *w, bool last, struct strbuf *out)
{
	struct strbuf plain;
	int r;

	strbuf_init(&plain, BLOCK_BYTES_MAX);
	r = put_plain(w, &plain);
	if (r == 0 && plain.failed)
		r = -ENOMEM;
	if (r == 0)
		r = last ? finish_last(w, &plain, out) : compress(&plain, LEVEL, out);
	strbuf_done(&plain);
	return r;
}

/* ---- life ---- */

static void reset_table(struct writer_table *t, uint32_t fields)
{
	for (uint32_t f = 0; t->firsts && f < fields + FIRST_EXTRAS; f++)
		strbuf_done(&t->firsts[f].bytes);
	free(TAKE_PTR(t->firsts));

	for (uint32_t i = 0; i < t->n; i++) {
		free(t->tracks[i].cells);
		free(t->tracks[i].series);
	}
	t->n = 0;
	hashmap_clear(&t->by_key);
}

void block_writer_reset(struct block_writer *w)
{
	for (unsigned t = 0; t < STORE_TABLES; t++)
		reset_table(&w->tables[t], w->fields[t].n);
	for (uint32_t i = 0; i < w->series_n; i++)
		strbuf_done(&w->series[i].bytes);
	w->series_n = w->tracks_n = w->texts_n = w->frames = 0;
	w->series_bytes = w->firsts_bytes = w->cells = 0;
	hashmap_clear(&w->text_by);
	strbuf_reset(&w->texts);
}

static int own_layout(const struct fields fields[STORE_TABLES], struct stored_layout *ret_layout)
{
	struct strbuf text;
	int r;

	strbuf_init(&text, 0);
	r = layout_write(fields, &text);
	if (r == 0)
		r = layout_read(fields, text.data, text.len, ret_layout);
	strbuf_done(&text);
	return r;
}

int block_writer_new(const struct fields fields[STORE_TABLES], struct block_writer **ret_writer)
{
	_cleanup_(block_writer_freep) struct block_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->fields = fields;
	strbuf_init(&w->texts, BLOCK_BYTES_MAX / 2);
	r = own_layout(fields, &w->layout);
	if (r < 0)
		return r;
	*ret_writer = TAKE_PTR(w);
	return 0;
}

void block_writer_free(struct block_writer *w)
{
	if (!w)
		return;
	block_writer_reset(w);
	for (unsigned t = 0; t < STORE_TABLES; t++) {
		free(w->tables[t].tracks);
		hashmap_done(&w->tables[t].by_key);
	}
	hashmap_done(&w->text_by);
	free(w->series);
	free(w->text_at);
	strbuf_done(&w->texts);
	layout_done(&w->layout);
	free(w);
}
