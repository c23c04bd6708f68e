// SPDX-License-Identifier: Apache-2.0
/* Which probed functions a file has, and where their probes go. */
#include <errno.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "elf/elf.h"
#include "trace/engine.h"

/* Functions at places of their own; the names that are probed are TRACE_CALLS_MAX at most, so a file with more lies. */
enum { PLACES_MAX = 8 * TRACE_CALLS_MAX };

struct place {
	const struct probe *probe;
	uint64_t offset, address, size;
};

struct places {
	const bool *libraries;
	struct hashmap by_offset; /* of the file, to index in at[] */
	uint32_t n;
	struct place at[PLACES_MAX];
};

static const struct probe *probe_of(const bool *libraries, const char *symbol)
{
	for (int i = 0; i < PROBE_LIBRARIES; i++) {
		const struct probe *probe = libraries[i] ? probe_find((enum probe_library)i, symbol) : NULL;

		if (probe)
			return probe;
	}
	return NULL;
}

/* Names of one place, aliases and twins in .symtab, get one probe: the first row of the table counts it, whatever the order here. */
static int note(const struct elf_symbol *symbol, void *userdata)
{
	struct places *places = userdata;
	const struct probe *probe = probe_of(places->libraries, symbol->name);
	uint32_t i;
	int r;

	if (!probe)
		return 0;
	if (hashmap_get(&places->by_offset, symbol->offset, &i)) {
		struct place *known = &places->at[i];

		known->probe = MIN(known->probe, probe);
		known->size = MAX(known->size, symbol->size);
		return 0;
	}
	if (places->n == PLACES_MAX)
		return -E2BIG;
	r = hashmap_put(&places->by_offset, symbol->offset, places->n);
	if (r < 0)
		return r;
	places->at[places->n++] = (struct place){ probe, symbol->offset, symbol->address, symbol->size };
	return 0;
}

static int by_row(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->probe != y->probe)
		return x->probe < y->probe ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int list_place(struct elf_file *file, const struct place *place, const struct site_rules *rules,
		      uint8_t *code, struct trace_listing *ret_listing)
{
	struct trace_listing listing = { .probe = place->probe };
	size_t n = place->size ? (size_t)MIN(place->size, (uint64_t)SITE_CODE_MAX) : SITE_SCAN_MAX;
	int r = elf_code(file, place->offset, code, n, &n);

	if (r == 0)
		r = site_choose(elf_machine(file), code, n, place->address, rules, &listing.site);
	if (r < 0)
		return r;
	listing.file_offset = place->offset + listing.site.offset;
	*ret_listing = listing;
	return 0;
}

static int list_places(struct elf_file *file, const struct places *places, const struct site_rules *rules,
		       int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata)
{
	_cleanup_free_ uint8_t *code = malloc(SITE_CODE_MAX);
	int r = code ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < places->n; i++) {
		struct trace_listing listing;

		r = list_place(file, &places->at[i], rules, code, &listing);
		if (r == 0)
			r = fn(&listing, userdata);
	}
	return r;
}

int trace_list_sites(int fd, const bool libraries[PROBE_LIBRARIES], const struct site_rules *rules,
		     int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata)
{
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	_cleanup_free_ struct places *places = NULL;
	int r = elf_open(fd, &file);

	if (r < 0)
		return r;
	places = calloc(1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	places->libraries = libraries;
	r = elf_functions(file, note, places);
	if (r == 0) {
		qsort(places->at, places->n, sizeof(places->at[0]), by_row);
		r = list_places(file, places, rules, fn, userdata);
	}
	hashmap_done(&places->by_offset);
	return r;
}
