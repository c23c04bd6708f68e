// SPDX-License-Identifier: Apache-2.0
/* What both ends of a block know. */
#pragma once

#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "store/decimal.h"
#include "store/layout.h"

#define BLOCK_MAGIC "gsblock2"
#define PACKED_MAGIC "gsblock3" /* block_pack.h */

/* In the place of a field's number: where the row is among those of its table, from 1; 0: it is not there. */
#define PLACE_FIELD(fields_n_) (fields_n_)

/* Of first values, behind the fields: that place, and the frame that the row came with. */
enum first_extra { FIRST_NONE = -1, FIRST_PLACE, FIRST_FRAME, FIRST_EXTRAS };

/* From one row to the next, times do not grow evenly. */
static inline unsigned first_kind(unsigned kind)
{
	return kind == COLUMN_TIME ? COLUMN_INT : kind;
}

/* A real number's scale that says: 8 bytes follow, as they are. */
enum { REAL_RAW = 0xff };

/* ---- numbers ---- */

struct bytes {
	const uint8_t *at, *end;
	bool bad; /* something was beyond the end, or no number */
};

static inline uint64_t get_varint(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (b->at >= b->end)
			break;
		byte = *b->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->bad = true;
	return 0;
}

static inline uint32_t get_below(struct bytes *b, uint64_t limit)
{
	uint64_t v = get_varint(b);

	if (v < limit)
		return (uint32_t)v;
	b->bad = true;
	return 0;
}

static inline struct bytes get_bytes(struct bytes *b, uint64_t n)
{
	struct bytes part = { b->at, b->at, false };

	if (n > (uint64_t)(b->end - b->at)) {
		b->bad = true;
		return part;
	}
	b->at += n;
	part.end = b->at;
	return part;
}

static inline void put_varint(struct strbuf *out, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	while (v >= 0x80) {
		bytes[n++] = (char)(v | 0x80);
		v >>= 7;
	}
	bytes[n++] = (char)v;
	strbuf_add(out, bytes, n);
}

static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t unzigzag(uint64_t coded)
{
	return coded >> 1 ^ (0 - (coded & 1));
}

/* Most are times of whole milliseconds: so many, times two; or 1 and the difference. */
static inline void put_int_change(struct strbuf *out, uint64_t step)
{
	if ((int64_t)step % NSEC_PER_MSEC == 0) {
		put_varint(out, zigzag((uint64_t)((int64_t)step / NSEC_PER_MSEC)) << 1);
		return;
	}
	put_varint(out, 1);
	put_varint(out, zigzag(step));
}

static inline double real_of(uint64_t cell)
{
	double v;

	memcpy(&v, &cell, sizeof(v));
	return v;
}

static inline uint64_t cell_of(double v)
{
	uint64_t cell;

	memcpy(&cell, &v, sizeof(cell));
	return cell;
}

/* From one value of a series to the next. */
struct series_state {
	uint64_t value; /* of a real number: its digits */
	uint64_t step; /* of a time: how much it grew */
	unsigned scale; /* of a real number */
};

/* What a series goes on from: the track's first value, which reader and writer have alike. */
static inline struct series_state state_of(unsigned kind, uint64_t cell)
{
	struct series_state state = { .value = cell };
	struct decimal d;

	if (kind == COLUMN_REAL && decimal_of(real_of(cell), &d))
		state = (struct series_state){ .value = (uint64_t)d.digits, .scale = d.scale };
	else if (kind == COLUMN_REAL)
		state = (struct series_state){ .scale = REAL_RAW };
	return state;
}
