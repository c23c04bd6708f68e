// SPDX-License-Identifier: Apache-2.0
/*
 * src/web is the process that listens on the network, gpusonde-web: it accepts connections, parses HTTP and
 * atop's protocol, keeps finished pages, and asks the agent for what it has not. It gets its listening
 * sockets from the agent and can open none itself, nor anything else. routes.h and protocol.h are what the
 * agent shares with it.
 *
 * Invariants
 *  1. It has no capability, no file but its sockets, and a system call filter (web_confinement).
 *  2. It ends when the agent does, or closes its socket, and so frees the addresses.
 *  3. The agent never waits for it, and answers at a bounded rate (agent/web/pages.h).
 */
#pragma once

#include "helper/confine.h"

extern const struct confinement web_confinement;

/*
 * Serves until the agent closes @channel. @watchdog, -1 for none: where systemd is told that both threads are
 * alive. Returns the exit status.
 */
int web_serve(int channel, int watchdog);
