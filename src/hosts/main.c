// SPDX-License-Identifier: Apache-2.0
/* gpusonde-hosts: asks the agents of other machines (src/hosts); gpusonde top starts it. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/below.h"
#include "helper/confine.h"
#include "helper/helper.h"
#include "helper/spawn.h"
#include "hosts/serve.h"

/* Libraries, pages of at most 32 MiB, a small thread for each name that is being resolved. */
static int confine_to_network(pid_t owner)
{
	static struct below below;
	struct confinement confinement = {
		.name = "gpusonde-hosts",
		.opens = true,
		.connects = true,
		.memory_bytes = UINT64_C(1) << 30,
	};

	below_add_network(&below);
	confinement.below = below.list;
	return confine(&confinement, owner);
}

int main(int argc, char **argv)
{
	static struct hosts_begin begin;
	int r;

	if (argc != 3) {
		fprintf(stderr, "gpusonde-hosts is started by gpusonde: run gpusonde top HOST instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	mallopt(M_ARENA_MAX, 1);
	r = hosts_receive_begin(HELPER_SOCKET, &begin);
	if (r == 0)
		r = confine_to_network(atoi(argv[2]));
	if (r == 0)
		r = hosts_serve(HELPER_SOCKET, &begin);
	return r == -EPROTONOSUPPORT ? HELPER_FOREIGN : r == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
