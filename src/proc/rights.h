// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files with another process's rights: its user, groups and the capability to read any file only if it
 * has that itself. Of the calling thread alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_RIGHTS_GROUPS = 1024 };

struct proc_rights {
	bool open_to_all; /* the user could not be changed: only what everybody may read is to be opened */
	/* to return to */
	bool switched;
	uint32_t user, group;
	int groups_n;
	gid_t groups[PROC_RIGHTS_GROUPS];
	uint32_t effective[2]; /* capabilities */
};

/*
 * Until proc_rights_give_back(). -EPERM: its rights are not known, or it runs with others than those of who
 * started it (a set-user-ID program): nothing is to be opened. -ESRCH.
 */
int proc_rights_take(const char *root, pid_t pid, struct proc_rights *ret_rights);
void proc_rights_give_back(const struct proc_rights *rights);
