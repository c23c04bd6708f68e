// SPDX-License-Identifier: Apache-2.0
/* Multiplications of cuBLAS (model/blas.h) as a table and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/blas.h"
#include "view/view.h"

/* Shapes by process, the most FLOP first; a sentence if there are none. 0, or -ENOMEM/-E2BIG. */
int table_blas(const struct blas_view *view, const struct table_options *options, struct strbuf *out);
/* An object: processes with their shapes, and sums. 0, or -ENOMEM/-E2BIG. */
int json_blas(const struct blas_view *view, struct strbuf *out);
