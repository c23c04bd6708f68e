// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * A pipe whose other end is closed as soon as this process is killed. Of other descriptors that is not so:
 * the kernel closes them after the probes, which takes seconds, or never where a thread of the process is
 * held. The writing end is in a table of descriptors that belongs to a thread alone, which waits for nothing.
 */
struct lifeline;

/* *ret_fd, the end to watch, belongs to the lifeline. -errno; -EPERM: the thread may have no table. */
int lifeline_new(struct lifeline **ret_lifeline, int *ret_fd);
/* Lets go of it. */
void lifeline_free(struct lifeline *lifeline);
