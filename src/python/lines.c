// SPDX-License-Identifier: Apache-2.0
#include "python/lines.h"

#include <stdbool.h>

enum {
	UNIT = 2, /* bytes of an instruction */
	NO_LINE_DELTA = -128, /* of 3.10's table */
	/* Codes of locations.md. */
	CODE_SHORT_MAX = 9,
	CODE_ONE_LINE_MAX = 12,
	CODE_NO_COLUMNS = 13,
	CODE_LONG = 14,
	CODE_NONE = 15,
};

static uint32_t line_of(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs: bytes of code, lines (signed). The last line goes on to the code's end. */
static uint32_t lnotab_line(const uint8_t *table, size_t n, int32_t first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_of(line);
}

/* Pairs: bytes of code, lines from the line before (signed), or no line. */
static uint32_t table_line(const uint8_t *table, size_t n, int32_t first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != NO_LINE_DELTA)
			line += delta;
		at += table[i];
		if (at > offset)
			return delta == NO_LINE_DELTA ? 0 : line_of(line);
	}
	return 0;
}

/*
 * Six bits in each byte, the lowest first; bit 6: it goes on. False: the table ends, or the number is too
 * large.
 */
static bool take_varint(const uint8_t *table, size_t n, size_t *at, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 36 && *at < n; shift += 6) {
		uint8_t byte = table[(*at)++];

		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* An entry after its first byte: sets the difference of lines, and passes over columns. */
static bool take_delta(const uint8_t *table, size_t n, unsigned code, size_t *at, int64_t *ret_delta)
{
	uint64_t value, unused;

	*ret_delta = 0;
	if (code <= CODE_SHORT_MAX) {
		*at += 1;
		return *at <= n;
	}
	if (code <= CODE_ONE_LINE_MAX) {
		*ret_delta = code - (CODE_SHORT_MAX + 1);
		*at += 2;
		return *at <= n;
	}
	if (code == CODE_NONE)
		return true;
	if (!take_varint(table, n, at, &value))
		return false;
	*ret_delta = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	if (code == CODE_NO_COLUMNS)
		return true;
	/* CODE_LONG: the end line's difference, two columns */
	return take_varint(table, n, at, &unused) && take_varint(table, n, at, &unused) &&
	       take_varint(table, n, at, &unused);
}

static uint32_t locations_line(const uint8_t *table, size_t n, int32_t first_line, uint32_t offset)
{
	int64_t line = first_line, delta;
	uint64_t end = 0;

	for (size_t at = 0; at < n;) {
		uint8_t first = table[at++];
		unsigned code = first >> 3 & 15;

		if (!(first & 128) || !take_delta(table, n, code, &at, &delta))
			return 0;
		line += delta;
		end += (uint64_t)((first & 7) + 1) * UNIT;
		if (end > offset)
			return code == CODE_NONE ? 0 : line_of(line);
	}
	return 0;
}

uint32_t python_line(enum trace_lines kind, const uint8_t *table, size_t n, int32_t first_line,
		     uint32_t offset)
{
	switch (kind) {
	case TRACE_LINES_LNOTAB:
		return lnotab_line(table, n, first_line, offset);
	case TRACE_LINES_TABLE:
		return table_line(table, n, first_line, offset);
	case TRACE_LINES_LOCATIONS:
		return locations_line(table, n, first_line, offset);
	}
	return 0;
}
