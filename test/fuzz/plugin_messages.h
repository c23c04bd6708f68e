// SPDX-License-Identifier: Apache-2.0
/* Messages of a plugin (src/plugin_socket), from any bytes: before each, two bytes say its size. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugin_socket/clients.h"

static inline void plugin_messages(struct plugin_clients *clients, const uint8_t *data, size_t n)
{
	int fds[2] = { -1, -1 };
	bool channel;

	while (n >= 2) {
		uint16_t size;

		memcpy(&size, data, sizeof(size));
		data += 2;
		n -= 2;
		if (size > n)
			size = (uint16_t)n;
		if (fds[0] < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0) {
			fcntl(fds[1], F_SETFL, O_NONBLOCK);
			if (!plugin_clients_add(clients, fds[1]))
				break;
		}
		/* Closed by the other end: the next message comes by another connection. */
		if (send(fds[0], data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			close(fds[0]);
			fds[0] = -1;
		}
		while (plugin_clients_wait(clients, 0, &channel) > 0)
			;
		data += size;
		n -= size;
	}
	if (fds[0] >= 0)
		close(fds[0]);
}
