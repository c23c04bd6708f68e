// SPDX-License-Identifier: Apache-2.0
/* gpusonde-dcgm: what the pages of DCGM exporters say (src/dcgm); the agent starts it. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dcgm/serve.h"
#include "helper/spawn.h"

int main(int argc, char **argv)
{
	static struct dcgm_request request;
	_cleanup_(fetcher_freep) struct fetcher *fetcher = NULL;
	int r;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-dcgm is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	/* Threads that resolve names need no heaps of their own, each of which takes 64 MiB of addresses. */
	mallopt(M_ARENA_MAX, 1);
	r = families_init();
	if (r == 0)
		r = fetcher_new(&fetcher);
	if (r == 0)
		r = dcgm_receive(HELPER_SOCKET, &request);
	if (r == 0)
		r = dcgm_confine(&request.question, atoi(argv[2]));
	while (r == 0) {
		r = dcgm_answer(fetcher, HELPER_SOCKET, &request);
		if (r == 0)
			r = dcgm_receive(HELPER_SOCKET, &request);
	}
	free(request.asked);
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
