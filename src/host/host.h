// SPDX-License-Identifier: Apache-2.0
/*
 * The machine's own figures as a source: reads a few files of /proc, and which disks there are from /sys.
 *
 * Invariants
 *  1. What cannot be read has a presence that says why: a file or line that the kernel does not have is
 *     unsupported, one that makes no sense failed. It is never zero.
 *  2. Of each file a bounded part is read, and at most HOST_DEVICES_MAX disks and interfaces are kept; the
 *     others are counted.
 *  3. Figures are the machine's: below another root only if that has /proc, and of the network only where the
 *     first process of the machine can be seen, since each container has a network of its own.
 */
#pragma once

#include "base/macro.h"
#include "model/host.h"

struct host_source;

struct host_config {
	const char *root; /* the machine's root; its /proc and /sys are read where it has them */
	bool sees_all; /* /proc has the machine's processes (proc/proc.h) */
};

/* Copies what it needs. */
int host_source_new(const struct host_config *config, struct host_source **ret_source);
void host_source_free(struct host_source *source);
DEFINE_CLEANUP(struct host_source *, host_source_free, host_source_freep)

/* Numbers as the kernel has them; the model adds them up and scales them. */
void host_source_read(struct host_source *source, struct host *ret_reading);
