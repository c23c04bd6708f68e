// SPDX-License-Identifier: Apache-2.0
#include "view/set_texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Where a set's text is. */
struct set_place {
	size_t at, n; /* n 0: not made yet */
};

enum { SETS_AT_ONCE = 256 };

void set_texts_init(struct set_texts *texts)
{
	*texts = (struct set_texts){ 0 };
	strbuf_init(&texts->text, 0);
}

void set_texts_done(struct set_texts *texts)
{
	strbuf_done(&texts->text);
	free(texts->places);
}

/* The place of the set with this id, allocated if needed. */
static struct set_place *set_place_of(struct set_texts *texts, uint32_t id)
{
	uint32_t n = MAX(id + 1 + SETS_AT_ONCE, texts->n * 2);
	struct set_place *places;

	if (id < texts->n)
		return &texts->places[id];
	places = reallocarray(texts->places, n, sizeof(*places));
	if (!places) {
		texts->text.failed = true;
		return NULL;
	}
	memset(places + texts->n, 0, (n - texts->n) * sizeof(*places));
	texts->places = places;
	texts->n = n;
	return &texts->places[id];
}

void set_texts_add(struct set_texts *texts, const struct label_set *set, set_writer write, void *userdata,
		   struct strbuf *out)
{
	struct set_place *place;

	if (set->id == 0) {
		write(out, set, userdata);
		return;
	}
	place = set_place_of(texts, set->id);
	if (!place)
		return;
	if (place->n == 0) {
		place->at = texts->text.len;
		write(&texts->text, set, userdata);
		place->n = texts->text.len - place->at;
	}
	strbuf_add(out, texts->text.data + place->at, place->n);
}
