// SPDX-License-Identifier: Apache-2.0
/*
 * Snapshots made by hand for the tests of views and the golden pages. Nothing in them depends on time or
 * machine.
 */
#pragma once

#include "model/snapshot.h"

/*
 * A small node with everything that is awkward: a healthy H100 with an estimate, refused and rejected values;
 * a stale GPU with a hostile name; one with MIG instances, some in one GPU instance, one gone; a lost one;
 * XIDs, also of a GPU nobody knows; processes with and without series, with hostile names, and some that
 * ended.
 */
struct snapshot *fixture_small(void);

/*
 * 8 GPUs with every number of the table, 64 processes with series: what the default simulated node looks like
 * in size.
 */
struct snapshot *fixture_full(void);

/* One GPU and this many processes that live, and that ended. */
struct snapshot *fixture_busy(uint32_t live, uint32_t exited);

/* No GPU and no driver. */
struct snapshot *fixture_empty(void);

/*
 * The small node with traced processes: on several devices, on one that nobody knows, on a MIG instance, on
 * none; one that has ended and its successor with the same PID; a hostile name; estimates; figures that are
 * incomplete; with and without a series. They launch kernels: two of one brief name, one that was loaded
 * twice, hostile names, some that are not known, on devices that are not, with and without a series, and what
 * had no room.
 */
struct snapshot *fixture_traced(void);

/* No GPU, and tracing that is off for a reason. */
struct snapshot *fixture_untraced(void);

/* As the model does when it publishes; again after processes or the view have changed. */
void fixture_join(struct snapshot *snapshot);

void fixture_free(struct snapshot *snapshot);
