// SPDX-License-Identifier: Apache-2.0
/* "gpusonde trace --blas": what the traced processes ask cuBLAS for, those that have ended included. */
#pragma once

#include "blas/blas.h"
#include "trace/engine.h"
#include "view/view.h"

struct trace_blas;

int trace_blas_new(struct trace_blas **ret_blas);
void trace_blas_free(struct trace_blas *blas); /* free the engine first */
/* The sink of the engine's events. */
struct event_sink *trace_blas_sink(struct trace_blas *blas);
/* -ENOMEM/-E2BIG. */
int trace_blas_table(struct trace_blas *blas, struct trace_engine *engine,
		     const struct table_options *options, struct strbuf *out);
/* The value of the member `blas`. */
int trace_blas_json(struct trace_blas *blas, struct trace_engine *engine, struct strbuf *out);
/* For blas_shape_of(); NULL for NULL. */
const struct blas *trace_blas_of(const struct trace_blas *blas);
