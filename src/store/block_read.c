// SPDX-License-Identifier: Apache-2.0
#include "store/block.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "store/block_pack.h"
#include "store/block_private.h"

struct read_track {
	uint32_t stored; /* table of the stored layout */
	uint32_t first; /* frame */
	uint32_t place;
	uint64_t *cells; /* by field of ours; NULL: not a table of ours */
};

struct read_series {
	uint32_t track;
	int32_t field; /* of ours; -1: the place */
	uint8_t kind; /* as stored */
	uint32_t next; /* frame of the next value */
	struct bytes bytes;
	struct series_state state;
};

struct listed {
	const uint64_t **rows;
	uint32_t n;
};

struct block {
	const struct fields *fields;
	const struct stored_layout *layout;
	uint8_t *plain;
	uint32_t frames, at; /* the frame after the one where it stands */
	int error;
	const char **texts;
	uint32_t texts_n;
	struct read_track *tracks;
	uint32_t tracks_n;
	struct read_series *series;
	uint32_t series_n;
	struct listed listed[STORE_TABLES];
	struct read_track **by_place; /* space for a table's tracks */
	size_t cells;
	bool *begins; /* by frame: whether a track begins with it */
	bool moved; /* a row has come, gone or another place */
};

/* ---- numbers ---- */

static uint64_t get_real(struct bytes *b, struct series_state *state)
{
	struct bytes scale = get_bytes(b, 1), raw;
	uint64_t cell = 0;

	if (b->bad)
		return 0;
	*state = (struct series_state){ .scale = *scale.at };
	if (state->scale == REAL_RAW) {
		raw = get_bytes(b, sizeof(cell));
		if (!b->bad)
			memcpy(&cell, raw.at, sizeof(cell));
		return cell;
	}
	if (state->scale > DECIMAL_SCALE_MAX) {
		b->bad = true;
		return 0;
	}
	state->value = unzigzag(get_varint(b));
	return cell_of(decimal_value((struct decimal){ (int64_t)state->value, state->scale }));
}

static uint64_t get_real_change(struct bytes *b, struct series_state *state)
{
	uint64_t coded = get_varint(b);

	if (coded & 1)
		return get_real(b, state);
	if (state->scale > DECIMAL_SCALE_MAX) {
		b->bad = true;
		return 0;
	}
	state->value += unzigzag(coded >> 1);
	return cell_of(decimal_value((struct decimal){ (int64_t)state->value, state->scale }));
}

static uint64_t get_int_change(struct bytes *b)
{
	uint64_t coded = get_varint(b);

	return coded & 1 ? unzigzag(get_varint(b)) : unzigzag(coded >> 1) * (uint64_t)NSEC_PER_MSEC;
}

static uint64_t get_text(const struct block *block, struct bytes *b)
{
	return get_below(b, (uint64_t)block->texts_n + 1);
}

static uint64_t get_change(const struct block *block, struct bytes *b, unsigned kind,
			   struct series_state *state)
{
	switch (kind) {
	case COLUMN_REAL:
		return get_real_change(b, state);
	case COLUMN_TEXT:
	case COLUMN_STRING:
		return get_text(block, b);
	case COLUMN_TIME:
		state->step += unzigzag(get_varint(b));
		state->value += state->step;
		break;
	case COLUMN_INT:
		state->value += get_int_change(b);
		break;
	default:
		state->value += unzigzag(get_varint(b));
	}
	return state->value;
}

/* ---- the parts ---- */

static int read_texts(struct block *block, struct bytes *b)
{
	uint32_t n = get_below(b, BLOCK_BYTES_MAX);
	struct bytes texts = get_bytes(b, get_varint(b));
	const char *at = (const char *)texts.at;

	if (b->bad || n > (uint64_t)(texts.end - texts.at))
		return -EBADMSG;
	block->texts = calloc((size_t)n + 1, sizeof(*block->texts));
	if (!block->texts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const char *end = memchr(at, '\0', (size_t)((const char *)texts.end - at));

		if (!end)
			return -EBADMSG;
		block->texts[i] = at;
		at = end + 1;
	}
	block->texts_n = n;
	return 0;
}

static const struct stored_table *stored_table(const struct block *block, const struct read_track *track)
{
	return &block->layout->tables[track->stored];
}

/* What is filled in of a table's tracks: a field of ours, or one of FIRST_EXTRAS. */
static void set_first(struct read_track *track, int32_t field, enum first_extra extra, uint64_t cell)
{
	if (extra == FIRST_PLACE)
		track->place = (uint32_t)MIN(cell, (uint64_t)UINT32_MAX);
	else if (extra == FIRST_FRAME)
		track->first = (uint32_t)MIN(cell, (uint64_t)UINT32_MAX);
	else
		track->cells[field] = cell;
}

/* The first values of a field in @n tracks. */
static bool read_first_values(const struct block *block, struct read_track *tracks, uint32_t n,
			      const struct stored_table *table, uint32_t f, struct bytes b)
{
	enum first_extra extra = f < table->n ? FIRST_NONE : (enum first_extra)(f - table->n);
	unsigned kind = extra == FIRST_NONE ? first_kind(table->kind[f]) : COLUMN_UINT;
	int32_t field = extra == FIRST_NONE ? table->field[f] : 0;
	struct series_state state = state_of(kind, 0);
	uint32_t at = 0;
	uint64_t cell = 0;

	if (extra == FIRST_NONE && (field < 0 || table->table < 0))
		return true;
	while (b.at != b.end && !b.bad) {
		uint32_t next = at + get_below(&b, n);

		if (next >= n)
			return false;
		for (; at < next; at++)
			set_first(&tracks[at], field, extra, cell);
		cell = get_change(block, &b, kind, &state);
	}
	for (; at < n; at++)
		set_first(&tracks[at], field, extra, cell);
	return !b.bad;
}

static int make_tracks(struct block *block, struct read_track *tracks, uint32_t n, uint32_t stored)
{
	int table = block->layout->tables[stored].table;
	uint32_t fields = table >= 0 ? block->fields[table].n : 0;

	block->cells += (size_t)fields * n;
	if (block->cells > BLOCK_CELLS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		tracks[i].stored = stored;
		block->tracks_n++;
		if (table >= 0)
			tracks[i].cells = calloc(fields, sizeof(*tracks[i].cells));
		if (table >= 0 && !tracks[i].cells)
			return -ENOMEM;
	}
	return 0;
}

static int read_table_tracks(struct block *block, struct bytes *b, uint32_t stored)
{
	const struct stored_table *table = &block->layout->tables[stored];
	uint32_t n = get_below(b, BLOCK_TRACKS_MAX - block->tracks_n + 1), next = 0, gap;
	struct read_track *tracks = &block->tracks[block->tracks_n];
	int r = make_tracks(block, tracks, n, stored);

	while (r == 0 && (gap = get_below(b, (uint64_t)table->n + FIRST_EXTRAS - next + 1)) > 0) {
		struct bytes values = get_bytes(b, get_varint(b));

		next += gap;
		if (b->bad || !read_first_values(block, tracks, n, table, next - 1, values))
			r = -EBADMSG;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (tracks[i].place == 0 || tracks[i].place == UINT32_MAX || tracks[i].first >= block->frames)
			return -EBADMSG;
		block->begins[tracks[i].first] = true;
	}
	return r < 0 ? r : b->bad ? -EBADMSG : 0;
}

static int read_tracks(struct block *block, struct bytes *b)
{
	uint32_t stored;
	int r = 0;

	block->tracks = calloc(BLOCK_TRACKS_MAX + 1, sizeof(*block->tracks));
	block->begins = calloc(block->frames, sizeof(*block->begins));
	if (!block->tracks || !block->begins)
		return -ENOMEM;
	while (r == 0 && (stored = get_below(b, (uint64_t)block->layout->n + 1)) < block->layout->n)
		r = b->bad ? -EBADMSG : read_table_tracks(block, b, stored);
	block->by_place = calloc((size_t)block->tracks_n + 1, sizeof(*block->by_place));
	if (r == 0 && !block->by_place)
		r = -ENOMEM;
	return r == 0 && b->bad ? -EBADMSG : r;
}

/* The tracks of each stored table are numbered in their order. */
static int number_tracks(const struct block *block, uint32_t **ret_first, uint32_t **ret_list)
{
	uint32_t tables = block->layout->n;
	_cleanup_free_ uint32_t *first = calloc((size_t)tables + 2, sizeof(*first));
	_cleanup_free_ uint32_t *list = calloc((size_t)block->tracks_n + 1, sizeof(*list));

	if (!first || !list)
		return -ENOMEM;
	for (uint32_t i = 0; i < block->tracks_n; i++)
		first[block->tracks[i].stored + 2]++;
	for (uint32_t t = 1; t <= tables; t++)
		first[t + 1] += first[t];
	for (uint32_t i = 0; i < block->tracks_n; i++)
		list[first[block->tracks[i].stored + 1]++] = i;
	*ret_first = TAKE_PTR(first);
	*ret_list = TAKE_PTR(list);
	return 0;
}

/* Its next value's frame; UINT32_MAX: there is none. */
static void next_of_series(struct block *block, struct read_series *series)
{
	uint32_t gap;

	if (series->bytes.at == series->bytes.end) {
		series->next = UINT32_MAX;
		return;
	}
	gap = get_below(&series->bytes, block->frames);
	if (series->bytes.bad || series->next + gap >= block->frames) {
		series->next = UINT32_MAX;
		block->error = -EBADMSG;
		return;
	}
	series->next += gap;
}

/* What is not ours has no next value. */
static int begin_series(struct block *block, struct read_series *series, uint32_t table, uint32_t field)
{
	const struct stored_table *stored = &block->layout->tables[table];
	const struct read_track *track = &block->tracks[series->track];
	bool place = field == PLACE_FIELD(stored->n);

	series->next = UINT32_MAX;
	if (!track->cells || (!place && stored->field[field] < 0))
		return 0;
	series->field = place ? -1 : stored->field[field];
	series->kind = place ? COLUMN_UINT : stored->kind[field];
	series->state = state_of(series->kind, place ? track->place : track->cells[series->field]);
	series->next = 0;
	next_of_series(block, series);
	return block->error;
}

struct numbered {
	uint32_t *first, *list;
};

static int read_one_series(struct block *block, struct bytes *b, const struct numbered *numbered,
			   uint32_t *ret_table, uint32_t *ret_field, uint64_t *ret_bytes,
			   struct read_series *series)
{
	uint32_t table = get_below(b, block->layout->n), before, n, track;

	if (b->bad)
		return -EBADMSG;
	*ret_table = table;
	*ret_field = get_below(b, (uint64_t)block->layout->tables[table].n + 1);
	before = table ? numbered->first[table] : 0;
	n = numbered->first[table + 1] - before;
	track = get_below(b, n);
	*ret_bytes = get_varint(b);
	if (b->bad)
		return -EBADMSG;
	series->track = numbered->list[before + track];
	return 0;
}

struct series_head {
	uint32_t table, field;
	uint64_t bytes;
};

static int read_series_of(struct block *block, struct bytes *b, const struct numbered *numbered)
{
	uint32_t n = get_below(b, BLOCK_SERIES_MAX + 1);
	_cleanup_free_ struct series_head *heads = NULL;
	int r = 0;

	/* A head has four bytes at least. */
	if (b->bad || n > (uint64_t)(b->end - b->at) / 4)
		return -EBADMSG;
	heads = calloc((size_t)n + 1, sizeof(*heads));
	block->series = calloc((size_t)n + 1, sizeof(*block->series));
	if (!heads || !block->series)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = read_one_series(block, b, numbered, &heads[i].table, &heads[i].field, &heads[i].bytes,
				    &block->series[i]);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		block->series[i].bytes = get_bytes(b, heads[i].bytes);
		r = b->bad ? -EBADMSG :
			     begin_series(block, &block->series[i], heads[i].table, heads[i].field);
	}
	block->series_n = n;
	return r == 0 && b->at != b->end ? -EBADMSG : r;
}

static int read_series(struct block *block, struct bytes *b)
{
	struct numbered numbered = { 0 };
	int r = number_tracks(block, &numbered.first, &numbered.list);

	if (r == 0)
		r = read_series_of(block, b, &numbered);
	free(numbered.first);
	free(numbered.list);
	return r;
}

static int read_plain(struct block *block, struct bytes *b)
{
	struct bytes magic = get_bytes(b, sizeof(BLOCK_MAGIC) - 1);
	int r;

	if (b->bad || memcmp(magic.at, BLOCK_MAGIC, sizeof(BLOCK_MAGIC) - 1) != 0)
		return -EBADMSG;
	block->frames = get_below(b, BLOCK_FRAMES_MAX + 1);
	r = b->bad || block->frames == 0 ? -EBADMSG : 0;
	if (r == 0)
		r = read_texts(block, b);
	if (r == 0)
		r = read_tracks(block, b);
	if (r == 0)
		r = read_series(block, b);
	return r;
}

static int unpack(const void *data, size_t n, uint8_t **ret_plain, size_t *ret_n)
{
	unsigned long long size = ZSTD_getFrameContentSize(data, n);
	_cleanup_free_ uint8_t *plain = NULL;
	size_t got;

	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > BLOCK_BYTES_MAX)
		return -EBADMSG;
	plain = malloc(size + 1);
	if (!plain)
		return -ENOMEM;
	got = ZSTD_decompress(plain, size, data, n);
	if (ZSTD_isError(got) || got != size)
		return -EBADMSG;
	*ret_plain = TAKE_PTR(plain);
	*ret_n = got;
	return 0;
}

static int unpack_changes(struct block *block, size_t *size)
{
	struct strbuf plain;
	int r;

	strbuf_init(&plain, BLOCK_BYTES_MAX);
	r = block_unpack(block->layout, block->plain, *size, &plain);
	if (r < 0) {
		strbuf_done(&plain);
		return r;
	}
	free(block->plain);
	block->plain = (uint8_t *)plain.data;
	*size = plain.len;
	return 0;
}

int block_read(const struct fields fields[STORE_TABLES], const struct stored_layout *layout, const void *data,
	       size_t n, struct block **ret_block)
{
	_cleanup_(block_freep) struct block *block = calloc(1, sizeof(*block));
	struct bytes b = { 0 };
	size_t size;
	int r;

	if (!block)
		return -ENOMEM;
	block->fields = fields;
	block->layout = layout;
	r = unpack(data, n, &block->plain, &size);
	if (r < 0)
		return r;
	if (size >= sizeof(PACKED_MAGIC) - 1 &&
	    memcmp(block->plain, PACKED_MAGIC, sizeof(PACKED_MAGIC) - 1) == 0)
		r = unpack_changes(block, &size);
	if (r < 0)
		return r;
	b = (struct bytes){ block->plain, block->plain + size, false };
	r = read_plain(block, &b);
	if (r < 0)
		return r;
	*ret_block = TAKE_PTR(block);
	return 0;
}

void block_free(struct block *block)
{
	if (!block)
		return;
	for (uint32_t i = 0; i < block->tracks_n; i++)
		free(block->tracks[i].cells);
	for (unsigned t = 0; t < STORE_TABLES; t++)
		free(block->listed[t].rows);
	free(block->tracks);
	free(block->by_place);
	free(block->begins);
	free(block->series);
	free(block->texts);
	free(block->plain);
	free(block);
}

/* ---- frames ---- */

static void apply_series(struct block *block, struct read_series *series)
{
	struct read_track *track = &block->tracks[series->track];
	uint64_t cell = get_change(block, &series->bytes, series->kind, &series->state);

	if (series->bytes.bad || (series->field == -1 && cell > UINT32_MAX)) {
		block->error = -EBADMSG;
		return;
	}
	if (series->field == -1) {
		track->place = (uint32_t)cell;
		block->moved = true;
	} else {
		track->cells[series->field] = cell;
	}
	next_of_series(block, series);
}

static int by_row_place(const void *a, const void *b)
{
	const struct read_track *const *x = a, *const *y = b;

	return (*x)->place < (*y)->place ? -1 : (*x)->place > (*y)->place;
}

static int list_table(struct block *block, unsigned table)
{
	struct listed *listed = &block->listed[table];
	uint32_t n = 0;

	for (uint32_t i = 0; i < block->tracks_n; i++) {
		struct read_track *track = &block->tracks[i];

		if (stored_table(block, track)->table == (int)table && track->place &&
		    track->first < block->at)
			block->by_place[n++] = track;
	}
	if (n > store_tables[table].rows_max)
		return -EBADMSG;
	qsort(block->by_place, n, sizeof(*block->by_place), by_row_place);
	for (uint32_t i = 0; i < n; i++)
		if (block->by_place[i]->place != i + 1)
			return -EBADMSG;
	if (!listed->rows)
		listed->rows = calloc((size_t)block->tracks_n + 1, sizeof(*listed->rows));
	if (!listed->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		listed->rows[i] = block->by_place[i]->cells;
	listed->n = n;
	return 0;
}

bool block_next(struct block *block)
{
	if (block->error < 0 || block->at >= block->frames)
		return false;
	for (uint32_t i = 0; i < block->series_n && block->error == 0; i++)
		while (block->series[i].next == block->at && block->error == 0)
			apply_series(block, &block->series[i]);
	block->moved |= block->at == 0 || block->begins[block->at];
	block->at++;
	for (unsigned t = 0; t < STORE_TABLES && block->error == 0 && block->moved; t++)
		block->error = list_table(block, t);
	block->moved = false;
	return block->error == 0;
}

int block_error(const struct block *block)
{
	return block->error;
}

uint32_t block_frames(const struct block *block)
{
	return block->frames;
}

uint32_t block_rows(const struct block *block, enum store_table table)
{
	return block->listed[table].n;
}

const uint64_t *block_row(const struct block *block, enum store_table table, uint32_t i)
{
	return block->listed[table].rows[i];
}

const char *block_text(const struct block *block, uint64_t cell)
{
	return cell > 0 && cell <= block->texts_n ? block->texts[cell - 1] : NULL;
}
