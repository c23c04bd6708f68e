// SPDX-License-Identifier: Apache-2.0
/*
 * Measures how the running kernel treats a probe on each kind of instruction, which its version does not
 * tell. Each kind has a specimen, a function of gpusonde that is otherwise unused. A child process calls it
 * with a probe attached and then reads its own maps: with [uprobes] the instruction was single-stepped, with
 * [uprobes-trampoline] optimised, with neither emulated. The child also measures the cost of a hit.
 */
#pragma once

#include "trace/attach.h"
#include "trace/site.h"

/*
 * Attaches with @backend. Kinds that cannot be tried keep the values of site_rules_default(). Takes some tens
 * of milliseconds.
 */
int kernel_sites_probe(struct attach_backend *backend, struct site_rules *ret_rules);
