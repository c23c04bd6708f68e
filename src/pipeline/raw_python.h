// SPDX-License-Identifier: Apache-2.0
/* What "--raw" prints of CPython's events. */
#pragma once

#include "bpf/event.h"
#include "view/raw.h"

void raw_python(const struct trace_call *call, struct raw_event *raw);
