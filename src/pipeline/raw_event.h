// SPDX-License-Identifier: Apache-2.0
/* Events as people read them: for "gpusonde trace --raw" and timelines. */
#pragma once

#include "blas/blas.h"
#include "bpf/event.h"
#include "view/raw.h"

/*
 * All but its `comm`; valid as long as @event. @blas: for cublasLt's sizes; NULL: not known. False: it is one
 * that people do not see.
 */
bool raw_event_of(const struct blas *blas, const struct trace_header *event, struct raw_event *ret_raw);
