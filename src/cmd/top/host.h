// SPDX-License-Identifier: Apache-2.0
/* The host's side of the processes of a sample. May block; for the sampler's thread. */
#pragma once

#include "cmd/top/sample.h"

/*
 * Fills @sample's processes and users. @before: those of the sample before it, to which CPU times are
 * compared; NULL: none. -ENOMEM.
 */
int host_fill(struct sample *sample, const struct host_process *before, uint32_t before_n,
	      int64_t before_mono_ns);
/* Reads the environment of the sample's watched process, as far as we may. */
void host_read_environment(struct sample *sample);
/* The one with this PID among @n, which are sorted; NULL: none. */
const struct host_process *host_find(const struct host_process *processes, uint32_t n, uint32_t pid);
