// SPDX-License-Identifier: Apache-2.0
/*
 * Tries probes in processes under a seccomp filter. On x86-64 some probes enter the kernel by a system call
 * of the kernel's own (uretprobe, 335, since Linux 6.11; uprobe, 336, since 6.18). Kernels before 6.14,
 * unless updated, show that call to the process's filter, which does not know it: the process is killed, or
 * jumps to its function's result.
 */
#pragma once

enum filter_verdict {
	FILTER_HARMLESS, /* or the kernel has no seccomp filters */
	FILTER_HARMS,
	FILTER_UNTRIED, /* the trial failed: harm cannot be excluded */
};

/*
 * Calls the functions, to which probes are attached, in a child under each kind of filter (one that kills,
 * one that returns an error). They may make no system call themselves. Takes about a millisecond.
 */
enum filter_verdict kernel_sites_try_filters(void (*const *functions)(void), unsigned n);
