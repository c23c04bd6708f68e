// SPDX-License-Identifier: Apache-2.0
/* What an analysis says, as the views want it. */
#pragma once

#include "analysis/analysis.h"
#include "model/finding.h"

/* To be freed. NULL: out of memory. */
struct findings *findings_of(const struct analysis *analysis, int64_t real_offset_ns);
