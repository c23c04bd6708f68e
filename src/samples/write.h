// SPDX-License-Identifier: Apache-2.0
/* Writes a page of samples (page.h), family by family. */
#pragma once

#include "base/hashmap.h"
#include "base/strbuf.h"
#include "samples/page.h"

struct samples_writer {
	struct strbuf parts[PAGE_PARTS_N];
	uint32_t n[PAGE_PARTS_N];
	struct hashmap texts; /* by the hash of a text */
	bool failed;
};

void samples_writer_init(struct samples_writer *writer);
void samples_writer_done(struct samples_writer *writer);

/* A text of the page. */
uint32_t samples_add_text(struct samples_writer *writer, const char *text);
/* A set of labels, to be named by series: from 1; 0: there is no memory. */
uint32_t samples_add_set(struct samples_writer *writer, const struct page_label *labels, uint32_t n);
/* From 1. Of @histogram the numbers n, all and first are the caller's. */
uint32_t samples_add_histogram(struct samples_writer *writer, const struct page_histogram *histogram,
			       const struct page_bound *bounds, const uint64_t *counts);
/* Begins a family; its first and n are the writer's. */
void samples_add_family(struct samples_writer *writer, const struct page_family *family);
void samples_add_series(struct samples_writer *writer, const struct page_series *series);

/*
 * The page in a file in memory: a descriptor, the caller's, and its size. -ENOMEM: there is none, or it is
 * larger than PAGE_BYTES_MAX; -errno.
 */
int samples_write(struct samples_writer *writer, int64_t real_ns, uint32_t *ret_bytes);
