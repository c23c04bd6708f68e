// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-web as a client may have made it: the file "how" in its folder says in what way. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "web/protocol.h"

static char message[1 << 17];
static const struct web_message pong = { .order = WEB_PING };

static void say(const void *data, size_t n, int fd)
{
	struct pollfd room = { .fd = HELPER_SOCKET, .events = POLLOUT };

	while (send_with_fd(HELPER_SOCKET, data, n, fd) < 0)
		if (poll(&room, 1, -1) < 0 || room.revents & (POLLHUP | POLLERR))
			exit(1);
}

static void misbehave(const char *how)
{
	if (strcmp(how, "dies") == 0)
		exit(3);
	if (strcmp(how, "is silent") == 0)
		pause();
	while (strcmp(how, "computes") == 0)
		continue;
	if (strcmp(how, "says too much") == 0)
		memset(message, WEB_PING, sizeof(message)), say(message, 70000, -1);
	if (strcmp(how, "says nothing known") == 0)
		say("\xff", 1, -1);
	if (strcmp(how, "talks") == 0)
		for (;;)
			say(&pong, sizeof(pong), STDIN_FILENO);
}

/* Its environment is empty. Who wrote the file sees that it has been read. */
static int read_how(char *how, size_t size)
{
	FILE *file = fopen("how", "re");

	if (!file || !fgets(how, (int)size, file))
		return -1;
	fclose(file);
	return unlink("how");
}

int main(int argc, char **argv)
{
	char how[32] = "";
	int fd, listening[2] = { -1, -1 }, n_listening = 0;

	(void)argv;
	if (argc != 3 || read_how(how, sizeof(how)) < 0)
		return 1;
	for (;;) {
		struct pollfd p = { .fd = HELPER_SOCKET, .events = POLLIN };
		ssize_t n;

		poll(&p, 1, -1);
		n = receive_with_fd(HELPER_SOCKET, message, sizeof(message), &fd);
		if (n == 0)
			return 0;
		if (n < 0)
			continue;
		if (message[0] == WEB_LISTEN_HTTP && n_listening < 2)
			listening[n_listening++] = fd;
		if (message[0] == WEB_UNLISTEN_ATOP)
			close(fd);
		if (message[0] == WEB_UNLISTEN_HTTP && strcmp(how, "keeps addresses") != 0) {
			while (n_listening > 0)
				close(listening[--n_listening]);
			close(fd);
		}
		if (message[0] == WEB_LISTEN_HTTP && strcmp(how, "dies when it listens") == 0)
			exit(3);
		if (message[0] == WEB_START)
			misbehave(how);
		if (message[0] == WEB_PING && strcmp(how, "ignores pings") != 0)
			say(&pong, sizeof(pong), -1);
	}
}
