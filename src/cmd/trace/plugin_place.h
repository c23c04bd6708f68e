// SPDX-License-Identifier: Apache-2.0
/* Where "gpusonde trace" listens for a plugin in its command: in a folder that only this user can reach. */
#pragma once

#include <systemd/sd-event.h>

#include "plugin_socket/clients.h"

struct plugin_place {
	char folder[40], socket[64]; /* "": there is none */
	int listener; /* -1: none */
	struct plugin_clients *clients;
};

/*
 * Listens there, and serves @clients from @event. The command finds the socket by the environment variable
 * @variable. -errno; to be closed in any case.
 */
int plugin_place_open(struct plugin_place *place, sd_event *event, struct plugin_clients *clients,
		      const char *variable);
/* Takes what has come. */
void plugin_place_collect(struct plugin_place *place);
void plugin_place_close(struct plugin_place *place);
