// SPDX-License-Identifier: Apache-2.0
/*
 * What the running kernel does with a probe on each kind of instruction: tried, not guessed from a version.
 * For each kind there is a specimen, a function of ours that nobody calls; a child is made, hits it, and its
 * maps tell: [uprobes] it is single-stepped, [uprobes-trampoline] optimised, neither: emulated. What a hit
 * costs is measured in the same child.
 */
#pragma once

#include "trace/attach.h"
#include "trace/site.h"

/*
 * With @backend; kinds that cannot be tried keep what site_rules_default() says. Takes some tens of
 * milliseconds.
 */
int kernel_sites_probe(struct attach_backend *backend, struct site_rules *ret_rules);
