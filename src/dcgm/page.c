// SPDX-License-Identifier: Apache-2.0
#include "dcgm/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "dcgm/devices.h"

enum { KEY_MAX = 640 };

struct page_row {
	uint32_t key, key_n; /* the key's texts, each with its NUL */
	uint32_t node, model; /* texts */
	uint32_t present, links; /* of @links the number is the sum of links */
	uint16_t device; /* of this node; DEVICE_NONE */
	bool link; /* of links alone, whose samples have fewer labels */
	double v[SCRAPED_METRICS];
};

struct page {
	struct exposition exposition;
	bool here, simulated;
	const char *node;
	const char *const *nodes;
	struct page_row *rows;
	uint32_t rows_n, rows_room, newest; /* newest: the row of the sample before */
	struct hashmap by_key; /* hash to the index of a row */
	char *text;
	uint32_t text_n, text_room;
	struct page_devices devices;
	struct page_labels labels; /* of the sample at hand */
};

/* ---- texts ---- */

/* Offset of the bytes; UINT32_MAX: no room. */
static uint32_t page_add_text(struct page *page, const char *p, uint32_t n)
{
	uint32_t at = page->text_n;

	if (n > PAGE_TEXT_MAX - page->text_n)
		return UINT32_MAX;
	if (page->text_n + n > page->text_room) {
		uint32_t room = MIN(MAX(page->text_room * 2, 16u << 10), (uint32_t)PAGE_TEXT_MAX);
		char *text = realloc(page->text, room);

		if (!text)
			return UINT32_MAX;
		page->text = text;
		page->text_room = room;
	}
	memcpy(page->text + at, p, n);
	page->text_n += n;
	return at;
}

/* The label with its NUL; that of the row before if it is the same. */
static uint32_t page_add_label(struct page *page, enum page_label label, uint32_t before)
{
	const uint32_t n = page->labels.v[label].n;
	char value[sizeof(((struct scraped_row *)NULL)->node)];

	if (n)
		memcpy(value, page->labels.v[label].p, n);
	value[n] = '\0';
	if (before != UINT32_MAX && strcmp(page->text + before, value) == 0)
		return before;
	return page_add_text(page, value, n + 1);
}

/* ---- rows ---- */

static uint32_t make_key(const struct page_labels *labels, char key[KEY_MAX])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < LABEL_KEYS; i++) {
		if (labels->v[i].n)
			memcpy(key + n, labels->v[i].p, labels->v[i].n);
		n += labels->v[i].n;
		key[n++] = '\0';
	}
	return n;
}

static bool key_is(const struct page *page, uint32_t row, const char *key, uint32_t n)
{
	return page->rows[row].key_n == n && memcmp(page->text + page->rows[row].key, key, n) == 0;
}

/* A page mostly has the same rows in the same order for each family. */
static bool is_next(struct page *page, const char *key, uint32_t n)
{
	uint32_t next = page->newest + 1 < page->rows_n ? page->newest + 1 : 0;

	if (page->rows_n == 0 || !key_is(page, next, key, n))
		return false;
	page->newest = next;
	return true;
}

static bool is_here(const struct page *page)
{
	const char *node = page->labels.v[LABEL_NODE].p;
	size_t n = page->labels.v[LABEL_NODE].n;

	if (page->here)
		return true;
	if (*page->node) {
		node = page->node;
		n = strlen(page->node);
	}
	for (size_t i = 0; page->nodes[i]; i++)
		if (n > 0 && strlen(page->nodes[i]) == n && memcmp(page->nodes[i], node, n) == 0)
			return true;
	return false;
}

static bool grow_rows(struct page *page)
{
	uint32_t room = MIN(MAX(page->rows_room * 2, 16u), (uint32_t)PAGE_ROWS_MAX);
	struct page_row *rows;

	if (page->rows_n < page->rows_room)
		return true;
	rows = page->rows_n < PAGE_ROWS_MAX ? realloc(page->rows, room * sizeof(*rows)) : NULL;
	if (!rows)
		return false;
	page->rows = rows;
	page->rows_room = room;
	return true;
}

static bool page_add_row(struct page *page, const char *key, uint32_t n, uint64_t hash)
{
	const struct page_row *before = page->rows_n ? &page->rows[page->rows_n - 1] : NULL;
	struct page_row row = { .key_n = n };

	row.node = page_add_label(page, LABEL_NODE, before ? before->node : UINT32_MAX);
	row.model = page_add_label(page, LABEL_MODEL, before ? before->model : UINT32_MAX);
	row.key = page_add_text(page, key, n);
	if (row.node == UINT32_MAX || row.model == UINT32_MAX || row.key == UINT32_MAX || !grow_rows(page) ||
	    hashmap_put(&page->by_key, hash, page->rows_n) < 0)
		return false;
	row.link = label_is_set(&page->labels, LABEL_NVLINK);
	row.device = is_here(page) ? devices_get(&page->devices, &page->labels) : DEVICE_NONE;
	page->newest = page->rows_n;
	page->rows[page->rows_n++] = row;
	return true;
}

/*
 * The row of the labels at hand. NULL: no room for it, or, of hashes that somebody has made equal, none for
 * the second.
 */
static struct page_row *get_row(struct page *page)
{
	char key[KEY_MAX];
	uint32_t n = make_key(&page->labels, key);
	uint64_t hash;

	if (is_next(page, key, n))
		return &page->rows[page->newest];
	hash = hash_bytes(key, n);
	if (hashmap_get(&page->by_key, hash, &page->newest))
		return key_is(page, page->newest, key, n) ? &page->rows[page->newest] : NULL;
	return page_add_row(page, key, n, hash) ? &page->rows[page->newest] : NULL;
}

/* ---- samples ---- */

/*
 * What DCGM has where there is no number: old exporters print it. As doubles the 64-bit ones, ...792 to
 * ...795, are 2^63.
 */
static bool is_blank(double value)
{
	return !isfinite(value) || (value >= 2147483632 && value <= 2147483635) ||
	       (value >= 140737488355328 && value <= 140737488355331) || value == 9223372036854775808.0;
}

/* What flows through the links adds up; of other numbers there is none for the GPU. */
static bool adds_up(const struct family *family)
{
	return family->metric && family->metric->unit == UNIT_BYTES_PER_SECOND;
}

static void put_contract(struct page *page, struct page_row *row, const struct family *family,
			 const struct line *line)
{
	const enum contract_metric metric = family->contract;
	double value = family_contract_value(family, line->value, line->whole);
	bool link = label_is_set(&page->labels, LABEL_NVLINK);
	uint32_t bit;

	if (metric == CONTRACT_METRICS)
		return;
	bit = 1u << metric;
	if (link && row->present & bit & ~row->links)
		return; /* the GPU's own number counts */
	row->v[metric] = (link && row->links & bit ? row->v[metric] : 0) + value;
	row->present |= bit;
	row->links = link ? row->links | bit : row->links & ~bit;
}

static void put_device(struct page *page, const struct page_row *row, const struct family *family,
		       const struct line *line)
{
	if (row->device == DEVICE_NONE)
		return;
	if (family->kind == FAMILY_XID)
		devices_put_xid(&page->devices, row->device, line->value);
	else if (family->metric)
		devices_put(&page->devices, row->device, family,
			    family_base_value(family, line->value, line->whole), &page->labels);
}

static void mark_estimated(struct page *page)
{
	const struct family *of =
		label_is_set(&page->labels, LABEL_METRIC) ?
			families_find(page->labels.v[LABEL_METRIC].p, page->labels.v[LABEL_METRIC].n) :
			NULL;
	uint16_t device = is_here(page) ? devices_get(&page->devices, &page->labels) : DEVICE_NONE;

	if (of && of->metric && device != DEVICE_NONE)
		devices_mark_estimated(&page->devices, device, of);
}

static bool says_simulated(const struct page_labels *labels)
{
	return labels->v[LABEL_SIMULATED].n == 4 && memcmp(labels->v[LABEL_SIMULATED].p, "true", 4) == 0;
}

static enum scrape_line put_number(struct page *page, const struct family *family, const struct line *line)
{
	struct page_row *row;

	if (is_blank(line->value))
		return SCRAPE_LINE_BLANK;
	if (label_is_set(&page->labels, LABEL_NVLINK) && !adds_up(family))
		return SCRAPE_LINE_TAKEN;
	row = get_row(page);
	if (!row)
		return SCRAPE_LINE_ROWS;
	put_contract(page, row, family, line);
	put_device(page, row, family, line);
	return SCRAPE_LINE_TAKEN;
}

static const void *find_family(const char *name, size_t length, _unused_ void *userdata)
{
	return families_find(name, length);
}

static void on_sample(const void *of, const struct line *line, void *userdata)
{
	const struct family *family = of;
	struct page *page = userdata;
	enum scrape_line why = labels_read(&page->labels, line);

	if (why == SCRAPE_LINE_TAKEN && family->kind == FAMILY_ESTIMATED)
		mark_estimated(page);
	else if (why == SCRAPE_LINE_TAKEN && family->kind == FAMILY_NODE)
		page->simulated |= says_simulated(&page->labels);
	else if (why == SCRAPE_LINE_TAKEN)
		why = put_number(page, family, line);
	/* Also where the format is strict: the line is of it. */
	if (why != SCRAPE_LINE_TAKEN)
		page->exposition.dropped[why]++;
}

/* ---- the end ---- */

/* UUID and instance, and from the namespace on: what samples of links have. */
static bool same_but_place(const struct page *page, const struct page_row *a, const struct page_row *b)
{
	const char *x = page->text + a->key, *y = page->text + b->key;

	for (unsigned i = 0; i < LABEL_KEYS; i++) {
		if (i != LABEL_GPU && i != LABEL_DEVICE && i != LABEL_PROFILE && strcmp(x, y) != 0)
			return false;
		x += strlen(x) + 1;
		y += strlen(y) + 1;
	}
	return true;
}

/* What links say goes to the row of their GPU, if there is one. */
static bool join_links(struct page *page, const struct page_row *link)
{
	for (uint32_t i = 0; i < page->rows_n; i++) {
		struct page_row *row = &page->rows[i];

		if (row->link || !same_but_place(page, row, link))
			continue;
		for (unsigned k = 0; k < SCRAPED_METRICS; k++)
			if ((link->present >> k & 1) && !(row->present >> k & 1)) {
				row->v[k] = link->v[k];
				row->present |= 1u << k;
			}
		return true;
	}
	return false;
}

static void end_links(struct page *page)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < page->rows_n; i++)
		if (!page->rows[i].link || !join_links(page, &page->rows[i]))
			page->rows[kept++] = page->rows[i];
	page->rows_n = kept;
}

int page_new(bool strict, bool here, const char *node, const char *const *nodes, struct page **ret_page)
{
	_cleanup_(page_freep) struct page *page = calloc(1, sizeof(*page));

	if (!page)
		return -ENOMEM;
	exposition_init(&page->exposition, strict, find_family, on_sample, page);
	page->here = here;
	page->node = node;
	page->nodes = nodes;
	*ret_page = TAKE_PTR(page);
	return 0;
}

void page_free(struct page *page)
{
	if (!page)
		return;
	exposition_done(&page->exposition);
	devices_done(&page->devices);
	hashmap_done(&page->by_key);
	free(page->rows);
	free(page->text);
	free(page);
}

int page_feed(struct page *page, const char *data, size_t n)
{
	return exposition_feed(&page->exposition, data, n);
}

int page_end(struct page *page)
{
	int r = exposition_end(&page->exposition);

	end_links(page);
	devices_end(&page->devices);
	return r;
}

const struct exposition *page_exposition(const struct page *page)
{
	return &page->exposition;
}

bool page_simulated(const struct page *page)
{
	return page->simulated;
}

uint32_t page_rows(const struct page *page)
{
	return page->rows_n;
}

void page_row(const struct page *page, uint32_t i, struct scraped_row *ret_row)
{
	const struct page_row *row = &page->rows[i];
	struct {
		char *to;
		size_t size;
	} const fields[LABEL_KEYS] = {
		[LABEL_UUID] = { ret_row->uuid, sizeof(ret_row->uuid) },
		[LABEL_GI] = { ret_row->gi, sizeof(ret_row->gi) },
		[LABEL_GPU] = { ret_row->gpu, sizeof(ret_row->gpu) },
		[LABEL_DEVICE] = { ret_row->device, sizeof(ret_row->device) },
		[LABEL_PROFILE] = { ret_row->mig_profile, sizeof(ret_row->mig_profile) },
		[LABEL_NAMESPACE] = { ret_row->namespace, sizeof(ret_row->namespace) },
		[LABEL_POD] = { ret_row->pod, sizeof(ret_row->pod) },
		[LABEL_CONTAINER] = { ret_row->container, sizeof(ret_row->container) },
	};
	const char *text = page->text + row->key;

	memset(ret_row, 0, sizeof(*ret_row));
	for (unsigned k = 0; k < LABEL_KEYS; k++) {
		snprintf(fields[k].to, fields[k].size, "%s", text);
		text += strlen(text) + 1;
	}
	snprintf(ret_row->node, sizeof(ret_row->node), "%s",
		 *page->node ? page->node : page->text + row->node);
	snprintf(ret_row->model, sizeof(ret_row->model), "%s", page->text + row->model);
	ret_row->present = row->present;
	memcpy(ret_row->v, row->v, sizeof(ret_row->v));
}

uint32_t page_devices(const struct page *page)
{
	return page->devices.n;
}

const struct dcgm_device *page_device(const struct page *page, uint32_t i)
{
	return devices_at(&page->devices, i);
}
