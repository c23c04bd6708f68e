// SPDX-License-Identifier: Apache-2.0
#include "serve/encoding.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/accept.h"
#include "base/macro.h"

enum {
	GZIP_WINDOW = 15 + 16, /* zlib's: the largest window, and gzip's frame */
	GZIP_LEVEL = 4, /* on pages of metrics nearly as short as 6, in half the time */
	GZIP_MEMORY = 8,
	ZSTD_LEVEL = 3,
};

static const char *const names[HTTP_ENCODINGS] = {
	[HTTP_PLAIN] = "identity",
	[HTTP_GZIP] = "gzip",
	[HTTP_ZSTD] = "zstd",
};

const char *encoding_name(enum http_encoding encoding)
{
	return names[encoding];
}

enum http_encoding encoding_negotiate(const char *accept_encoding)
{
	enum http_encoding best = HTTP_PLAIN;
	int best_quality = 0;

	for (int n = 0; accept_encoding && n < ACCEPT_RANGES_MAX; n++) {
		struct accept_range range;

		accept_encoding = accept_next(accept_encoding, &range);
		for (enum http_encoding e = HTTP_PLAIN; e < HTTP_ENCODINGS; e++) {
			if (!accept_is(&range, names[e]) || range.quality <= 0 ||
			    range.quality < best_quality || (range.quality == best_quality && e < best))
				continue;
			best = e;
			best_quality = range.quality;
		}
	}
	return best;
}

static int add_gzip(const struct strbuf *from, struct strbuf *out, uint8_t **ret_room)
{
	z_stream zip = { 0 };
	size_t bound;
	int r;

	if (deflateInit2(&zip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&zip, from->len);
	*ret_room = malloc(bound);
	zip.next_in = (uint8_t *)from->data;
	zip.avail_in = (uInt)from->len;
	zip.next_out = *ret_room;
	zip.avail_out = (uInt)bound;
	r = *ret_room ? deflate(&zip, Z_FINISH) : Z_MEM_ERROR;
	if (r == Z_STREAM_END)
		strbuf_add(out, (const char *)*ret_room, bound - zip.avail_out);
	deflateEnd(&zip);
	return r == Z_STREAM_END ? 0 : -ENOMEM;
}

static int add_zstd(const struct strbuf *from, struct strbuf *out, uint8_t **ret_room)
{
	size_t bound = ZSTD_compressBound(from->len), n;

	*ret_room = malloc(bound);
	if (!*ret_room)
		return -ENOMEM;
	n = ZSTD_compress(*ret_room, bound, from->data, from->len, ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	strbuf_add(out, (const char *)*ret_room, n);
	return 0;
}

int encoding_apply(enum http_encoding encoding, const struct strbuf *from, struct strbuf *out)
{
	_cleanup_free_ uint8_t *room = NULL;
	int r = encoding == HTTP_ZSTD ? add_zstd(from, out, &room) : add_gzip(from, out, &room);

	return r == 0 && out->failed ? -ENOMEM : r;
}
