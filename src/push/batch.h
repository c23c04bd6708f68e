// SPDX-License-Identifier: Apache-2.0
/*
 * Rows as a batch: protobuf (metrics.proto), packed by gzip as it is made, so that it is never whole
 * unpacked.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "push/protocol.h"

enum { BATCH_BYTES_MAX = 8 << 20 }; /* packed */

/* A batch as it is sent. */
struct batch {
	uint8_t *data;
	size_t n;
};

/*
 * What a row does not have is not in it. *ret_batch is the caller's; of n 0 if no row has anything. -EFBIG:
 * it is larger than BATCH_BYTES_MAX; -ENOMEM.
 */
int batch_make(const struct push_row *rows, uint32_t n, struct batch *ret_batch);
void batch_done(struct batch *batch);
