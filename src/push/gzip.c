// SPDX-License-Identifier: Apache-2.0
#include "push/gzip.h"

#include <errno.h>
#include <stdlib.h>

#include <zlib.h>

enum {
	PACKED_PIECE = 64 << 10,
	GZIP_WINDOW = 15 + 16, /* zlib's: the largest window, and gzip's frame */
	GZIP_MEMORY = 8,
};

struct packer {
	ProtobufCBuffer base; /* first */
	z_stream zip;
	struct batch batch;
	size_t room;
	int error; /* 0; -errno, and nothing more is taken */
};

static int grow_batch(struct packer *packer)
{
	size_t room = packer->room + PACKED_PIECE;
	uint8_t *more;

	if (packer->batch.n < packer->room)
		return 0;
	if (room > BATCH_BYTES_MAX)
		return -EFBIG;
	more = realloc(packer->batch.data, room);
	if (!more)
		return -ENOMEM;
	packer->batch.data = more;
	packer->room = room;
	return 0;
}

static void pack(struct packer *packer, const uint8_t *data, size_t n, int flush)
{
	int r = Z_OK;

	packer->zip.next_in = (uint8_t *)data;
	packer->zip.avail_in = (uInt)n;
	while (packer->error == 0 && r != Z_STREAM_END && (flush == Z_FINISH || packer->zip.avail_in > 0)) {
		size_t room;

		packer->error = grow_batch(packer);
		if (packer->error < 0)
			return;
		room = packer->room - packer->batch.n;
		packer->zip.next_out = packer->batch.data + packer->batch.n;
		packer->zip.avail_out = (uInt)room;
		r = deflate(&packer->zip, flush);
		packer->batch.n += room - packer->zip.avail_out;
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			packer->error = -EIO;
	}
}

static void append_packed(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
	pack((struct packer *)buffer, data, n, Z_NO_FLUSH);
}

int gzip_message(const ProtobufCMessage *message, struct batch *ret_batch)
{
	struct packer packer = { .base.append = append_packed };

	if (deflateInit2(&packer.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	protobuf_c_message_pack_to_buffer(message, &packer.base);
	pack(&packer, NULL, 0, Z_FINISH);
	deflateEnd(&packer.zip);
	if (packer.error < 0) {
		batch_done(&packer.batch);
		return packer.error;
	}
	ret_batch->data = packer.batch.data;
	ret_batch->n = packer.batch.n;
	return 0;
}
