// SPDX-License-Identifier: Apache-2.0
#include "base/row_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "base/text.h"

enum { ROOM_LEAST = 16 };

void *row_list_add(struct row_list *table)
{
	uint8_t *row;

	if (table->n == table->max) {
		table->dropped++;
		return NULL;
	}
	if (table->n == table->room) {
		uint32_t room = MIN(MAX(table->room * 2, (uint32_t)ROOM_LEAST), table->max);
		void *list = reallocarray(table->list, room, table->size);

		if (!list) {
			table->dropped++;
			return NULL;
		}
		table->list = list;
		table->room = room;
	}
	row = (uint8_t *)table->list + table->size * table->n++;
	memset(row, 0, table->size);
	return row;
}

void row_list_clear(struct row_list *table)
{
	table->n = 0;
	table->dropped = 0;
}

void row_list_done(struct row_list *table)
{
	free(table->list);
	table->list = NULL;
	table->n = table->room = 0;
	table->dropped = 0;
}

static int compare_rows(const void *a, const void *b, void *size)
{
	return memcmp(a, b, *(const size_t *)size);
}

uint64_t row_list_digest(struct row_list *table)
{
	uint64_t digest = 1;

	if (table->n)
		qsort_r(table->list, table->n, table->size, compare_rows, &table->size);
	for (uint32_t i = 0; i < table->n; i++)
		digest =
			digest * 31 + hash_bytes((const uint8_t *)table->list + table->size * i, table->size);
	return digest | 1;
}

void put_text(char *to, size_t size, const char *from, size_t n)
{
	n = MIN(n, size - 1);
	memcpy(to, from, n);
	to[n] = '\0';
	utf8_sanitize(to);
}
