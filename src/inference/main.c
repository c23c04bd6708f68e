// SPDX-License-Identifier: Apache-2.0
/* gpusonde-inference: what the pages of inference servers say (src/inference); the agent starts it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/spawn.h"
#include "inference/serve.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "gpusonde-inference is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	return inference_serve(HELPER_SOCKET, atoi(argv[2]));
}
