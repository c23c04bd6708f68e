// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/plugin_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "plugin_socket/listen.h"

static int on_received(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		       void *userdata)
{
	struct plugin_place *place = userdata;
	bool channel;

	plugin_clients_wait(place->clients, 0, &channel);
	return 0;
}

int plugin_place_open(struct plugin_place *place, sd_event *event, struct plugin_clients *clients,
		      const char *variable)
{
	int r;

	strcpy(place->folder, "/tmp/gpusonde-trace.XXXXXX");
	if (!mkdtemp(place->folder)) {
		place->folder[0] = '\0';
		return -errno;
	}
	snprintf(place->socket, sizeof(place->socket), "%s/socket", place->folder);
	place->clients = clients;
	place->listener = plugin_listen(place->socket);
	if (place->listener < 0)
		return place->listener;
	r = plugin_clients_listen(clients, place->listener);
	if (r >= 0)
		r = sd_event_add_io(event, NULL, plugin_clients_fd(clients), EPOLLIN, on_received, place);
	return r >= 0 && setenv(variable, place->socket, 1) < 0 ? -errno : r;
}

void plugin_place_collect(struct plugin_place *place)
{
	bool channel;

	while (place->clients && plugin_clients_wait(place->clients, 0, &channel) > 0)
		;
}

void plugin_place_close(struct plugin_place *place)
{
	closep(&place->listener);
	if (place->socket[0])
		unlink(place->socket);
	if (place->folder[0])
		rmdir(place->folder);
}
