// SPDX-License-Identifier: Apache-2.0
/* gpusonde-store: recordings on the disk (src/store); the agent and the commands that read them start it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "helper/helper.h"
#include "helper/spawn.h"
#include "store/serve.h"

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
	heap_keep_small();
	r = store_server_new(atoi(argv[2]), &server);
	if (r == 0)
		r = store_serve(server, HELPER_SOCKET);
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
