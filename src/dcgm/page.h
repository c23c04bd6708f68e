// SPDX-License-Identifier: Apache-2.0
/*
 * What one page says: rows by the eight labels of their key (model/scraped.h), and the GPUs and MIG instances
 * of this node with the numbers of metrics.def. Filled while the page comes; what it has is of use only when
 * the page has ended well.
 *
 * Memory: at most 2048 rows with 1 MiB of texts, equal ones of neighbours once, and 256 devices.
 */
#pragma once

#include "exposition/exposition.h"
#include "dcgm/protocol.h"

enum {
	PAGE_ROWS_MAX = 2048,
	PAGE_TEXT_MAX = 1 << 20,
};

struct page;

/*
 * @here: its GPUs are this node's, whatever it says; else those whose node is one of @nodes (NULL-terminated,
 * borrowed). @node: what the page's node is called whatever it says, borrowed; "": as it says.
 */
int page_new(bool strict, bool here, const char *node, const char *const *nodes, struct page **ret_page);
void page_free(struct page *page);
DEFINE_CLEANUP(struct page *, page_free, page_freep)
/* As exposition_feed() and exposition_end(). */
int page_feed(struct page *page, const char *data, size_t n);
int page_end(struct page *page);

/* Lines by reason, and the reason and number of the line that lost it. */
const struct exposition *page_exposition(const struct page *page);
/* Of a page that has ended. */
uint32_t page_rows(const struct page *page);
/* It says that its numbers are simulated. */
bool page_simulated(const struct page *page);
void page_row(const struct page *page, uint32_t i, struct scraped_row *ret_row);
uint32_t page_devices(const struct page *page);
const struct dcgm_device *page_device(const struct page *page, uint32_t i);
