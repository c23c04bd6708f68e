// SPDX-License-Identifier: Apache-2.0
#include "timeline/private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { DIMENSION_BITS = 21, DIMENSION_MAX = (1 << DIMENSION_BITS) - 1 };

const char *const timeline_category_names[TIMELINE_CATEGORIES] = {
#define CATEGORY(id_, name_) [TIMELINE_##id_] = name_,
#include "timeline/categories.def"
#undef CATEGORY
};

/* Events come that much later than they began, but for long calls. */
#define LATE_NS (20 * NSEC_PER_MSEC)

/* ---- texts and tracks ---- */

static int timeline_grow(void *array, uint32_t n, uint32_t *cap, uint32_t max, size_t size)
{
	uint32_t wanted = *cap ? 2 * *cap : 256;
	void *old, *grown;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -ENOBUFS;
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, wanted, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*cap = wanted;
	return 0;
}

int timeline_texts_used(struct timeline *t, uint32_t text)
{
	int r = 0;

	while (r == 0 && t->used_n <= text) {
		r = timeline_grow(&t->used, t->used_n, &t->used_cap, TIMELINE_TEXTS_MAX, sizeof(*t->used));
		if (r == 0)
			t->used[t->used_n++] = (struct timeline_text){ 0 };
	}
	return r;
}

int timeline_text(struct timeline *t, const char *text, uint32_t *ret_text)
{
	uint32_t number;
	int r = texts_add(&t->texts, text, strlen(text), &number);

	if (r == 0)
		r = timeline_texts_used(t, number);
	if (r == 0)
		*ret_text = number;
	return r;
}

int timeline_track(struct timeline *t, const struct timeline_track *track, uint32_t *ret_track)
{
	uint32_t cap = t->tracks_cap;
	int r = timeline_grow(&t->described, t->tracks_n, &cap, TIMELINE_TRACKS_MAX, sizeof(*t->described));

	if (r == 0)
		r = timeline_grow(&t->tracks, t->tracks_n, &t->tracks_cap, TIMELINE_TRACKS_MAX,
				  sizeof(*t->tracks));
	if (r < 0)
		return r;
	t->described[t->tracks_n] = 0;
	t->tracks[t->tracks_n] = *track;
	*ret_track = t->tracks_n++;
	return 0;
}

uint64_t timeline_dimensions(const uint32_t at[static 3])
{
	uint64_t packed = 0;

	for (unsigned i = 0; i < 3; i++)
		packed = packed << DIMENSION_BITS | MIN(at[i], (uint32_t)DIMENSION_MAX);
	return packed;
}

void timeline_dimensions_text(uint64_t dimensions, char text[static TIMELINE_DIMENSIONS_TEXT])
{
	snprintf(text, TIMELINE_DIMENSIONS_TEXT, "%ux%ux%u",
		 (unsigned)(dimensions >> 2 * DIMENSION_BITS & DIMENSION_MAX),
		 (unsigned)(dimensions >> DIMENSION_BITS & DIMENSION_MAX),
		 (unsigned)(dimensions & DIMENSION_MAX));
}

/* ---- writing ---- */

static int write_out(struct timeline *t, uint32_t events, int64_t begin_ns)
{
	struct timeline_block *block = NULL;

	if (t->failed == 0 && !t->out.failed)
		block = timeline_block_new(t->out.data, t->out.len);
	if (t->failed == 0 && !block)
		t->failed = -ENOMEM;
	if (t->failed == 0) {
		block->events = events;
		block->begin_ns = begin_ns;
		block->end_ns = clock_mono_ns();
		t->failed = t->ops.write(block, t->userdata);
	}
	timeline_block_unref(block);
	strbuf_reset(&t->out);
	return t->failed;
}

int timeline_flush(struct timeline *t)
{
	int64_t begin_ns = t->since_ns;
	uint32_t events = t->n;
	int r;

	if (t->n == 0 || t->failed)
		return t->failed;
	r = t->encoder->block(t);
	if (r < 0)
		t->failed = r;
	t->n = 0;
	t->block++;
	t->since_ns = clock_mono_ns() - LATE_NS;
	return write_out(t, events, begin_ns);
}

int timeline_add(struct timeline *t, const struct timeline_event *event)
{
	if (t->failed)
		return t->failed;
	if (event->type == TIMELINE_VALUE && !isfinite(event->value))
		return -EINVAL;
	t->events[t->n++] = *event;
	return t->n == TIMELINE_BLOCK ? timeline_flush(t) : 0;
}

int timeline_forget(struct timeline *t)
{
	int r = timeline_flush(t);

	t->tracks_before += t->tracks_n;
	t->tracks_n = t->used_n = 0;
	texts_clear(&t->texts);
	timeline_stacks_clear(&t->stacks);
	return r;
}

double timeline_fill(const struct timeline *t)
{
	double texts = (double)t->texts.at.n / TIMELINE_TEXTS_MAX,
	       bytes = (double)t->texts.bytes.len / TIMELINE_TEXT_BYTES,
	       tracks = (double)t->tracks_n / TIMELINE_TRACKS_MAX;

	return MAX(MAX(MAX(texts, bytes), tracks), timeline_stacks_fill(&t->stacks));
}

int timeline_new(enum timeline_format format, const struct timeline_ops *ops, void *userdata,
		 struct timeline **ret_timeline)
{
	_cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->encoder = format == TIMELINE_PERFETTO ? &timeline_perfetto : &timeline_chrome;
	t->ops = *ops;
	t->userdata = userdata;
	t->block = 1;
	t->since_ns = clock_mono_ns() - LATE_NS;
	texts_init(&t->texts);
	timeline_stacks_init(&t->stacks);
	strbuf_init(&t->out, 0);
	t->events = calloc(TIMELINE_BLOCK, sizeof(*t->events));
	r = t->events ? 0 : -ENOMEM;
	if (r == 0 && t->encoder->init)
		r = t->encoder->init(t);
	if (r < 0)
		return r;
	*ret_timeline = TAKE_PTR(t);
	return 0;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	if (t->encoder->done)
		t->encoder->done(t);
	free(t->events);
	free(t->used);
	free(t->tracks);
	free(t->described);
	texts_done(&t->texts);
	timeline_stacks_done(&t->stacks);
	strbuf_done(&t->out);
	free(t);
}
