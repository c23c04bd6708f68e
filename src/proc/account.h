// SPDX-License-Identifier: Apache-2.0
/*
 * Who answers for what a process does: the key of shares and penalties. It is the user of proc/user.h, and
 * for root's processes in containers the container: a process cannot choose it.
 */
#pragma once

#include <stdint.h>

enum { PROC_ACCOUNT_ROOT = 0 };
#define PROC_ACCOUNT_UNKNOWN UINT64_MAX

/* Does not block. PROC_ACCOUNT_UNKNOWN: it has ended. */
uint64_t proc_account(const char *root, uint32_t pid);
