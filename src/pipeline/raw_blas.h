// SPDX-License-Identifier: Apache-2.0
/* An event of cuBLAS for "gpusonde trace --raw": sizes and types of what is multiplied. */
#pragma once

#include "blas/blas.h"
#include "view/raw.h"

/* @blas: which has had the events before; may be NULL. */
void raw_blas(const struct blas *blas, const struct trace_call *call, struct raw_event *raw);
