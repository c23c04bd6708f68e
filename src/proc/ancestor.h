// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/process_id.h"

/* The nearest process above @pid that has this name. -ESRCH: none has; does not block. */
int proc_ancestor(const char *root, uint32_t pid, const char *comm, struct process_id *ret_id);
