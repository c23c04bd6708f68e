// SPDX-License-Identifier: Apache-2.0
/*
 * An agent's JSON document (view_json()), decoded once into a snapshot, so that tables and screens know one
 * form of what they show: their own snapshot, or that of an agent.
 *
 * The agent may be of another version, and what answers at its socket need not be an agent. What a document
 * lacks, or has in another type, is absent and not zero; what this version does not know is left out;
 * nothing in it makes the result larger than an agent's own limits.
 *
 * What the document does not carry is zero in the result: sums for atop, what is credited to series, calls
 * and kernels.
 */
#pragma once

#include <jansson.h>

#include "base/macro.h"
#include "model/snapshot.h"

/*
 * *ret_snapshot is the caller's, to be freed by snapshot_read_free() and not by snapshot_unref(). -EBADMSG:
 * not an object; -E2BIG: more of something than an agent lists; -ENOMEM.
 */
int snapshot_read(const json_t *document, struct snapshot **ret_snapshot);
void snapshot_read_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot *, snapshot_read_free, snapshot_read_freep)
