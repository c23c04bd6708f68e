// SPDX-License-Identifier: Apache-2.0
/*
 * The kind `push`: rows of /container/metrics (struct push_row) as a batch of protobuf (metrics.proto),
 * packed by gzip as it is made, so that it is never whole unpacked.
 */
#pragma once

#include "push/kind.h"

extern const struct push_kind rows_kind;

/*
 * What a row does not have is not in it. *ret_batch is the caller's; of n 0 if no row has anything. -EFBIG:
 * it is larger than BATCH_BYTES_MAX; -ENOMEM.
 */
int rows_make(const struct push_row *rows, uint32_t n, struct batch *ret_batch);
