// SPDX-License-Identifier: Apache-2.0
/* Texts of label sets, in the form of one page, each made once: a page repeats a set hundreds of times. */
#pragma once

#include "base/strbuf.h"
#include "view/walk/walk.h"

struct set_place;

/* Of one walk, by whose ids sets are known. */
struct set_texts {
	struct strbuf text; /* its `failed`: there was no memory */
	struct set_place *places; /* by id */
	uint32_t n;
};

/* Appends the set's text to @out. */
typedef void (*set_writer)(struct strbuf *out, const struct label_set *set, void *userdata);

void set_texts_init(struct set_texts *texts);
void set_texts_done(struct set_texts *texts);
/* Appends the set's text to @out: @write makes it the first time, of one without an id each time. */
void set_texts_add(struct set_texts *texts, const struct label_set *set, set_writer write, void *userdata,
		   struct strbuf *out);
