// SPDX-License-Identifier: Apache-2.0
/* gpusonde-web: listens in place of the agent, which starts it, or asks systemd to (src/web). */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/heap.h"
#include "helper/spawn.h"
#include "web/protocol.h"
#include "web/web.h"

/*
 * A service manager's: takes the one connection that this process is for. Others wait until it has ended and
 * they are another one's.
 */
static int accept_agent(void)
{
	int agent = accept4(HELPER_SOCKET, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return agent < 0 ? -errno : dup3(agent, HELPER_SOCKET, O_CLOEXEC);
}

/* To systemd, for WatchdogSec=: later the process can open no socket. */
static int connect_watchdog(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (n < 2 || n >= sizeof(address.sun_path) || !getenv("WATCHDOG_USEC"))
		return -1;
	memcpy(address.sun_path, path, n);
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		closep(&fd);
	return fd;
}

int main(int argc, char **argv)
{
	bool service = argc == 2 && strcmp(argv[1], "service") == 0;
	int watchdog = -1;

	if (!service && (argc != 3 || strcmp(argv[1], WEB_ROLE) != 0)) {
		fprintf(stderr, "gpusonde-web is started by gpusonde, or by systemd as "
				"gpusonde-web.service: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	if (service) {
		if (accept_agent() < 0) {
			fprintf(stderr, "no socket of gpusonde-web.socket to accept the agent from: %s\n",
				strerror(errno));
			return EXIT_FAILURE;
		}
	}
	close(HELPER_PROGRAM);
	if (service)
		watchdog = connect_watchdog();
	heap_keep_small();
	/* It logs nothing: what it wrote there would pass for the agent's. */
	dup2(STDIN_FILENO, STDOUT_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	if (confine(&web_confinement, service ? 0 : atoi(argv[2])) < 0)
		return EXIT_FAILURE;
	return web_serve(HELPER_SOCKET, watchdog);
}
