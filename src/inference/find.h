// SPDX-License-Identifier: Apache-2.0
/* Which processes are inference servers, which others are theirs, and where they listen. */
#pragma once

#include <linux/capability.h>

#include "inference/protocol.h"

/*
 * @root: /proc. @arguments: whether command lines are read, which may take as long as their processes like.
 * Servers are told in the order of their PIDs; programs of theirs that listen nowhere are none.
 */
int servers_find(const char *root, bool arguments, struct find_answer *ret_answer);

/* The finder's end: serves until the owner closes the socket. Returns the exit status. */
int servers_find_serve(int channel);
/* Other users' processes, and the lists of what they have open. */
#define SERVERS_FIND_CAPABILITIES (UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH)
