// SPDX-License-Identifier: Apache-2.0
/* Points as requests of remote write. */
#pragma once

#include "push/batch.h"
#include "push/points.h"

/* What requests are made of. */
struct remote_write_page {
	const struct samples *samples; /* NULL: points of series that have ended alone */
	const struct points *points;
	int64_t real_ns;
};

/* Of @n points from @first on, with metadata of all families if @metadata. -ENOMEM; -EFBIG. */
int remote_write_pack_1(const struct remote_write_page *page, uint32_t first, uint32_t n, bool metadata,
			struct batch *ret_batch);
int remote_write_pack_2(const struct remote_write_page *page, uint32_t first, uint32_t n,
			struct batch *ret_batch);
