// SPDX-License-Identifier: Apache-2.0
/*
 * Which files of users may be opened and probed. The kernel reads a probed file's pages while all of the
 * machine's fork() wait: a page that a user can withhold would stop them. So a file is judged by its mount,
 * before it is opened.
 *
 * What the operator adds (trace.trust), separated by commas:
 *   /PATH        what lies below this path, on a mount that root's table has
 *   fstype:NAME  file systems of this type that root's table has
 *   user:NAME    whatever processes of this user map; a number, too
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/mounts.h"

struct trust;

/* -EINVAL: a word is none of these, or there are more than 64. An empty text trusts nothing else. */
int trust_new(const char *text, struct trust **ret_trust);
/*
 * The same as one text without names of users, which a helper cannot look up. -ENOBUFS.
 */
int trust_write(const struct trust *trust, char *buf, size_t size);
void trust_free(struct trust *trust);
DEFINE_CLEANUP(struct trust *, trust_free, trust_freep)

/* What is known of a file without opening it. @path as its process sees it, not NUL-terminated. */
struct trust_file {
	const struct mount_found *mount;
	const char *path;
	size_t path_n;
	uint32_t user; /* of the process that maps it */
};
bool trust_allows(const struct trust *trust, const struct trust_file *file);
