// SPDX-License-Identifier: Apache-2.0
/* For tests of kinds whose batches are compressed by gzip. */
#pragma once

#include "test.h"

#include <zlib.h>

#include "push/batch.h"

/* Decompresses @batch into @body, which has @room bytes; gives its length. */
static inline size_t unzipped(const struct batch *batch, void *body, size_t room)
{
	z_stream zip = {
		.next_in = batch->data, .avail_in = (uInt)batch->n, .next_out = body, .avail_out = (uInt)room
	};

	assert_int_equal(inflateInit2(&zip, 15 + 16), Z_OK);
	assert_int_equal(inflate(&zip, Z_FINISH), Z_STREAM_END);
	inflateEnd(&zip);
	return zip.total_out;
}
