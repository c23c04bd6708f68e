// SPDX-License-Identifier: Apache-2.0
/*
 * Where the agent's socket, its state and its helper are when no option names a place. Root, and a service
 * whose folder somebody else has made, use the system's; everybody else has a place of his own, found by the
 * same rule in the agent and in the commands that look for it.
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
 * The socket an agent is to serve. Without XDG_RUNTIME_DIR it lies in a folder below /tmp that nobody else
 * may enter, made here if @make. -ENOENT: control.socket is none; -EPERM: that folder is not there, or is not
 * ours alone; other errors: it cannot be made.
 */
int place_socket(const struct options *options, bool make, struct place *ret_place);

/*
 * Where a command looks for an agent, in this order: its user's own, then the system's. Their number; 0 when
 * none is wanted.
 */
unsigned places_of_socket(const struct options *options, struct place ret_places[static PLACE_SOCKETS]);

/*
 * state.dir, $STATE_DIRECTORY, the system's where it may be written, else one below the user's home. Makes
 * nothing.
 */
const char *place_state(const struct options *options, struct place *place);
/* The folder, and why not, in words. */
#define PLACE_STATE_LOST "%s cannot be %s by this user: %s: XID counts do not outlive the agent"

/* What an option that was left to its default means here; else its text. */
const char *place_of_option(const struct options *options, enum option_id id, struct place *place);

/* Makes the folder and those above it. 0 or -errno. */
int place_make_folder(const char *path, unsigned mode);
