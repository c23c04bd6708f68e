// SPDX-License-Identifier: Apache-2.0
/*
 * The mounts of this machine, as root made them: where a file's pages come from, and whether a user may
 * withhold them. Only text of /proc is read; no file system is asked anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

enum mount_kind {
	/* pages come from memory, or from disks of this machine: no user can withhold them */
	MOUNT_LOCAL,
	MOUNT_NETWORK, /* a server that does not answer withholds them */
	MOUNT_USERS, /* served by a program (FUSE), of an unknown type, or mounted in a user's namespace */
};

struct mounts;

int mounts_new(const char *proc_root, struct mounts **ret_mounts);
void mounts_free(struct mounts *mounts);
DEFINE_CLEANUP(struct mounts *, mounts_free, mounts_freep)

/* What is known of a mount. */
struct mount_found {
	enum mount_kind kind;
	bool by_root; /* root mounted its file system, and serves it if a program does */
	bool path_by_root; /* and where its process sees it: no namespace of a user's is in between */
	char type[64]; /* of its file system; "": no table has it */
};

/*
 * Of the mount that an open file was opened through (STATX_MNT_ID), which is sought in the tables of the
 * machine's first process, of ours, and of process @pid (0: none). The caller must hold the file open:
 * devices and numbers of mounts are used again.
 */
void mounts_find(struct mounts *mounts, int32_t pid, uint64_t mount_id, struct mount_found *ret_found);

/* Who maps a file: for mounts_admit(). */
struct mounts_user {
	struct mounts *mounts;
	pid_t pid;
};
/* For proc_mapped's `admit`; @user: a struct mounts_user. 1 where no user can withhold the file's pages. */
int mounts_admit(int handle, void *user);

/* The kind of a type of file system, by name, but for overlay, which depends on its layers. */
enum mount_kind mount_kind_of_type(const char *type);

/* One line of mountinfo, see proc_pid_mountinfo(5). The texts are unescaped, and lie in @line. */
struct mount_line {
	uint64_t id, dev;
	char *point, *type, *options; /* where it is mounted; options of the file system itself */
};
/* -EBADMSG. Changes @line. */
int mount_line_parse(char *line, struct mount_line *ret_line);
