// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/process_id.h"

/*
 * The nearest process above @pid that is root's, has this name, and runs an executable whose name begins so:
 * a name alone is any user's to choose. Root is that of the machine, or of the user namespace that the caller
 * is in. -ESRCH: there is none, or its executable may not be seen (CAP_SYS_PTRACE); does not block.
 */
int proc_root_ancestor(const char *root, uint32_t pid, const char *name, struct process_id *ret_id);
