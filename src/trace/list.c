// SPDX-License-Identifier: Apache-2.0
/*
 * Lists the probed functions of a file and their sites. A site is refused, with a reason, unless it is proven
 * safe by the code (trace/site.h) and, as far as the file's symbols show, is reached only by calls of its own
 * function.
 */
#include "trace/list.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "elf/elf.h"
#include "trace/pattern.h"

enum {
	/* distinct functions for each row of the table of probes; a file with more is taken for invalid */
	PLACES_PER_PROBE = 8,
	CODE_RANGES_MAX = 64,
	/* Steps (list.h), as measured. */
	STEPS_FUNCTION = 50, /* opening the decoder */
	STEPS_INSTRUCTION = 4,
	STEP_CODE_BYTES = 20, /* that are searched, for one step */
};

struct place {
	const struct probe *probe; /* NULL: of @user or @pattern */
	unsigned user; /* which of the user's probes matches it, from 1; 0: none */
	uint8_t pattern; /* which pattern, from 1; 0: none */
	char *name; /* of one of @user or @pattern, or if the table has only an older version of it */
	uint64_t offset, address, size;
	enum elf_kind kind;
	uint64_t next; /* where the next function begins */
	uint64_t reach; /* the furthest end of functions that begin before it */
	uint16_t unsized; /* bit n: a function of unknown size begins n bytes before it */
};

struct places {
	const bool *libraries;
	unsigned users; /* LIBRARY_USER_BIT() of the user's probes that apply to the file */
	uint32_t users_n; /* places that were added for theirs */
	uint32_t patterns_n; /* the same for patterns */
	uint32_t more; /* functions beyond SITE_LIST_USER_MAX, or with too long a name */
	uint32_t more_patterns; /* the same, beyond PATTERN_FILE_MAX */
	struct hashmap by_offset; /* file offset: index in at[] */
	struct elf_range code[CODE_RANGES_MAX];
	size_t code_n;
	uint64_t steps_left; /* as elf_limit_steps() has them; the time that they take is bounded so */
	uint64_t code_left; /* bytes that may still be analysed */
	const char *stopped; /* why the analysis has ended early; NULL: it has not */
	uint32_t n;
	struct place at[]; /* as places_room() says */
};

static void places_free(struct places *places)
{
	for (uint32_t i = 0; places && i < places->n; i++)
		free(places->at[i].name);
	if (places)
		hashmap_done(&places->by_offset);
	free(places);
}
DEFINE_CLEANUP(struct places *, places_free, places_freep)

/* ---- probed functions ---- */

static const struct probe *probe_of(const bool *libraries, const char *symbol,
				    const struct probe *(*find)(enum probe_library, const char *))
{
	for (int i = 0; i < PROBE_LIBRARIES; i++) {
		const struct probe *probe = libraries[i] ? find((enum probe_library)i, symbol) : NULL;

		if (probe)
			return probe;
	}
	return NULL;
}

/*
 * Names of the table come first, then what the user names, what patterns find, and names newer than those of
 * the table.
 */
static unsigned rank(const struct place *place)
{
	return place->user ? 1 : place->pattern ? 2 : place->name ? 3 : 0;
}

/* Whether @a's probe has precedence over @b's, in whatever order the symbols come. */
static bool precedes(const struct place *a, const struct place *b)
{
	if (rank(a) != rank(b))
		return rank(a) < rank(b);
	if (a->user != b->user)
		return a->user < b->user;
	if (!a->user && !a->pattern)
		return a->probe < b->probe;
	/* The name that its users know: sprintf, not _IO_sprintf. */
	if ((a->name[0] == '_') != (b->name[0] == '_'))
		return b->name[0] == '_';
	return strcmp(a->name, b->name) < 0;
}

/*
 * Several names of one place (aliases, or duplicates in .symtab) get one probe.
 */
static void places_merge(struct place *known, struct place *place)
{
	if (precedes(place, known)) {
		free(known->name);
		known->probe = place->probe;
		known->user = place->user;
		known->pattern = place->pattern;
		known->name = TAKE_PTR(place->name);
	}
	known->size = MAX(known->size, place->size);
	known->kind = MAX(known->kind, place->kind);
}

/* Whether there is no room for one more place. Functions that a pattern matches beyond it are counted. */
static int check_room(struct places *places, const struct place *place)
{
	if (place->user && places->users_n >= SITE_LIST_USER_MAX) {
		places->more++;
		return -ENOSPC;
	}
	if (place->pattern && places->patterns_n >= PATTERN_FILE_MAX) {
		places->more_patterns++;
		return -ENOSPC;
	}
	if (place->user || place->pattern)
		return 0;
	return places->n - places->users_n - places->patterns_n >= PLACES_PER_PROBE * (uint32_t)probes_n ?
		       -E2BIG :
		       0;
}

static int add_place(struct places *places, struct place *place)
{
	uint32_t i;
	int r;

	if (hashmap_get(&places->by_offset, place->offset, &i)) {
		places_merge(&places->at[i], place);
		return 0;
	}
	r = check_room(places, place);
	if (r < 0)
		return r == -ENOSPC ? 0 : r;
	r = hashmap_put(&places->by_offset, place->offset, places->n);
	if (r < 0)
		return r;
	places->users_n += place->user > 0;
	places->patterns_n += place->pattern > 0;
	places->at[places->n] = *place;
	places->at[places->n++].name = TAKE_PTR(place->name);
	return 0;
}

static int note(const struct elf_symbol *symbol, void *userdata)
{
	struct places *places = userdata;
	struct place place = { .probe = probe_of(places->libraries, symbol->name, probe_find),
			       .offset = symbol->offset,
			       .address = symbol->address,
			       .size = symbol->size,
			       .kind = symbol->kind,
			       .next = UINT64_MAX };
	int r;

	if (!place.probe) {
		place.user = library_user_of(places->users, symbol->name);
		if (!place.user)
			place.pattern = pattern_of(places->libraries, symbol->name);
		if (!place.user && !place.pattern)
			place.probe = probe_of(places->libraries, symbol->name, probe_of_newer);
		if (!place.user && !place.pattern && !place.probe)
			return 0;
		if ((place.user || place.pattern) && strlen(symbol->name) >= SITE_LIST_NAME_MAX) {
			places->more += place.user > 0;
			places->more_patterns += place.pattern > 0;
			return 0;
		}
		place.name = strdup(symbol->name);
		if (!place.name)
			return -ENOMEM;
	}
	r = add_place(places, &place);
	free(place.name);
	return r;
}

/* ---- neighbouring functions ---- */

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The first place at or after @offset. */
static uint32_t first_at(const struct places *places, uint64_t offset)
{
	uint32_t low = LOWER_BOUND(places->n, middle, places->at[middle].offset < offset);

	return low;
}

/*
 * For any function of the file, probed or not: updates the adjacent places. find_neighbours() propagates
 * reach.
 */
static int note_neighbour(const struct elf_symbol *symbol, void *userdata)
{
	struct places *places = userdata;
	uint64_t end = symbol->offset + MIN(symbol->size, UINT64_MAX - symbol->offset);
	uint32_t i;

	if (symbol->kind == ELF_UNTYPED)
		return 0;
	i = first_at(places, symbol->offset);
	if (i > 0)
		places->at[i - 1].next = MIN(places->at[i - 1].next, symbol->offset);
	if (i < places->n && places->at[i].offset == symbol->offset)
		i++;
	if (i < places->n)
		places->at[i].reach = MAX(places->at[i].reach, end);
	/* A function without a size has at least one instruction. */
	for (; symbol->size == 0 && i < places->n; i++) {
		if (places->at[i].offset - symbol->offset >= SITE_INSTRUCTION_MAX)
			break;
		places->at[i].unsized |= (uint16_t)(1U << (places->at[i].offset - symbol->offset));
	}
	return 0;
}

/* Sorts the places by offset. */
static int find_neighbours(struct elf_file *file, struct places *places)
{
	uint64_t reach = 0;
	int r;

	qsort(places->at, places->n, sizeof(places->at[0]), by_offset);
	r = elf_entries(file, note_neighbour, places);
	if (r == 0)
		r = elf_code_ranges(file, places->code, CODE_RANGES_MAX, &places->code_n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < places->n; i++) {
		reach = MAX(reach, places->at[i].reach);
		places->at[i].reach = reach;
	}
	return 0;
}

/* ---- sites ---- */

static bool is_code(const struct places *places, uint64_t offset)
{
	for (size_t i = 0; i < places->code_n; i++)
		if (offset >= places->code[i].offset &&
		    offset - places->code[i].offset < places->code[i].size)
			return true;
	return places->code_n == CODE_RANGES_MAX; /* there may be more */
}

static void refuse(struct site *site, const char *why)
{
	*site = (struct site){ .kind = SITE_KIND_OTHER, .class = SITE_REFUSED };
	snprintf(site->reason, sizeof(site->reason), "%s", why);
}

static const char took_too_long[] =
	"analysing the file takes longer than any library of NVIDIA does: the rest "
	"is not analysed";

/* NULL, or why the place is refused without decoding it. */
static const char *refused_by_symbol(const struct places *places, const struct place *place)
{
	if (places->stopped)
		return places->stopped;
	if (place->name && !place->user && !place->pattern)
		return "newer than this gpusonde: the meaning of its arguments is not known; a newer "
		       "gpusonde may know it";
	if (place->kind == ELF_INDIRECT)
		return "an indirect function (IFUNC): which function it stands for is found out when it is "
		       "loaded";
	if (place->kind == ELF_UNTYPED)
		return "its symbol does not say that it is a function: it may be data";
	if (!is_code(places, place->offset))
		return "lies outside of the sections that hold code: it may be data";
	return NULL;
}

/*
 * Whether the place may be in the middle of the first instructions of a function of unknown size that begins
 * before it. True where that function cannot be decoded.
 */
static bool begins_within_unsized(struct elf_file *file, const struct place *place)
{
	bool arm64 = elf_machine(file) == EM_AARCH64;

	for (unsigned n = 1; n < SITE_INSTRUCTION_MAX; n++) {
		uint8_t code[2 * SITE_INSTRUCTION_MAX];
		size_t size;

		if (!(place->unsized >> n & 1) || (arm64 && n >= 4))
			continue;
		if (elf_code(file, place->offset - n, code, sizeof(code), &size) < 0 ||
		    !site_is_boundary(elf_machine(file), code, size, n))
			return true;
	}
	return false;
}

/*
 * NULL, or why a chosen site may be reached by other functions, or twice by one call. @complete: the whole
 * function was searched.
 */
static const char *refused_by_neighbours(struct elf_file *file, const struct place *place,
					 const struct site *site, bool complete)
{
	if (place->reach > place->offset || begins_within_unsized(file, place))
		return "begins within another function, which may run through it without calling it";
	if (place->next <= place->offset + site->offset)
		return "another function begins before the instruction that could be probed";
	if (!complete)
		return "only a part of it could be searched for jumps back: it is too long, or the file "
		       "too short";
	return NULL;
}

/*
 * Whether the runtime's function must not be probed because it cannot have a return probe. Its calls would be
 * counted without a result, and the driver's calls within it again. On arm64 this holds for most: they save
 * the return address before any instruction that the kernel emulates. The driver's calls are probed instead,
 * with results. A call that fails before it calls the driver, for example for an invalid argument, is not
 * seen.
 */
static bool is_left_to_driver(const struct place *place, const struct site *site)
{
	return site->chosen && place->probe && probe_libraries[place->probe->library].has_made_of &&
	       place->probe->may_return && !site->may_return;
}

static int list_place(struct elf_file *file, struct places *places, const struct place *place,
		      const struct site_rules *rules, uint8_t *code, struct trace_listing *ret_listing)
{
	struct trace_listing listing = {
		.probe = place->probe,
		.user = place->user,
		.pattern = place->pattern,
		.symbol = place->name ? place->name : place->probe->symbol,
	};
	/* A function of unknown size ends where the next one begins. */
	uint64_t size = place->size ? place->size : place->next - place->offset;
	const char *why = refused_by_symbol(places, place);
	size_t n;
	int r;

	if (why) {
		refuse(&listing.site, why);
	} else {
		r = elf_code(file, place->offset, code, (size_t)MIN(size, (uint64_t)SITE_CODE_MAX), &n);
		places->code_left -= r == 0 ? MIN(n, places->code_left) : 0;
		if (r == 0)
			r = site_choose(elf_machine(file), code, n, place->address, rules, &listing.site);
		if (r < 0)
			return r;
		elf_take_steps(&places->steps_left,
			       STEPS_FUNCTION * (1 + (unsigned)__builtin_popcount(place->unsized)) +
				       n / STEP_CODE_BYTES + STEPS_INSTRUCTION * listing.site.decoded);
		/* A function of unknown size ends at the latest where the code does. */
		bool complete = n == size || (place->size == 0 && n < SITE_CODE_MAX);

		why = listing.site.chosen ? refused_by_neighbours(file, place, &listing.site, complete) :
					    NULL;
		listing.left_to_driver = !why && is_left_to_driver(place, &listing.site);
		if (listing.left_to_driver)
			why = "its return could not be seen here: the driver's calls that it makes are "
			      "probed instead; where it makes none, nothing is seen";
		if (why)
			refuse(&listing.site, why);
	}
	listing.file_offset = place->offset + listing.site.offset;
	*ret_listing = listing;
	return 0;
}

/* A crafted file may have thousands of functions, each as long and as slow to decode as one can be. */
static void check_bounds(struct places *places)
{
	if (places->stopped)
		return;
	if (places->steps_left == 0)
		places->stopped = took_too_long;
	else if (places->code_left == 0)
		places->stopped = "the file has more code in probed functions than any library of NVIDIA: "
				  "the rest is not analysed";
}

/* Whether its row is added while the file is read. */
static bool is_added(const struct place *place)
{
	return place->user || place->pattern;
}

static int by_row(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	/* First those of the table, which others cannot keep from being analysed. */
	if (is_added(x) != is_added(y))
		return is_added(x) ? 1 : -1;
	if (!x->user != !y->user)
		return x->user ? -1 : 1;
	if (!is_added(x) && x->probe != y->probe)
		return x->probe < y->probe ? -1 : 1;
	return by_offset(a, b);
}

static int list_places(struct elf_file *file, struct places *places, const struct site_rules *rules,
		       int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata)
{
	_cleanup_free_ uint8_t *code = malloc(SITE_CODE_MAX);
	int r = code ? 0 : -ENOMEM;

	qsort(places->at, places->n, sizeof(places->at[0]), by_row);
	for (uint32_t i = 0; r == 0 && i < places->n; i++) {
		struct trace_listing listing;

		if (is_added(&places->at[i]) && (i == 0 || !is_added(&places->at[i - 1])))
			places->code_left = MAX(places->code_left, (uint64_t)TRACE_LIST_USER_CODE_MAX);

		check_bounds(places);
		r = list_place(file, places, &places->at[i], rules, code, &listing);
		if (r == 0)
			r = fn(&listing, userdata);
	}
	return r;
}

static size_t places_room(const struct site_query *query)
{
	return PLACES_PER_PROBE * (size_t)probes_n + (query->users ? SITE_LIST_USER_MAX : 0) +
	       (pattern_is_used(query->libraries) ? PATTERN_FILE_MAX : 0);
}

int trace_list_sites(int fd, const struct site_query *query,
		     int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata,
		     struct site_more *ret_more)
{
	size_t places_max = places_room(query);
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	_cleanup_(places_freep) struct places *places = NULL;
	int r = elf_open(fd, &file);

	if (r < 0)
		return r;
	places = calloc(1, sizeof(*places) + places_max * sizeof(places->at[0]));
	if (!places)
		return -ENOMEM;
	places->libraries = query->libraries;
	places->users = query->users;
	places->code_left = TRACE_LIST_CODE_MAX;
	places->steps_left = TRACE_LIST_STEPS;
	elf_limit_steps(file, &places->steps_left);
	/* What a pattern of the user's takes depends on both texts, and is not counted. */
	if (query->users)
		elf_limit_cpu(file, clock_thread_cpu_ns() + TRACE_LIST_CPU_NS);
	r = elf_entries(file, note, places);
	if (r == 0 && places->n > 0)
		r = find_neighbours(file, places);
	if (r == -ETIME) {
		places->stopped = took_too_long;
		r = places->n > 0 ? 0 : -E2BIG;
	}
	if (r == 0)
		r = list_places(file, places, &query->rules, fn, userdata);
	if (ret_more)
		*ret_more = (struct site_more){ .user = places->more, .patterns = places->more_patterns };
	return r;
}
