// SPDX-License-Identifier: Apache-2.0
/*
 * What has changed from one JSON text to the next one of the same page, as changes that a client applies to
 * its copy: [["gpus",0,"power_watts"],312.5] sets a member or element, [["gpus","length"],7] shortens an
 * array. Both texts are walked side by side, so nothing is parsed into memory: what is the same bytes is
 * passed over. Where names of members differ the object is set as a whole.
 *
 * The changes are cut into events of Server-Sent Events, so that a browser has many short pieces of work and
 * not a long one:
 *
 *   event: change
 *   data: {"page":"gpus","start":true,"changes":[...],"more":true}
 *
 * "start": the changes are of an empty document. "more": the document is whole only with the next event.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

enum { DELTA_EVENT_BYTES = 128 << 10, DELTA_DEPTH_MAX = 16 };

struct delta_text {
	const char *text;
	size_t n;
};

/*
 * Appends the events of what has changed from @old to @new; @old->n 0: from nothing. -EBADMSG: one is no JSON
 * text. -E2BIG: the changes would be longer than the text, so that from nothing is better. Then, and when
 * @out has failed, what was appended must not be sent.
 */
int delta_events(const char *page, const struct delta_text *old, const struct delta_text *new,
		 struct strbuf *out);
