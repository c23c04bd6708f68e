// SPDX-License-Identifier: Apache-2.0
#include "helper/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "helper/message.h"

_Static_assert(sizeof(struct part) == HELPER_MESSAGE_MAX, "a part is as long as a message may be");

enum { HEADER = sizeof(struct part_header) };

int parts_send(int channel, uint32_t table, uint64_t digest, const struct row_list *rows)
{
	const uint32_t most = (uint32_t)(PART_BYTES / rows->size);
	_cleanup_free_ struct part *part = malloc(sizeof(*part));
	int r = 0;

	if (!part)
		return -ENOMEM;
	part->header = (struct part_header){ .message = PART_ROWS,
					     .table = table,
					     .digest = digest,
					     .rows = rows->n,
					     .row_bytes = (uint32_t)rows->size };
	do {
		part->header.n = MIN(rows->n - part->header.at, most);
		if (part->header.n) /* an empty table may have no list */
			memcpy(part->data, (const uint8_t *)rows->list + part->header.at * rows->size,
			       part->header.n * rows->size);
		r = send_with_fd(channel, part, HEADER + part->header.n * rows->size, -1);
		part->header.at += part->header.n;
	} while (r == 0 && part->header.at < rows->n);
	return r;
}

static bool header_is_valid(const struct arriving *table, const struct part_header *part, size_t n)
{
	return part->row_bytes == table->row_bytes && part->rows <= table->max && part->digest != 0 &&
	       part->n <= PART_BYTES / table->row_bytes && n == HEADER + (size_t)part->n * table->row_bytes;
}

bool parts_take(struct arriving *tables, uint32_t tables_n, const void *message, size_t n)
{
	struct arriving *table;
	struct part_header header;

	if (n < HEADER)
		return false;
	memcpy(&header, message, HEADER);
	if (header.message != PART_ROWS || header.table >= tables_n ||
	    !header_is_valid(&tables[header.table], &header, n))
		return false;
	table = &tables[header.table];
	if (!table->list) {
		table->list = calloc(MAX(header.rows, 1u), table->row_bytes);
		table->rows = header.rows;
		table->digest = header.digest;
	}
	if (!table->list || header.digest != table->digest || header.rows != table->rows ||
	    header.at != table->n || header.n > table->rows - table->n ||
	    (header.n == 0 && table->n < table->rows))
		return false;
	memcpy((uint8_t *)table->list + (size_t)table->n * table->row_bytes,
	       (const uint8_t *)message + HEADER, (size_t)header.n * table->row_bytes);
	table->n += header.n;
	return true;
}

bool parts_are_whole(const struct arriving *tables, uint32_t tables_n, const uint64_t *digest,
		     const uint64_t *known)
{
	for (uint32_t i = 0; i < tables_n; i++)
		if (tables[i].list ? tables[i].digest != digest[i] || tables[i].n < tables[i].rows :
				     digest[i] != 0 && digest[i] != known[i])
			return false;
	return true;
}

void parts_forget(struct arriving *tables, uint32_t tables_n)
{
	for (uint32_t i = 0; i < tables_n; i++) {
		free(TAKE_PTR(tables[i].list));
		tables[i].n = tables[i].rows = 0;
		tables[i].digest = 0;
	}
}
