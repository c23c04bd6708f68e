// SPDX-License-Identifier: Apache-2.0
/*
 * Logs changes of the GPUs: lost and returned ones, changed MIG layouts, new XID errors. Compares each
 * snapshot with the previous one. GPUs of the first reading and XIDs of the first snapshot are not logged.
 */
#pragma once

#include "model/snapshot.h"

struct journal;

int journal_new(struct journal **ret_journal);
void journal_free(struct journal *journal);

/* -ENOMEM: the changes in this snapshot will be logged with the next one. */
int journal_take(struct journal *journal, const struct snapshot *snapshot);
