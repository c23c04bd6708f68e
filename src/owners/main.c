// SPDX-License-Identifier: Apache-2.0
/* gpusonde-owners: who owns the node's containers and pods (src/owners); the agent starts it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/spawn.h"
#include "owners/serve.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "gpusonde-owners is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	if (confine(&owners_confinement, atoi(argv[2])) < 0)
		return EXIT_FAILURE;
	return owners_serve(HELPER_SOCKET);
}
