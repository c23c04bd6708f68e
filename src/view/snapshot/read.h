// SPDX-License-Identifier: Apache-2.0
/*
 * Decodes an agent's JSON document (view_json()) into a snapshot, so that tables and screens have one input:
 * their own snapshot, or that of an agent.
 *
 * The agent may be of another version, and what answers at its socket need not be an agent. Missing members,
 * and those of another type, become absent and not zero; unknown members are ignored; the result is never
 * larger than an agent's own limits.
 *
 * Data that the document does not contain are zero in the result: sums for atop, amounts credited to series,
 * calls and kernels.
 */
#pragma once

#include <jansson.h>

#include "base/macro.h"
#include "model/snapshot.h"

/*
 * *ret_snapshot belongs to the caller and must be freed by snapshot_read_free(), not by snapshot_unref().
 * -EBADMSG: not an object; -E2BIG: larger than an agent's limits; -ENOMEM.
 */
int snapshot_read(const json_t *document, struct snapshot **ret_snapshot);
void snapshot_read_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot *, snapshot_read_free, snapshot_read_freep)
