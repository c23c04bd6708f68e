// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stubs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cubin/stub.h"
#include "symbolize/file.h"
#include "symbolize/names.h"
#include "symbolize/worker.h"

struct stub_reading {
	const struct symbolizer *symbolizer;
	struct stub_table *table;
	uint32_t cap, max;
};

void stub_table_free(struct stub_table *table)
{
	if (!table)
		return;
	free(table->entries);
	free(table->by_handle);
	free(table->by_key);
	names_free(table->names);
	free(table);
}

uint64_t stub_table_bytes(const struct stub_table *table)
{
	return sizeof(*table) + (uint64_t)table->n * sizeof(table->entries[0]) +
	       ((uint64_t)table->handles_n + table->n) * sizeof(table->by_handle[0]) +
	       names_bytes(table->names);
}

/* Of stubs at one address the first registered one is used. */
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

/* Removes duplicates before growing. -E2BIG */
static int grow(struct stub_reading *reading)
{
	struct stub_table *table = reading->table;
	struct stub_entry *entries;
	uint32_t cap;

	if (table->n < reading->cap)
		return 0;
	if (reading->cap == reading->max) {
		sort(table);
		table->cut = table->n > reading->max - reading->max / 4;
		return table->cut ? -E2BIG : 0;
	}
	cap = MIN(reading->cap ? reading->cap + reading->cap / 2 : 256, reading->max);
	entries = reallocarray(table->entries, cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	reading->cap = cap;
	return 0;
}

static struct stub_entry *at_address(const struct stub_table *table, uint64_t address)
{
	uint32_t low = LOWER_BOUND(table->n, middle, table->entries[middle].address < address);

	return low < table->n && table->entries[low].address == address ? &table->entries[low] : NULL;
}

/* Drops the entry for lack of space, but records that its address has two names. */
static void leave_out(struct stub_table *table, const struct stub_entry *entry)
{
	struct stub_entry *kept = table->cut ? at_address(table, entry->address) : NULL;

	table->left_out++;
	if (kept && kept->source == entry->source)
		kept->ambiguous |= kept->hash != entry->hash || kept->check != entry->check;
}

static int on_stub(const struct stub *stub, void *userdata)
{
	struct stub_reading *reading = userdata;
	struct stub_table *table = reading->table;
	size_t n = strlen(stub->symbol);
	struct symbol_key key = symbol_key(stub->symbol, n);
	struct stub_entry entry = { .address = stub->address,
				    .handle_address = stub->handle_address,
				    .hash = key.hash,
				    .check = key.check,
				    .source = (uint8_t)stub->source };
	int r;

	if (symbolizer_stopping(reading->symbolizer))
		return -ECANCELED;
	r = table->cut ? -E2BIG : grow(reading);
	if (r == -E2BIG) {
		leave_out(table, &entry);
		return 0;
	}
	if (r < 0)
		return r;
	r = names_add(table->names, stub->symbol, n, &entry.name);
	if (r == -E2BIG) {
		leave_out(table, &entry);
		return 0;
	}
	if (r == 0)
		table->entries[table->n++] = entry;
	return r;
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

static int by_key(const void *a, const void *b, void *userdata)
{
	const struct stub_table *table = userdata;
	const struct stub_entry *x = &table->entries[*(const uint32_t *)a];
	const struct stub_entry *y = &table->entries[*(const uint32_t *)b];

	return symbol_key_compare(x->hash, x->check, (struct symbol_key){ y->hash, y->check });
}

static int list_keys(struct stub_table *table)
{
	table->by_key = malloc(MAX(table->n, 1U) * sizeof(table->by_key[0]));
	if (!table->by_key)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n; i++)
		table->by_key[i] = i;
	qsort_r(table->by_key, table->n, sizeof(table->by_key[0]), by_key, table);
	return 0;
}

static int stubs_finish(struct stub_table *table)
{
	struct stub_entry *entries;
	int r;

	sort(table);
	entries = reallocarray(table->entries, MAX(table->n, 1U), sizeof(*entries));
	if (entries)
		table->entries = entries;
	r = names_seal(table->names);
	if (r == 0)
		r = list_handles(table);
	return r < 0 ? r : list_keys(table);
}

int stub_table_read(const struct symbolizer *symbolizer, int fd, const char *root, const char *path,
		    uint32_t max, struct stub_table **ret_table)
{
	_cleanup_(stub_table_freep) struct stub_table *table = calloc(1, sizeof(*table));
	struct stub_reading reading = { .symbolizer = symbolizer, .table = table, .max = max };
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
	table->left_out += skipped;
	if (r == 0)
		r = stubs_finish(table);
	if (r < 0)
		return r;
	*ret_table = TAKE_PTR(table);
	return 0;
}

const struct stub_entry *stub_table_find(const struct stub_table *table, uint64_t address)
{
	const struct stub_entry *entry = at_address(table, address);

	return entry && !entry->ambiguous ? entry : NULL;
}

bool stub_table_has(const struct stub_table *table, struct symbol_key key)
{
	uint32_t low = 0, high = table->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct stub_entry *entry = &table->entries[table->by_key[middle]];
		int c = symbol_key_compare(entry->hash, entry->check, key);

		if (c == 0)
			return true;
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
