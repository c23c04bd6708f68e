// SPDX-License-Identifier: Apache-2.0
/*
 * Functions, and parts of functions, by .eh_frame_hdr (the Linux Standard Base's core specification): a table
 * of where each begins, in order, made by linkers in this one form. No symbols are needed.
 */
#include <errno.h>
#include <string.h>

#include "elf/private.h"

enum {
	PCREL_SDATA4 = 0x1b, /* a signed offset of 4 bytes from where it is */
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b, /* from the beginning of the section */
};

struct header {
	uint8_t version, frame, count, table; /* how addresses and numbers are written */
	int32_t frame_at;
	uint32_t n; /* rows */
};

struct parts {
	uint64_t address; /* of the section */
	uint32_t n; /* rows */
};

/* Where a function begins, and its entry in .eh_frame; both from the beginning of the section. */
struct row {
	int32_t start, entry;
};

static int read_at(struct elf_file *file, uint64_t address, void *buf, size_t n)
{
	size_t got = 0;
	int r = elf_data(file, address, buf, n, &got);

	return r == 0 && got < n ? -ENOENT : r;
}

static int parts_of(struct elf_file *file, struct parts *ret_parts)
{
	struct parts parts;
	struct header header;
	uint64_t offset, size;
	int r = elf_section(file, ".eh_frame_hdr", &offset, &size);

	if (r == 0)
		r = elf_address(file, offset, &parts.address);
	if (r == 0)
		r = read_at(file, parts.address, &header, sizeof(header));
	if (r < 0)
		return r;
	if (header.version != 1 || header.frame != PCREL_SDATA4 || header.count != UDATA4 ||
	    header.table != DATAREL_SDATA4 || header.n == 0 || header.n > size / sizeof(struct row))
		return -ENOENT;
	parts.n = header.n;
	*ret_parts = parts;
	return 0;
}

/* The last row that begins at or before @address. */
static int row_of(struct elf_file *file, const struct parts *parts, uint64_t address, struct row *ret_row)
{
	uint64_t rows = parts->address + sizeof(struct header);
	uint32_t low = 0, high = parts->n;
	struct row row;
	int r;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		r = read_at(file, rows + (uint64_t)middle * sizeof(row), &row, sizeof(row));
		if (r < 0)
			return r;
		if (parts->address + (uint64_t)(int64_t)row.start <= address) {
			*ret_row = row;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low > 0 ? 0 : -ENOENT;
}

int elf_part(struct elf_file *file, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	struct {
		uint32_t length, cie;
		int32_t start; /* from where it is */
		uint32_t n;
	} entry;
	struct parts parts;
	struct row row = { 0 };
	uint64_t start = 0, at = 0;
	int r = parts_of(file, &parts);

	if (r == 0)
		r = row_of(file, &parts, address, &row);
	if (r == 0) {
		start = parts.address + (uint64_t)(int64_t)row.start;
		at = parts.address + (uint64_t)(int64_t)row.entry;
		r = read_at(file, at, &entry, sizeof(entry));
	}
	if (r < 0)
		return r;
	/* Compilers and linkers write addresses in no other form, and no such lengths. */
	if (entry.length < sizeof(entry) - sizeof(entry.length) || entry.length == UINT32_MAX ||
	    at + 8 + (uint64_t)(int64_t)entry.start != start || address - start >= entry.n)
		return -ENOENT;
	*ret_start = start;
	*ret_end = start + entry.n;
	return 0;
}
