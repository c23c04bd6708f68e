// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde-reader: reads files, names and memory that users choose, in place of the agent, which starts it
 * (src/helper). One program with a role for each kind of work, since the processes of all roles share its
 * pages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helper/spawn.h"
#include "reader/roles.h"

int main(int argc, char **argv)
{
	const struct reader_role *role = argc == 3 ? reader_role_find(argv[1]) : NULL;

	if (!role) {
		fprintf(stderr, "gpusonde-reader is started by gpusonde: run gpusonde agent instead\n");
		return EXIT_FAILURE;
	}
	close(HELPER_PROGRAM);
	if (confine(&role->confinement, atoi(argv[2])) < 0)
		return EXIT_FAILURE;
	return role->serve(HELPER_SOCKET);
}
