// SPDX-License-Identifier: Apache-2.0
/* The texts of a timeline, each kept once, by number: valid UTF-8 without control characters. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "base/row_list.h"
#include "base/strbuf.h"

struct texts {
	struct strbuf bytes; /* of all, each with its NUL */
	struct row_list at; /* uint32_t: where each begins */
	struct hashmap by; /* numbers, by hash */
};

void texts_init(struct texts *texts);
void texts_done(struct texts *texts);
/* Forgets all; the memory stays. */
void texts_clear(struct texts *texts);

/*
 * The number of a text, from 0, the same for equal ones: what is no UTF-8 and what controls is replaced, what
 * is longer than TIMELINE_TEXT_MAX is cut. -ENOBUFS: TIMELINE_TEXTS_MAX or TIMELINE_TEXT_BYTES; -ENOMEM.
 */
int texts_add(struct texts *texts, const char *text, size_t n, uint32_t *ret_number);

static inline const char *texts_get(const struct texts *texts, uint32_t number)
{
	return texts->bytes.data + ((const uint32_t *)texts->at.list)[number];
}
