// SPDX-License-Identifier: Apache-2.0
#include "page/asset.h"

#include <errno.h>
#include <zlib.h>

#include "base/macro.h"
#include "base/text.h"

const struct asset assets[] = {
#define ASSET(path_, type_, tag_, plain_, bytes_, data_) { path_, type_, tag_, plain_, bytes_, data_ },
#include "page/assets.inc"
	{ 0 },
};

const struct asset *asset_find(const char *path)
{
	for (const struct asset *a = assets; a->path; a++)
		if (STRV_EQ(a->path, path))
			return a;
	return NULL;
}

int asset_unpack(const struct asset *asset, struct strbuf *out)
{
	static const int gzip = 16;
	z_stream z = { .next_in = (z_const Bytef *)asset->data, .avail_in = (uInt)asset->bytes };
	unsigned char piece[4096];
	int r = inflateInit2(&z, gzip + MAX_WBITS);

	if (r != Z_OK)
		return -ENOMEM;
	do {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		r = inflate(&z, Z_NO_FLUSH);
		strbuf_add(out, (char *)piece, sizeof(piece) - z.avail_out);
	} while (r == Z_OK);
	inflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -EIO;
}
