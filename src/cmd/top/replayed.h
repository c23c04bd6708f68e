// SPDX-License-Identifier: Apache-2.0
/*
 * Samples of a recording, in place of an agent's. It stands at a moment; it plays on from there, or is told
 * another one. Once it has been opened it is the sampler's thread's.
 */
#pragma once

#include "cmd/top/sample.h"

struct replayed;

/*
 * At @at_ns (real time); INT64_MAX: the newest, or, where it plays, the first one. @speed: it plays so many
 * times as fast as it was; 0: it stands, and would play as fast as it was. Else it is said why not: an exit
 * status.
 */
int replayed_open(const char *path, int64_t at_ns, double speed, struct replayed **ret_replayed);
void replayed_free(struct replayed *replayed);
DEFINE_CLEANUP(struct replayed *, replayed_free, replayed_freep)
/* Of the newest failure. */
const char *replayed_error(const struct replayed *replayed, int error);

/*
 * The sample of @real_ns (INT64_MAX: the newest), or if that is what was shown and lies before @real_ns, the
 * next one. -ENOENT: there is none; -errno.
 */
int replayed_moment(struct replayed *replayed, int64_t real_ns, struct sample **ret_sample);
/*
 * So much time has passed. 1: *ret_sample is what is to be shown now; 0: it stays; what was not recorded is
 * passed over. -errno.
 */
int replayed_advance(struct replayed *replayed, int64_t ns, struct sample **ret_sample);
