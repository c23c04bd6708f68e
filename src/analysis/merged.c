// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of several ranks, merged by frame: sorted by their frames from the outermost one on, those with the
 * same beginning are neighbours. What is printed is a tree, each frame with the ranks that are in it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/private.h"

enum { RANKS_TEXT = 64 };

struct merging {
	const struct analysis *analysis;
	const struct ranked_stack *list;
	struct {
		uint32_t depth, frame; /* frame: text */
		uint32_t from, to; /* stacks */
	} made[ANALYSIS_FRAMES_MAX];
	uint32_t n;
};

/* From the outermost one on; UINT32_MAX: it has no more. */
static uint32_t frame_at(const struct analysis *a, uint64_t stack, uint32_t depth)
{
	uint32_t n = 0;
	const uint32_t *numbers = stack_numbers(a, stack, &n);

	return numbers && depth < n ? numbers[n - 1 - depth] : UINT32_MAX;
}

/* Those with fewer frames first. */
static int compare_stacks(const void *one, const void *two, void *userdata)
{
	const struct ranked_stack *x = one, *y = two;

	for (uint32_t depth = 0; x->stack != y->stack; depth++) {
		uint32_t a = frame_at(userdata, x->stack, depth) + 1,
			 b = frame_at(userdata, y->stack, depth) + 1;

		if (a != b)
			return a < b ? -1 : 1;
		if (a == 0)
			break;
	}
	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : (x->pid > y->pid) - (x->pid < y->pid);
}

static void merge(struct merging *m, uint32_t from, uint32_t to, uint32_t depth)
{
	while (from < to) {
		uint32_t frame = frame_at(m->analysis, m->list[from].stack, depth), end = from + 1;

		while (end < to && frame_at(m->analysis, m->list[end].stack, depth) == frame)
			end++;
		if (frame != UINT32_MAX && m->n < ANALYSIS_FRAMES_MAX) {
			m->made[m->n].depth = depth;
			m->made[m->n].frame = frame;
			m->made[m->n].from = from;
			m->made[m->n++].to = end;
			merge(m, from, end, depth + 1);
		}
		from = end;
	}
}

static int compare_ranks(const void *one, const void *two)
{
	int32_t a = *(const int32_t *)one, b = *(const int32_t *)two;

	return (a > b) - (a < b);
}

/* "0-2, 5, PID 7"; what does not fit is "...". */
static void ranks_text(const struct ranked_stack *list, uint32_t n, int32_t *ranks,
		       char text[static RANKS_TEXT])
{
	uint32_t known = 0;
	int at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n; i++)
		if (list[i].rank >= 0)
			ranks[known++] = list[i].rank;
	qsort(ranks, known, sizeof(*ranks), compare_ranks);
	for (uint32_t i = 0, last; i < known && at < RANKS_TEXT; i = last + 1) {
		for (last = i; last + 1 < known && ranks[last + 1] <= ranks[last] + 1;)
			last++;
		at += snprintf(text + at, (size_t)(RANKS_TEXT - at),
			       ranks[last] > ranks[i] ? "%s%" PRId32 "-%" PRId32 : "%s%" PRId32,
			       at > 0 ? ", " : "", ranks[i], ranks[last]);
	}
	for (uint32_t i = 0; i < n && at < RANKS_TEXT; i++)
		if (list[i].rank < 0 && list[i].pid != 0)
			at += snprintf(text + at, (size_t)(RANKS_TEXT - at), "%sPID %" PRIu32,
				       at > 0 ? ", " : "", list[i].pid);
	if (at >= RANKS_TEXT)
		memcpy(text + RANKS_TEXT - 4, "...", 4);
}

/* One piece of memory: the frames, then their texts. */
static struct analysis_frames *write_frames(const struct merging *m, int32_t *ranks)
{
	const struct text_table *texts = &m->analysis->stacks.texts;
	struct analysis_frames *frames;
	size_t bytes = 0;
	char *to;

	for (uint32_t i = 0; i < m->n; i++)
		bytes += strlen(text_table_get(texts, m->made[i].frame)) + 1 + RANKS_TEXT;
	frames = calloc(1, sizeof(*frames) + m->n * sizeof(frames->list[0]) + bytes);
	if (!frames)
		return NULL;
	frames->n = m->n;
	to = (char *)&frames->list[m->n];
	for (uint32_t i = 0; i < m->n; i++) {
		size_t n = strlen(text_table_get(texts, m->made[i].frame)) + 1;

		memcpy(to, text_table_get(texts, m->made[i].frame), n);
		ranks_text(m->list + m->made[i].from, m->made[i].to - m->made[i].from, ranks, to + n);
		frames->list[i] = (struct analysis_frame){ m->made[i].depth, to, to + n };
		to += n + RANKS_TEXT;
	}
	return frames;
}

struct analysis_frames *stacks_merge(const struct analysis *a, struct ranked_stack *list, uint32_t n)
{
	_cleanup_free_ struct merging *m = calloc(1, sizeof(*m));
	_cleanup_free_ int32_t *ranks = calloc(n, sizeof(*ranks));

	if (!m || !ranks)
		return NULL;
	qsort_r(list, n, sizeof(*list), compare_stacks, (void *)a);
	m->analysis = a;
	m->list = list;
	merge(m, 0, n, 0);
	return m->n > 0 ? write_frames(m, ranks) : NULL;
}
