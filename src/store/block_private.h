// SPDX-License-Identifier: Apache-2.0
/* What both ends of a block know. */
#pragma once

#include <string.h>

#include "store/decimal.h"
#include "store/layout.h"

#define BLOCK_MAGIC "gsblock2"

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

static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t unzigzag(uint64_t coded)
{
	return coded >> 1 ^ (0 - (coded & 1));
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
