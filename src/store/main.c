// SPDX-License-Identifier: Apache-2.0
/* gpusonde-store: recordings on the disk (src/store); the agent and the commands that read them start it. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/helper.h"
#include "helper/spawn.h"
#include "store/serve.h"

/* A block is packed in megabytes every two minutes to two hours: they are returned to the kernel. */
static void tune_malloc(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

int main(int argc, char **argv)
{
	_cleanup_(store_server_freep) struct store_server *server = NULL;
	int r;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-store is started by gpusonde: run gpusonde record instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	umask(027);
	tune_malloc();
	r = store_server_new(atoi(argv[2]), &server);
	if (r == 0)
		r = store_serve(server, HELPER_SOCKET);
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
