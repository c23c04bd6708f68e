// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-reader: its role says how it behaves. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helper/helper.h"
#include "helper/spawn.h"

static char message[4096];

int main(int argc, char **argv)
{
	const char *role = argc == 3 ? argv[1] : "";
	ssize_t n;

	close(HELPER_PROGRAM);
	if (strcmp(role, "ends") == 0)
		return 3;
	while ((n = recv(HELPER_SOCKET, message, sizeof(message), 0)) > 0) {
		if (strcmp(role, "hangs") == 0) {
			signal(SIGTERM, SIG_IGN);
			pause();
		}
		if (strcmp(role, "crashes") == 0)
			abort();
		if (strcmp(role, "is of another version") == 0)
			return HELPER_FOREIGN;
		if (strcmp(message, "pid") == 0)
			n = 1 + snprintf(message, sizeof(message), "%d", (int)getpid());
		if (strcmp(message, "open files") == 0) {
			int open = 0;

			for (int fd = 0; fd < 1024; fd++)
				open += dup2(fd, fd) == fd;
			n = 1 + snprintf(message, sizeof(message), "%d", open);
		}
		if (send(HELPER_SOCKET, message, (size_t)n, MSG_NOSIGNAL) != n)
			return 1;
	}
	return 0;
}
