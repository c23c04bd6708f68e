// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/strbuf.h"
#include "timeline/stacks.h"
#include "timeline/texts.h"
#include "timeline/timeline.h"

/* Of a text: newest block that has it as a name, a key, an argument's value. */
struct timeline_text {
	/* newest block that has it as a name, a key, an argument's value, a function's name, a file */
	uint32_t named, keyed, valued, function, file;
};

/* All but `block` may be NULL. */
struct timeline_encoder {
	int (*init)(struct timeline *timeline); /* sets `state`; -ENOMEM */
	void (*done)(struct timeline *timeline);
	int (*block)(struct timeline *timeline); /* appends it to `out`; -errno */
};

extern const struct timeline_encoder timeline_perfetto, timeline_chrome;

struct timeline {
	const struct timeline_encoder *encoder;
	struct timeline_ops ops;
	void *userdata;
	int failed; /* the first write's that did */
	struct texts texts;
	struct timeline_stacks stacks;
	struct timeline_text *used; /* by text */
	uint32_t used_n, used_cap;
	struct timeline_track *tracks;
	uint32_t *described; /* by track: number of the newest block that describes it */
	uint32_t tracks_n, tracks_cap;
	uint64_t tracks_before; /* forgotten ones: a track's number in the file is never used again */
	uint32_t block; /* number of the one that is collected, from 1 */
	int64_t since_ns; /* it has events since about then; each block's is later than the one's before */
	uint32_t n;
	struct timeline_event *events; /* TIMELINE_BLOCK */
	struct strbuf out;
	void *state; /* the encoder's */
};

/* Up to this text there is a struct timeline_text. */
int timeline_texts_used(struct timeline *timeline, uint32_t text);

static inline const char *text_at(const struct timeline *timeline, uint32_t text)
{
	return texts_get(&timeline->texts, text);
}

extern const char *const timeline_category_names[TIMELINE_CATEGORIES];
/* "128x1x1". */
enum { TIMELINE_DIMENSIONS_TEXT = 32 };
void timeline_dimensions_text(uint64_t dimensions, char text[static TIMELINE_DIMENSIONS_TEXT]);
