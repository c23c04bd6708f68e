// SPDX-License-Identifier: Apache-2.0
/*
 * What a process did lately: its sums now, against those of earlier times, which are kept every 10 seconds
 * for 5 minutes. As exact as the sums, since nothing is averaged before.
 */
#pragma once

#include "model/snapshot.h"

struct look_back;

/*
 * Keeps the sums of @process as of @now_ns, if it is time. *look_back: NULL at first. Out of memory it is
 * not kept.
 */
void look_back_take(struct look_back **look_back, const struct process *process, int64_t now_ns);
/* Fills @process->recent from its sums, which are as of @now_ns. @look_back may be NULL. */
void look_back_fill(const struct look_back *look_back, struct process *process, int64_t now_ns);
