// SPDX-License-Identifier: Apache-2.0
/*
 * A block that stays is packed before it is compressed. Its sequences of changes (first values and series,
 * store/block.h) are taken apart: what the compressor sees is one stream for each kind of thing, and of
 * numbers the lowest bytes of all changes of a sequence, then the next ones. Before that the changes of a
 * sequence lose what the same changes of the field before it say, where that makes them smaller (links of a
 * GPU carry nearly the same), and the greatest number that divides them all.
 *
 *   head      PACKED_MAGIC, then each stream with its length
 *   OUTLINE   the plain block without lengths and bytes of sequences
 *   HEADS     of each sequence: number of changes, form (enum below), divisor
 *   GAPS      frames or tracks between two changes; of a dense one, where it is 1, the first alone
 *   FLAGS     of a sequence with whole ones: 1 for each such change, else 0
 *   WHOLE     changes that are no difference: texts, real numbers of another scale
 *   NUMBERS   the others, zigzag
 */
#pragma once

#include "base/strbuf.h"
#include "store/layout.h"

/*
 * Changes of all sequences: what has more is not packed, and refused if it claims to be. Those that are alike
 * take no bytes, so a few could claim any number: no more than the first, and so many for each byte.
 */
enum { PACKED_CHANGES_MAX = 2 << 20, PACKED_CHANGES_FREE = 256 << 10, PACKED_CHANGES_PER_BYTE = 32 };

/* Appends to @out. -E2BIG: it is too large to be packed; -EBADMSG: it is no plain block; -ENOMEM. */
int block_pack(const struct stored_layout *layout, const struct strbuf *plain, struct strbuf *out);
/* The plain block again. -EBADMSG: it is not packed; -ENOMEM. */
int block_unpack(const struct stored_layout *layout, const void *packed, size_t n, struct strbuf *out);
