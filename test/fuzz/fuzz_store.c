// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the columns' names of a recording, or, by the first bit, as one of its blocks, before it is
 * compressed: refused, or snapshots that every view can show.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <zstd.h>

#include "store/restore.h"
#include "view/view.h"

enum { PAGE_MAX = 8 << 20 };

static struct fields fields[STORE_TABLES];
static struct stored_layout own;

static void make_own_layout(void)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	if (fields_new(fields) < 0 || layout_write(fields, &text) < 0 ||
	    layout_read(fields, text.data, text.len, &own) < 0)
		abort();
	strbuf_done(&text);
}

static void show(const struct snapshot *s)
{
	struct strbuf page;

	strbuf_init(&page, PAGE_MAX);
	view_prometheus(s, EXPOSITION_PROMETHEUS, NULL, &page);
	strbuf_reset(&page);
	view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE | JSON_TRACE | JSON_KERNELS | JSON_EVENTS,
		       &page);
	strbuf_done(&page);
}

static void read_block(const struct stored_layout *layout, const void *packed, size_t n)
{
	struct block *block = NULL;

	if (block_read(fields, layout, packed, n, &block) < 0)
		return;
	for (unsigned frames = 0; frames < 4 && block_next(block); frames++) {
		struct snapshot *s = NULL;

		if (restore_snapshot(block, fields, &s) == 0 && frames == 0)
			show(s);
		restored_free(s);
	}
	block_free(block);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct stored_layout layout = { 0 };
	size_t room = ZSTD_compressBound(size), n;
	void *packed;

	if (!own.n)
		make_own_layout();
	if (size < 1)
		return 0;
	if (data[0] & 1) {
		if (layout_read(fields, (const char *)data + 1, size - 1, &layout) == 0)
			layout_done(&layout);
		return 0;
	}
	packed = malloc(room);
	n = packed ? ZSTD_compress(packed, room, data + 1, size - 1, 1) : 0;
	if (packed && !ZSTD_isError(n))
		read_block(&own, packed, n);
	free(packed);
	return 0;
}
