// SPDX-License-Identifier: Apache-2.0
/* An event of NCCL for "gpusonde trace --raw": its operands by the names that NCCL's arguments have. */
#pragma once

#include "bpf/event.h"
#include "view/raw.h"

void raw_nccl(const struct trace_call *call, struct raw_event *raw);
