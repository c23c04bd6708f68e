// SPDX-License-Identifier: Apache-2.0
/* Events of PyTorch in "gpusonde trace --raw --torch". */
#pragma once

#include "bpf/event.h"
#include "view/raw.h"

/* Texts in @raw are valid until the next call. */
void raw_torch(const struct trace_call *call, struct raw_event *raw);
