// SPDX-License-Identifier: Apache-2.0
#include "store/tiers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/block.h"

#define SLACK_NS (NSEC_PER_SEC / 2) /* ticks come a little early or late */

/* Exits of frames that a tier does not take; they are in its next one. */
struct exits {
	struct process *list;
	uint32_t n, room;
};

struct open_tier {
	struct block_writer *writer;
	struct stored_block block;
	int64_t taken_ns; /* boot time of its newest frame; 0: none yet */
	uint32_t put; /* frames that are in the file */
	struct exits exits;
};

struct tiers {
	struct database *database;
	const struct fields *fields;
	struct tiers_settings settings;
	int64_t layout;
	struct open_tier tiers[TIERS];
	struct tiers_figures figures;
	bool want_slow;
};

/* ---- the file ---- */

static int put_layout(struct tiers *t)
{
	struct strbuf text;
	int r;

	if (t->layout)
		return 0;
	strbuf_init(&text, 0);
	r = layout_write(t->fields, &text);
	if (r == 0)
		r = database_put_layout(t->database, text.data, text.len, &t->layout);
	strbuf_done(&text);
	return r;
}

/* With room that is made by dropping what is oldest. */
static int put_with_room(struct tiers *t, struct open_tier *tier, const struct strbuf *bytes)
{
	struct database_figures figures;
	int r;

	do {
		r = database_figures(t->database, &figures);
		if (r == 0 && figures.bytes + bytes->len > t->settings.max_bytes)
			r = -ENOSPC;
		if (r == 0)
			r = database_put(t->database, &tier->block, bytes->data, bytes->len);
		if (r != -ENOSPC)
			return r;
		t->figures.dropped++;
	} while (database_drop_oldest(t->database, tier->block.id) == 0);
	t->figures.dropped--;
	return r;
}

static int put_block(struct tiers *t, struct open_tier *tier, bool last)
{
	struct strbuf bytes;
	int r = put_layout(t);

	strbuf_init(&bytes, 0);
	if (r == 0)
		r = block_writer_finish(tier->writer, last, &bytes);
	if (r == 0) {
		tier->block.layout = t->layout;
		tier->block.frames = block_writer_frames(tier->writer);
		r = put_with_room(t, tier, &bytes);
	}
	if (r == 0)
		tier->put = tier->block.frames;
	strbuf_done(&bytes);
	return r;
}

static void close_block(struct open_tier *tier)
{
	block_writer_reset(tier->writer);
	tier->block = (struct stored_block){ .tier = tier->block.tier };
	tier->put = 0;
}

/* ---- frames ---- */

/* How many there is no room for. */
static uint32_t keep_exits(struct exits *exits, const struct frame *frame)
{
	uint32_t n = MIN(frame->n[STORE_EXITED], store_tables[STORE_EXITED].rows_max - exits->n);
	struct process *list;

	if (exits->n + n > exits->room) {
		list = reallocarray(exits->list, exits->n + n, sizeof(*list));
		if (!list)
			return frame->n[STORE_EXITED];
		exits->list = list;
		exits->room = exits->n + n;
	}
	if (n > 0)
		memcpy(&exits->list[exits->n], frame->rows[STORE_EXITED], n * sizeof(*exits->list));
	exits->n += n;
	return frame->n[STORE_EXITED] - n;
}

static int64_t frame_boot_ns(const struct frame *frame)
{
	const struct snapshot *node = (const struct snapshot *)(const void *)frame->rows[STORE_NODE];

	return node->boot_ns;
}

static bool is_due(const struct open_tier *tier, const struct tier *row, const struct frame *frame)
{
	int64_t since = frame_boot_ns(frame) - tier->taken_ns;

	if (row->slow && frame->n[STORE_SLOW] == FRAME_UNCHANGED)
		return false;
	return tier->taken_ns == 0 || since < 0 || since >= row->period_ns - SLACK_NS;
}

static void note_times(struct stored_block *block, const struct frame *frame, bool first)
{
	const struct snapshot *node = (const struct snapshot *)(const void *)frame->rows[STORE_NODE];

	if (first)
		block->boot_first_ns = node->boot_ns;
	block->boot_last_ns = node->boot_ns;
	block->real_first_ns = first ? node->real_ns : MIN(block->real_first_ns, node->real_ns);
	block->real_last_ns = first ? node->real_ns : MAX(block->real_last_ns, node->real_ns);
}

/* With all exits since the tier's frame before. */
static int take_frame(struct tiers *t, struct open_tier *tier, struct frame frame)
{
	int r;

	t->figures.exits += keep_exits(&tier->exits, &frame);
	frame.rows[STORE_EXITED] = (const uint8_t *)tier->exits.list;
	frame.n[STORE_EXITED] = tier->exits.n;
	r = block_writer_add(tier->writer, &frame);
	tier->exits.n = 0;
	if (r < 0)
		return r;
	note_times(&tier->block, &frame, block_writer_frames(tier->writer) == 1);
	tier->taken_ns = frame_boot_ns(&frame);
	return 0;
}

static bool is_complete(const struct open_tier *tier, const struct tier *row)
{
	return block_writer_frames(tier->writer) >= row->block_frames || block_writer_is_full(tier->writer);
}

/* One that cannot be put is given up when it is complete, since the next one must begin. */
static int end_block(struct tiers *t, struct open_tier *tier)
{
	int r = tier->put < block_writer_frames(tier->writer) ? put_block(t, tier, true) : 0;

	if (r < 0)
		t->figures.lost += block_writer_frames(tier->writer) - tier->put;
	close_block(tier);
	return r;
}

/* A block begins with all tables; one that is full cannot wait for that. */
static bool may_end(const struct open_tier *tier, const struct frame *frame)
{
	return frame->n[STORE_SLOW] != FRAME_UNCHANGED || block_writer_is_full(tier->writer);
}

static int add_to_tier(struct tiers *t, unsigned i, const struct frame *frame)
{
	struct open_tier *tier = &t->tiers[i];
	const struct tier *row = &store_tiers[i];
	uint64_t dropped = 0;
	int r = 0;

	if (!is_due(tier, row, frame)) {
		t->figures.exits += keep_exits(&tier->exits, frame);
		return 0;
	}
	if (is_complete(tier, row) && may_end(tier, frame)) {
		r = end_block(t, tier);
		if (r == 0)
			r = database_keep(t->database, i, t->settings.frames[i], &dropped);
	}
	if (take_frame(t, tier, *frame) < 0) {
		t->figures.lost += 1 + block_writer_frames(tier->writer) - tier->put;
		close_block(tier);
		return -ENOMEM;
	}
	if (block_writer_frames(tier->writer) >= tier->put + row->put_frames)
		r = put_block(t, tier, is_complete(tier, row));
	return r;
}

int tiers_add(struct tiers *t, const struct frame *frame)
{
	int result = 0;

	if (frame->n[STORE_NODE] != 1 || !frame->rows[STORE_NODE])
		return -EBADMSG;
	t->figures.frames++;
	for (unsigned i = 0; i < TIERS; i++) {
		int r = add_to_tier(t, i, frame);

		result = result == 0 ? r : result;
	}
	t->want_slow = is_complete(&t->tiers[0], &store_tiers[0]);
	return result;
}

int tiers_flush(struct tiers *t)
{
	int result = 0;

	for (unsigned i = 0; i < TIERS; i++) {
		struct open_tier *tier = &t->tiers[i];
		int r = block_writer_frames(tier->writer) > tier->put ? put_block(t, tier, true) : 0;

		result = result == 0 ? r : result;
	}
	return result;
}

bool tiers_want_slow(const struct tiers *t)
{
	return t->want_slow;
}

void tiers_figures(const struct tiers *t, struct tiers_figures *ret_figures)
{
	*ret_figures = t->figures;
}

/* ---- life ---- */

int tiers_new(struct database *database, const struct fields fields[STORE_TABLES],
	      const struct tiers_settings *settings, struct tiers **ret_tiers)
{
	_cleanup_(tiers_freep) struct tiers *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return -ENOMEM;
	t->database = database;
	t->fields = fields;
	t->settings = *settings;
	for (unsigned i = 0; i < TIERS && r == 0; i++) {
		t->tiers[i].block.tier = i;
		r = block_writer_new(fields, &t->tiers[i].writer);
	}
	if (r < 0)
		return r;
	*ret_tiers = TAKE_PTR(t);
	return 0;
}

void tiers_free(struct tiers *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < TIERS; i++) {
		struct open_tier *tier = &t->tiers[i];

		block_writer_free(tier->writer);
		free(tier->exits.list);
	}
	free(t);
}
