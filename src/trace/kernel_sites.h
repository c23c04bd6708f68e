// SPDX-License-Identifier: Apache-2.0
/*
 * Measures how the running kernel treats a probe on each kind of instruction, which its version does not
 * tell. Each kind has a specimen, a function of gpusonde that is otherwise unused. A child process calls it
 * with a probe attached and then reads its own maps: with [uprobes] the instruction was single-stepped, with
 * [uprobes-trampoline] optimised, with neither emulated. The child also measures the cost of a hit.
 *
 * Probes that enter the kernel by a system call are also tried under seccomp filters
 * (trace/kernel_sites_filter.h). If return probes do harm there, none may be used: any process may set a
 * filter at any time, and a file's probes are met by every process that maps it.
 */
#pragma once

#include "trace/attach.h"
#include "trace/site.h"

/*
 * Attaches with @backend. Kinds that cannot be tried keep the values of site_rules_default(). Takes some tens
 * of milliseconds.
 */
int kernel_sites_probe(struct attach_backend *backend, struct site_rules *ret_rules);
/* Why no return probes may be used, for a message; NULL: they may. */
const char *kernel_sites_no_returns(const struct site_rules *rules);
