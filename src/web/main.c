// SPDX-License-Identifier: Apache-2.0
/* gpusonde-web: listens in place of the agent, which starts it (src/web). */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/spawn.h"
#include "web/protocol.h"
#include "web/web.h"

/* As the agent's (cmd/main.c): one arena, and large buffers are returned to the kernel. */
static void tune_malloc(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], WEB_ROLE) != 0) {
		fprintf(stderr, "gpusonde-web is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	tune_malloc();
	/* It logs nothing: what it wrote there would pass for the agent's. */
	dup2(STDIN_FILENO, STDOUT_FILENO);
	dup2(STDIN_FILENO, STDERR_FILENO);
	if (confine(&web_confinement, atoi(argv[2])) < 0)
		return EXIT_FAILURE;
	return web_serve(HELPER_SOCKET);
}
