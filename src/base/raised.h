// SPDX-License-Identifier: Apache-2.0
/*
 * Capabilities of gpusonde's file (setcap) belong to every user who may run it. So they are lowered before
 * anything else, and a thread raises them around what needs them: all else, files that a user names above
 * all, is done with the user's own rights. Programs that gpusonde starts do not get them.
 *
 * Where capabilities come from elsewhere (root, AmbientCapabilities= of a unit), nothing is lowered.
 */
#pragma once

#include <stdbool.h>

/* To be called first in main(), while there is one thread. 0 or -errno: then the program must end. */
int capabilities_lower(void);
/* Whether they were: what this process can do is then in its permitted set, not in the effective one. */
bool capabilities_lowered(void);

/*
 * For a process that we forked: gives them up for good, where they were lowered. It then is its user's like
 * any other, who may look into it.
 */
int capabilities_drop(void);

/*
 * For a thread that serves others, before it does: a new thread has what its creator has at that moment, and
 * that may be raised. 0 or -errno.
 */
int capabilities_lower_thread(void);

/* Raises all capabilities of the calling thread until raised_end(). May be nested. */
struct raised {
	bool by_us;
};
struct raised raised_begin(void);
/* Keeps errno. */
void raised_end(struct raised *raised);

/*
 * The user's own rights alone from here to the end of the block, within one that is raised, too: for files
 * that he names. A failure ends the program: it would be done with more.
 */
struct raised user_begin(void);
void user_end(struct raised *user);
#define WITH_RIGHTS_OF_USER __attribute__((cleanup(user_end), unused)) struct raised user_ = user_begin()

/* Raised from here to the end of the block. */
#define WITH_CAPABILITIES __attribute__((cleanup(raised_end), unused)) struct raised raised_ = raised_begin()
