// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/*
 * Of streams; what zstd itself advises decoders to support. nvcc uses 2 MiB for images that are larger than
 * that.
 */
enum { WINDOW_LOG = 23 };

static int zstd_start(struct reader *reader)
{
	if (!reader->zstd)
		reader->zstd = ZSTD_createDCtx();
	if (!reader->zstd)
		return -ENOMEM;
	ZSTD_DCtx_reset(reader->zstd, ZSTD_reset_session_only);
	return 0;
}

/* The available bytes may suffice. */
static void ended(struct content *content, size_t n)
{
	if (n == content->size)
		return;
	content_bad(content, n, "it ends, and says to be %llu bytes", (unsigned long long)content->size);
	content->size = n;
}

static int zstd_whole(struct content *content)
{
	struct reader *reader = content->reader;
	int r = zstd_start(reader);
	size_t n;

	if (r < 0)
		return r;
	n = ZSTD_decompressDCtx(reader->zstd, reader->whole.bytes, content->size, reader->stored.bytes,
				content->stored.size);
	if (ZSTD_isError(n))
		return content_bad(content, 0, "zstd: %s", ZSTD_getErrorName(n));
	ended(content, n);
	return 0;
}

static int lz4_whole(struct content *content)
{
	struct reader *reader = content->reader;
	int n = LZ4_decompress_safe(reader->stored.bytes, reader->whole.bytes, (int)content->stored.size,
				    (int)content->size);

	if (n < 0)
		return content_bad(content, 0, "lz4: the compressed bytes are wrong, or of more than %llu",
				   (unsigned long long)content->size);
	ended(content, (size_t)n);
	return 0;
}

int inflate_whole(struct content *content)
{
	struct reader *reader = content->reader;
	/* One size for all images: with free and malloc the kernel would clear its pages each time. */
	size_t most = reader->limits.image_bytes;
	int r = 0;

	if (content->size > reader->whole_bytes || content->stored.size > reader->whole_bytes / 2) {
		r = team_alone(reader);
		reader->large = true;
	}
	if (r == 0)
		r = buffer_map(&reader->stored, most / 2 + 1);
	if (r == 0)
		r = buffer_map(&reader->whole, most + 1);
	if (r < 0)
		return r;
	if (reader_get(reader, &content->stored, 0, reader->stored.bytes, content->stored.size) < 0) {
		reader_trouble(reader, content->stored.offset, "a compressed image of %llu bytes: %s",
			       (unsigned long long)content->stored.size, reader_why(reader));
		return -EBADMSG;
	}
	r = content->compression == CUBIN_ZSTD ? zstd_whole(content) : lz4_whole(content);
	if (r == 0)
		content->whole = reader->whole.bytes;
	return r;
}

/* Reports zstd's error, in our words if the cause is a limit of ours. */
static int zstd_bad(struct content *content, uint64_t at, size_t code)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge)
		return content_bad(content, at, "zstd: a window above %u bytes, which is the bound",
				   1u << WINDOW_LOG);
	return content_bad(content, at, "zstd: %s", ZSTD_getErrorName(code));
}

static int zstd_some(struct content *content, ZSTD_inBuffer *in, uint64_t *at, sink_fn *sink, void *userdata)
{
	struct reader *reader = content->reader;
	uint8_t *room = (uint8_t *)reader->stored.bytes + CHUNK;

	do {
		ZSTD_outBuffer out = { room, CHUNK, 0 };
		size_t left = ZSTD_decompressStream(reader->zstd, &out, in);
		int r;

		if (ZSTD_isError(left))
			return zstd_bad(content, *at, left);
		if (*at + out.pos > content->size)
			return content_bad(content, *at, "zstd: more than the %llu bytes that it says to be",
					   (unsigned long long)content->size);
		*at += out.pos;
		r = out.pos ? sink(room, out.pos, userdata) : 0;
		if (r != 0)
			return r;
		/* If the output is full, there may be more output without further input. */
		if (out.pos < out.size && in->pos == in->size)
			return 0;
	} while (in->pos < in->size || *at < content->size);
	return 0;
}

static int inflate_zstd(struct content *content, sink_fn *sink, void *userdata)
{
	struct reader *reader = content->reader;
	uint64_t from = 0, at = 0;
	int r = zstd_start(reader);

	if (r == 0)
		r = buffer_map(&reader->stored, 2 * CHUNK);
	if (r < 0)
		return r;
	ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	while (r == 0 && from < content->stored.size) {
		ZSTD_inBuffer in = { reader->stored.bytes, MIN((uint64_t)CHUNK, content->stored.size - from),
				     0 };

		if (reader_get(reader, &content->stored, from, reader->stored.bytes, in.size) < 0)
			return content_bad(content, at, "compressed image: %s", reader_why(reader));
		from += in.size;
		r = zstd_some(content, &in, &at, sink, userdata);
	}
	return r;
}

int inflate_stream(struct content *content, sink_fn *sink, void *userdata)
{
	return content->compression == CUBIN_ZSTD ? inflate_zstd(content, sink, userdata) :
						    inflate_lz4(content, sink, userdata);
}
