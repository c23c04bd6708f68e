// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the Python interpreter of a process: the program or the library that has _PyRuntime, also in
 * containers, virtual environments and static builds.
 */
#pragma once

#include <sys/types.h>

#include "python/layout.h"

/*
 * *ret_python is for map `pythons`. -ENOENT: the process has no interpreter; -ENOTSUP: it is of a version
 * that is not known, *ret_version (0: no version was found); other errors of reading. @root: "/proc" except
 * in tests.
 *
 * It opens files that the process maps; not on file systems that a user serves, which may never answer
 * (-EREMOTEIO).
 */
int python_find(const char *root, pid_t pid, uint32_t *ret_version, struct trace_python *ret_python);
