// SPDX-License-Identifier: Apache-2.0
/*
 * The digits of published numbers: sums of seconds to a microsecond, of joules to a millijoule, of byte
 * seconds to a million; shares to four significant digits, bytes a second to six. Others as they are
 * measured.
 */
#pragma once

#include "model/snapshot.h"

double metric_rounded(const struct metric *metric, double v);
void process_round(struct process *process);
/* All but the exited ones, each of which is rounded once. */
void snapshot_round(struct snapshot *snapshot);
