// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cubin/stub.h"
#include "naming/private.h"

struct reading {
	const struct naming *naming;
	struct stub_table *table;
	uint32_t cap, max;
	bool cut;
};

void stub_table_free(struct stub_table *table)
{
	if (!table)
		return;
	free(table->entries);
	free(table->by_handle);
	names_free(table->names);
	free(table);
}

uint64_t stub_table_bytes(const struct stub_table *table)
{
	return sizeof(*table) + (uint64_t)table->n * sizeof(table->entries[0]) +
	       (uint64_t)table->handles_n * sizeof(table->by_handle[0]) + names_bytes(table->names);
}

static int on_stub(const struct stub *stub, void *userdata)
{
	struct reading *reading = userdata;
	struct stub_table *table = reading->table;
	size_t n = strlen(stub->symbol);
	struct symbol_key key = symbol_key(stub->symbol, n);
	struct stub_entry entry = { .address = stub->address,
				    .handle_address = stub->handle_address,
				    .hash = key.hash,
				    .check = key.check,
				    .source = (uint8_t)stub->source };
	int r;

	if (naming_stopping(reading->naming))
		return -ECANCELED;
	if (table->n == reading->cap) {
		uint32_t cap = MIN(reading->cap ? reading->cap + reading->cap / 2 : 256, reading->max);
		struct stub_entry *entries =
			cap > reading->cap ? reallocarray(table->entries, cap, sizeof(*entries)) : NULL;

		reading->cut |= cap == reading->cap;
		if (!entries)
			return cap == reading->cap ? 0 : -ENOMEM;
		table->entries = entries;
		reading->cap = cap;
	}
	r = names_add(table->names, stub->symbol, n, &entry.name);
	if (r == -E2BIG) {
		reading->cut = true;
		return 0;
	}
	if (r == 0)
		table->entries[table->n++] = entry;
	return r;
}

/* Of one address, what was registered first. */
static int by_address(const void *a, const void *b)
{
	const struct stub_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->source > y->source) - (x->source < y->source);
}

static void sort(struct stub_table *table)
{
	uint32_t n = 0;

	if (table->n == 0)
		return;
	qsort(table->entries, table->n, sizeof(table->entries[0]), by_address);
	for (uint32_t i = 1; i < table->n; i++) {
		struct stub_entry *last = &table->entries[n], *entry = &table->entries[i];
		bool same;

		if (entry->address != last->address) {
			table->entries[++n] = *entry;
			continue;
		}
		same = entry->hash == last->hash && entry->check == last->check;
		last->ambiguous |= entry->source == last->source && !same;
		if (last->handle_address == 0 && same)
			last->handle_address = entry->handle_address;
	}
	table->n = n + 1;
}

static int by_handle(const void *a, const void *b, void *userdata)
{
	const struct stub_table *table = userdata;
	uint64_t x = table->entries[*(const uint32_t *)a].handle_address;
	uint64_t y = table->entries[*(const uint32_t *)b].handle_address;

	return (x > y) - (x < y);
}

static int list_handles(struct stub_table *table)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n; i++)
		n += table->entries[i].handle_address != 0;
	table->by_handle = malloc(MAX(n, 1U) * sizeof(table->by_handle[0]));
	if (!table->by_handle)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n; i++)
		if (table->entries[i].handle_address != 0)
			table->by_handle[table->handles_n++] = i;
	qsort_r(table->by_handle, n, sizeof(table->by_handle[0]), by_handle, table);
	return 0;
}

static int finish(struct stub_table *table)
{
	struct stub_entry *entries;
	int r;

	sort(table);
	entries = reallocarray(table->entries, MAX(table->n, 1U), sizeof(*entries));
	if (entries)
		table->entries = entries;
	r = names_seal(table->names);
	return r < 0 ? r : list_handles(table);
}

int stub_table_read(const struct naming *naming, int fd, const char *root, const char *path, uint32_t max,
		    struct stub_table **ret_table)
{
	_cleanup_(stub_table_freep) struct stub_table *table = calloc(1, sizeof(*table));
	struct reading reading = { .naming = naming, .table = table, .max = max };
	_cleanup_close_ int debug_fd = -1;
	uint64_t skipped = 0;
	int r;

	if (!table)
		return -ENOMEM;
	r = names_new(&table->names);
	if (r < 0)
		return r;
	if (stub_debug_file(fd, root, path, &debug_fd) < 0)
		debug_fd = -1;
	r = stubs_read(fd, debug_fd, on_stub, &reading, &skipped);
	if (r == 0)
		r = finish(table);
	if (r < 0)
		return r;
	*ret_table = TAKE_PTR(table);
	return 0;
}

const struct stub_entry *stub_table_find(const struct stub_table *table, uint64_t address)
{
	uint32_t low = 0, high = table->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->entries[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == table->n || table->entries[low].address != address || table->entries[low].ambiguous)
		return NULL;
	return &table->entries[low];
}

bool stub_table_has(const struct stub_table *table, struct symbol_key key)
{
	for (uint32_t i = 0; i < table->n; i++)
		if (table->entries[i].hash == key.hash && table->entries[i].check == key.check)
			return true;
	return false;
}
