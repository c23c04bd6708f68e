// SPDX-License-Identifier: Apache-2.0
/*
 * src/samples is a page of samples: what /metrics shows, once, as arrays in one piece of memory. The agent
 * writes it (write.h, by view/samples.c) into a file in memory; gpusonde-push reads it (read.h) and makes of
 * it what its server takes.
 *
 * This is the layout. After the header come the arrays in the order of enum page_part, each at a multiple of
 * eight bytes. Numbers are the machine's own: both sides are one build. Indexes begin at 1 where 0 stands for
 * none.
 *
 * Invariants
 *  1. A family's series follow each other, in the order of the walk (view/walk/walk.h).
 *  2. A text is there once. Texts are UTF-8 and end with NUL; text 0 is "".
 *  3. Labels are in the order of /metrics: first those of a series' first set. A series has no two of one
 *     name.
 */
#pragma once

#include <stdint.h>

enum { PAGE_SERIES_SETS = 6, PAGE_BYTES_MAX = 32 << 20 };
#define PAGE_FIRST_MAX 64 /* of struct page_histogram; -64 at least */
#define PAGE_MAGIC "gspage2"

enum page_type { PAGE_GAUGE, PAGE_COUNTER, PAGE_INFO, PAGE_UNKNOWN, PAGE_HISTOGRAM, PAGE_TYPES };

struct page_family {
	uint32_t name, help, unit; /* texts; the name has _total or _info; unit 0: none */
	uint32_t type; /* enum page_type */
	uint32_t first, n; /* series */
};

struct page_series {
	double value; /* of a histogram: the sum */
	int64_t created_real_ns; /* when its counter began; 0: it is not known */
	uint32_t sets[PAGE_SERIES_SETS]; /* from 1 */
	uint32_t histogram; /* from 1 */
	uint32_t estimated; /* 0 or 1 */
};

/*
 * Durations: @all numbers of values up to 4^first, 4^(first + 1) ... seconds, cumulative; the last is of all
 * values. /metrics has buckets of the first @n bounds, and one without.
 */
struct page_histogram {
	uint32_t n, all; /* all > n */
	int32_t first;
	uint32_t bounds; /* first of n */
	uint32_t counts; /* first of all */
	uint32_t reserved;
};

struct page_bound {
	double value;
	uint32_t text; /* as /metrics has it in the label le */
	uint32_t reserved;
};

struct page_set {
	uint32_t first, n; /* labels */
};

struct page_label {
	uint32_t name, value; /* texts */
};

/*
 *   PAGE_PART(ID, member, type)
 */
#define PAGE_PARTS(X_)                                    \
	X_(FAMILIES, families, struct page_family)        \
	X_(SERIES, series, struct page_series)            \
	X_(HISTOGRAMS, histograms, struct page_histogram) \
	X_(BOUNDS, bounds, struct page_bound)             \
	X_(COUNTS, counts, uint64_t)                      \
	X_(SETS, sets, struct page_set)                   \
	X_(LABELS, labels, struct page_label)             \
	X_(TEXTS, texts, char)

enum page_part {
#define PAGE_PART(id_, member_, type_) PAGE_##id_,
	PAGE_PARTS(PAGE_PART)
#undef PAGE_PART
		PAGE_PARTS_N
};

struct page_header {
	char magic[8];
	int64_t real_ns; /* when the samples were taken */
	uint32_t n[PAGE_PARTS_N]; /* elements of each array */
};
