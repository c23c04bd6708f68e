// SPDX-License-Identifier: Apache-2.0
/*
 * One LZ4 block, in a stream. liblz4 decodes a block only whole, or its begin up to a size; but it can be
 * given the 64 KiB before, and told how many bytes to make. So sequences (literals, then a match) are walked
 * as far as input and room allow, and the library decodes these. A sequence that does not fit, and the
 * block's last, is copied by hand.
 */
#include "cubin/private.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>

enum { HISTORY = 64 << 10, MATCH_LEAST = 4, LONG = 15 };

struct walk {
	struct content *content;
	sink_fn *sink;
	void *userdata;
	uint8_t *in; /* CHUNK bytes of the block, those from @at to @end are next */
	size_t at, end;
	uint64_t read; /* of the block, up to @end */
	uint8_t *out; /* CHUNK bytes for output, preceded by at most HISTORY bytes of previous output */
	size_t history;
	size_t filled; /* bytes of output */
	uint64_t made; /* without those */
};

/* Passes the output to the sink. */
static int room_flush(struct walk *walk)
{
	size_t n = walk->filled, kept = MIN(walk->history + n, (size_t)HISTORY);
	int r;

	if (n == 0)
		return 0;
	if (n > walk->content->size - walk->made)
		return content_bad(walk->content, walk->made,
				   "lz4: more than the %llu bytes that it says to be",
				   (unsigned long long)walk->content->size);
	r = walk->sink(walk->out, n, walk->userdata);
	memmove(walk->out - kept, walk->out + n - kept, kept);
	walk->history = kept;
	walk->made += n;
	walk->filled = 0;
	return r;
}

static int bad(struct walk *walk, const char *what)
{
	return content_bad(walk->content, walk->made + walk->filled, "lz4: %s", what);
}

/* As much input as fits. */
static int refill(struct walk *walk)
{
	struct reader *reader = walk->content->reader;
	size_t n;

	memmove(walk->in, walk->in + walk->at, walk->end - walk->at);
	walk->end -= walk->at;
	walk->at = 0;
	n = MIN(walk->content->stored.size - walk->read, CHUNK - walk->end);
	if (reader_get(reader, &walk->content->stored, walk->read, walk->in + walk->end, n) < 0)
		return bad(walk, reader_why(reader));
	walk->read += n;
	walk->end += n;
	return 0;
}

static int more(struct walk *walk)
{
	int r = walk->at == walk->end ? refill(walk) : 0;

	return r == 0 && walk->at == walk->end ? bad(walk, "the block ends in the middle of a sequence") : r;
}

static bool block_ends(const struct walk *walk)
{
	return walk->at == walk->end && walk->read == walk->content->stored.size;
}

/* A length that does not fit the token continues in bytes of 255 and a last one below 255. */
static int length_by_hand(struct walk *walk, uint64_t *length)
{
	uint8_t byte;

	if (*length != LONG)
		return 0;
	do {
		int r = more(walk);

		if (r < 0)
			return r;
		byte = walk->in[walk->at++];
		*length += byte;
	} while (byte == 255);
	return 0;
}

static int literals_by_hand(struct walk *walk, uint64_t left)
{
	while (left > 0) {
		size_t n;
		int r = more(walk);

		if (r == 0 && walk->filled == CHUNK)
			r = room_flush(walk);
		if (r != 0)
			return r;
		n = MIN(left, MIN(walk->end - walk->at, CHUNK - walk->filled));
		memcpy(walk->out + walk->filled, walk->in + walk->at, n);
		walk->at += n;
		walk->filled += n;
		left -= n;
	}
	return 0;
}

static int match_by_hand(struct walk *walk, size_t distance, uint64_t left)
{
	if (distance == 0 || distance > walk->history + walk->filled)
		return bad(walk, "a match of bytes before the first");
	while (left > 0) {
		/* The match may overlap its own output. */
		size_t n = MIN(left, CHUNK - walk->filled);
		uint8_t *to = walk->out + walk->filled;

		for (size_t i = 0; i < n; i++)
			to[i] = *(to + i - distance);
		walk->filled += n;
		left -= n;
		if (walk->filled == CHUNK) {
			int r = room_flush(walk);

			if (r != 0)
				return r;
		}
	}
	return 0;
}

static int sequence_by_hand(struct walk *walk)
{
	uint64_t literals, match;
	size_t distance;
	int r = more(walk);

	if (r < 0)
		return r;
	literals = walk->in[walk->at] >> 4;
	match = walk->in[walk->at++] & 15;
	r = length_by_hand(walk, &literals);
	if (r == 0)
		r = literals_by_hand(walk, literals);
	if (r != 0 || block_ends(walk))
		return r;
	r = more(walk);
	if (r < 0)
		return r;
	distance = walk->in[walk->at++];
	r = more(walk);
	if (r < 0)
		return r;
	distance |= (size_t)walk->in[walk->at++] << 8;
	r = length_by_hand(walk, &match);
	return r != 0 ? r : match_by_hand(walk, distance, match + MATCH_LEAST);
}

/* The position after the length's further bytes; NULL: the input ends before. */
static const uint8_t *length_in(const uint8_t *in, const uint8_t *end, size_t *length)
{
	if (*length != LONG)
		return in;
	while (in < end) {
		*length += *in;
		if (*in++ != 255)
			return in;
	}
	return NULL;
}

/*
 * Output size of all sequences that are complete in the input and fit the output buffer; *ret_in: where they
 * end.
 */
static size_t walk_sequences(const struct walk *walk, size_t *ret_in)
{
	const uint8_t *in = walk->in + walk->at, *end = walk->in + walk->end;
	size_t made = 0;

	*ret_in = walk->at;
	/* Another one must follow, since the library treats a block's last bytes differently. */
	while (end - in > 16) {
		size_t literals = *in >> 4, match = *in & 15;

		in = length_in(in + 1, end, &literals);
		if (!in || (size_t)(end - in) < literals + 2)
			break;
		in = length_in(in + literals + 2, end, &match);
		if (!in || end - in < 16)
			break;
		if (literals + match + MATCH_LEAST > CHUNK - walk->filled - made)
			break;
		made += literals + match + MATCH_LEAST;
		*ret_in = (size_t)(in - walk->in);
	}
	return made;
}

static int decode_sequences(struct walk *walk, size_t made, size_t in)
{
	char *to = (char *)walk->out + walk->filled;
	size_t history = MIN(walk->history + walk->filled, (size_t)HISTORY);
	int n = LZ4_decompress_safe_partial_usingDict((const char *)walk->in + walk->at, to,
						      (int)(walk->end - walk->at), (int)made, (int)made,
						      to - history, (int)history);

	if (n != (int)made)
		return bad(walk, "the compressed bytes are wrong");
	walk->filled += made;
	walk->at = in;
	return 0;
}

int inflate_lz4(struct content *content, sink_fn *sink, void *userdata)
{
	struct walk walk = { .content = content, .sink = sink, .userdata = userdata };
	int r = buffer_map(&content->reader->stored, CHUNK + HISTORY + CHUNK);

	if (r < 0)
		return r;
	walk.in = content->reader->stored.bytes;
	walk.out = walk.in + CHUNK + HISTORY;
	while (r == 0) {
		size_t made, in;

		if (walk.end - walk.at < CHUNK / 2)
			r = refill(&walk);
		if (r != 0 || block_ends(&walk))
			break;
		made = walk_sequences(&walk, &in);
		r = made ? decode_sequences(&walk, made, in) : sequence_by_hand(&walk);
		if (r == 0 && walk.filled > CHUNK / 2)
			r = room_flush(&walk);
	}
	return r != 0 ? r : room_flush(&walk);
}
