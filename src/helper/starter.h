// SPDX-License-Identifier: Apache-2.0
/*
 * The thread that starts processes, with a table of descriptors of its own.
 *
 * A new process begins with a copy of its parent's table. If that held the probes' descriptors, and one of
 * them were closed before the new process has given up its copy, the kernel would remove the probes in the
 * new process: a wait of seconds, in which posix_spawn() does not return, and which any user can bring about
 * who maps and unmaps libraries.
 */
#pragma once

enum { STARTER_FDS_MAX = 4 };

/*
 * Runs @start in that thread, which is started by the first call, and returns what it returns. @fds, at most
 * STARTER_FDS_MAX, stay the caller's; @start gets copies, of numbers from 10 on, that are closed when it has
 * returned. Where there can be no such thread, @start runs in this one. Any thread may call; what it has
 * raised (base/raised.h) is not raised in that thread.
 */
int starter_run(int (*start)(const int fds[], void *userdata), void *userdata, const int fds[], unsigned n);
