// SPDX-License-Identifier: Apache-2.0
/* The user who answers for a process. Does not block, whatever that process does. */
#pragma once

#include <stdint.h>

/* Inode of the first user namespace: PROC_USER_INIT_INO of linux/proc_ns.h, kernel interface since 3.8. */
#define USER_NAMESPACE_INIT 0xEFFFFFFDu

/*
 * Its real user; where it is in a user namespace, the user who made the outermost one below ours: one user
 * has tens of thousands of IDs in namespaces of his own. -ESRCH: it has ended.
 */
int proc_user(const char *root, uint32_t pid, uint32_t *ret_user);
/*
 * The same for shares and penalties. Containers run as root, mostly, and do not answer for each other: for
 * them the container stands for the user, a number beyond all of users.
 */
int proc_answers_for(const char *root, uint32_t pid, uint64_t *ret_user, uint32_t *ret_uid);
