// SPDX-License-Identifier: Apache-2.0
/* The rows of /container/metrics as gpusonde-push takes them (struct push_row). */
#pragma once

#include <stdint.h>

#include "model/model.h"

/*
 * A file in memory with the rows: a descriptor, the caller's, and its size. More than PUSH_ROWS_MAX are
 * counted in @model. -ENODATA: there are none; -errno.
 */
int push_rows(struct model *model, const struct snapshot *snapshot, uint32_t *ret_bytes);
