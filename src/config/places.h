// SPDX-License-Identifier: Apache-2.0
/*
 * Default paths of the agent's socket, state and helper. Root, and a service with a prepared folder, use the
 * system's paths; other users have their own. The agent and the commands that search for it use the same
 * rules.
 */
#pragma once

#include <limits.h>

#include "config/options.h"

#define PLACE_SOCKET "/run/gpusonde/gpusonde.sock"
#define PLACE_STATE "/var/lib/gpusonde"

enum { PLACE_SOCKETS = 2 };

struct place {
	char path[PATH_MAX];
};

/*
 * The socket that an agent serves. Without XDG_RUNTIME_DIR it is in a folder below /tmp that only this user
 * can enter, created here if @make. -ENOENT: control.socket is none; -EPERM: the folder does not exist or is
 * accessible to others; other errors: it cannot be created.
 */
int place_socket(const struct options *options, bool make, struct place *ret_place);

/*
 * Where a command searches for an agent: first its user's own, then the system's. Returns the number of
 * paths; 0: control.socket is none.
 */
unsigned places_of_socket(const struct options *options, struct place ret_places[static PLACE_SOCKETS]);

/*
 * state.dir, $STATE_DIRECTORY, the system's folder if it is writable, else one below the user's home. Creates
 * nothing.
 */
const char *place_state(const struct options *options, struct place *place);
/* Arguments: folder, verb, error. */
#define PLACE_STATE_LOST "%s cannot be %s: %s: XID counts do not outlive the agent"

/* The effective value of an option that was left to its default; else its text. */
const char *place_of_option(const struct options *options, enum option_id id, struct place *place);

/* Creates the folder and its parents. 0 or -errno. */
int place_make_folder(const char *path, unsigned mode);
