// SPDX-License-Identifier: Apache-2.0
/*
 * What the log says of the GPUs: those that were lost and came back, other MIG layouts, new XID errors.
 * Compares each snapshot with the one before. The GPUs of the first reading and the XIDs of the first
 * snapshot are no news.
 */
#pragma once

#include "model/snapshot.h"

struct journal;

int journal_new(struct journal **ret_journal);
void journal_free(struct journal *journal);

/* -ENOMEM: what this snapshot has news of will be logged with the next. */
int journal_take(struct journal *journal, const struct snapshot *snapshot);
