// SPDX-License-Identifier: Apache-2.0
/*
 * Files that a user names are opened with the user's own rights. If the file of gpusonde has capabilities
 * (setcap), every user who may run it has them; without this, they could read other users' files through it.
 * Programs that gpusonde starts do not get these capabilities.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* open(2) without the capabilities of gpusonde's file; -1 and errno. */
int open_as_user(const char *path, int flags, mode_t mode);

/*
 * The same for more than one call of this thread: as_user_begin() lowers its effective capabilities, and
 * as_user_end() restores them.
 */
struct as_user {
	bool lowered;
	unsigned effective[2];
};
/* 0 or -errno: then nothing may be opened. */
int as_user_begin(struct as_user *as_user);
void as_user_end(const struct as_user *as_user);
